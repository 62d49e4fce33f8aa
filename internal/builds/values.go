package builds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// NewBuilder returns a builder for a filter without ID files: the program adds the
// keys. o.Key names the columns, with their types (`user::int64`) or with their
// classes in o.Classes.
//
// Keys may come from slices, a channel or a queue: each goroutine has a [Worker] and
// passes it some thousand keys at a time.
//
// Without o.Expect, keys wait until Finish, when their number is known: in memory
// or, above o.Memory, on disk. With o.Shard the filter is partial; o.Expect and
// o.Identity are then required, and must be equal for all shards.
//
// A filter depends on the union of its keys and on the options, not on the number of
// workers or shards or on how the keys are divided among them. It equals the filter
// of a build from files with the same keys and options, with two exceptions: the
// build ID contains o.Identity instead of the files' identity, and there is no
// sample from which to see early that the keys are too far apart for an exact set.
func NewBuilder(o Options) (*Builder, error) {
	p, columns, err := newPlan(o)
	if err != nil {
		return nil, err
	}
	if err := p.given(columns); err != nil {
		return nil, err
	}
	if err := p.Spec.check(); err != nil {
		return nil, err
	}
	if !sealing(o.Shard) {
		switch {
		case o.Expect == 0 || o.Uncounted:
			return nil, faults.Errorf("%w, so the shards' filters would differ in size (give an upper bound, {Expect N})", ErrUncounted)
		case len(o.Identity) == 0:
			return nil, errors.New("a partial filter needs Options.Identity: only filters with the same one are merged")
		}
	}
	p.unsized = o.Expect == 0 || o.Uncounted
	if p.unsized {
		p.Spec.Capacity = 0
	}
	if len(o.Identity) > 0 {
		p.BuildID = p.Spec.id(sha256.Sum256(o.Identity))
	}
	b := p.builder()
	err = b.checkCounters()
	if !p.unsized && b.list == nil {
		err = b.divide(func(bloom.Params, float64) uint64 { return 1 })
	}
	if err != nil {
		return nil, err
	}
	b.seats = make(chan *Worker, b.threads)
	for range b.threads {
		b.seats <- nil
	}
	return b, nil
}

// given sets the classes of the key columns from the options.
func (p *Plan) given(columns []keys.Column) error {
	o := p.opts
	p.Spec.Classes = slices.Clone(o.Classes)
	if o.Classes == nil {
		for _, c := range columns {
			if c.Cast == nil {
				return fmt.Errorf("key column %s: want its type, as in %s::int64, or its class in Options.Classes", c, c)
			}
			class, err := keys.ClassOf(c.Cast)
			if err != nil {
				return err
			}
			p.Spec.Classes = append(p.Spec.Classes, string(p.Spec.Rule.Class(class)))
		}
	}
	if want, got := len(columns), len(p.Spec.Classes); want != got {
		return faults.Mismatch(fault.At{Column: o.Key}, "number of key classes", want, got)
	}
	classes := keys.ClassesOf(p.Spec.Classes)
	for _, c := range classes {
		if !c.Stored() || c == keys.Null {
			return faults.Unsupported(fault.At{Column: o.Key}, "a key of class %q", string(c))
		}
	}
	if err := p.Spec.Rule.Check(len(columns)); err != nil {
		return err
	}
	if r := p.Spec.Rule; r != 0 && !r.Concerns(classes) {
		return faults.Unsupported(fault.At{Column: o.Key}, "the rule %s for a key of class %s, since it is for strings", r, strings.Join(p.Spec.Classes, ", "))
	}
	return nil
}

// Add adds the keys of all rows; a row with a NULL has none. It normalizes strings by
// the filter's rule and converts numbers to the filter's class. A value that cannot
// be a key, because it is not a UUID although the rule requires one or has no equal
// in the class, is an error: otherwise the filter would reject a value that was
// added.
func (w *Worker) Add(v keys.Values) error { return w.AddFrom(0, v) }

// AddFrom is Add, but errors number the rows starting at from.
func (w *Worker) AddFrom(from int, v keys.Values) error {
	if err := w.open(); err != nil {
		return err
	}
	if w.values == nil {
		w.values = keys.NewValueEncoder(w.b.keys)
	}
	return w.values.Encode(v, func(first int, b *keys.Batch) error {
		if err := b.IDs(fault.At{}); err != nil {
			return err
		}
		if void := b.Void(); len(void) > 0 {
			return faults.Mismatch(fault.At{}, fmt.Sprintf("value of row %d", from+first+int(void[0])),
				"one that is equal to some "+strings.Join(w.b.spec.Classes, ", "), "one that is not").
				WithHint("give the filter a class that holds all values, such as decimal or float")
		}
		return w.AddBatch(b)
	})
}
