package partition

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
)

// Prober probes the keys of record batches of one schema. It keeps its
// memory between batches; one goroutine uses it at a time.
type Prober struct {
	Keys key.Batch // of the last record, good until that is released

	file   string
	enc    *key.Encoder
	filter *codec.Filter
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
// members, ascending; all, or with a filter of which only the header is known:
// without asking it.
func (p *Prober) probeKeys(all bool) (_ []uint32, err error) {
	p.hits = p.hits[:0]
	if all || p.filter.Kind() == 0 {
		for i := range p.Keys.Rows {
			p.hits = append(p.hits, uint32(i))
		}
		return p.hits, nil
	}
	if p.hits, err = p.filter.ProbeBatch(&p.Keys, p.hits); err != nil {
		return nil, fmt.Errorf("%s: %w", p.file, err)
	}
	return p.hits, nil
}
