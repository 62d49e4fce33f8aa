package arrowparquet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// Records and pages can be written to one file, a row group each.
func TestAppender(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, everything(), rowsJSON(50))
	defer rec.Release()
	f := opened(t, written(t, rec, 50, WriterOptions{}))
	var out bytes.Buffer
	w, err := parquet.NewWriter(&out, f.Metadata.Schema, nil, parquet.WriterOptions{
		Compression: enc.Compression{Codec: format.Zstd}, KeyValue: f.Metadata.KeyValueMetadata,
	})
	if err != nil {
		t.Fatal(err)
	}
	shred, err := NewShredder(rec.Schema())
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAppender(w, shred, WriterOptions{RowGroupRows: 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.write(rec); err != nil {
		t.Fatal(err)
	}
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	appendPages(t, w, f)
	if err := errors.Join(a.flush(), a.write(rec), a.flush()); err != nil {
		t.Fatal(err)
	}
	rows, n, err := w.Close()
	if err != nil || rows != 150 || n != int64(out.Len()) {
		t.Fatalf("%d rows, %d bytes, %v", rows, n, err)
	}
	p := open(t, out.Bytes(), mem)
	var got []int64
	for g := range p.NumGroups() {
		got = append(got, p.GroupRows(g))
	}
	if want := []int64{20, 20, 10, 50, 20, 20, 10}; len(got) != len(want) {
		t.Fatalf("row groups %v, want %v", got, want)
	}
	tbl := all(t, p, nil)
	defer tbl.Release()
	for i := range int(tbl.NumCols()) {
		for from := int64(0); from < 150; from += 50 {
			slice := array.NewColumnSlice(tbl.Column(i), from, from+50)
			if !same(slice, rec.Column(i), mem) {
				t.Errorf("column %s differs from row %d on", slice.Name(), from)
			}
			slice.Release()
		}
	}
}

// appendPages copies the row groups of f page by page.
func appendPages(t *testing.T, w *parquet.Writer, f *parquet.File) {
	for g := range f.RowGroups {
		chunks := make([]*parquet.EncodedChunk, len(f.Leaves))
		for l := range f.Leaves {
			c, cw := f.Chunk(g, l), w.Chunk(l)
			for {
				p, err := c.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := cw.Add(p, c.Dictionary()); err != nil {
					t.Fatal(err)
				}
			}
			c.Close()
			var err error
			if chunks[l], err = cw.Finish(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.RowGroup(f.RowGroups[g].Rows, chunks); err != nil {
			t.Fatal(err)
		}
	}
}

// Columns of few distinct values get a dictionary, columns of many none.
func TestDictionaries(t *testing.T) {
	mem := checked(t)
	var few, many bytes.Buffer
	few.WriteByte('[')
	many.WriteByte('[')
	for i := range 3000 {
		if i > 0 {
			few.WriteByte(',')
			many.WriteByte(',')
		}
		few.WriteString(`{"c":"` + []string{"alpha", "beta", "gamma"}[i%3] + `"}`)
		many.WriteString(`{"c":"` + itoa(i) + `"}`)
	}
	few.WriteByte(']')
	many.WriteByte(']')
	for json, want := range map[string]bool{few.String(): true, many.String(): false} {
		rec := record(t, mem, oneColumn(arrow.BinaryTypes.String), json)
		b := written(t, rec, 100, WriterOptions{Codec: "none"})
		md := opened(t, b).Metadata.RowGroups[0].Columns[0].MetaData
		if got := md.DictionaryPageOffset > 0; got != want {
			t.Errorf("a dictionary: %v, want %v", got, want)
		}
		rec.Release()
	}
}
