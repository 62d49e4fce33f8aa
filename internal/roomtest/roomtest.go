// Package roomtest has what tests of several rooms need: open files, filters of a few keys,
// and rows in files of another writer. Files come in by name and out open, for as long as the
// test runs; what fails is the test's failure. Only tests may use it.
package roomtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

func init() { source.Poison = true }

// Open opens files for the test, if they may be in mixed directories.
func Open(t testing.TB, opts source.Opening, names ...string) []*source.File {
	t.Helper()
	if opts.Hive == "" {
		opts.Hive = dataset.HiveOff
	}
	files, err := source.Open(t.Context(), names, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := source.Close(files); err != nil {
			t.Error(err)
		}
	})
	return files
}

func Fake(name string, groups ...sourcetest.Group) *source.File {
	return source.NewTable(name, dataset.Parquet, &sourcetest.Table{Groups: groups, Mem: memory.DefaultAllocator})
}

// FilterOver returns the header of a filter over columns of the given classes.
func FilterOver(names []string, classes ...keys.Class) *filters.Filter {
	f := filters.New(filters.Facts{NormalForm: keys.NormalForm})
	for i, name := range names {
		f.Facts().Key = append(f.Facts().Key, filters.KeyColumn{Name: name, Class: string(classes[i])})
	}
	return f
}

// Bounded adds the bounds of its keys to the header.
func Bounded(f *filters.Filter, b *keys.Bounds) *filters.Filter {
	for i := range f.Facts().Key {
		if lo, hi, ok := b.Column(i); ok {
			f.Facts().Key[i].Min, f.Facts().Key[i].Max = lo, hi
		}
	}
	return f
}

// ExactOf returns an exact filter over a column.
func ExactOf(name string, ids ...int64) *filters.Filter {
	s := exact.New()
	for _, id := range ids {
		s.Add([]uint64{uint64(id)}, true)
	}
	f := FilterOver([]string{name}, keys.Integer)
	f.SetExact(s)
	return f
}

// BloomOf returns a Bloom filter over the record's columns, so small that it has false
// positives.
func BloomOf(t testing.TB, column string, blocks uint64, rec arrow.Record) *filters.Filter {
	t.Helper()
	defer rec.Release()
	hash := bloom.Hash{ID: bloom.XXH3}
	bits, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := keys.ParseColumns(column)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(rec.Schema(), paths, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var batch keys.Batch
	if err := enc.Encode(rec, &batch); err != nil {
		t.Fatal(err)
	}
	bits.Add(batch.Hash(hash, nil))
	var names []string
	for _, path := range paths {
		names = append(names, path.String())
	}
	f := FilterOver(names, enc.Classes()...)
	f.SetBloom(bits)
	return f
}

// Scanned returns the numbers, from the last column, of the rows that pass.
func Scanned(t testing.TB, opts keyscan.Options, shard dataset.Shard, names ...string) ([]int, *keyscan.Stats) {
	t.Helper()
	opts.Mem = sourcetest.Checked(t)
	files, err := source.Open(t.Context(), names, source.Opening{OpenOptions: source.OpenOptions{Mem: opts.Mem}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	s, err := keyscan.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := s.Check(f); err != nil {
			t.Fatal(err)
		}
	}
	pieces := source.Split(files, shard)
	var got []int
	for r, err := range arraycopy.Scan(t.Context(), s, pieces) {
		if err != nil {
			t.Fatal(err)
		}
		schema, err := s.Options.SchemaOf(pieces[r.Piece].File)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Record.Schema().Equal(schema) || r.Record.NumRows() == 0 {
			t.Errorf("a record of %d rows with columns %v, want %v", r.Record.NumRows(), r.Record.Schema(), schema)
		}
		rows := r.Record.Column(int(r.Record.NumCols()) - 1).(*array.Int64)
		for i := range rows.Len() {
			got = append(got, int(rows.Value(i)))
		}
		r.Record.Release()
	}
	return got, s.Stats
}

// Between is a filter that is known only by the bounds of its integers.
func Between(lo, hi int64) *filters.Filter {
	b := keys.NewBounds([]keys.Class{keys.Integer})
	b.Widen(0, keys.IntegerPart(uint64(lo), lo < 0), keys.IntegerPart(uint64(hi), hi < 0), true)
	return Bounded(FilterOver([]string{"id"}, keys.Integer), b)
}

func StreamOf(t testing.TB, rec arrow.Record) string {
	t.Helper()
	defer rec.Release()
	var b bytes.Buffer
	w, err := arrowipc.NewStreamWriter(&b, rec.Schema(), arrowipc.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// asStored returns schema with list elements named as arrow/go stores them.
func asStored(schema *arrow.Schema) *arrow.Schema {
	fields := schema.Fields()
	for i, f := range fields {
		if l, ok := f.Type.(*arrow.ListType); ok {
			elem := l.ElemField()
			elem.Name = "element"
			fields[i].Type = arrow.ListOfField(elem)
		}
	}
	return arrow.NewSchema(fields, nil)
}

// Foreign writes rows, as JSON, with arrow/go.
func Foreign(t testing.TB, path string, schema *arrow.Schema, rows string, props ...v15.WriterProperty) string {
	t.Helper()
	if bits.UintSize < 64 {
		schema = asStored(schema)
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+rows+"]"))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	var b bytes.Buffer
	if bits.UintSize < 64 { // arrow/go's writer panics on 32 bits, because of an unaligned counter
		codec := strings.ToLower(v15.NewWriterProperties(props...).Compression().String())
		w, err := arrowparquet.NewParquetWriter(&b, schema, arrowparquet.WriterOptions{Codec: strings.Replace(codec, "uncompressed", "none", 1)})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(rec)
		if _, _, bad := w.Close(); errors.Join(err, bad) != nil {
			t.Fatal(err, bad)
		}
		return sourcetest.Put(t, path, b.String())
	}
	stored := pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema())
	w, err := pqarrow.NewFileWriter(schema, &b, v15.NewWriterProperties(props...), stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		t.Fatal(err)
	}
	return sourcetest.Put(t, path, b.String())
}

// RuledFilter returns a Bloom filter so large that it has no false positives, with
// the bounds of its keys. Its members do not come from package key.
func RuledFilter(t testing.TB, rule string, names []string, classes []keys.Class, members map[string][]string) *filters.Filter {
	t.Helper()
	f, bounds := FilterOver(names, classes...), keys.NewBounds(classes)
	f.Facts().Rule = rule
	hash := bloom.Hash{ID: bloom.XXH3}
	bits, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: 1 << 12})
	if err != nil {
		t.Fatal(err)
	}
	for column, parts := range members {
		bits.Add([]uint64{hash.Sum([]byte(column))})
		for i, p := range parts {
			bounds.Widen(i, []byte(p), []byte(p), true)
		}
	}
	f.SetBloom(bits)
	return Bounded(f, bounds)
}

// Some makes a file with the given number of row groups and batches.
func Some(mem *sourcetest.Table, groups, batches int) *source.File {
	for range groups {
		mem.Groups = append(mem.Groups, sourcetest.Group{Bytes: 1, Batches: batches})
	}
	return source.NewTable("some", dataset.Parquet, mem)
}

func ColumnsOf(t testing.TB, files []*source.File, names ...string) *tables.Columns {
	t.Helper()
	c, err := tables.NewColumns(files, names, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// IntegerKey returns an integer in the form in which a batch has it.
func IntegerKey(v int64) string {
	var b keys.Batch
	b.SetInts([]byte{byte(v), byte(v >> 8), 0, 0, 0, 0, 0, 0}, 1, 8, true)
	return string(b.Append(nil, 0))
}

// Logs writes three log files of 10 rows each and returns their directory.
func Logs(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for i, name := range []string{"a.parquet", "y=1/b.arrow", "y=1/c.parquet"} {
		sourcetest.Write(t, filepath.Join(dir, name), 4, sourcetest.Record(t, sourcetest.Checked(t),
			sourcetest.Col{Name: "id", Values: sourcetest.Numbers(10, func(j int) int64 { return int64(10*i + j) })},
			sourcetest.Col{Name: "text", Values: sourcetest.Numbers(10, func(j int) string { return fmt.Sprint("t", 10*i+j) })}))
	}
	return dir
}

// Small files that become large when they are read; the names say how. They are named from
// the directory of any room.
const (
	LongList  = "../roomtest/testdata/list_of_60_million.parquet"         // 429 bytes
	LongWords = "../roomtest/testdata/dictionary_of_long_strings.parquet" // 4,000 rows of 8 strings of 1 MiB
)
