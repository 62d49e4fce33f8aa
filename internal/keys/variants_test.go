package keys_test

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// A variant is another representation of the same values in a column. Every test of
// values covers all of them.
type variant struct {
	name string
	path string
	rec  arrow.Record
}

var indexTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
}

// variants returns records whose key column holds the values of a. They are valid
// until the test ends; the checked allocator reports leaks.
func variants(t testing.TB, mem memory.Allocator, a arrow.Array) []variant {
	var out []variant
	add := func(name, path string, col arrow.Array) {
		rec := array.NewRecord(arrow.NewSchema([]arrow.Field{
			{Name: "pad", Type: col.DataType(), Nullable: true}, {Name: "k", Type: col.DataType(), Nullable: true},
		}, nil), []arrow.Array{col, col}, int64(col.Len()))
		t.Cleanup(rec.Release)
		out = append(out, variant{name, path, rec})
	}
	held := func(a arrow.Array) arrow.Array {
		t.Cleanup(a.Release)
		return a
	}
	a.Retain()
	held(a)
	add("plain", "k", a)
	add("sliced", "k", held(sliced(t, mem, a)))
	st := held(structOf(mem, a, nil))
	add("in a struct", "k.x", st)
	add("in a sliced struct", "k.x", held(sliced(t, mem, st)))
	add("slice in a struct", "k.x", held(structOf(mem, held(sliced(t, mem, a)), nil)))
	add("two structs down", "k.x.x", held(structOf(mem, st, nil)))
	add("extension", "k", arrowtest.Extended(t, a))
	if a.Len() > 100 { // too many for the narrowest index
		return out
	}
	for _, it := range indexTypes {
		d := held(dictOf(t, mem, it, a))
		add("dictionary by "+it.Name(), "k", d)
		add("sliced dictionary by "+it.Name(), "k", held(sliced(t, mem, d)))
	}
	d := held(dictOf(t, mem, arrow.PrimitiveTypes.Int16, held(sliced(t, mem, a))))
	add("dictionary of sliced values", "k", d)
	add("dictionary in a struct", "k.x", held(structOf(mem, d, nil)))
	add("extension of a dictionary", "k", arrowtest.Extended(t, d))
	add("dictionary of an extension", "k", held(dictOf(t, mem, arrow.PrimitiveTypes.Uint32, arrowtest.Extended(t, a))))
	return out
}

// sliced returns the values of a at an offset, with other values before and after.
func sliced(t testing.TB, mem memory.Allocator, a arrow.Array) arrow.Array {
	n := a.Len()
	rows := []int{-1, n - 1, n / 2}
	for i := range n {
		rows = append(rows, i)
	}
	rows = append(rows, 0, -1)
	b, err := take.Array(mem, a, rows)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	return array.NewSlice(b, 3, int64(3+n))
}

// structOf returns structs with a as their field x, NULL where valid is false.
func structOf(mem memory.Allocator, a arrow.Array, valid []bool) arrow.Array {
	dt := arrow.StructOf(arrow.Field{Name: "y", Type: a.DataType(), Nullable: true}, arrow.Field{Name: "x", Type: a.DataType(), Nullable: true})
	bits, nulls := bitmap(mem, valid)
	if bits != nil {
		defer bits.Release()
	}
	d := array.NewData(dt, a.Len(), []*memory.Buffer{bits}, []arrow.ArrayData{a.Data(), a.Data()}, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

func bitmap(mem memory.Allocator, valid []bool) (b *memory.Buffer, nulls int) {
	if valid == nil {
		return nil, 0
	}
	b = memory.NewResizableBuffer(mem)
	b.Resize(int(bitutil.BytesForBits(int64(len(valid)))))
	memory.Set(b.Bytes(), 0)
	for i, v := range valid {
		if v {
			bitutil.SetBit(b.Bytes(), i)
		} else {
			nulls++
		}
	}
	return b, nulls
}

// dictOf returns a dictionary array with a's values, in an order that differs from
// the dictionary's. A NULL of a is NULL in the dictionary, not in the index.
func dictOf(t testing.TB, mem memory.Allocator, index arrow.DataType, a arrow.Array) arrow.Array {
	n := a.Len()
	back := make([]int, n)
	for i := range back {
		back[i] = n - 1 - i
	}
	values, err := take.Array(mem, a, back)
	if err != nil {
		t.Fatal(err)
	}
	defer values.Release()
	idx := integers(mem, index, back)
	defer idx.Release()
	return array.NewDictionaryArray(&arrow.DictionaryType{IndexType: index, ValueType: a.DataType()}, idx, values)
}

// integers builds an array of any integer type; -1 as an index is NULL.
func integers(mem memory.Allocator, dt arrow.DataType, values []int) arrow.Array {
	b := array.NewBuilder(mem, dt)
	defer b.Release()
	for _, v := range values {
		if v < 0 {
			b.AppendNull()
		} else if err := b.AppendValueFromString(fmt.Sprint(v)); err != nil {
			panic(err)
		}
	}
	return b.NewArray()
}

// checked returns an allocator that fails the test if memory is not released, after
// all cleanups that are registered later.
func checked(t testing.TB) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

var hashes = []bloom.Hash{{ID: bloom.XXH3}, {ID: bloom.XXH3, Seed: 0x9876543210abcdef}, {ID: bloom.XXH64}}

// encode returns the key of each row, "NULL" if it has none, and checks the
// guarantees of a Batch. batch is reused between calls.
func encode(t testing.TB, rec arrow.Record, paths string, batch *keys.Batch) []string {
	t.Helper()
	ps, err := keys.ParseColumns(paths)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(rec.Schema(), ps, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := enc.Encode(rec, batch); err != nil {
		t.Fatal(err)
	}
	if batch.Len != int(rec.NumRows()) {
		t.Fatalf("Len %d of %d rows", batch.Len, rec.NumRows())
	}
	out := make([]string, batch.Len)
	for i := range out {
		out[i] = "NULL"
	}
	values, isInt := batch.Ints()
	for i, row := range batch.Rows {
		if i > 0 && batch.Rows[i-1] >= row {
			t.Fatalf("rows %v do not ascend", batch.Rows)
		}
		column := batch.Append([]byte("before"), i)
		if string(column[:6]) != "before" {
			t.Fatal("Append wrote over what was there")
		}
		column = column[6:]
		out[row] = hex.EncodeToString(column)
		if isInt {
			if negative := batch.Negative(i); len(column) != 9 || (column[8] == 1) != negative {
				t.Fatalf("integer %d (negative: %v) is %x", values[i], negative, column)
			}
			column = column[:8]
		}
		for _, h := range hashes { // the hash is of the bare form
			if got, want := batch.HashAt(h, i), h.Sum(column); got != want {
				t.Fatalf("%s of %x: %#x, want %#x", h, column, got, want)
			}
		}
	}
	for _, h := range hashes {
		all := batch.Hash(h, []uint64{1, 2, 3})
		if len(all) != len(batch.Rows) {
			t.Fatalf("%d hashes of %d keys", len(all), len(batch.Rows))
		}
		for i, x := range all {
			if x != batch.HashAt(h, i) {
				t.Fatalf("Hash and HashAt differ at %d", i)
			}
		}
	}
	return out
}

// forms returns the keys of a, which must be the same in all variants.
func forms(t testing.TB, a arrow.Array) []string {
	t.Helper()
	var batch keys.Batch
	var want []string
	for _, v := range variants(t, memory.DefaultAllocator, a) {
		got := encode(t, v.rec, v.path, &batch)
		if want == nil {
			want = got
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s, %s: value %d is %s, plain %s", a.DataType(), v.name, i, got[i], want[i])
			}
		}
	}
	return want
}
