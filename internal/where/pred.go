package where

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Pred is a predicate on one column: a set of values, and the truth values for those in
// it, for all others, and for NULL. It is immutable and safe for concurrent use.
type Pred struct {
	column                int
	inside, outside, null Truth
	set                   valueSet
	// stored is the set for INT96 timestamps as stored, if set is one of timestamps
	// without a zone.
	stored valueSet
}

// valueSet is a set of non-NULL values of a column's type.
type valueSet interface {
	// eval sets dst to in for each value of the set, and to out for others. NULLs may
	// give either. It returns false if the array is of another type.
	eval(dst []Truth, a arrow.Array, in, out Truth) bool
	// possible reports whether values between the two of an array may be in the set,
	// and whether they may be outside. nan: they may be NaN as well.
	possible(bounds arrow.Array, nan bool) (in, out bool)
}

// Column returns the index of the column in Bound.Columns, or -1 if BindSome does
// not know it.
func (p *Pred) Column() int { return p.column }

// OfNull returns the truth of the predicate for a NULL.
func (p *Pred) OfNull() Truth { return p.null }

// Eval appends the truth of the predicate for each value. The array has the type of
// the column or, if that is a dictionary, runs or an extension, of its values; INT96
// timestamps may be stored values of type [keys.Int96]. It panics for an array of
// another type.
func (p *Pred) Eval(dst []Truth, values arrow.Array) []Truth {
	switch a := values.(type) {
	case *array.Dictionary:
		return p.evalDictionary(dst, a)
	case *array.RunEndEncoded:
		return p.evalRuns(dst, a)
	case *keys.Int96Array:
		return p.evalPlain(dst, p.stored, a)
	case array.ExtensionArray:
		return p.Eval(dst, a.Storage())
	}
	return p.evalPlain(dst, p.set, values)
}

func (p *Pred) evalPlain(dst []Truth, set valueSet, a arrow.Array) []Truth {
	dst, out := extend(dst, a.Len())
	switch {
	case a.Len() == a.NullN():
		fill(out, p.null)
		return dst
	case p.inside == p.outside:
		fill(out, p.inside)
	case set == nil || !set.eval(out, a, p.inside, p.outside):
		panic(fmt.Sprintf("a condition on another type than %s", a.DataType()))
	}
	if a.NullN() > 0 {
		for i := range out {
			if a.IsNull(i) {
				out[i] = p.null
			}
		}
	}
	return dst
}

func fill(dst []Truth, t Truth) {
	for i := range dst {
		dst[i] = t
	}
}

// evalDictionary evaluates each entry once.
func (p *Pred) evalDictionary(dst []Truth, a *array.Dictionary) []Truth {
	entries := p.Eval(nil, a.Dictionary())
	dst, out := extend(dst, a.Len())
	for i := range out {
		out[i] = p.null
		if a.IsValid(i) {
			out[i] = entries[a.GetValueIndex(i)]
		}
	}
	return dst
}

// evalRuns evaluates the value of each run once.
func (p *Pred) evalRuns(dst []Truth, a *array.RunEndEncoded) []Truth {
	runs := p.Eval(nil, a.Values())
	dst, out := extend(dst, a.Len())
	for i := range out {
		out[i] = runs[a.GetPhysicalIndex(i)]
	}
	return dst
}

// Possible returns the truth values that the predicate may have for values with the given
// facts. It is empty if there can be no value.
func (p *Pred) Possible(f Facts) (out Truths) {
	if p.column < 0 {
		return All
	}
	if !f.NoNulls {
		out |= p.null.Set()
	}
	if f.AllNulls {
		return out
	}
	in, not := true, true
	if p.inside != p.outside {
		in, not = p.possible(f)
	}
	if in {
		out |= p.inside.Set()
	}
	if not {
		out |= p.outside.Set()
	}
	return out
}

// possible reports whether values may be in the set, and outside.
func (p *Pred) possible(f Facts) (in, out bool) {
	bounds, set := f.Range, p.set
	if _, ok := bounds.(*keys.Int96Array); ok {
		set = p.stored
	} else if e, ok := bounds.(array.ExtensionArray); ok {
		bounds = e.Storage()
	}
	if set == nil || bounds == nil || bounds.Len() != 2 || bounds.NullN() > 0 {
		return true, true
	}
	return set.possible(bounds, f.NaN)
}

// newPred returns the predicate of a test on a column of a type. at has the column.
func newPred(at fault.At, t *test, of arrow.DataType) (*Pred, error) {
	p := &Pred{inside: True, null: Null}
	if id := plain(of).ID(); id == arrow.SPARSE_UNION || id == arrow.DENSE_UNION {
		return nil, faults.Unsupported(at, "a condition on a column of type %s", of).WithHint("name another column")
	}
	if t.op == testIsNull {
		p.inside, p.null = False, True
		return p, nil
	}
	typ := typeOf(of)
	if err := refuse(at, t, typ, of); err != nil {
		return nil, err
	}
	values, hasNull, err := valuesOf(at, t, typ, of)
	if err != nil {
		return nil, err
	}
	switch {
	case t.op == testDistinct && hasNull: // IS NOT NULL
		p.outside, p.null = True, False
		return p, nil
	case t.op == testDistinct:
		p.inside, p.outside, p.null = False, True, True
	case hasNull && t.op == testIn:
		p.outside = Null
	case hasNull:
		p.inside, p.outside = Null, Null
	}
	if typ.kind == kindNull {
		return p, nil // without a value
	}
	p.set = setOf(t, typ, of, values)
	if typ.kind == kindTimestamp || typ.kind == kindInstant {
		p.stored = setOf(t, typeOf(keys.Int96), keys.Int96, values)
	}
	return p, nil
}

// refuse returns an error if columns of the type do not take the test.
func refuse(at fault.At, t *test, typ columnType, of arrow.DataType) error {
	switch got := describe(typ, of); {
	case typ.kind == kindNull:
		return nil
	case typ.kind == kindOther:
		return faults.Unsupported(at, "a condition other than IS NULL on values of type %s", of).
			WithHint("test IS NULL or IS NOT NULL")
	case t.op == testBool && typ.kind != kindBool:
		return faults.Of(cause.Misfit, faults.Mismatch(at, "condition: the column without a comparison", "booleans", got)).WithHint("compare it with a literal, or test IS NOT NULL")
	case t.op == testLike && typ.kind != kindString:
		return faults.Of(cause.Misfit, faults.Mismatch(at, "condition: LIKE", "strings", got)).WithHint("compare it by =, < or >")
	}
	return nil
}
