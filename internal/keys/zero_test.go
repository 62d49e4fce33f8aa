package keys_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// wrapped is an array around none.
type wrapped struct{ arrow.Array }

// Nil and zero arguments are errors.
func TestNothingIsAnError(t *testing.T) {
	integers := keys.Options{Classes: []keys.Class{keys.Integer}}
	values := keys.NewValueEncoder(integers)
	use := func(int, *keys.Batch) error { return nil }
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
	column := func(name string) []keys.Column { return []keys.Column{{Path: keys.Path{name}}} }
	encoder, err := keys.NewEncoder(schema, column("b"), keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := parsed(t, arrow.PrimitiveTypes.Int64, "1")
	narrow := array.NewRecord(arrow.NewSchema(schema.Fields()[:1], nil), []arrow.Array{one}, 1)
	defer narrow.Release()
	var none *array.Int64
	for call, do := range map[string]func() error{
		"nil array":               func() error { return values.Encode(keys.Array(nil), use) },
		"typed nil array":         func() error { return values.Encode(keys.Array(none), use) },
		"array around none":       func() error { return values.Encode(keys.Array(wrapped{}), use) },
		"zero Values":             func() error { return values.Encode(keys.Values{}, use) },
		"no columns":              func() error { return values.Encode(keys.Columns(), use) },
		"no callback":             func() error { return values.Encode(keys.Int64s([]int64{1}), nil) },
		"nil ValueEncoder":        func() error { return (*keys.ValueEncoder)(nil).Encode(keys.Int64s([]int64{1}), use) },
		"zero ValueEncoder":       func() error { return new(keys.ValueEncoder).Encode(keys.Int64s([]int64{1}), use) },
		"zero of both":            func() error { return new(keys.ValueEncoder).Encode(keys.Values{}, use) },
		"nil Encoder":             func() error { return (*keys.Encoder)(nil).Encode(narrow, new(keys.Batch)) },
		"zero Encoder":            func() error { return new(keys.Encoder).Encode(narrow, new(keys.Batch)) },
		"nil record":              func() error { return encoder.Encode(nil, new(keys.Batch)) },
		"nil batch":               func() error { return encoder.Encode(narrow, nil) },
		"record without a column": func() error { return encoder.Encode(narrow, new(keys.Batch)) },
		"nil schema":              func() error { _, err := keys.NewEncoder(nil, column("a"), keys.Options{}); return err },
		"zero column":             func() error { _, err := keys.NewEncoder(schema, []keys.Column{{}}, keys.Options{}); return err },
		"no column":               func() error { _, err := keys.NewEncoder(schema, nil, keys.Options{}); return err },
		"class of no type":        func() error { _, err := keys.ClassOf(nil); return err },
		"path in no schema":       func() error { _, err := keys.Path{"a"}.Resolve(nil, false); return err },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", call)
		}
	}
	unequal := keys.Columns(keys.Int64s([]int64{1}), keys.Int64s([]int64{1, 2}))
	if err := keys.NewValueEncoder(keys.Options{Classes: []keys.Class{keys.Integer, keys.Integer}}).Encode(unequal, use); err == nil {
		t.Error("columns of one and two rows")
	}
}

// Nil and zero values are empty.
func TestNothingIsEmpty(t *testing.T) {
	if n := keys.Array(nil).Len() + (keys.Values{}).Len() + keys.Array(wrapped{}).Len(); n != 0 {
		t.Errorf("%d rows", n)
	}
	for _, b := range []*keys.Batch{nil, {}} {
		values, integer := b.Ints()
		_, faulty := b.Faulty()
		b.Keep(nil)
		if len(values) != 0 || integer || faulty || b.Nulls() != 0 || len(b.Void())+len(b.Misfits()) != 0 || len(b.Hash(bloom.Hash{}, nil)) != 0 || b.Fits([]keys.Class{keys.Integer}, 0) != nil {
			t.Errorf("%v has keys", b)
		}
		new(keys.Bounds).Add(b)
	}
	for _, b := range []*keys.Bounds{nil, new(keys.Bounds), keys.NewBounds([]keys.Class{keys.Integer})} {
		for _, i := range []int{-1, 0, 1} {
			if _, _, ok := b.Column(i); ok {
				t.Errorf("column %d has bounds", i)
			}
		}
		b.Widen(3, nil, nil, true)
		b.Merge(nil)
		if b.Intersect(nil) != nil {
			t.Error("an intersection with nothing")
		}
	}
	keyed := keys.NewBounds([]keys.Class{keys.Integer})
	keyed.Widen(0, keys.IntegerPart(1, false), keys.IntegerPart(9, false), true)
	if _, _, ok := keyed.Intersect(new(keys.Bounds)).Column(0); ok {
		t.Error("bounds of a column that the other side lacks")
	}
	for _, e := range []*keys.Encoder{nil, {}} {
		if e.Index() != nil || e.Columns() != nil || e.Classes() != nil || e.AsStored() || e.Side().Columns != nil {
			t.Error("an empty encoder has columns")
		}
	}
	if (keys.Path{}).Name() != "" || keys.Pow10(-1).Sign() != 0 || keys.TypeName(nil) == "" {
		t.Error("an empty path has a name, a negative power a value, or no type no name")
	}
}
