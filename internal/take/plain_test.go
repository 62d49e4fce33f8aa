package take_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/take"
)

// TestPlain: the same values without dictionaries, at every depth, from slices and
// whole arrays. An array without dictionaries is not copied.
func TestPlain(t *testing.T) {
	for _, s := range samples() {
		mem := checked(t)
		arrs := s.arrays(t, mem)
		nested := map[string]arrow.Array{}
		for name, a := range arrs {
			st, err := array.NewStructArray([]arrow.Array{a, arrs[s.dt.String()]}, []string{"a", "b"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(st.Release)
			nested[name], nested["struct of "+name] = a, st
			nested["list of "+name] = listOf(t, mem, arrow.ListOf(a.DataType()), a)
			nested["large list of "+name] = listOf(t, mem, arrow.LargeListOf(a.DataType()), a)
			nested["pairs of "+name] = listOf(t, mem, arrow.FixedSizeListOf(2, st.DataType()), st)
			nested["map of "+name] = mapOf(t, mem, a)
		}
		for name, whole := range nested {
			for _, cut := range [][2]int{{0, whole.Len()}, {1, whole.Len()}, {1, whole.Len() - 1}, {2, 2}} {
				a := array.NewSlice(whole, int64(cut[0]), int64(cut[1]))
				schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
				rec := array.NewRecord(schema, []arrow.Array{a}, int64(a.Len()))
				got, err := take.PlainRecord(mem, rec)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				c := got.Column(0)
				if dt := take.PlainType(a.DataType()); !arrow.TypeEqual(c.DataType(), dt) || !got.Schema().Equal(take.PlainSchema(schema)) {
					t.Errorf("%s: %s, want %s", name, c.DataType(), dt)
				}
				if hasDict(c.Data()) {
					t.Errorf("%s: a dictionary is left in %s", name, c.DataType())
				}
				if !hasDict(a.Data()) && c != a {
					t.Errorf("%s: was copied", name)
				}
				for i := range a.Len() {
					if g, w := show(t, c, i), show(t, whole, cut[0]+i); g != w {
						t.Errorf("%s: element %d is %s, want %s", name, i, g, w)
					}
				}
				got.Release()
				rec.Release()
				a.Release()
			}
		}
	}
}

// hasDict reports whether there are dictionaries that are not below an extension type.
func hasDict(d arrow.ArrayData) bool {
	if d.DataType().ID() == arrow.DICTIONARY {
		return true
	}
	for _, c := range d.Children() {
		if hasDict(c) {
			return true
		}
	}
	return false
}

// listOf makes lists of a's seven elements: of two, NULL, and of one; or of pairs.
func listOf(t *testing.T, mem memory.Allocator, dt arrow.DataType, a arrow.Array) arrow.Array {
	var bufs []*memory.Buffer
	switch dt.ID() {
	case arrow.LIST:
		bufs = append(bufs, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{1, 3, 3, 4, 7})))
	case arrow.LARGE_LIST:
		bufs = append(bufs, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes([]int64{1, 3, 3, 4, 7})))
	}
	n := 4
	if dt.ID() == arrow.FIXED_SIZE_LIST {
		n = 3
	}
	d := array.NewData(dt, n, append([]*memory.Buffer{memory.NewBufferBytes([]byte{0b1101})}, bufs...), []arrow.ArrayData{a.Data()}, 1, 0)
	defer d.Release()
	out := array.MakeFromData(d)
	t.Cleanup(out.Release)
	return out
}

// mapOf makes maps from numbers to a's elements.
func mapOf(t *testing.T, mem memory.Allocator, a arrow.Array) arrow.Array {
	b := array.NewInt8Builder(mem)
	defer b.Release()
	for i := range a.Len() {
		b.Append(int8(i))
	}
	k := b.NewArray()
	defer k.Release()
	dt := arrow.MapOf(arrow.PrimitiveTypes.Int8, a.DataType())
	st := array.NewData(dt.Elem(), a.Len(), []*memory.Buffer{nil}, []arrow.ArrayData{k.Data(), a.Data()}, 0, 0)
	defer st.Release()
	offs := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 2, 2, 5, 7}))
	d := array.NewData(dt, 4, []*memory.Buffer{memory.NewBufferBytes([]byte{0b1101}), offs}, []arrow.ArrayData{st}, 1, 0)
	defer d.Release()
	out := array.MakeFromData(d)
	t.Cleanup(out.Release)
	if out.Len() != 4 {
		t.Fatal(fmt.Sprint(out))
	}
	return out
}
