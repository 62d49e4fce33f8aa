package keys_test

import (
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// TestNullAtEveryLevel: a NULL in the leaf, in a struct that contains it, in a
// dictionary's index or in its values leaves the row without a key and does not
// affect other rows.
func TestNullAtEveryLevel(t *testing.T) {
	for _, dt := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String} {
		mem := checked(t)
		leaf := fromStrings(t, dt, "1", "NULL", "3", "4", "5", "6")
		t.Cleanup(leaf.Release)
		var batch keys.Batch
		for _, v := range variants(t, mem, leaf) {
			got := encode(t, v.rec, v.path, &batch)
			if !slices.Equal(batch.Rows, []uint32{0, 2, 3, 4, 5}) {
				t.Errorf("%s, %s: rows %v have keys, %v", dt, v.name, batch.Rows, got)
			}
		}

		mid := structOf(mem, leaf, []bool{true, true, false, true, true, true})
		top := structOf(mem, mid, []bool{true, true, true, false, true, true})
		part := sliced(t, mem, top)
		for name, col := range map[string]arrow.Array{"whole": top, "sliced": part} {
			rec := record(t, column{"k", col})
			encode(t, rec, "k.x.x", &batch)
			if !slices.Equal(batch.Rows, []uint32{0, 4, 5}) {
				t.Errorf("%s, structs %s: rows %v have keys", dt, name, batch.Rows)
			}
		}
		mid.Release()

		for _, it := range indexTypes {
			idx := integers(mem, it, []int{0, 1, -1, 5, 5, -1, 3})
			d := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: it, ValueType: dt}, idx, leaf)
			idx.Release()
			s := array.NewSlice(d, 1, 7)
			encode(t, record(t, column{"k", d}), "k", &batch)
			if !slices.Equal(batch.Rows, []uint32{0, 3, 4, 6}) {
				t.Errorf("%s by %s: rows %v have keys", dt, it, batch.Rows)
			}
			encode(t, record(t, column{"k", s}), "k", &batch)
			if !slices.Equal(batch.Rows, []uint32{2, 3, 5}) {
				t.Errorf("%s by %s, sliced: rows %v have keys", dt, it, batch.Rows)
			}
		}
	}
}

// TestNullInAnyPart: the same for each part of a composite key.
func TestNullInAnyPart(t *testing.T) {
	rec := record(t,
		column{"a", fromStrings(t, arrow.PrimitiveTypes.Int8, "1", "NULL", "3", "4")},
		column{"b", fromStrings(t, arrow.BinaryTypes.String, "1", "2", "NULL", "4")},
		column{"n", array.NewNull(4)})
	var batch keys.Batch
	for path, want := range map[string][]uint32{"a,b": {0, 3}, "b,a": {0, 3}, "a": {0, 2, 3}, "a,n": nil, "n": nil} {
		encode(t, rec, path, &batch)
		if !slices.Equal(batch.Rows, want) {
			t.Errorf("%s: rows %v have keys, want %v", path, batch.Rows, want)
		}
	}
}

// TestEmpty: a record without rows, also after one with rows.
func TestEmpty(t *testing.T) {
	var batch keys.Batch
	full := fromStrings(t, arrow.BinaryTypes.String, "1", "2")
	for _, v := range variants(t, memory.DefaultAllocator, full) {
		encode(t, v.rec, v.path, &batch)
		none := v.rec.NewSlice(1, 1)
		encode(t, none, v.path, &batch)
		none.Release()
		if batch.Len != 0 || len(batch.Rows) != 0 {
			t.Errorf("%s: %d rows, %v with a key", v.name, batch.Len, batch.Rows)
		}
	}
	full.Release()
}

// TestReuse: a reused Batch gives the same result as a new one.
func TestReuse(t *testing.T) {
	rec := record(t,
		column{"i", fromStrings(t, arrow.PrimitiveTypes.Int64, "-1", "NULL", "7")},
		column{"u", fromStrings(t, arrow.PrimitiveTypes.Uint8, "1", "2", "3")},
		column{"s", fromStrings(t, arrow.BinaryTypes.String, "long enough", "NULL", "")})
	var used keys.Batch
	for _, path := range []string{"i", "s", "u", "i,s", "s", "i", "u"} {
		var fresh keys.Batch
		if got, want := encode(t, rec, path, &used), encode(t, rec, path, &fresh); !slices.Equal(got, want) {
			t.Errorf("%s: %v in a used batch, %v in a new one", path, got, want)
		}
		_, ok1 := used.Ints()
		_, ok2 := fresh.Ints()
		if ok1 != ok2 {
			t.Errorf("%s: Ints ok %v in a used batch, %v in a new one", path, ok1, ok2)
		}
	}
}
