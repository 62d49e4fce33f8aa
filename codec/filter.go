package codec

import (
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/key"
)

// payload is the set of a filter, and what is computed of it once.
type payload struct {
	bits   *bloom.Filter // or
	set    *exact.Set
	mapped bool // the bits are a mapped file

	mu    sync.Mutex
	stamp *stamp // nil: not computed yet

	scratch sync.Pool // of *scratch

	ask     sync.Once
	keys    key.Options // of the keys to ask about, and
	keysErr error       // why there are none
}

// scratch is the memory of one call of ProbeBatch or Probe.
type scratch struct {
	hashes []uint64
	values *key.ValueEncoder
	hits   []uint32
}

func (p *payload) getScratch() *scratch {
	if s, ok := p.scratch.Get().(*scratch); ok {
		return s
	}
	return new(scratch)
}

// Probe appends to sel the rows of v that may be members, ascending, and
// returns it. The filter's rule is applied to strings, and numbers compare by
// value, whatever their types. A row with a NULL is not a member, nor is a row
// whose value has no equal in the filter's class. In an exact filter every row
// found is a member; in a Bloom filter a share of the others ([Filter.FPR]) is
// found as well.
//
// Values of another class or with another number of columns, and a partial
// filter, are errors that wrap fault.ErrMismatch. Many goroutines may call
// Probe at the same time.
func (f *Filter) Probe(v key.Values, sel []uint32) ([]uint32, error) {
	if uint64(v.Len()) > math.MaxUint32 {
		return sel, fault.Unsupported(fault.At{}, "%d rows in one call, more than 2^32-1", v.Len())
	}
	options, err := f.askable()
	if err != nil {
		return sel, err
	}
	s := f.held.getScratch()
	defer f.held.scratch.Put(s)
	if s.values == nil {
		s.values = key.NewValueEncoder(options)
	}
	from := len(sel)
	err = s.values.Encode(v, func(first int, b *key.Batch) (err error) {
		if s.hits, err = f.ProbeBatch(b, s.hits[:0]); err != nil {
			return err
		}
		for _, hit := range s.hits {
			sel = append(sel, uint32(first)+b.Rows[hit])
		}
		return nil
	})
	if err != nil {
		return sel[:from], err
	}
	return sel, nil
}

// Contains sets mask[i] to whether row i of v may be a member, by the rules of
// [Filter.Probe]. It returns mask with one entry per row, in its own memory if
// that is large enough.
func (f *Filter) Contains(v key.Values, mask []bool) ([]bool, error) {
	if cap(mask) < v.Len() {
		mask = make([]bool, v.Len())
	}
	mask = mask[:v.Len()]
	clear(mask)
	rows, err := f.Probe(v, nil)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		mask[row] = true
	}
	return mask, nil
}

// ProbeBatch is [Filter.Probe] for keys that have already been made. It appends
// to sel the positions in b.Rows of the keys that may be members, ascending,
// and returns it. Rows with a NULL have no key.
//
// The keys must be of the filter's classes and made under its rule (see
// [Filter.KeyOptions]). If a mapped file was cut short in the meantime,
// ProbeBatch returns an error. It allocates only if sel is too small. Many
// goroutines may call it at the same time.
func (f *Filter) ProbeBatch(b *key.Batch, sel []uint32) ([]uint32, error) {
	options, err := f.askable()
	if err != nil {
		return sel, err
	}
	if err := b.Fits(options.Classes, options.Rule); err != nil {
		return sel, err
	}
	if f.held.set != nil {
		return f.held.probeSet(b, sel)
	}
	if values, ok := b.Ints(); ok {
		return f.held.probeBits(values, nil, sel)
	}
	s := f.held.getScratch()
	defer f.held.scratch.Put(s)
	s.hashes = b.Hash(f.Params.Hash, s.hashes)
	return f.held.probeBits(nil, s.hashes, sel)
}

// askable returns how values become keys for this filter, or an error if it
// cannot be asked.
func (f *Filter) askable() (key.Options, error) {
	if f.Bloom() == nil && f.Exact() == nil {
		return key.Options{}, bad("payload", "a Bloom filter or an exact set", "none").inProgram()
	}
	if !f.Sealed() {
		return key.Options{}, f.Usable(fault.At{})
	}
	p := f.held
	p.ask.Do(func() { p.keys, p.keysErr = f.KeyOptions() })
	return p.keys, p.keysErr
}

func (p *payload) probeSet(b *key.Batch, sel []uint32) ([]uint32, error) {
	from := len(sel)
	err := b.BySign(func(values []uint64, signed bool, positions []uint32) error {
		n := len(sel)
		sel = p.set.Probe(values, signed, sel)
		if positions != nil {
			for i, h := range sel[n:] {
				sel[n+i] = positions[h]
			}
		}
		if n > from {
			slices.Sort(sel[from:])
		}
		return nil
	})
	return sel, err
}

// probeBits probes integers, or the hashes of other keys.
func (p *payload) probeBits(values, hashes []uint64, sel []uint32) ([]uint32, error) {
	if !p.mapped {
		return p.probe(values, hashes, sel), nil
	}
	err := p.guard(func() { sel = p.probe(values, hashes, sel) })
	return sel, err
}

func (p *payload) probe(values, hashes []uint64, sel []uint32) []uint32 {
	if hashes != nil {
		return p.bits.Probe(hashes, sel)
	}
	return p.bits.ProbeInts(values, sel)
}

// guard calls read. If the bits are a mapped file that was cut short, reading
// them faults; guard turns that into an error.
func (p *payload) guard(read func()) (err error) {
	if !p.mapped {
		read()
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if panics.IsMemoryFault(r) {
			err = errGone
		} else if r != nil {
			panic(r)
		}
	}()
	read()
	return nil
}

// errGone means that the file of a mapped filter has changed.
var errGone = errors.New("the mapped filter file cannot be read any more: it was cut short meanwhile, or its disk fails (copy it to a place where nobody changes it)")

// Usable returns nil if the filter can be asked about keys: it is sealed, and
// this version knows the rules that made its keys. Errors name the place at.
func (f *Filter) Usable(at fault.At) error {
	if !f.Sealed() {
		return fault.Mismatch(at, "filter", "a finished filter", "a partial one, in which keys are missing").
			WithHint("merge all partial filters of the build first")
	}
	_, err := key.RuleOf(f.Normal())
	return err
}

// KeyOptions returns how columns become keys for this filter. It fails if this
// version does not know the rules that made the filter's keys.
func (f *Filter) KeyOptions() (key.Options, error) {
	rule, err := key.RuleOf(f.Normal())
	return key.Options{Rule: rule, Classes: key.ClassesOf(f.KeyClasses())}, err
}

// FPR returns the predicted false-positive rate: that of the Bloom filter's
// bits, 0 for an exact set, NaN without a payload.
func (f *Filter) FPR() float64 {
	switch {
	case f.Bloom() != nil:
		return f.Bloom().FPR()
	case f.Exact() != nil:
		return 0
	}
	return math.NaN()
}

// Count returns the number of distinct keys: exactly for an exact set,
// otherwise an estimate from the bits, or +Inf if they are too full; NaN
// without a payload.
func (f *Filter) Count() (e bloom.Estimate) {
	switch {
	case f.Bloom() != nil:
		if f.held.guard(func() { e = f.held.bits.Count() }) != nil {
			return bloom.Estimate{Keys: math.Inf(1), StdErr: math.Inf(1)}
		}
		return e
	case f.Exact() != nil:
		return bloom.Estimate{Keys: float64(f.Exact().Len())}
	}
	return bloom.Estimate{Keys: math.NaN(), StdErr: math.NaN()}
}

// Bytes returns the memory of the payload in bytes, including the index of an
// exact set.
func (f *Filter) Bytes() uint64 {
	switch {
	case f.Bloom() != nil:
		return f.Params.Bytes()
	case f.Exact() != nil:
		return f.Exact().Bytes()
	}
	return 0
}

// KeyRange returns inclusive bounds of the keys' values in a column, counted
// from 0, in the form of a part of a composite key. ok is false if nothing is
// known. NaN is outside of all bounds; see HasNaN.
func (f *Filter) KeyRange(column int) (lo, hi []byte, ok bool) {
	if column < 0 || column >= len(f.Key) {
		return nil, nil, false
	}
	if set := f.Exact(); set != nil {
		least, below, ok := set.Least()
		if !ok {
			return nil, nil, false
		}
		most, negative, _ := set.Greatest()
		return key.IntegerPart(least, below), key.IntegerPart(most, negative), true
	}
	k := f.Key[column]
	return k.Min, k.Max, k.Min != nil
}

// Empty reports whether the filter certainly has no members. For a Bloom filter
// it returns false.
func (f *Filter) Empty() bool { return f.Exact() != nil && f.Exact().Len() == 0 }

// Any reports whether an integer from lo to hi, both included, may be a member.
// If signed is true, the two are int64s in two's complement, otherwise uint64s.
// For a Bloom filter it returns true.
func (f *Filter) Any(lo, hi uint64, signed bool) bool {
	return f.Exact() == nil || f.Exact().Any(lo, hi, signed)
}

// Within returns the members from lo to hi, both included, ascending. If signed
// is true, all are int64s in two's complement, otherwise uint64s. ok is false
// if there are more than most, and for a Bloom filter, which cannot list its
// members.
func (f *Filter) Within(lo, hi uint64, signed bool, most int) (members []uint64, ok bool) {
	if f.Exact() == nil {
		return nil, false
	}
	return f.Exact().Within(lo, hi, signed, most)
}
