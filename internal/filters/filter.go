package filters

import (
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// payload is the set of a filter, with values that are computed from it once.
type payload struct {
	bits    *bloom.Filter // this or set
	set     *exact.Set
	mapping *mapping // whose memory bits is; nil: its own
	unread  *unread  // of a mapping: what is verified when it is asked for; nil: all is verified

	counters *counting.Filter // that the bits are of; nil: of another kind, or not loaded

	mu    sync.Mutex
	stamp *stamp // nil: not computed yet

	scratch sync.Pool // of *scratch

	ask     sync.Once
	keys    keys.Options // options of the keys that can be probed, or
	keysErr error        // why none can
}

// scratch is the memory of one call of ProbeBatch or Probe.
type scratch struct {
	hashes []uint64
	owners []uint32 // by hash: its position in the batch
	values *keys.ValueEncoder
	hits   []uint32
}

func (p *payload) getScratch() *scratch {
	if s, ok := p.scratch.Get().(*scratch); ok {
		return s
	}
	return new(scratch)
}

// Probe appends to sel the rows of v that may be members, in ascending order, and
// returns it: see [Filter.ProbeBatch]. Strings are normalized by the filter's rule,
// and numbers are compared by value, whatever their types. A row with a NULL, or
// with a value that has no equal in the filter's class, is not a member.
//
// Values of another class or with another number of columns than the key are an
// error, and so is a partial filter.
func (f *Filter) Probe(v keys.Values, sel []uint32) ([]uint32, error) {
	if uint64(v.Len()) > math.MaxUint32 {
		return sel, faults.Unsupported(fault.At{}, "%d rows in one call, more than 2^32-1", v.Len())
	}
	options, err := f.askable()
	if err != nil {
		return sel, err
	}
	if err := f.held.mapping.enter(); err != nil {
		return sel, err
	}
	defer f.held.mapping.leave()
	s := f.held.getScratch()
	defer f.held.scratch.Put(s)
	if s.values == nil {
		s.values = keys.NewValueEncoder(options)
	}
	from := len(sel)
	err = s.values.Encode(v, func(first int, b *keys.Batch) (err error) {
		if s.hits, err = f.probeBatch(options, b, s.hits[:0]); err != nil {
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

// Contains sets mask[i] to whether row i of v may be a member according to
// [Filter.Probe]. It returns mask with one entry for each row of v, reallocated if
// its capacity is too small.
func (f *Filter) Contains(v keys.Values, mask []bool) ([]bool, error) {
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

// ProbeBatch appends to sel the positions in b.Rows of the keys that may be
// members, in ascending order, and returns it. All other keys are certainly not in
// the set; for an exact filter, all keys in sel certainly are. Rows with a NULL
// have no key, so they never match.
//
// The keys must be of the filter's classes and made with its rule: see
// [Filter.KeyOptions]. Other keys are an error, and so are a partial filter and a
// mapped file that was truncated in the meantime. ProbeBatch allocates only if sel
// is too small. It may be called concurrently.
func (f *Filter) ProbeBatch(b *keys.Batch, sel []uint32) ([]uint32, error) {
	options, err := f.askable()
	if err != nil {
		return sel, err
	}
	if err := f.held.mapping.enter(); err != nil {
		return sel, err
	}
	defer f.held.mapping.leave()
	return f.probeBatch(options, b, sel)
}

// probeBatch is ProbeBatch inside a call that holds the mapping.
func (f *Filter) probeBatch(options keys.Options, b *keys.Batch, sel []uint32) ([]uint32, error) {
	if !f.MayHaveKeys() {
		return sel, nil
	}
	if err := b.Fits(options.Classes, options.Rule); err != nil {
		return sel, err
	}
	if f.held.set != nil {
		return f.held.probeSet(b, sel)
	}
	from := len(sel)
	if values, ok := b.Ints(); ok {
		sel, err := f.held.probeBits(values, nil, sel)
		return f.except(sel, from, func(i uint32) uint64 { return b.HashAt(f.facts.Params.Hash, int(i)) }), err
	}
	s := f.held.getScratch()
	defer f.held.scratch.Put(s)
	hashes, of := b.Asked(f.facts.Params.Hash, options.Rule, s.hashes, s.owners)
	s.hashes = hashes
	sel, err := f.held.probeBits(nil, hashes, sel)
	sel = f.except(sel, from, func(i uint32) uint64 { return hashes[i] })
	if of == nil {
		return sel, err
	}
	s.owners = of
	for i, hit := range sel[from:] {
		sel[from+i] = of[hit]
	}
	return sel[:from+len(slices.Compact(sel[from:]))], err
}

// except removes the filter's exceptions from sel[from:].
func (f *Filter) except(sel []uint32, from int, hash func(uint32) uint64) []uint32 {
	if f.facts.Exceptions == nil || len(sel) == from {
		return sel
	}
	kept := sel[:from]
	for _, hit := range sel[from:] {
		if !f.facts.Exceptions.Hashes.Has(hash(hit)) {
			kept = append(kept, hit)
		}
	}
	return kept
}

// askable returns the options for keys that can be probed, or an error if the
// filter cannot be probed.
func (f *Filter) askable() (keys.Options, error) {
	if f == nil {
		return keys.Options{}, errNil()
	}
	if f.held == nil {
		return keys.Options{}, errNoPayload()
	}
	if !f.Sealed() {
		return keys.Options{}, f.Usable(fault.At{})
	}
	p := f.held
	p.ask.Do(func() { p.keys, p.keysErr = f.KeyOptions() })
	return p.keys, p.keysErr
}

func (p *payload) probeSet(b *keys.Batch, sel []uint32) ([]uint32, error) {
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

// probeBits probes integers, or the hashes of keys of another class.
func (p *payload) probeBits(values, hashes []uint64, sel []uint32) ([]uint32, error) {
	if p.mapping == nil {
		return p.probe(values, hashes, sel), nil
	}
	if !p.unread.complete() {
		if hashes == nil {
			hashes = p.bits.Params().Hash.AppendInts(nil, values)
		}
		if err := p.unread.touch(p.bits.Params(), hashes); err != nil {
			return sel, err
		}
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

// guard calls read. Reading the bits of a mapped file that was truncated faults:
// guard returns an error instead of crashing the process.
func (p *payload) guard(read func()) (err error) {
	if p.mapping == nil {
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

// errGone is returned if the file of a mapped filter changed while it was in use.
var errGone = errors.New("the mapped filter file cannot be read any more: it was cut short meanwhile, or its disk fails (copy it to a place where nobody changes it)")

// Usable returns nil if the filter can be probed: if it is sealed, and its keys
// were made by rules that this version knows. Errors name the place at.
func (f *Filter) Usable(at fault.At) error {
	if f == nil {
		return errNil()
	}
	if !f.Sealed() {
		return faults.Of(cause.Partial, faults.Mismatch(at, "filter", "a finished filter", "a partial one, in which keys are missing")).
			WithHint("merge all partial filters of the build first")
	}
	_, err := keys.RuleOf(f.Normal())
	return err
}

// KeyOptions returns the options for making keys from columns that can be probed.
// It returns an error if the filter's keys were made by rules that this version
// does not know.
func (f *Filter) KeyOptions() (keys.Options, error) {
	if f == nil {
		return keys.Options{}, errNil()
	}
	rule, err := keys.RuleOf(f.Normal())
	return keys.Options{Rule: rule, Classes: keys.ClassesOf(f.KeyClasses())}, err
}

// FPR returns the predicted false-positive rate, computed from a Bloom filter's bits. It
// is 0 for an exact set, and NaN without a payload, as after Close of a mapped filter, or
// if the rest of an unread file is damaged.
func (f *Filter) FPR() float64 {
	p := f.payload()
	if p == nil || p.mapping.gone() {
		return math.NaN()
	}
	if p.set != nil {
		return 0
	}
	if p.unread == nil {
		return p.bits.FPR() // LoadMapped has computed it, so no mapped bits are read
	}
	fpr := math.NaN()
	if p.readable() && p.mapping.within() {
		defer p.mapping.leave()
		if p.guard(func() { fpr = p.bits.FPR() }) != nil {
			return math.NaN()
		}
	}
	return fpr
}

// Count returns the number of distinct keys: exactly for an exact set, else
// estimated from the bits. It is +Inf if these are too full or in a mapped file
// that was truncated, and NaN without a payload, as after Close of a mapped filter.
func (f *Filter) Count() (e bloom.Cardinality) {
	p := f.payload()
	if p == nil || !p.mapping.within() {
		return bloom.Cardinality{Keys: math.NaN(), StdErr: math.NaN()}
	}
	defer p.mapping.leave()
	if p.set != nil {
		return bloom.Cardinality{Keys: float64(p.set.Len())}
	}
	if p.unread.all() != nil || p.guard(func() { e = p.bits.Count() }) != nil {
		return bloom.Cardinality{Keys: math.Inf(1), StdErr: math.Inf(1)}
	}
	return e
}

// Bytes returns the size of the payload in memory, including the index of an exact set
// and the bits of counters.
func (f *Filter) Bytes() uint64 {
	switch p := f.payload(); {
	case f.Counters() != nil:
		return CountingBytes(f.facts.Params)
	case p != nil && p.bits != nil && !p.mapping.gone():
		return f.facts.Params.Bytes()
	case f.Exact() != nil:
		return f.Exact().Bytes()
	}
	return 0
}

// KeyRange returns inclusive bounds of the values that the keys have in a column,
// counted from 0, in the form of a part of a composite key. ok is false if no
// bounds are known. NaN is never within bounds; see HasNaN.
func (f *Filter) KeyRange(column int) (lo, hi []byte, ok bool) {
	if f == nil || column < 0 || column >= len(f.facts.Key) {
		return nil, nil, false
	}
	if set := f.Exact(); set != nil {
		least, below, ok := set.Least()
		if !ok {
			return nil, nil, false
		}
		most, negative, _ := set.Greatest()
		return keys.IntegerPart(least, below), keys.IntegerPart(most, negative), true
	}
	k := f.facts.Key[column]
	return k.Min, k.Max, k.Min != nil
}

// Empty reports whether the filter is certain to have no members, which only an
// exact filter can know.
func (f *Filter) Empty() bool { return f.Exact() != nil && f.Exact().Len() == 0 }

// Any reports whether an integer from lo to hi, inclusive, may be a member. If
// signed, both are int64s in two's complement, else uint64s. Only an exact filter
// ever returns false.
func (f *Filter) Any(lo, hi uint64, signed bool) bool {
	return f.Exact() == nil || f.Exact().Any(lo, hi, signed)
}

// Within returns the members from lo to hi, inclusive, in ascending order. If
// signed, all are int64s in two's complement, else uint64s. ok is false if there
// are more than most, or if the filter is not exact and cannot list them.
func (f *Filter) Within(lo, hi uint64, signed bool, most int) (members []uint64, ok bool) {
	if f.Exact() == nil {
		return nil, false
	}
	return f.Exact().Within(lo, hi, signed, most)
}
