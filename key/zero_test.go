package key_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/key"
)

// wrapped is an array around none.
type wrapped struct{ arrow.Array }

// Nil and zero arguments are errors.
func TestNothingIsAnError(t *testing.T) {
	integers := key.Options{Classes: []key.Class{key.Integer}}
	values := key.NewValueEncoder(integers)
	use := func(int, *key.Batch) error { return nil }
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
	column := func(name string) []key.Column { return []key.Column{{Path: key.Path{name}}} }
	encoder, err := key.NewEncoder(schema, column("b"), key.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := parsed(t, arrow.PrimitiveTypes.Int64, "1")
	narrow := array.NewRecord(arrow.NewSchema(schema.Fields()[:1], nil), []arrow.Array{one}, 1)
	defer narrow.Release()
	var none *array.Int64
	for call, do := range map[string]func() error{
		"nil array":               func() error { return values.Encode(key.Array(nil), use) },
		"typed nil array":         func() error { return values.Encode(key.Array(none), use) },
		"array around none":       func() error { return values.Encode(key.Array(wrapped{}), use) },
		"zero Values":             func() error { return values.Encode(key.Values{}, use) },
		"no columns":              func() error { return values.Encode(key.Columns(), use) },
		"no callback":             func() error { return values.Encode(key.Int64s([]int64{1}), nil) },
		"nil ValueEncoder":        func() error { return (*key.ValueEncoder)(nil).Encode(key.Int64s([]int64{1}), use) },
		"zero ValueEncoder":       func() error { return new(key.ValueEncoder).Encode(key.Int64s([]int64{1}), use) },
		"zero of both":            func() error { return new(key.ValueEncoder).Encode(key.Values{}, use) },
		"nil Encoder":             func() error { return (*key.Encoder)(nil).Encode(narrow, new(key.Batch)) },
		"zero Encoder":            func() error { return new(key.Encoder).Encode(narrow, new(key.Batch)) },
		"nil record":              func() error { return encoder.Encode(nil, new(key.Batch)) },
		"nil batch":               func() error { return encoder.Encode(narrow, nil) },
		"record without a column": func() error { return encoder.Encode(narrow, new(key.Batch)) },
		"nil schema":              func() error { _, err := key.NewEncoder(nil, column("a"), key.Options{}); return err },
		"zero column":             func() error { _, err := key.NewEncoder(schema, []key.Column{{}}, key.Options{}); return err },
		"no column":               func() error { _, err := key.NewEncoder(schema, nil, key.Options{}); return err },
		"class of no type":        func() error { _, err := key.ClassOf(nil); return err },
		"path in no schema":       func() error { _, err := key.Path{"a"}.Resolve(nil, false); return err },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", call)
		}
	}
	unequal := key.Columns(key.Int64s([]int64{1}), key.Int64s([]int64{1, 2}))
	if err := key.NewValueEncoder(key.Options{Classes: []key.Class{key.Integer, key.Integer}}).Encode(unequal, use); err == nil {
		t.Error("columns of one and two rows")
	}
}

// Nil and zero values are empty.
func TestNothingIsEmpty(t *testing.T) {
	if n := key.Array(nil).Len() + (key.Values{}).Len() + key.Array(wrapped{}).Len(); n != 0 {
		t.Errorf("%d rows", n)
	}
	for _, b := range []*key.Batch{nil, {}} {
		values, integer := b.Ints()
		_, faulty := b.Faulty()
		b.Keep(nil)
		if len(values) != 0 || integer || faulty || b.Nulls() != 0 || len(b.Void())+len(b.Misfits()) != 0 || len(b.Hash(bloom.Hash{}, nil)) != 0 || b.Fits([]key.Class{key.Integer}, 0) != nil {
			t.Errorf("%v has keys", b)
		}
		new(key.Bounds).Add(b)
	}
	for _, b := range []*key.Bounds{nil, new(key.Bounds), key.NewBounds([]key.Class{key.Integer})} {
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
	keyed := key.NewBounds([]key.Class{key.Integer})
	keyed.Widen(0, key.IntegerPart(1, false), key.IntegerPart(9, false), true)
	if _, _, ok := keyed.Intersect(new(key.Bounds)).Column(0); ok {
		t.Error("bounds of a column that the other side lacks")
	}
	for _, e := range []*key.Encoder{nil, {}} {
		if e.Index() != nil || e.Columns() != nil || e.Classes() != nil || e.AsStored() || e.Side().Columns != nil {
			t.Error("an empty encoder has columns")
		}
	}
	if (key.Path{}).Name() != "" || key.Pow10(-1).Sign() != 0 || key.TypeName(nil) == "" {
		t.Error("an empty path has a name, a negative power a value, or no type no name")
	}
}
