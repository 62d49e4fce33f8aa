package parquet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// rowsOf reads a chunk, or its selected rows, and returns each row's entries,
// levels and values, as text.
func rowsOf(f *parquet.File, group, leaf int, all bool, rows []uint32) (out []string, skipped int, err error) {
	c := f.Chunk(group, leaf)
	defer c.Close()
	if !all {
		c.Select(rows)
	}
	l := &f.Leaves[leaf]
	var row []byte
	begun := false
	for {
		p, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		value := 0 // index of the page's next value
		for i := range p.Values {
			if p.Rep == nil || p.Rep[i] == 0 {
				if begun {
					out = append(out, string(row))
				}
				row, begun = row[:0], true
			}
			def := l.MaxDef
			if p.Def != nil {
				def = int(p.Def[i])
			}
			rep := 0
			if p.Rep != nil {
				rep = int(p.Rep[i])
			}
			row = fmt.Appendf(row, "(%d %d", rep, def)
			if def == l.MaxDef {
				row = fmt.Appendf(row, " %x", valueAt(l, p, c.Dictionary(), value))
				value++
			}
			row = append(row, ')')
		}
		if value != p.NonNull {
			return nil, 0, fmt.Errorf("page %d: %d values, NonNull %d", p.Number, value, p.NonNull)
		}
	}
	if begun {
		out = append(out, string(row))
	}
	_, skipped = c.Pages()
	return out, skipped, nil
}

// valueAt returns value i of a page.
func valueAt(l *meta.Leaf, p *parquet.Page, dict *parquet.Dictionary, i int) []byte {
	switch {
	case l.Type == format.ByteArray:
		return p.Bytes(i, dict)
	case l.Type == format.Boolean:
		return []byte{p.Plain[i/8] >> (i % 8) & 1}
	}
	w := map[format.Type]int{format.Int32: 4, format.Float: 4, format.Int64: 8, format.Double: 8, format.Int96: 12}[l.Type]
	if w == 0 {
		w = l.TypeLength
	}
	if p.Coded {
		j := int(p.Indices[i])
		return dict.Plain[j*w : (j+1)*w]
	}
	return p.Plain[i*w : (i+1)*w]
}

// goodVectors are the Parquet files of testdata/vectors that can be read.
func goodVectors(t *testing.T) map[string][]byte {
	paths, err := filepath.Glob("../../testdata/vectors/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if validate(path) == nil {
			files[filepath.Base(path)] = b
		}
	}
	if len(files) == 0 {
		t.Fatal("no vectors")
	}
	return files
}

// TestSelect: reading some rows gives the same rows as reading all.
func TestSelect(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	files := map[string][]byte{}
	for name, b := range small(t) {
		files[name] = b
	}
	for name, b := range goodVectors(t) {
		files[name] = b
	}
	if os.Getenv("BLOOMJOIN_SHARED") != "" {
		for _, path := range corpus(t) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if validate(path) == nil && len(b) < 4<<20 {
				files[filepath.Base(path)] = b
			}
		}
	}
	chunks, pages := 0, 0
	for name, b := range files {
		f, err := open(b, name)
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.RowGroups {
			for l := range f.Leaves {
				whole, _, err := rowsOf(f, g, l, true, nil)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, share := range []float64{0, 0.001, 0.05, 0.5, 0.97, 1} {
					var rows []uint32
					var want []string
					for i, r := range whole {
						if rng.Float64() < share {
							rows, want = append(rows, uint32(i)), append(want, r)
						}
					}
					got, skipped, err := rowsOf(f, g, l, false, rows)
					if err != nil {
						t.Fatalf("%s: row group %d, %s, %v of the rows: %v", name, g, f.Leaves[l].Dotted, share, err)
					}
					if len(got) != len(want) {
						t.Fatalf("%s: row group %d, %s: %d rows, want %d", name, g, f.Leaves[l].Dotted, len(got), len(want))
					}
					for i := range got {
						if got[i] != want[i] {
							t.Fatalf("%s: row group %d, %s: row %d of %d is %s, want %s", name, g, f.Leaves[l].Dotted, rows[i], len(whole), got[i], want[i])
						}
					}
					chunks++
					pages += skipped
				}
			}
		}
	}
	t.Logf("%d files, %d walks, %d pages skipped", len(files), chunks, pages)
}
