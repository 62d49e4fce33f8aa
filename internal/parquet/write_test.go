package parquet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/format"
)

// copyFile writes all row groups of f again, into one row group each, or all
// into one.
func copyFile(f *parquet.File, opts parquet.WriterOptions, join bool, add func(*parquet.ChunkWriter, *parquet.Page, *parquet.Dictionary) error) ([]byte, error) {
	var out bytes.Buffer
	w, err := parquet.NewWriter(&out, f.Metadata.Schema, f.Metadata.ColumnOrders, opts)
	if err != nil {
		return nil, err
	}
	writers := make([]*parquet.ChunkWriter, len(f.Leaves))
	rows := int64(0)
	for g := range f.RowGroups {
		rows += f.RowGroups[g].Rows
		for l := range f.Leaves {
			if writers[l] == nil {
				writers[l] = w.Chunk(l)
			}
			if err := copyChunk(f, g, l, writers[l], add); err != nil {
				return nil, err
			}
		}
		if join && g < len(f.RowGroups)-1 || rows == 0 {
			continue
		}
		chunks := make([]*parquet.EncodedChunk, len(writers))
		for l := range chunks {
			if chunks[l], err = writers[l].Finish(); err != nil {
				return nil, err
			}
		}
		if err := w.RowGroup(rows, chunks); err != nil {
			return nil, err
		}
		clear(writers)
		rows = 0
	}
	_, n, err := w.Close()
	if err == nil && n != int64(out.Len()) {
		err = fmt.Errorf("%d bytes counted, %d written", n, out.Len())
	}
	return out.Bytes(), err
}

func copyChunk(f *parquet.File, g, l int, cw *parquet.ChunkWriter, add func(*parquet.ChunkWriter, *parquet.Page, *parquet.Dictionary) error) error {
	c := f.Chunk(g, l)
	defer c.Close()
	for {
		p, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := add(cw, p, c.Dictionary()); err != nil {
			return err
		}
	}
}

func whole(cw *parquet.ChunkWriter, p *parquet.Page, dict *parquet.Dictionary) error {
	return cw.Add(p, dict)
}

// column is all that a leaf holds: levels and PLAIN values.
type column struct {
	rep, def []uint8
	values   [][]byte
}

func columnOf(f *parquet.File, l int) (c column, err error) {
	leaf := &f.Leaves[l]
	for g := range f.RowGroups {
		ch := f.Chunk(g, l)
		for {
			p, err := ch.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return c, err
			}
			c.rep, c.def = append(c.rep, p.Rep...), append(c.def, p.Def...)
			for i := range p.NonNull {
				c.values = append(c.values, slices.Clone(valueAt(leaf, p, ch.Dictionary(), i)))
			}
		}
		ch.Close()
	}
	return c, nil
}

func sameColumn(a, b column) bool {
	return bytes.Equal(a.rep, b.rep) && bytes.Equal(a.def, b.def) && slices.EqualFunc(a.values, b.values, bytes.Equal)
}

func sameTable(t *testing.T, name string, a, b *parquet.File) {
	t.Helper()
	for l := range a.Leaves {
		x, err := columnOf(a, l)
		if err != nil {
			t.Fatal(err)
		}
		y, err := columnOf(b, l)
		if err != nil {
			t.Fatalf("%s: what was written: %v", name, err)
		}
		if !sameColumn(x, y) {
			t.Fatalf("%s: column %s differs: %d, %d entries", name, a.Leaves[l].Dotted, len(x.values), len(y.values))
		}
	}
}

// Every valid file of the corpus, written again, reads the same.
func TestWriteCorpus(t *testing.T) {
	codecs := []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Zstd, format.Gzip, format.Brotli, format.Lz4Raw}
	for name, b := range small(t) {
		f, err := open(b, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, codec := range codecs {
			for _, join := range []bool{false, true} {
				for _, size := range []int{0, 64, 1000} {
					opts := parquet.WriterOptions{Compression: parquet.Compression{Codec: codec}, PageBytes: size, DictBytes: size}
					out, err := copyFile(f, opts, join, whole)
					if err != nil {
						t.Fatal(name, err)
					}
					if err := check(out, name); err != nil {
						t.Fatal(err)
					}
					g, err := open(out, "copy of "+name)
					if err != nil {
						t.Fatal(err)
					}
					sameTable(t, name, f, g)
				}
			}
		}
	}
}

func TestWriteSharedCorpus(t *testing.T) {
	n := 0
	for _, path := range corpus(t) {
		if validate(path) != nil {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := open(b, filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Leaves) == 0 || f.Metadata.NumRows == 0 {
			continue
		}
		out, err := copyFile(f, parquet.WriterOptions{Compression: parquet.Compression{Codec: format.Zstd}}, n%2 == 0, whole)
		if err != nil {
			t.Error(path, err)
			continue
		}
		if dir := os.Getenv("BLOOMJOIN_COPIES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), out, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g, err := open(out, "copy of "+path)
		if err != nil {
			t.Error(err)
			continue
		}
		sameTable(t, path, f, g)
		n++
	}
	t.Log(n, "files")
}
