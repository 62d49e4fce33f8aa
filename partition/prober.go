package partition

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
)

// Prober probes the keys of record batches of one schema. It keeps its
// memory between batches; one goroutine uses it at a time.
type Prober struct {
	Keys key.Batch // of the last record, good until that is released

	file   string
	enc    *key.Encoder
	filter Filter
	hashes []uint64
	hits   []uint32
}

// NewProber finds the key columns in the schema and compares their classes
// with the filter's. Keys are made under the rule that the filter's were, see
// [key.Rule], and numbers are converted to its class. The file's name is for
// errors.
func NewProber(file string, schema *arrow.Schema, m Match) (*Prober, error) {
	columns, err := m.KeyColumns()
	if err != nil {
		return nil, err
	}
	options, err := m.options()
	if err != nil {
		return nil, err
	}
	enc, err := key.NewEncoder(schema, columns, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	at := fault.At{File: file, Column: key.ColumnsString(columns)}
	if err := key.Match(at, key.Side{Classes: options.Classes}, enc.Side()); err != nil {
		return nil, err
	}
	return &Prober{file: file, enc: enc, filter: m.Filter}, nil
}

// Columns returns the top-level columns that hold the key, ascending.
func (p *Prober) Columns() []int { return p.enc.Columns() }

// Probe puts the record's keys into p.Keys and returns the positions in
// p.Keys.Rows of those that may be members, ascending. The slice is valid
// until the next call.
func (p *Prober) Probe(rec arrow.Record) ([]uint32, error) { return p.probe(rec, false) }

// All is Probe without asking the filter: all keys may be members.
func (p *Prober) All(rec arrow.Record) ([]uint32, error) { return p.probe(rec, true) }

// probe is Probe, or, all, without asking the filter.
func (p *Prober) probe(rec arrow.Record, all bool) ([]uint32, error) {
	if err := p.enc.EncodeKeys(p.file, rec, &p.Keys); err != nil {
		return nil, err
	}
	return p.probeKeys(all)
}

// probeKeys returns the positions in p.Keys.Rows of the keys that may be
// members, ascending; all: without asking the filter.
func (p *Prober) probeKeys(all bool) ([]uint32, error) {
	p.hits = p.hits[:0]
	values, integer := p.Keys.Ints()
	bits, set := p.filter.Bloom(), p.filter.Exact()
	switch {
	case all || bits == nil && set == nil:
		for i := range p.Keys.Rows {
			p.hits = append(p.hits, uint32(i))
		}
		return p.hits, nil
	case bits == nil:
		return p.probeSet(set)
	case !integer:
		p.hashes = p.Keys.Hash(bits.Params().Hash, p.hashes)
	}
	err := p.guard(func() {
		if integer {
			p.hits = bits.ProbeInts(values, p.hits)
		} else {
			p.hits = bits.Probe(p.hashes, p.hits)
		}
	})
	return p.hits, err
}

// probeSet is probeKeys of an exact set.
func (p *Prober) probeSet(set *exact.Set) ([]uint32, error) {
	err := p.Keys.BySign(func(values []uint64, signed bool, positions []uint32) error {
		n := len(p.hits)
		p.hits = set.Probe(values, signed, p.hits)
		for i, h := range p.hits[n:] {
			if positions != nil {
				p.hits[n+i] = positions[h]
			}
		}
		if n > 0 {
			slices.Sort(p.hits)
		}
		return nil
	})
	return p.hits, err
}

// guard calls probe. A filter whose bits are a mapped file cannot be read any
// more once the file was cut short: that is an error, not the end of the
// process.
func (p *Prober) guard(probe func()) (err error) {
	if m, ok := p.filter.(interface{ Mapped() bool }); !ok || !m.Mapped() {
		probe()
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if fault.Gone(r) {
			err = errFilterGone
		} else if r != nil {
			panic(r)
		}
	}()
	probe()
	return nil
}

// errFilterGone says that the file of a mapped filter changed under it.
var errFilterGone = errors.New("the mapped filter file cannot be read any more: it was cut short meanwhile, or its disk fails (copy it to a place where nobody changes it)")
