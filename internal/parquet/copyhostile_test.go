package parquet

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// copying is what happens to the chunks of a file that are copied.
type copying struct {
	whole, refused, others int  // chunks
	undecoded              int  // pages
	guarded                bool // whatever cannot be read is found by a checksum
	bad                    error
}

// copyHostile copies each chunk of a file whole, and most rows of each without
// decoding pages, and compares the copies with what can be read from the file.
func copyHostile(ctx context.Context, rng *rand.Rand, name string, b []byte, n *copying) {
	f, err := openBytes(b, name)
	if err != nil {
		return
	}
	for g := range f.RowGroups {
		if f.RowGroups[g].Rows == 0 || f.RowGroups[g].Rows > watchedRows || len(f.Leaves) == 0 || n.bad != nil {
			continue
		}
		group := hostileGroup{f: f, g: g, n: n, chunks: make([]*EncodedChunk, len(f.Leaves)), read: make([]*chunkSums, len(f.Leaves))}
		for l := range f.Leaves {
			group.read[l], _ = readChunk(ctx, f, g, l, nil)
		}
		rows := maxRows(rng, f.RowGroups[g].Rows)
		group.write(ctx, nil, func(w *Writer, l int) (*EncodedChunk, error) {
			e, why, err := w.CopyChunk(ctx, f, g, l, l, CopyOptions{})
			switch {
			case err != nil:
				n.refused++
			case why == "":
				if n.whole++; n.guarded && group.read[l] == nil {
					n.bad = fmt.Errorf("%v: copied in spite of its checksum", f.at(g, l))
				}
			default:
				n.others++
				return encodeAgain(w, f, g, l)
			}
			return e, err
		})
		group.write(ctx, rows, func(w *Writer, l int) (*EncodedChunk, error) {
			e, undecoded, err := keepMost(w, f, g, l, rows, 1+rng.IntN(2))
			n.undecoded += undecoded
			return e, err
		})
	}
}

// hostileGroup is a row group that is copied.
type hostileGroup struct {
	f      *File
	g      int
	n      *copying
	chunks []*EncodedChunk
	read   []*chunkSums // nil: the chunk cannot be read
}

// write makes a file of the chunks, and compares these with rows of the group; nil:
// all.
func (h *hostileGroup) write(ctx context.Context, rows []uint32, chunk func(w *Writer, l int) (*EncodedChunk, error)) {
	var out bytes.Buffer
	w, err := NewWriter(&out, h.f.Metadata.Schema, h.f.Metadata.ColumnOrders, sameCodec(h.f))
	if err != nil {
		return
	}
	whole := true
	for l := range h.chunks {
		at := h.f.at(h.g, l)
		if h.chunks[l], err = chunk(w, l); err == nil {
			continue
		}
		whole = false
		if bad := checkPlace(err, at); bad != nil {
			h.n.bad = bad
		} else if h.read[l] != nil {
			h.n.bad = fmt.Errorf("%v: it can be read, but not copied: %w", at, err)
		}
	}
	if !whole {
		return
	}
	count := h.f.RowGroups[h.g].Rows
	if rows != nil {
		count = int64(len(rows))
	}
	if err := w.RowGroup(count, h.chunks); err != nil {
		h.n.bad = err
		return
	}
	if _, _, err := w.Close(); err != nil {
		h.n.bad = err
		return
	}
	c, err := openBytes(out.Bytes(), "copy")
	if err != nil {
		h.n.bad = err
		return
	}
	for l := range h.chunks {
		if err := h.compare(ctx, c, l, rows); err != nil {
			h.n.bad = fmt.Errorf("%v: %w", h.f.at(h.g, l), err)
		}
	}
}

// compare compares a chunk of the copy with what was read.
func (h *hostileGroup) compare(ctx context.Context, c *File, l int, rows []uint32) error {
	x, ok, err := c.OffsetIndex(0, l)
	if err == nil && ok {
		_, _, err = c.ColumnIndex(0, l, x)
	}
	if err != nil {
		return fmt.Errorf("an index of the copy: %w", err)
	}
	if h.read[l] == nil {
		return nil
	}
	got, err := readChunk(ctx, c, 0, l, nil)
	if err != nil {
		return fmt.Errorf("the copy cannot be read: %w", err)
	}
	if rows != nil {
		return compareRows(h.read[l], got, rows)
	}
	if got.all != h.read[l].all {
		return fmt.Errorf("the copy has other values")
	}
	return nil
}

// TestCopyHostile copies changed files. What can be read can be copied, and the
// copy has the same values; errors have a known kind and the place. If a checksum
// covers the change, the chunk is refused.
func TestCopyHostile(t *testing.T) {
	models := hostileModels(t)
	u, err := newMutator(models)
	if err != nil {
		t.Fatal(err)
	}
	var n copying
	for i := range u.whole {
		copyHostile(t.Context(), rand.New(rand.NewPCG(19, uint64(i))), models[i].name, u.whole[i], &n)
		if n.bad != nil || n.refused > 0 {
			t.Fatalf("%s, as it was: %v, %d chunks refused", models[i].name, n.bad, n.refused)
		}
	}
	t.Logf("unchanged: %+v", n)
	guarded, tries := 0, mutations(t)/3
	for i := range tries {
		rng := rand.New(rand.NewPCG(19, uint64(i)+1000))
		m, err := u.mutate(rng)
		if err != nil {
			continue // the change cannot be encoded
		}
		refused := n.refused
		n.guarded = m.guarded
		copyHostile(t.Context(), rng, m.from.name, m.b, &n)
		if n.bad != nil {
			t.Fatalf("mutation %d, %s: %s: %v", i, m.from.name, m.kind, n.bad)
		}
		if m.guarded && n.refused > refused {
			guarded++
		}
	}
	t.Logf("%+v, %d found by checksums", n, guarded)
	if n.whole < tries || n.refused < tries/5 || n.undecoded < tries/2 || guarded == 0 {
		t.Error("the mutations do not get far")
	}
}

// FuzzCopyChunk copies any bytes as a file, with the checks of TestCopyHostile.
func FuzzCopyChunk(f *testing.F) {
	u, err := newMutator(hostileModels(f))
	if err != nil {
		f.Fatal(err)
	}
	for i, b := range u.whole {
		if len(b) <= maxSeed {
			f.Add(b, uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		var n copying
		if copyHostile(t.Context(), rand.New(rand.NewPCG(seed, 4)), "x", b, &n); n.bad != nil {
			t.Fatal(n.bad)
		}
	})
}
