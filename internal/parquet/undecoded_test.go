package parquet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// maxRows returns n rows without a few runs of them.
func maxRows(rng *rand.Rand, n int64) (rows []uint32) {
	drop := make([]bool, n)
	for range rng.IntN(3) {
		at := rng.Int64N(n)
		for i := at; i < min(n, at+1+rng.Int64N(1+n/20)); i++ {
			drop[i] = true
		}
	}
	for i, d := range drop {
		if !d {
			rows = append(rows, uint32(i))
		}
	}
	if len(rows) == 0 {
		rows = append(rows, uint32(rng.Int64N(n)))
	}
	return rows
}

// keepMost copies the rows of a chunk, in several walks over it. It returns the
// number of pages that were not decoded.
func keepMost(w *Writer, f *File, g, l int, rows []uint32, walks int) (e *EncodedChunk, undecoded int, err error) {
	cw := w.Chunk(l)
	cw.KeepDictionary()
	buf := new(Buffers)
	for i := range walks {
		c := f.ChunkIn(buf, g, l)
		part := rows[len(rows)*i/walks : len(rows)*(i+1)/walks]
		if walks > 1 || int64(len(rows)) < f.RowGroups[g].Rows {
			c.Select(part)
		}
		if w.MayCopy(f, g, l, l) == "" {
			c.Undecoded()
		}
		for {
			p, err := c.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, 0, err
			}
			if p.Undecoded() {
				undecoded++
			}
			if i%2 == 1 { // as if it had waited for its turn
				p = p.Clone()
			}
			if err := cw.Add(p, c.Dictionary()); err != nil {
				return nil, 0, err
			}
		}
		c.Close()
	}
	e, err = cw.Finish()
	return e, undecoded, err
}

// rowEntries returns the entries of some rows.
func rowEntries(entries []string, rows []uint32) (out []string) {
	row, next := -1, 0
	for _, e := range entries {
		if strings.HasPrefix(e, "0 ") {
			row++
			for next < len(rows) && int(rows[next]) < row {
				next++
			}
		}
		if next < len(rows) && int(rows[next]) == row {
			out = append(out, e)
		}
	}
	return out
}

// keptFacts counts what copies of most rows had.
type keptFacts struct {
	chunks, undecoded int
	coded, v2, dicts  int // chunks with such pages
	indexed, bounded  int
}

func (k *keptFacts) add(e *EncodedChunk, undecoded int) {
	k.chunks++
	k.undecoded += undecoded
	if undecoded == 0 {
		return
	}
	for _, kind := range e.kinds {
		switch {
		case kind.PageType == format.DictionaryPage:
			k.dicts++
		case isCoded(kind.Encoding):
			k.coded++
		case kind.PageType == format.DataPageV2:
			k.v2++
		}
	}
	if e.index.bounded() {
		k.indexed++
	}
	if e.stats.MinValue.Valid {
		k.bounded++
	}
}

// TestUndecoded: copies of most rows of a chunk, in which pages are not decoded,
// have exactly these rows, and true statistics and indexes.
func TestUndecoded(t *testing.T) {
	var k keptFacts
	for name, in := range copyInputs(t) {
		f, err := openBytes(in, name)
		if err != nil || len(f.Leaves) == 0 || f.Metadata.NumRows == 0 || whole(f) != nil {
			continue
		}
		for seed := range uint64(cases.Count(2, 3, 6)) {
			copyMost(t, f, rand.New(rand.NewPCG(uint64(len(in)), seed)), &k)
		}
	}
	t.Logf("%+v", k)
	for i, n := range []int{k.undecoded, k.coded, k.v2, k.dicts, k.indexed, k.bounded} {
		if n < 10 {
			t.Error("too few cases: " + strconv.Itoa(i))
		}
	}
}

func copyMost(t *testing.T, f *File, rng *rand.Rand, k *keptFacts) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, f.Metadata.Schema, f.Metadata.ColumnOrders, sameCodec(f))
	if err != nil {
		t.Fatal(err)
	}
	var selected [][]uint32
	var from []int
	for g := range f.RowGroups {
		if f.RowGroups[g].Rows == 0 {
			continue
		}
		rows := maxRows(rng, f.RowGroups[g].Rows)
		selected, from = append(selected, rows), append(from, g)
		group := make([]*EncodedChunk, len(f.Leaves))
		for l := range group {
			var n int
			if group[l], n, err = keepMost(w, f, g, l, rows, 1+rng.IntN(min(3, len(rows)))); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			k.add(group[l], n)
		}
		if err := w.RowGroup(int64(len(rows)), group); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := openBytes(out.Bytes(), "copy of "+f.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := whole(c); err != nil {
		t.Fatal(err)
	}
	for i, g := range from {
		for l := range f.Leaves {
			want, before := readBack(t, f, g, l)
			got, after := readBack(t, c, i, l)
			if !slices.Equal(rowEntries(allEntries(want), selected[i]), allEntries(got)) {
				t.Fatalf("%s: row group %d: column %s: other entries", f.Name, g+1, f.Leaves[l].Dotted)
			}
			if after != nil && (before == nil || !bytes.Equal(after.Plain, before.Plain)) {
				t.Fatalf("%s: row group %d: column %s: another dictionary", f.Name, g+1, f.Leaves[l].Dotted)
			}
			checkClaims(t, c, i, l, got)
		}
	}
}

// TestUndecodedRefused: an undecoded page is refused by a writer that cannot hold
// it as it is.
func TestUndecodedRefused(t *testing.T) {
	in, err := os.ReadFile("testdata/alltypes_plain.snappy.parquet")
	if err != nil {
		t.Fatal(err)
	}
	f, err := openBytes(in, "input")
	if err != nil {
		t.Fatal(err)
	}
	page := func(l int) (*Page, *Dictionary) {
		c := f.Chunk(0, l)
		c.Undecoded()
		p, err := c.Next(context.Background())
		if err != nil || !p.Undecoded() {
			t.Fatalf("%+v, %v", p, err)
		}
		return p, c.Dictionary()
	}
	leaf := slices.IndexFunc(f.Leaves, func(l meta.Leaf) bool { return l.Path[0] == "int_col" })
	p, dict := page(leaf)
	if dict == nil {
		t.Fatal("no dictionary")
	}
	other := dict.Clone()
	other.Plain[0]++
	for what, c := range map[string]struct {
		codec format.CompressionCodec
		to    int
		keeps bool
		dicts []*Dictionary
		want  string
	}{
		"as it should be":         {format.Snappy, leaf, true, []*Dictionary{dict, dict.Clone()}, ""},
		"a dictionary of its own": {format.Snappy, leaf, false, []*Dictionary{dict}, "dictionary of its own"},
		"another codec":           {format.Zstd, leaf, true, []*Dictionary{dict}, "compressed with SNAPPY"},
		"another type":            {format.Snappy, leaf + 2, true, []*Dictionary{dict}, "another type"},
		"two dictionaries":        {format.Snappy, leaf, true, []*Dictionary{dict, other}, "two dictionaries"},
		"no dictionary":           {format.Snappy, leaf, true, []*Dictionary{nil}, "without a dictionary"},
	} {
		w, err := NewWriter(new(bytes.Buffer), f.Metadata.Schema, nil, WriterOptions{Compression: enc.Compression{Codec: c.codec}})
		if err != nil {
			t.Fatal(err)
		}
		cw := w.Chunk(c.to)
		if c.keeps {
			cw.KeepDictionary()
		}
		for _, d := range c.dicts {
			err = cw.Add(p, d)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
