// Package sourcetest makes files and records for the tests of the packages that read them: a
// test says columns of Go values, and gets a record, a file of any format, or a table without
// a file. Files are read back by arrow/go's own readers. It is for tests only.
package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
)

// Checked returns an allocator that fails the test if memory is not released when it
// ends.
func Checked(t testing.TB) *memory.CheckedAllocator {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// Group is a row group of a Table.
type Group struct {
	Bytes   int64
	Batches int   // of one row each, whose value is 1000 times the group's number plus the batch's
	Err     error // after the batches
	Panics  bool  // after the batches
}

// Table is a table without a file.
type Table struct {
	Groups  []Group
	Mem     memory.Allocator
	Batches atomic.Int64 // batches that were read
}

var oneColumn = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)

func (f *Table) Schema() *arrow.Schema  { return oneColumn }
func (f *Table) NumGroups() int         { return len(f.Groups) }
func (f *Table) GroupRows(i int) int64  { return int64(f.Groups[i].Batches) }
func (f *Table) GroupBytes(i int) int64 { return f.Groups[i].Bytes }
func (f *Table) Close() error           { return nil }

func (f *Table) Read(_ context.Context, g int, _ []int) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		for i := range f.Groups[g].Batches {
			if !f.batch(int64(g)*1000+int64(i), yield) {
				return
			}
		}
		if f.Groups[g].Panics {
			panic("a page that nobody expected")
		}
		if err := f.Groups[g].Err; err != nil {
			yield(nil, err)
		}
	}
}

func (f *Table) batch(v int64, yield func(arrow.Record, error) bool) bool {
	b := array.NewInt64Builder(f.Mem)
	defer b.Release()
	b.Append(v)
	a := b.NewArray()
	defer a.Release()
	rec := array.NewRecord(oneColumn, []arrow.Array{a}, 1)
	defer rec.Release()
	f.Batches.Add(1)
	return yield(rec, nil)
}

// Col is a column of values: a slice of a basic type, or []any with nil for NULL.
type Col struct {
	Name   string
	Values any
}

// Record makes a record of the columns.
func Record(t testing.TB, mem memory.Allocator, cols ...Col) arrow.Record {
	t.Helper()
	var fields []arrow.Field
	var arrays []arrow.Array
	for _, c := range cols {
		a := Array(t, mem, c.Values)
		defer a.Release()
		arrays = append(arrays, a)
		fields = append(fields, arrow.Field{Name: c.Name, Type: a.DataType(), Nullable: true})
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
}

func Array(t testing.TB, mem memory.Allocator, values any) arrow.Array {
	t.Helper()
	var b array.Builder
	switch v := values.(type) {
	case arrow.Array:
		v.Retain()
		return v
	case []int32:
		b = array.NewInt32Builder(mem)
		b.(*array.Int32Builder).AppendValues(v, nil)
	case []int64:
		b = array.NewInt64Builder(mem)
		b.(*array.Int64Builder).AppendValues(v, nil)
	case []string:
		b = array.NewStringBuilder(mem)
		b.(*array.StringBuilder).AppendValues(v, nil)
	case []any: // of int64
		ints := array.NewInt64Builder(mem)
		for _, x := range v {
			if x == nil {
				ints.AppendNull()
			} else {
				ints.Append(int64(x.(int)))
			}
		}
		b = ints
	default:
		t.Fatalf("no array of %T", values)
	}
	defer b.Release()
	return b.NewArray()
}

func Numbers[T any](n int, f func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// Write writes the record in row groups of the given size, in the format that the name
// implies, and releases it.
func Write(t testing.TB, path string, groupRows int64, rec arrow.Record) string {
	t.Helper()
	defer rec.Release()
	var b bytes.Buffer
	var w interface {
		Write(arrow.Record) error
		Close() (rows, bytes int64, err error)
	}
	var err error
	if isParquet(path) {
		w, err = arrowparquet.NewParquetWriter(&b, rec.Schema(), arrowparquet.WriterOptions{RowGroupRows: groupRows})
	} else {
		w, err = arrowipc.NewFileWriter(&b, rec.Schema(), arrowipc.WriterOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for lo := int64(0); lo < rec.NumRows(); lo += groupRows {
		slice := rec.NewSlice(lo, min(lo+groupRows, rec.NumRows()))
		err := w.Write(slice)
		slice.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	Put(t, path, b.String())
	return path
}

// Put writes a file and creates the directories above it.
func Put(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func Get(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Tree lists the files below a directory, including hidden ones.
func Tree(t testing.TB, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

// Rows renders each row of a record.
func Rows(rec arrow.Record) []string {
	rows := make([]string, rec.NumRows())
	for i := range rows {
		cells := make([]string, rec.NumCols())
		for j, c := range rec.Columns() {
			cells[j] = c.ValueStr(i)
		}
		rows[i] = strings.Join(cells, "|")
	}
	return rows
}

// OwnContents replaces contents on 32 bits, where arrow/go's Parquet readers panic
// because of an unaligned counter. The result is then not checked independently.
func OwnContents(t testing.TB, path string, kv metadata.KeyValueMetadata) (rows []string, schema *arrow.Schema) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := arrowparquet.OpenParquet(bytes.NewReader(b), int64(len(b)), path, arrowparquet.ParquetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for g := range p.NumGroups() {
		for rec, err := range p.Read(t.Context(), g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, Rows(rec)...)
		}
	}
	md := arrow.NewMetadata(kv.Keys(), kv.Values())
	return rows, arrow.NewSchema(p.Schema().Fields(), &md)
}

// Contents reads a file with the readers of arrow/go, as an independent implementation.
func Contents(t testing.TB, path string) (rows []string, schema *arrow.Schema) {
	t.Helper()
	if isParquet(path) {
		f, err := v15.OpenParquetFile(path, false)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if bits.UintSize < 64 {
			return OwnContents(t, path, f.MetaData().KeyValueMetadata())
		}
		r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: 1 << 20}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		rr, err := r.GetRecordReader(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer rr.Release()
		for rr.Next() {
			rows = append(rows, Rows(rr.Record())...)
		}
		if schema, err = r.Schema(); err != nil {
			t.Fatal(err)
		}
		kv := f.MetaData().KeyValueMetadata()
		md := arrow.NewMetadata(kv.Keys(), kv.Values())
		return rows, arrow.NewSchema(schema.Fields(), &md)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range r.NumRecords() {
		rec, err := r.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, Rows(rec)...)
	}
	return rows, r.Schema()
}

func Metadata(s *arrow.Schema, key string) string {
	md := s.Metadata()
	v, _ := md.GetValue(key)
	return v
}

// Says fails the test unless err is of the kind and contains all of the words.
func Says(t testing.TB, what string, err, kind error, words ...string) {
	t.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) {
		t.Errorf("%s: %v, want an error that is %v", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the text lacks %q: %v", what, w, err)
		}
	}
}

func Equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// isParquet reports whether a file of the name is Parquet.
func isParquet(path string) bool {
	return slices.Contains([]string{".parquet", ".parq", ".pq"}, filepath.Ext(path))
}
