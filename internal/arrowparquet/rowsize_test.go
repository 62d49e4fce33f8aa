package arrowparquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
)

func groupRows(t testing.TB, b []byte) (rows []int64) {
	for _, g := range opened(t, b).Metadata.RowGroups {
		rows = append(rows, g.NumRows)
	}
	return rows
}

// A row group ends before the row that would make it too large; a row that is too
// large by itself is alone. Each row here has four bytes and its text.
func TestRowGroupBytes(t *testing.T) {
	mem := checked(t)
	var rows []string
	for _, n := range []int{6, 6, 5, 200, 1, 16, 0, 0, 0, 0, 0, 3} {
		rows = append(rows, fmt.Sprintf(`{"c":%q}`, strings.Repeat("x", n)))
	}
	rec := record(t, mem, oneColumn(arrow.BinaryTypes.String), "["+strings.Join(rows, ",")+"]")
	defer rec.Release()
	want := []int64{2, 1, 1, 1, 1, 5, 1}
	for step := int64(1); step <= rec.NumRows(); step++ {
		b := written(t, rec, step, WriterOptions{RowGroupBytes: 20})
		if got := groupRows(t, b); !reflect.DeepEqual(got, want) {
			t.Errorf("records of %d rows: row groups %v, want %v", step, got, want)
		}
	}
}

// The division depends on the values alone, for every type.
func TestRowGroupBytesOfAllTypes(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, everything(), rowsJSON(40))
	defer rec.Release()
	opts := WriterOptions{RowGroupBytes: 1000}
	want := written(t, rec, 40, opts)
	if n := len(groupRows(t, want)); n < 5 || n > 30 {
		t.Errorf("%d row groups", n)
	}
	for _, step := range []int64{1, 3, 7, 39} {
		if !bytes.Equal(written(t, rec, step, opts), want) {
			t.Errorf("records of %d rows change the file", step)
		}
	}
	sizes := sizesOf(rec)
	part := rec.NewSlice(17, 40)
	defer part.Release()
	of := sizesOf(part)
	for i := range 23 {
		if a, b := sizes.row(17+i), of.row(i); a != b {
			t.Errorf("row %d has %d bytes, in a slice %d", 17+i, a, b)
		}
	}
}

// Dictionaries count by value, NULLs without their children.
func TestRowSizes(t *testing.T) {
	mem := checked(t)
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true})
	for name, c := range map[string]struct {
		dt   arrow.DataType
		json string
		want []int64
	}{
		"int":        {arrow.PrimitiveTypes.Int64, `[{"c":1},{"c":null}]`, []int64{8, 8}},
		"bool":       {arrow.FixedWidthTypes.Boolean, `[{"c":true}]`, []int64{1}},
		"string":     {arrow.BinaryTypes.LargeString, `[{"c":"abc"},{"c":null},{"c":""}]`, []int64{7, 1, 4}},
		"bytes":      {arrow.BinaryTypes.Binary, `[{"c":"AAE="},{"c":null}]`, []int64{6, 1}},
		"dictionary": {&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `[{"c":"abc"},{"c":null},{"c":"abc"}]`, []int64{7, 1, 7}},
		"list":       {arrow.ListOf(arrow.PrimitiveTypes.Int16), `[{"c":[1,null]},{"c":[]},{"c":null}]`, []int64{5, 1, 1}},
		"deep":       {arrow.ListOf(inner), `[{"c":[{"x":1,"y":"ab"},{"x":2,"y":null}]},{"c":null}]`, []int64{1 + 10 + 5, 1}},
		"map":        {arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), `[{"c":[{"key":"k","value":1}]}]`, []int64{1 + 5 + 1}},
		"null":       {arrow.Null, `[{"c":null}]`, []int64{1}},
	} {
		rec := record(t, mem, oneColumn(c.dt), c.json)
		sizes := sizesOf(rec)
		for i, want := range c.want {
			if got := sizes.row(i); got != want {
				t.Errorf("%s: row %d has %d bytes, want %d", name, i, got, want)
			}
		}
		rec.Release()
	}
}

// full fails like a full disk after n bytes.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	k := min(len(p), f.n)
	f.n -= k
	if k < len(p) {
		return k, fmt.Errorf("write x.parquet: %w", syscall.ENOSPC)
	}
	return k, nil
}

// A full disk is reported as such, whenever it happens.
func TestFullDisk(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, everything(), rowsJSON(12))
	defer rec.Release()
	for _, codec := range []string{"none", "zstd"} {
		opts := WriterOptions{RowGroupRows: 6, Codec: codec}
		size := len(written(t, rec, 12, opts))
		for n := 0; n < size; n += 1 + min(n, size/41) {
			w, err := NewParquetWriter(&full{n}, rec.Schema(), opts)
			if err == nil {
				err = w.Write(rec)
				_, _, last := w.Close()
				if err == nil {
					err = last
				} else if !errors.Is(last, syscall.ENOSPC) {
					t.Errorf("%s, %d of %d bytes: Close says %v", codec, n, size, last)
				}
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s, %d of %d bytes: %v", codec, n, size, err)
			}
		}
	}
	w, err := NewParquetWriter(io.Discard, oneColumn(arrow.Null), WriterOptions{RowGroupBytes: -1})
	if err == nil {
		t.Errorf("row groups of -1 bytes: %v", w)
	}
}
