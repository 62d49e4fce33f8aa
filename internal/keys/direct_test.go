package keys

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// A batch that shares a page's memory does not modify it when it is filled again,
// and has the same keys wherever the page starts.
func TestSharedPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var b Batch
	for range 200 {
		n, off := rng.IntN(50), rng.IntN(9)
		ints := make([]uint64, n)
		words := make([]uint64, n+2) // aligned
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
		for i := range ints {
			ints[i] = rng.Uint64()
			binary.LittleEndian.PutUint64(raw[off+8*i:], ints[i])
		}
		var texts [][]byte
		var plain []byte
		for range n {
			s := make([]byte, rng.IntN(20))
			for i := range s {
				s[i] = byte(' ' + rng.IntN(90))
			}
			texts = append(texts, s)
			plain = binary.LittleEndian.AppendUint32(plain, uint32(len(s)))
			plain = append(plain, s...)
		}
		keptInts, keptText := bytes.Clone(raw), bytes.Clone(plain)
		for range 4 {
			switch rng.IntN(4) {
			case 0:
				b.SetInts(raw[off:off+8*n], n, 8, rng.IntN(2) == 0)
				if got, ok := b.Ints(); !ok || !slices.Equal(got, ints) {
					t.Fatalf("%d integers at %d: %v, want %v", n, off, got, ints)
				}
			case 1:
				b.SetInts(raw[off:off+4*n], n, 4, true)
			case 2:
				b.SetBytes(plain, n, 0)
				for i, want := range texts {
					if got := b.Append(nil, i); !bytes.Equal(got, want) {
						t.Fatalf("string %d: %q, want %q", i, got, want)
					}
				}
			case 3:
				b.SetBytes(plain, n, Trim|Lower)
				for i, want := range texts {
					want, _ := (Trim | Lower).apply(bytes.Clone(want), nil)
					if got := b.Append(nil, i); !bytes.Equal(got, want) {
						t.Fatalf("string %d: %q, want %q", i, got, want)
					}
				}
			}
			if len(b.Rows) != n || b.Nulls() != 0 {
				t.Fatalf("%d keys, %d NULLs; want %d", len(b.Rows), b.Nulls(), n)
			}
		}
		if !bytes.Equal(raw, keptInts) || !bytes.Equal(plain, keptText) {
			t.Fatal("the page has changed")
		}
	}
}
