package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
)

// numbered returns a file whose rows have their numbers.
func numbered(t testing.TB, rows int) *File {
	var out bytes.Buffer
	w, err := NewWriter(&out, leafSchema(format.Int32, format.Required), nil, WriterOptions{PageBytes: 30_000})
	if err != nil {
		t.Fatal(err)
	}
	p := Page{Values: rows, Rows: rows, NonNull: rows}
	for i := range rows {
		p.Plain = binary.LittleEndian.AppendUint32(p.Plain, uint32(i))
	}
	c := w.Chunk(0)
	if err := c.Add(&p, nil); err != nil {
		t.Fatal(err)
	}
	e, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.RowGroup(int64(rows), []*EncodedChunk{e}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(nil, bytes.NewReader(out.Bytes()), int64(out.Len()), "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Rows are read once and in order even if pages are dropped at any time, and if more rows are
// left than a chunk is reopened for.
func TestRowReaderReopens(t *testing.T) {
	const rows = 2*reopened + 100_000
	f := numbered(t, rows)
	rng := rand.New(rand.NewPCG(3, 4))
	for try := range 6 {
		r := f.NewRowReader(t.Context(), 0, []int{0}, nil)
		r.Bytes, r.Again, r.Keep = 1<<30, 1<<30, 1<<30
		next := uint32(0)
		for batch := 0; r.Left() > 0; batch++ {
			r.Rows = 1 + rng.IntN(reopened/2)
			n, err := r.Next(func(int) error {
				return r.Pages(t.Context(), func(_ int, p *Page, dict *Dictionary) error {
					for i := range p.Values {
						var v uint32
						if p.Coded {
							v = binary.LittleEndian.Uint32(dict.Plain[4*p.Indices[i]:])
						} else {
							v = binary.LittleEndian.Uint32(p.Plain[4*i:])
						}
						if v != next {
							return fmt.Errorf("row %d where row %d is due", v, next)
						}
						next++
					}
					return nil
				})
			})
			if err != nil {
				t.Fatalf("try %d, batch %d of %d rows: %v", try, batch, n, err)
			}
			if batch == try || rng.IntN(8) == 0 {
				r.Rest()
			}
		}
		r.Close()
		if next != rows {
			t.Errorf("try %d: %d rows of %d", try, next, rows)
		}
	}
}

// A batch that gets too large is read again with fewer rows, down to a single one, whose
// size has limits of its own. The next batch is expected to be like it.
func TestRowReaderAdapts(t *testing.T) {
	f := numbered(t, 1000)
	const each = 1000 // bytes that a row is charged
	for _, c := range []struct {
		bytes, padding int64
		rows           []int // of the first batches
	}{
		{100 * each, 0, []int{100, 101, 101}},
		{each / 4, 0, []int{1, 1, 1}},
		{50_000, each, []int{50, 26, 26}},
	} {
		r := f.NewRowReader(t.Context(), 0, []int{0}, nil)
		r.Rows, r.Bytes, r.Again, r.Keep, r.Padding = 1<<20, c.bytes, c.bytes, 1<<30, c.padding
		for _, want := range c.rows {
			n, err := r.Next(func(n int) error {
				return r.Pages(t.Context(), func(_ int, p *Page, _ *Dictionary) error {
					return r.Charge(&f.Leaves[0], &Page{Values: each / 4 * p.Values}, nil)
				})
			})
			if err != nil || n != want {
				t.Errorf("batches of %d bytes: %d rows, want %d: %v", c.bytes, n, want, err)
			}
		}
		r.Close()
	}
	r := f.NewRowReader(t.Context(), 0, []int{0}, nil)
	defer r.Close()
	r.Rows, r.Bytes, r.Again, r.Keep = 1<<20, 1<<20, 1<<20, 1<<30
	_, err := r.Next(func(n int) error {
		return r.Pages(context.Background(), func(_ int, p *Page, _ *Dictionary) error {
			return r.Charge(&f.Leaves[0], &Page{Values: MaxRow/4 + 1}, nil)
		})
	})
	if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("a row of %d bytes", MaxRow+4)) {
		t.Errorf("the error is %v", err)
	}
}
