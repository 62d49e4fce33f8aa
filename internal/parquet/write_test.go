package parquet_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// copyFile rewrites all row groups of f, each to its own row group or all to one.
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

// column is the contents of a leaf: levels and PLAIN values.
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

// Every valid file of the corpus reads the same after it is rewritten.
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
					opts := parquet.WriterOptions{Compression: enc.Compression{Codec: codec}, PageBytes: size, DictBytes: size}
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
		out, err := copyFile(f, parquet.WriterOptions{Compression: enc.Compression{Codec: format.Zstd}}, n%2 == 0, whole)
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

// bodies returns the stored pages of a file as a set of their bytes.
func bodies(t *testing.T, f *parquet.File) (stored map[string]bool, pages int) {
	stored = map[string]bool{}
	for g := range f.RowGroups {
		for l := range f.Leaves {
			c := f.Chunk(g, l)
			for {
				p, err := c.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				pages++
				if p.Stored != nil && !p.Coded {
					stored[string(p.Stored.Body)] = true
				}
			}
			c.Close()
		}
	}
	return stored, pages
}

// numbers returns a file of int64 and nullable string columns without dictionaries,
// in pages of pageBytes.
func numbers(t *testing.T, codec format.CompressionCodec, pageBytes, rows int) *parquet.File {
	root, a, b := meta.Element{Name: "schema"}, meta.Element{Name: "a"}, meta.Element{Name: "b"}
	root.NumChildren.Set(2)
	a.Type.Set(format.Int64)
	a.RepetitionType.Set(format.Required)
	b.Type.Set(format.ByteArray)
	b.RepetitionType.Set(format.Optional)
	var out bytes.Buffer
	w, err := parquet.NewWriter(&out, []meta.Element{root, a, b}, nil,
		parquet.WriterOptions{Compression: enc.Compression{Codec: codec}, PageBytes: pageBytes})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(rows)))
	pa := parquet.Page{Values: rows, Rows: rows, NonNull: rows, Encoding: format.DeltaBinaryPacked}
	pb := parquet.Page{Values: rows, Rows: rows}
	for range rows {
		pa.Plain = binary.LittleEndian.AppendUint64(pa.Plain, rng.Uint64()>>rng.IntN(64))
		d := uint8(min(1, rng.IntN(5)))
		pb.Def = append(pb.Def, d)
		if d == 1 {
			pb.NonNull++
			pb.Plain = binary.LittleEndian.AppendUint32(pb.Plain, 5)
			pb.Plain = fmt.Appendf(pb.Plain, "%05d", rng.IntN(100000))
		}
	}
	chunks := make([]*parquet.EncodedChunk, 2)
	for i, p := range []*parquet.Page{&pa, &pb} {
		c := w.Chunk(i)
		if err := c.Add(p, nil); err != nil {
			t.Fatal(err)
		}
		if chunks[i], err = c.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.RowGroup(int64(rows), chunks); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := open(out.Bytes(), "numbers")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Pages are copied as stored, with the same bytes, if the codec is the same and
// they are large enough, and never otherwise; the contents are the same.
func TestStoredPages(t *testing.T) {
	unstored := func(cw *parquet.ChunkWriter, p *parquet.Page, dict *parquet.Dictionary) error {
		q := *p
		q.Stored = nil
		return cw.Add(&q, dict)
	}
	for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Zstd, format.Gzip} {
		f := numbers(t, codec, 4000, 5000)
		sources, n := bodies(t, f)
		for _, to := range []format.CompressionCodec{format.Snappy, format.Zstd} {
			for _, pageBytes := range []int{2000, 4000, 1 << 20} {
				opts := parquet.WriterOptions{Compression: enc.Compression{Codec: to}, PageBytes: pageBytes}
				out, err := copyFile(f, opts, true, whole)
				if err != nil {
					t.Fatal(err)
				}
				g, err := open(out, "copy")
				if err != nil {
					t.Fatal(err)
				}
				sameTable(t, fmt.Sprint(codec, to, pageBytes), f, g)
				got, pages := bodies(t, g)
				same := 0
				for b := range got {
					if sources[b] {
						same++
					}
				}
				switch copied := codec == to && pageBytes < 1<<20; {
				case copied && (same < len(sources)-2 || pages != n): // except for the small last ones
					t.Errorf("%v to %v, pages of %d bytes: %d of %d pages copied", codec, to, pageBytes, same, len(sources))
				case !copied && same > 0 && codec != format.Uncompressed:
					t.Errorf("%v to %v, pages of %d bytes: %d pages copied", codec, to, pageBytes, same)
				}
				plain, err := copyFile(f, opts, true, unstored)
				if err != nil {
					t.Fatal(err)
				}
				h, err := open(plain, "copy")
				if err != nil {
					t.Fatal(err)
				}
				for l := range f.Leaves {
					a, b := statistics(g, l), statistics(h, l)
					if a != b {
						t.Errorf("statistics of copied pages: %s, of others %s", a, b)
					}
				}
			}
		}
	}
}

func statistics(f *parquet.File, l int) string {
	return fmt.Sprintf("%+v", f.Metadata.RowGroups[0].Columns[l].MetaData.Statistics)
}

// A selection of rows that includes whole pages reads back the same.
func TestStoredPagesAmongOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	f := numbers(t, format.Snappy, 4000, 5000)
	for range 40 {
		var rows []uint32
		for row := uint32(0); row < 5000; {
			keep := rng.IntN(2) == 0
			for n := 1 + rng.IntN(2000); n > 0 && row < 5000; n-- {
				if keep {
					rows = append(rows, row)
				}
				row++
			}
		}
		if len(rows) == 0 {
			continue
		}
		var out bytes.Buffer
		w, err := parquet.NewWriter(&out, f.Metadata.Schema, nil, parquet.WriterOptions{
			Compression: enc.Compression{Codec: format.Snappy}, PageBytes: 1000 << rng.IntN(6)})
		if err != nil {
			t.Fatal(err)
		}
		chunks := make([]*parquet.EncodedChunk, len(f.Leaves))
		for l := range f.Leaves {
			cw := w.Chunk(l)
			c := f.Chunk(0, l)
			c.Select(rows)
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
			if chunks[l], err = cw.Finish(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.RowGroup(int64(len(rows)), chunks); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		g, err := open(out.Bytes(), "selected")
		if err != nil {
			t.Fatal(err)
		}
		for l := range f.Leaves {
			want, _, err := rowsOf(f, 0, l, false, rows)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := rowsOf(g, 0, l, true, nil)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("column %d: %d rows of %d, %v", l, len(got), len(want), err)
			}
		}
	}
}

// failing fails from the given byte on, or writes short.
type failing struct {
	left  int
	short bool
}

var errFull = errors.New("no space")

func (w *failing) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return len(p), nil
	}
	n := w.left
	w.left = 0
	if w.short {
		return n, nil
	}
	return n, errFull
}

// An error of the underlying writer is returned whenever it occurs, and is sticky.
func TestWriteErrors(t *testing.T) {
	src := numbers(t, format.Snappy, 500, 300)
	size := 0
	write := func(out io.Writer) (err error) {
		w, err := parquet.NewWriter(out, src.Metadata.Schema, nil, parquet.WriterOptions{PageBytes: 500})
		if err != nil {
			return err
		}
		for range 2 {
			chunks := make([]*parquet.EncodedChunk, 2)
			for l := range chunks {
				c := w.Chunk(l)
				if err := copyChunk(src, 0, l, c, whole); err != nil {
					t.Fatal(err)
				}
				if chunks[l], err = c.Finish(); err != nil {
					t.Fatal(err)
				}
			}
			if err = w.RowGroup(300, chunks); err != nil {
				break
			}
		}
		_, n, end := w.Close()
		if err != nil && !errors.Is(end, err) {
			t.Fatalf("Close returns %v after %v", end, err)
		}
		size = int(n)
		return end
	}
	if err := write(io.Discard); err != nil || size == 0 {
		t.Fatal(err)
	}
	for at := 0; at < size; at += 1 + at/50 {
		if err := write(&failing{left: at}); !errors.Is(err, errFull) {
			t.Fatalf("full after %d bytes: %v", at, err)
		}
		if err := write(&failing{left: at, short: true}); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("short after %d bytes: %v", at, err)
		}
	}
}

// Inconsistent arguments are errors.
func TestWriterRefuses(t *testing.T) {
	src := numbers(t, format.Snappy, 500, 300)
	w, err := parquet.NewWriter(io.Discard, src.Metadata.Schema, nil, parquet.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	chunk := func(w *parquet.Writer, l int) *parquet.EncodedChunk {
		c := w.Chunk(l)
		if err := copyChunk(src, 0, l, c, whole); err != nil {
			t.Fatal(err)
		}
		e, err := c.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Finish(); err == nil {
			t.Error("finished twice")
		}
		if c.Add(&parquet.Page{}, nil) == nil {
			t.Error("a page for a finished chunk")
		}
		return e
	}
	other, err := parquet.NewWriter(io.Discard, src.Metadata.Schema, nil, parquet.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := chunk(w, 0), chunk(w, 1)
	for name, chunks := range map[string][]*parquet.EncodedChunk{
		"too few": {a}, "swapped": {b, a}, "of another file": {a, chunk(other, 1)}, "none": {a, nil},
	} {
		if w.RowGroup(300, chunks) == nil {
			t.Error(name)
		}
	}
	if w.RowGroup(299, []*parquet.EncodedChunk{a, b}) == nil || w.RowGroup(0, nil) == nil {
		t.Error("another number of rows")
	}
	if err := w.RowGroup(300, []*parquet.EncodedChunk{a, b}); err != nil {
		t.Error(err)
	}
	if w.RowGroup(300, []*parquet.EncodedChunk{a, b}) == nil {
		t.Error("chunks written twice")
	}
	pages := map[string]parquet.Page{
		"no levels":      {Values: 1, Rows: 1, NonNull: 1, Plain: []byte{0, 0, 0, 0}},
		"few levels":     {Values: 2, Rows: 2, NonNull: 1, Def: []uint8{1}, Plain: []byte{0, 0, 0, 0}},
		"repeated":       {Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}, Rep: []uint8{0}, Plain: []byte{0, 0, 0, 0}},
		"more nulls":     {Values: 2, Rows: 2, NonNull: 1, Def: []uint8{0, 0}, Plain: []byte{0, 0, 0, 0}},
		"no values":      {Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}},
		"cut values":     {Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}, Plain: []byte{9, 0, 0, 0, 1}},
		"more values":    {Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}, Plain: []byte{0, 0, 0, 0, 1, 0, 0, 0}},
		"no dictionary":  {Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}, Coded: true, Indices: []uint32{0}},
		"fewer indices":  {Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}, Coded: true},
		"index too high": {Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}, Coded: true, Indices: []uint32{1}},
	}
	for name, p := range pages {
		var dict *parquet.Dictionary
		if name == "index too high" {
			dict = &parquet.Dictionary{}
		}
		c := w.Chunk(1)
		err := c.Add(&p, dict)
		if err == nil {
			_, err = c.Finish()
		} else if again := c.Add(&parquet.Page{}, nil); again == nil {
			t.Errorf("%s: the error does not stay", name)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := parquet.NewWriter(io.Discard, src.Metadata.Schema[:2], nil, parquet.WriterOptions{}); err == nil {
		t.Error("a schema that is cut off")
	}
	if _, err := parquet.NewWriter(io.Discard, src.Metadata.Schema, make([]format.ColumnOrder, 1), parquet.WriterOptions{}); err == nil {
		t.Error("orders of fewer columns")
	}
}

// Chunks that are made concurrently, in reused memory, are the same.
func TestWriterConcurrently(t *testing.T) {
	var sources []*parquet.File
	for name, b := range small(t) {
		f, err := open(b, name)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, f)
	}
	for _, f := range sources {
		opts := parquet.WriterOptions{Compression: enc.Compression{Codec: format.Zstd}, PageBytes: 300}
		want, err := copyFile(f, opts, false, whole)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w, err := parquet.NewWriter(&out, f.Metadata.Schema, f.Metadata.ColumnOrders, opts)
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.RowGroups {
			if f.RowGroups[g].Rows == 0 {
				continue
			}
			chunks := make([]*parquet.EncodedChunk, len(f.Leaves))
			var eg errgroup.Group
			eg.SetLimit(4)
			for l := range f.Leaves {
				eg.Go(func() (err error) {
					c := w.Chunk(l)
					if err := copyChunk(f, g, l, c, whole); err != nil {
						return err
					}
					if c.Pending()+c.Encoded() <= 0 {
						return errors.New("a chunk that holds nothing")
					}
					chunks[l], err = c.Finish()
					return err
				})
			}
			if err := eg.Wait(); err != nil {
				t.Fatal(err)
			}
			for _, c := range chunks {
				if c.Size() < c.Bytes() { // RowGroup compares the rows
					t.Fatalf("%d bytes in %d of memory", c.Bytes(), c.Size())
				}
			}
			if err := w.RowGroup(f.RowGroups[g].Rows, chunks); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("%s: %d bytes, one after the other %d", f.Name, out.Len(), len(want))
		}
	}
}
