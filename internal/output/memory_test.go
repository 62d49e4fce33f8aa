package output

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// The size of a page in memory is charged before the page is decompressed, wherever it
// is read.
func TestPagesAreCharged(t *testing.T) {
	opts := source.Opening{OpenOptions: source.OpenOptions{Memory: 64 << 20}}
	f := roomtest.Open(t, opts, roomtest.LongList)[0]
	where := []string{roomtest.LongList, "row group 1", "column l.list.element", "page 1", "Memory"}
	for _, err := range rowfilter.Read(t.Context(), f, 0, nil) {
		sourcetest.Says(t, "records", err, fault.ErrMemory, where...)
	}
	c := f.Parquet().File().Chunk(0, 1)
	_, err := c.Next(t.Context())
	c.Close()
	sourcetest.Says(t, "pages", err, fault.ErrMemory, where...)
	scanner := func() *keyscan.Scanner {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("user", 2))}}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "o.parquet"), Format: dataset.Parquet, Compression: "brotli"}}
	_, err = out.WriteScan(t.Context(), scanner(), source.Split([]*source.File{f}, dataset.Shard{}), []*source.File{f}, nil)
	sourcetest.Says(t, "a scan", err, fault.ErrMemory, where...)

	out.Compression = f.Codec() // the chunk is copied as it is stored
	if w, err := out.WriteScan(t.Context(), scanner(), source.Split([]*source.File{f}, dataset.Shard{}), []*source.File{f}, nil); err != nil || w.Rows != f.Rows() {
		t.Errorf("a scan that keeps all rows wrote %d of %d: %v", w.Rows, f.Rows(), err)
	}
}

// Records of a dictionary with long strings are cut by their size after expansion.
func TestLongStringsAreCut(t *testing.T) {
	f := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Memory: 64 << 20}}, roomtest.LongWords)[0]
	rows := int64(0)
	for rec, err := range rowfilter.Read(t.Context(), f, 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.NumRows() > 2 { // of 1 MiB
			t.Fatalf("a record of %d rows", rec.NumRows())
		}
		if rows += rec.NumRows(); rows > 100 {
			break
		}
	}
	f = roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Memory: 16 << 20}}, roomtest.LongWords)[0]
	for _, err := range rowfilter.Read(t.Context(), f, 0, nil) {
		sourcetest.Says(t, "a dictionary", err, fault.ErrMemory, roomtest.LongWords, "row group 1", "column s", "Memory to 33MiB")
	}
}

// Several workers read row groups with large pages without a deadlock.
func TestLargePagesTakeTurns(t *testing.T) {
	const groups, each = 8, 200_000
	rec := sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: sourcetest.Numbers(groups*each, func(i int) int64 { return int64(i) * 0x9E3779B97F4A7C1 })})
	name := sourcetest.Write(t, filepath.Join(t.TempDir(), "a.parquet"), each, rec)
	for _, threads := range []int{1, 4, 16} {
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Memory: 32 << 20}}, name)
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("user", 0, 0x9E3779B97F4A7C1))}}, Threads: threads}})
		if err != nil {
			t.Fatal(err)
		}
		if err := Count(t.Context(), s, source.Split(files, dataset.Shard{})); err != nil || s.Stats.RowsOut.Load() != 2 {
			t.Errorf("%d threads: %v, %d rows", threads, err, s.Stats.RowsOut.Load())
		}
		rows := int64(0)
		for r, err := range roomtest.Map(t.Context(), source.Split(files, dataset.Shard{}), threads, nil, roomtest.Pass) {
			if err != nil {
				t.Fatal(err)
			}
			rows += r.Record.NumRows()
			r.Record.Release()
		}
		if rows != groups*each {
			t.Errorf("%d threads: %d rows", threads, rows)
		}
	}
}

// Schemas with very many fields are refused before they are read, in files and in
// streams.
func TestArrowSchemasAreCharged(t *testing.T) {
	fields := make([]arrow.Field, 30_000)
	for i := range fields {
		fields[i] = arrow.Field{Name: fmt.Sprint(i), Type: arrow.PrimitiveTypes.Int32}
	}
	schema := arrow.NewSchema(fields, nil)
	var file, stream bytes.Buffer
	for out, begin := range map[*bytes.Buffer]func(io.Writer, *arrow.Schema, arrowipc.WriterOptions) (*arrowipc.Writer, error){
		&file: arrowipc.NewFileWriter, &stream: arrowipc.NewStreamWriter,
	} {
		w, err := begin(out, schema, arrowipc.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"a.arrow": file.String(), "a.arrows": stream.String()} {
		path := sourcetest.Put(t, filepath.Join(dir, name), content)
		_, err := source.Open(t.Context(), []string{path}, source.Opening{OpenOptions: source.OpenOptions{Memory: 16 << 20}})
		sourcetest.Says(t, name, err, fault.ErrMemory, path, "Memory")
		roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Memory: 128 << 20}}, path)
	}
}
