package keys_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

const manyValues = 20_000 // more than two batches

func made[T any](n int, value func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = value(i)
	}
	return out
}

// parsed returns an array of a type from its values as text, "NULL" for NULL.
func parsed(t testing.TB, dt arrow.DataType, values ...string) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	for _, v := range values {
		if v == "NULL" {
			b.AppendNull()
		} else if err := b.AppendValueFromString(v); err != nil {
			t.Fatal(err)
		}
	}
	a := b.NewArray()
	t.Cleanup(a.Release)
	return a
}

// keysOf renders the keys of a batch, row by row.
func keysOf(b *keys.Batch) (rows []string) {
	rows = make([]string, b.Len)
	for i, row := range b.Rows {
		_, integer := b.Ints()
		rows[row] = fmt.Sprintf("%x %t %t", b.Append(nil, i), integer, b.Negative(i))
	}
	for _, row := range b.Void() {
		rows[row] = "void"
	}
	return rows
}

// byArrow returns the keys of arrays, made from a record.
func byArrow(t testing.TB, o keys.Options, arrays ...arrow.Array) (rows []string) {
	t.Helper()
	var fields []arrow.Field
	var columns []keys.Column
	for i, a := range arrays {
		name := fmt.Sprint("c", i)
		fields = append(fields, arrow.Field{Name: name, Type: a.DataType(), Nullable: true})
		columns = append(columns, keys.Column{Path: keys.Path{name}})
	}
	rec := array.NewRecord(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
	defer rec.Release()
	enc, err := keys.NewEncoder(rec.Schema(), columns, o)
	if err != nil {
		t.Fatal(err)
	}
	var b keys.Batch
	if err := enc.Encode(rec, &b); err != nil {
		t.Fatal(err)
	}
	return keysOf(&b)
}

// The keys of Go values equal those of Arrow arrays with the same values, for every
// class and rule of the other side.
func TestValues(t *testing.T) {
	ints := made(manyValues, func(i int) int64 { return int64(i-manyValues/2) * 7919 })
	naturals := made(manyValues, func(i int) uint64 { return math.MaxUint64 - uint64(i)*9000 })
	words := made(manyValues, func(i int) string { return strings.Repeat(" Word", i%5) + fmt.Sprint(i%999) })
	uuids := made(manyValues, func(i int) (u [16]byte) { copy(u[:], fmt.Sprintf("%016d", i)); return u })
	texts := make([]string, manyValues)
	for i, u := range uuids {
		texts[i] = fmt.Sprintf("%x", u)
	}
	texts[5] = "none"
	arrayFrom := func(dt arrow.DataType, n int, value func(b array.Builder, i int)) arrow.Array {
		b := array.NewBuilder(memory.DefaultAllocator, dt)
		defer b.Release()
		for i := range n {
			value(b, i)
		}
		a := b.NewArray()
		t.Cleanup(a.Release)
		return a
	}
	int64s := arrayFrom(arrow.PrimitiveTypes.Int64, manyValues, func(b array.Builder, i int) { b.(*array.Int64Builder).Append(ints[i]) })
	uint64s := arrayFrom(arrow.PrimitiveTypes.Uint64, manyValues, func(b array.Builder, i int) { b.(*array.Uint64Builder).Append(naturals[i]) })
	asText := func(words []string) arrow.Array {
		return arrayFrom(arrow.BinaryTypes.String, manyValues, func(b array.Builder, i int) { b.(*array.StringBuilder).Append(words[i]) })
	}
	fixed := arrayFrom(&arrow.FixedSizeBinaryType{ByteWidth: 16}, manyValues, func(b array.Builder, i int) {
		b.(*array.FixedSizeBinaryBuilder).Append(uuids[i][:])
	})
	floats := parsed(t, arrow.PrimitiveTypes.Float64, "NULL", "-0", "0", "NaN", "1.5", "-3", "1.8446744073709549568e19", "9007199254740993")
	decimals := parsed(t, &arrow.Decimal128Type{Precision: 20, Scale: 2}, "1.50", "NULL", "-3.00", "0.00")
	dates := parsed(t, arrow.FixedWidthTypes.Date32, "2026-01-01", "NULL")
	bools := parsed(t, arrow.FixedWidthTypes.Boolean, "true", "NULL", "false")
	small := parsed(t, arrow.PrimitiveTypes.Int8, "-1", "NULL", "7")
	bytes := made(manyValues, func(i int) []byte { return []byte(words[i]) })
	for _, c := range []struct {
		name    string
		classes []keys.Class
		rule    keys.Rule
		values  keys.Values
		arrays  []arrow.Array
	}{
		{"int64", []keys.Class{keys.Integer}, 0, keys.Int64s(ints), []arrow.Array{int64s}},
		{"uint64 above int64", []keys.Class{keys.Integer}, 0, keys.Uint64s(naturals), []arrow.Array{uint64s}},
		{"int64 to decimal", []keys.Class{keys.Decimal}, 0, keys.Int64s(ints), []arrow.Array{int64s}},
		{"uint64 to decimal", []keys.Class{keys.Decimal}, 0, keys.Uint64s(naturals), []arrow.Array{uint64s}},
		{"uint64 to float", []keys.Class{keys.Float}, 0, keys.Uint64s(naturals), []arrow.Array{uint64s}},
		{"strings", []keys.Class{keys.Bytes}, 0, keys.Strings(words), []arrow.Array{asText(words)}},
		{"strings under a rule", []keys.Class{keys.Bytes}, keys.Trim | keys.Lower, keys.Strings(words), []arrow.Array{asText(words)}},
		{"bytes", []keys.Class{keys.Bytes}, keys.Lower, keys.ByteSlices(bytes), []arrow.Array{asText(words)}},
		{"UUIDs", []keys.Class{keys.Fixed(16)}, 0, keys.UUIDs(uuids), []arrow.Array{fixed}},
		{"UUIDs under a rule", []keys.Class{keys.Fixed(16)}, keys.UUID, keys.UUIDs(uuids), []arrow.Array{fixed}},
		{"UUIDs in text", []keys.Class{keys.Fixed(16)}, keys.UUID, keys.Strings(texts), []arrow.Array{asText(texts)}},
		{"floats", []keys.Class{keys.Float}, 0, keys.Array(floats), []arrow.Array{floats}},
		{"floats to integers", []keys.Class{keys.Integer}, 0, keys.Array(floats), []arrow.Array{floats}},
		{"decimals", []keys.Class{keys.Decimal}, 0, keys.Array(decimals), []arrow.Array{decimals}},
		{"decimals to integers", []keys.Class{keys.Integer}, 0, keys.Array(decimals), []arrow.Array{decimals}},
		{"dates", []keys.Class{keys.Date}, 0, keys.Array(dates), []arrow.Array{dates}},
		{"booleans", []keys.Class{keys.Boolean}, 0, keys.Array(bools), []arrow.Array{bools}},
		{"int8", []keys.Class{keys.Integer}, 0, keys.Array(small), []arrow.Array{small}},
		{"NULLs without a type", []keys.Class{keys.Bytes}, 0, keys.Array(array.NewNull(3)), []arrow.Array{array.NewNull(3)}},
		{"composite", []keys.Class{keys.Integer, keys.Bytes, keys.Fixed(16)}, keys.Trim,
			keys.Columns(keys.Int64s(ints), keys.Strings(words), keys.UUIDs(uuids)), []arrow.Array{int64s, asText(words), fixed}},
		{"composite, converted", []keys.Class{keys.Decimal, keys.Integer}, 0,
			keys.Columns(keys.Uint64s(naturals[:8]), keys.Array(floats)), []arrow.Array{array.NewSlice(uint64s, 0, 8), floats}},
	} {
		want := byArrow(t, keys.Options{Classes: c.classes, Rule: orNone(c.rule, c.arrays)}, c.arrays...)
		enc := keys.NewValueEncoder(keys.Options{Classes: c.classes, Rule: c.rule})
		for round := range 2 { // the second one in reused memory
			var got []string
			err := enc.Encode(c.values, func(first int, b *keys.Batch) error {
				if first != len(got) {
					t.Errorf("%s: a batch from row %d after row %d", c.name, first, len(got))
				}
				if err := b.Fits(c.classes, c.rule); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				got = append(got, keysOf(b)...)
				return nil
			})
			if err != nil || !slices.Equal(got, want) || c.values.Len() != len(want) {
				t.Errorf("%s, round %d: %d rows of other keys than the %d of Arrow, error %v", c.name, round, len(got), len(want), err)
			}
		}
	}
}

// orNone returns the rule for an Encoder, which refuses a rule that applies to none
// of the columns.
func orNone(r keys.Rule, arrays []arrow.Array) keys.Rule {
	for _, a := range arrays {
		if c, _ := keys.ClassOf(a.DataType()); r.Concerns([]keys.Class{c}) {
			return r
		}
	}
	return 0
}

func TestValuesRefused(t *testing.T) {
	list, err := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64).NewListArray(), error(nil)
	integer := []keys.Class{keys.Integer}
	for _, c := range []struct {
		name    string
		classes []keys.Class
		values  keys.Values
		kind    error
		words   []string
	}{
		{"no column", integer, keys.Values{}, fault.ErrMismatch, []string{"want 1", "got 0"}},
		{"columns", integer, keys.Columns(keys.Int64s(nil), keys.Int64s(nil)), fault.ErrMismatch, []string{"number of key columns", "want 1, got 2"}},
		{"rows", []keys.Class{keys.Integer, keys.Bytes}, keys.Columns(keys.Int64s(make([]int64, 3)), keys.Strings(nil)), fault.ErrMismatch, []string{"rows of key column 2", "want 3, got 0"}},
		{"text", integer, keys.Strings(nil), fault.ErrMismatch, []string{"key class", "want integer, got text or binary"}},
		{"integers", []keys.Class{keys.Bytes}, keys.Uint64s([]uint64{1}), fault.ErrMismatch, []string{"want text or binary, got integer"}},
		{"text for a UUID", []keys.Class{keys.Fixed(16)}, keys.Strings([]string{"x"}), fault.ErrMismatch, []string{"want fixed[16], got text or binary"}},
		{"no array", integer, keys.Array(nil), fault.ErrMismatch, []string{"key column 1", "want an array, got nil"}},
		{"a list", integer, keys.Array(list), fault.ErrUnsupported, []string{"unsupported"}},
	} {
		err = keys.NewValueEncoder(keys.Options{Classes: c.classes}).Encode(c.values, func(int, *keys.Batch) error { return nil })
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: the text lacks %q: %v", c.name, w, err)
			}
		}
	}
	stop := errors.New("stop")
	if err := keys.NewValueEncoder(keys.Options{Classes: integer}).Encode(keys.Int64s(make([]int64, 9)), func(int, *keys.Batch) error { return stop }); err != stop {
		t.Errorf("error of the callee: %v", err)
	}
}

// Integers are used without a copy, and a call allocates almost nothing.
func TestValuesAllocate(t *testing.T) {
	ids := make([]int64, 1<<20)
	enc := keys.NewValueEncoder(keys.Options{Classes: []keys.Class{keys.Integer}})
	run := func() {
		err := enc.Encode(keys.Int64s(ids), func(first int, b *keys.Batch) error {
			if v, _ := b.Ints(); uint64(first) < uint64(len(ids)) && len(v) > 0 {
				ids[first] = 77 // visible in the batch, as it is not a copy
				if v[0] != 77 {
					t.Error("integers are copied")
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(5, run); n > 20 {
		t.Errorf("%v allocations for %d keys", n, len(ids))
	}
}

// Rows that are not valid are NULLs, whatever they hold: integers, strings that no rule takes,
// UUIDs, one column of several.
func TestValid(t *testing.T) {
	valid := make([]bool, 2*(1<<13)+3)
	ints, texts, uuids := make([]int64, len(valid)), make([]string, len(valid)), make([][16]byte, len(valid))
	all := slices.Repeat([]bool{true}, len(valid))
	for i := range valid {
		valid[i] = i%3 != 1
		ints[i], texts[i], uuids[i] = int64(i), "no UUID", [16]byte{byte(i), byte(i >> 8)}
		if valid[i] {
			texts[i] = fmt.Sprintf("%032x", i)
		}
	}
	for name, c := range map[string]struct {
		v keys.Values
		o keys.Options
	}{
		"integers": {keys.Int64s(ints).Valid(valid), keys.Options{Classes: []keys.Class{keys.Integer}}},
		"texts":    {keys.Strings(texts).Valid(valid), keys.Options{Classes: []keys.Class{keys.Fixed(16)}, Rule: keys.UUID}},
		"UUIDs":    {keys.UUIDs(uuids).Valid(valid), keys.Options{Classes: []keys.Class{keys.Fixed(16)}}},
		"twice":    {keys.Int64s(ints).Valid(valid).Valid(all).Valid(nil), keys.Options{Classes: []keys.Class{keys.Integer}}},
		"inside":   {keys.Columns(keys.Int64s(ints).Valid(valid), keys.UUIDs(uuids)).Valid(all), keys.Options{Classes: []keys.Class{keys.Integer, keys.Fixed(16)}}},
		"two":      {keys.Columns(keys.Int64s(ints).Valid(valid), keys.UUIDs(uuids)), keys.Options{Classes: []keys.Class{keys.Integer, keys.Fixed(16)}}},
	} {
		row := 0
		err := keys.NewValueEncoder(c.o).Encode(c.v, func(first int, b *keys.Batch) error {
			for _, r := range b.Rows {
				for ; row < first+int(r); row++ {
					if valid[row] {
						return fmt.Errorf("row %d is missing", row)
					}
				}
				if !valid[row] {
					return fmt.Errorf("row %d is not valid", row)
				}
				row++
			}
			if b.Nulls() != b.Len-len(b.Rows) || len(b.Void()) > 0 {
				return fmt.Errorf("%d NULLs, %d rows void", b.Nulls(), len(b.Void()))
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, v := range map[string]keys.Values{
		"rows of Valid: want 2, got 1": keys.Int64s([]int64{1, 2}).Valid([]bool{true}),
		"rows of Valid: want 2, got 3": keys.Int64s([]int64{1, 2}).Valid([]bool{true, true, true}).Valid([]bool{true, true}),
		"the NULLs of an Array":        keys.Array(array.NewNull(2)).Valid([]bool{true, true}),
	} {
		if err := keys.NewValueEncoder(keys.Options{Classes: []keys.Class{keys.Integer}}).Encode(v, func(int, *keys.Batch) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}
