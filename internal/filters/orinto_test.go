package filters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

func header(t testing.TB, b []byte, name string) *Header {
	t.Helper()
	h, err := DecodeHeader(bytes.NewReader(b), int64(len(b)), name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func bitsOf(b *bloom.Filter) []byte { return b.AppendBlocks(nil, 0, b.Params().Blocks) }

// Any number of files, with one chunk or several, compressed or not, gives the
// filter of all their keys, also in a filter whose memory belongs to the caller.
func TestOrInto(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, g := range bloom.Geometries() {
		for _, blocks := range []uint64{3, 900, 40_000} {
			for _, n := range []int{0, 1, 2, 9} {
				all := keysFrom(uint64(n), 200)
				into := bloomOf(t, g, blocks, all)
				var files []*Header
				for i := range n {
					keys := keysFrom(r.Uint64(), 1+r.IntN(int(blocks)))
					all = append(all, keys...)
					file := encode(t, splitFilter(t, g, blocks, keys), Options{Uncompressed: r.IntN(2) == 0})
					files = append(files, header(t, file, fmt.Sprint("file ", i)))
				}
				bits := bitsOf(into)
				view, err := bloom.View(into.Params(), bits)
				if err != nil {
					t.Fatal(err)
				}
				want := bitsOf(bloomOf(t, g, blocks, all))
				for _, to := range []*bloom.Filter{into, view} {
					if err := OrInto(t.Context(), to, files...); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(bitsOf(to), want) {
						t.Errorf("%s, %d blocks, %d files: not the filter of all", g, blocks, n)
					}
				}
			}
		}
	}
}

func TestOrIntoRefuses(t *testing.T) {
	g, keys := bloom.Split256, keysFrom(1, 500)
	file := encode(t, bloomFilter(t, 40_000, keysFrom(2, 700)), Options{}) // two chunks
	h := header(t, file, "b.bjf")
	for _, other := range []*bloom.Filter{bloomOf(t, g, 39_999, keys), bloomOf(t, bloom.Split512, 40_000, keys)} {
		before := bitsOf(other)
		if err := OrInto(t.Context(), other, h); !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "b.bjf") {
			t.Errorf("into %+v: %v", other.Params(), err)
		}
		if !bytes.Equal(bitsOf(other), before) {
			t.Error("a refused merge changed its target")
		}
	}
	// No bit of a damaged chunk is merged, and of several damaged files the error
	// names the first.
	damaged := bytes.Clone(file)
	damaged[h.chunks[0].end-1] ^= 1
	for range 20 {
		into := bloomOf(t, g, 40_000, nil)
		err := OrInto(t.Context(), into, header(t, damaged, "first.bjf"), header(t, damaged, "second.bjf"))
		if !errors.Is(err, fault.ErrCorrupt) || !strings.HasPrefix(err.Error(), "first.bjf: ") {
			t.Fatalf("damaged: %v", err)
		}
		if !isZero(into.AppendBlocks(nil, 0, chunkBytes/g.BlockBytes())) {
			t.Fatal("bits of a damaged chunk arrived")
		}
	}
	// Only the checksum over all detects this: the file's last byte, which is part
	// of that checksum, is changed.
	d := dismantle(t, file)
	whole := d.assemble()
	whole[len(whole)-1] ^= 1
	if err := OrInto(t.Context(), bloomOf(t, g, 40_000, nil), h, header(t, whole, "end.bjf")); err == nil || !strings.HasPrefix(err.Error(), "end.bjf: corrupt: checksum over all") {
		t.Errorf("checksum over all: %v", err)
	}
	set := header(t, encode(t, exactFilter(keys, false), Options{}), "set.bjf")
	if err := OrInto(t.Context(), bloomOf(t, g, 40_000, nil), h, set); !errors.Is(err, fault.ErrCorrupt) || !strings.HasPrefix(err.Error(), "set.bjf: ") {
		t.Errorf("an exact set went into a Bloom filter: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDisk)
	if err := OrInto(ctx, bloomOf(t, g, 40_000, nil), h); !errors.Is(err, errDisk) {
		t.Errorf("called off: %v", err)
	}
}
