package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// copies counts what copyWhole did.
type copies struct {
	chunks, whole int
	whys          map[string]int
}

// copyWhole copies a file with each chunk as it is stored or, if that is not
// possible, by pages.
func copyWhole(f *File, opts WriterOptions, n *copies) ([]byte, error) {
	var out bytes.Buffer
	w, err := NewWriter(&out, f.Metadata.Schema, f.Metadata.ColumnOrders, opts)
	if err != nil {
		return nil, err
	}
	for g := range f.RowGroups {
		if f.RowGroups[g].Rows == 0 {
			continue
		}
		chunks := make([]*EncodedChunk, len(f.Leaves))
		for l := range chunks {
			var why string
			if chunks[l], why, err = w.CopyChunk(context.Background(), f, g, l, l, CopyOptions{}); err != nil {
				return nil, err
			}
			n.chunks++
			if why == "" {
				if n.whole++; chunks[l].Size() != 0 || chunks[l].rows != f.RowGroups[g].Rows {
					return nil, fmt.Errorf("a copied chunk of %d bytes in memory and %d rows", chunks[l].Size(), chunks[l].rows)
				}
				continue
			}
			if n.whys != nil {
				n.whys[why]++
			}
			if chunks[l], err = encodeAgain(w, f, g, l); err != nil {
				return nil, err
			}
		}
		if err := w.RowGroup(f.RowGroups[g].Rows, chunks); err != nil {
			return nil, err
		}
	}
	_, size, err := w.Close()
	if err == nil && size != int64(out.Len()) {
		err = fmt.Errorf("%d bytes counted, %d written", size, out.Len())
	}
	return out.Bytes(), err
}

// encodeAgain copies a chunk by pages.
func encodeAgain(w *Writer, f *File, g, l int) (*EncodedChunk, error) {
	c := f.Chunk(g, l)
	defer c.Close()
	cw := w.Chunk(l)
	for {
		p, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return cw.Finish()
		}
		if err != nil {
			return nil, err
		}
		if err := cw.Add(p, c.Dictionary()); err != nil {
			return nil, err
		}
	}
}

// sameCodec are options for an output compressed like most of the file.
func sameCodec(f *File) (opts WriterOptions) {
	n := map[format.CompressionCodec]int{}
	for g := range f.RowGroups {
		for l := range f.Leaves {
			codec := f.Codec(g, l)
			if n[codec]++; codec != format.Lz4 && n[codec] > n[opts.Compression.Codec] {
				opts.Compression.Codec = codec
			}
		}
	}
	return opts
}

func openBytes(b []byte, name string) (*File, error) {
	return Open(nil, bytes.NewReader(b), int64(len(b)), name)
}

// checkCopy compares a copy with its original: the stored bytes of chunks that were
// copied whole, all pages, and what the copy's metadata and indexes say of them.
func checkCopy(t *testing.T, name string, in, out []byte) {
	t.Helper()
	f, err := openBytes(in, name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := openBytes(out, "copy of "+name)
	if err != nil {
		t.Fatal(err)
	}
	to := 0
	for g := range f.RowGroups {
		if f.RowGroups[g].Rows == 0 {
			continue
		}
		total := int64(0)
		for l := range f.Leaves {
			from, md := &f.Metadata.RowGroups[g].Columns[l].MetaData, &c.Metadata.RowGroups[to].Columns[l].MetaData
			whole := bytes.Equal(storedChunk(in, from), storedChunk(out, md))
			want, _ := readBack(t, f, g, l)
			got, _ := readBack(t, c, to, l)
			if !slices.Equal(allEntries(want), allEntries(got)) {
				t.Fatalf("%s: row group %d: column %s: other entries", name, g+1, f.Leaves[l].Dotted)
			}
			checkClaims(t, c, to, l, got)
			if whole {
				checkWhole(t, f, c, g, to, l, in, out)
			}
			total += md.TotalUncompressedSize
		}
		rg := &c.Metadata.RowGroups[to]
		if rg.TotalByteSize != total || rg.Ordinal.V != int16(to) {
			t.Fatalf("%s: row group %d: %d bytes, want %d, ordinal %d", name, to+1, rg.TotalByteSize, total, rg.Ordinal.V)
		}
		to++
	}
	if to != len(c.RowGroups) {
		t.Fatalf("%s: %d row groups, want %d", name, len(c.RowGroups), to)
	}
}

func storedChunk(b []byte, md *meta.ColumnMetaData) []byte {
	start := chunkStart(md)
	return b[start : start+md.TotalCompressedSize]
}

func allEntries(pages []readPage) (out []string) {
	for _, p := range pages {
		out = append(out, p.entries...)
	}
	return out
}

// checkClaims checks statistics and indexes of a chunk against its values.
func checkClaims(t *testing.T, f *File, g, l int, pages []readPage) {
	t.Helper()
	chunk := &f.Metadata.RowGroups[g].Columns[l]
	leaf, s := &f.Leaves[l], &chunk.MetaData.Statistics
	order := f.Orders()[l]
	nulls := 0
	var all [][]byte
	for _, p := range pages {
		nulls += p.nulls
		all = append(all, p.values...)
	}
	// In repeated leaves, some writers do not count empty lists.
	wrong := func(claimed int64, nulls int) bool {
		return claimed > int64(nulls) || claimed < int64(nulls) && leaf.MaxRep == 0
	}
	if s.NullCount.Valid && wrong(s.NullCount.V, nulls) {
		t.Fatalf("%s: %s: %d NULLs, the statistics say %d", f.Name, leaf.Dotted, nulls, s.NullCount.V)
	}
	holds := func(what string, lo, hi []byte, values [][]byte) {
		t.Helper()
		if !order.Defined() {
			t.Fatalf("%s: %s: %s: bounds without an order", f.Name, leaf.Dotted, what)
		}
		for _, v := range values {
			if leaf.IsFloat() && math.IsNaN(floatOf(v)) {
				continue
			}
			if order.Compare(v, lo) < 0 && !bytes.Equal(v, lo) || order.Compare(v, hi) > 0 {
				t.Fatalf("%s: %s: %s: %x outside of %x to %x", f.Name, leaf.Dotted, what, v, lo, hi)
			}
		}
	}
	if s.MinValue.Valid {
		holds("statistics", s.MinValue.V, s.MaxValue.V, all)
	}
	x, ok, err := f.OffsetIndex(g, l)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		if leaf.MaxRep == 0 {
			t.Fatalf("%s: %s: no offset index", f.Name, leaf.Dotted)
		}
		return
	}
	if len(x.Pages) != len(pages) {
		t.Fatalf("%s: %s: %d pages, indexed are %d", f.Name, leaf.Dotted, len(pages), len(x.Pages))
	}
	row := 0
	for i, p := range pages {
		if g := x.Pages[i]; g.Offset != p.offset || g.FirstRow != int64(row) {
			t.Fatalf("%s: %s: page %d at %d with row %d, the index says %+v", f.Name, leaf.Dotted, i+1, p.offset, row, g)
		}
		row += p.rows
	}
	ci, ok, err := f.ColumnIndex(g, l, x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pages {
		if !ok {
			break
		}
		if p := pages[i]; ci.NullCounts != nil && wrong(ci.NullCounts[i], p.nulls) || ci.Null[i] != (len(p.values) == 0) {
			t.Fatalf("%s: %s: page %d: NULLs", f.Name, leaf.Dotted, i+1)
		} else if !ci.Null[i] {
			holds(fmt.Sprint("page ", i+1), ci.Min[i], ci.Max[i], p.values)
		}
	}
}

// checkWhole checks the metadata of a chunk that was copied as it is stored.
func checkWhole(t *testing.T, f, c *File, g, to, l int, in, out []byte) {
	t.Helper()
	md := &c.Metadata.RowGroups[to].Columns[l].MetaData
	b := storedChunk(out, md)
	plain, data := int64(0), int64(-1)
	var kinds []pageKind
	for pos := int64(0); pos < int64(len(b)); {
		var h meta.PageHeader
		n, err := meta.Decode(b[pos:], &h)
		if err != nil {
			t.Fatal(err)
		}
		encoding := h.DataPageHeader.V.Encoding
		switch h.Type {
		case format.DictionaryPage:
			encoding = h.DictionaryPageHeader.V.Encoding
		case format.DataPageV2:
			encoding = h.DataPageHeaderV2.V.Encoding
		}
		if h.Type != format.DictionaryPage && data < 0 {
			data = chunkStart(md) + pos
		}
		countKind(&kinds, h.Type, encoding)
		plain += int64(n) + int64(h.UncompressedPageSize)
		pos += int64(n) + int64(h.CompressedPageSize)
	}
	if plain != md.TotalUncompressedSize || data != md.DataPageOffset || !slices.Equal(kinds, md.EncodingStats) {
		t.Fatalf("%s: %d bytes decompressed, data at %d, pages %v; the footer says %d, %d, %v", c.Name, plain, data, kinds,
			md.TotalUncompressedSize, md.DataPageOffset, md.EncodingStats)
	}
	want, _, err := f.BloomFilter(g, l)
	got, _, err2 := c.BloomFilter(to, l)
	if err2 != nil || got != nil && !bytes.Equal(got, want) || got == nil && want != nil && err == nil && f.Metadata.BloomBelieved(&f.Leaves[l]) {
		t.Fatalf("%s: a Bloom filter of %d bytes, not %d: %v", c.Name, len(got), len(want), err2)
	}
}

// copyInputs returns the files to copy: those of testdata, ones written here, and
// the corpora if present.
func copyInputs(t testing.TB) map[string][]byte {
	files := writtenFiles(t)
	dirs := []string{"testdata"}
	if shared := os.Getenv("BLOOMJOIN_SHARED"); shared != "" {
		dirs = append(dirs, filepath.Join(shared, "corpora/parquet-testing"), filepath.Join(shared, "corpora/arrow-testing/data/parquet"))
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" && !strings.Contains(path, "fuzzing") {
				return err
			}
			files[path], err = os.ReadFile(path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestCopyChunk: what is copied whole has the same bytes, entries and Bloom
// filters, and true statistics and indexes.
func TestCopyChunk(t *testing.T) {
	n := copies{whys: map[string]int{}}
	files := 0
	for name, in := range copyInputs(t) {
		f, err := openBytes(in, name)
		if err != nil || len(f.Leaves) == 0 {
			continue
		}
		if whole(f) != nil { // the copy may be as bad, or an error
			out, err := copyWhole(f, sameCodec(f), new(copies))
			if err == nil {
				_, err = openBytes(out, name)
			}
			if err != nil && !unusable(err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		out, err := copyWhole(f, sameCodec(f), &n)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if dir := os.Getenv("BLOOMJOIN_COPIES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), out, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		checkCopy(t, name, in, out)
		files++
	}
	t.Logf("%d files, %d chunks, %d copied whole; others: %v", files, n.chunks, n.whole, n.whys)
	if files < 15 || n.whole < 100 {
		t.Errorf("only %d files, %d of %d chunks copied whole", files, n.whole, n.chunks)
	}
}

// TestCopyHoldsEmpty: if a writer leaves empty values out of its bounds, the copy's bounds
// include them, in the statistics and in the column index.
func TestCopyHoldsEmpty(t *testing.T) {
	widened := map[string]int{}
	for name, in := range writtenFiles(t) {
		f, err := openBytes(in, name)
		if err != nil {
			t.Fatal(err)
		}
		f.Metadata.CreatedBy = "parquet-go version 18.5.0" // of Arrow
		out, err := copyWhole(f, sameCodec(f), new(copies))
		if err != nil {
			t.Fatal(err)
		}
		c, err := openBytes(out, name)
		if err != nil {
			t.Fatal(err)
		}
		for g := range c.RowGroups {
			for l := range c.Leaves {
				if !meta.OrderOf(&c.Leaves[l]).ByteArrays() {
					continue
				}
				from, to := f.Metadata.RowGroups[g].Columns[l].MetaData.Statistics, c.Metadata.RowGroups[g].Columns[l].MetaData.Statistics
				if to.MinValue.Valid && len(from.MinValue.V) > 0 {
					if widened["chunks"]++; len(to.MinValue.V) > 0 || !to.IsMinValueExact.Valid || to.IsMinValueExact.V {
						t.Errorf("%s, row group %d, %s: minimum %q, exact %v", name, g+1, c.Leaves[l].Dotted, to.MinValue.V, to.IsMinValueExact)
					}
				}
				x, ok, err := c.OffsetIndex(g, l)
				if err != nil || !ok {
					continue
				}
				columns, ok, err := c.ColumnIndex(g, l, x)
				if err != nil || !ok {
					continue
				}
				for i, least := range columns.Min {
					if widened["pages"]++; len(least) > 0 {
						t.Errorf("%s, row group %d, %s, page %d: minimum %q", name, g+1, c.Leaves[l].Dotted, i+1, least)
					}
				}
			}
		}
	}
	if widened["chunks"] == 0 || widened["pages"] == 0 {
		t.Errorf("nothing was widened: %v", widened)
	}
}

// TestCopyHeaders: bounds in the headers of pages are copied from trusted writers alone.
func TestCopyHeaders(t *testing.T) {
	bounds := func(f *File) (n int) {
		for g := range f.RowGroups {
			for l := range f.Leaves {
				c := f.Chunk(g, l)
				c.header = []byte{}
				_, err := c.Next(t.Context())
				for ; err == nil; _, err = c.Next(t.Context()) {
					var claims pageClaims
					if _, err := meta.Decode(c.header, &claims); err != nil {
						t.Fatal(err)
					}
					if claims.V1.Statistics.MinValue.Valid || claims.V2.V.Statistics.MinValue.Valid {
						n++
					}
				}
				c.Close()
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
		}
		return n
	}
	found := map[bool]int{}
	for name, in := range copyInputs(t) {
		f, err := openBytes(in, name)
		if err != nil || len(f.Leaves) == 0 || whole(f) != nil {
			continue
		}
		for _, trusted := range []bool{true, false} {
			if !trusted {
				f.Metadata.CreatedBy = "hyparquet 1" // trusted in nothing
			}
			out, err := copyWhole(f, sameCodec(f), new(copies))
			if err != nil {
				continue // the name decides what else is allowed
			}
			c, err := openBytes(out, name)
			if err != nil {
				t.Fatal(err)
			}
			found[trusted] += bounds(c)
		}
	}
	if found[true] == 0 || found[false] > 0 {
		t.Errorf("pages whose headers have bounds, by whether the writer is trusted: %v", found)
	}
}

// whole returns the first error in a file.
func whole(f *File) error {
	for g := range f.RowGroups {
		for l := range f.Leaves {
			c := f.Chunk(g, l)
			_, err := c.Next(context.Background())
			for err == nil {
				_, err = c.Next(context.Background())
			}
			c.Close()
			if !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	return nil
}

var _ = fault.ErrCorrupt
