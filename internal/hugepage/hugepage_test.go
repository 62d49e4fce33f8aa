package hugepage

import (
	"testing"
	"unsafe"
)

// Arrays large enough for huge pages begin on one, all are empty, and nothing
// can be appended to them in place.
func TestWords(t *testing.T) {
	for _, n := range []uint64{1, 8, 1000, From/8 - 1, From / 8, From/8 + 9, 3*Bytes/8 + 1} {
		words := Words(n)
		if uint64(len(words)) != n || uint64(cap(words)) != n {
			t.Fatalf("%d words: %d of %d", n, len(words), cap(words))
		}
		want := uintptr(line)
		if n*8 >= From {
			want = Bytes
		}
		if at := uintptr(unsafe.Pointer(&words[0])); at%want != 0 {
			t.Errorf("%d words at %x", n, at)
		}
		for i := range words {
			if words[i] != 0 {
				t.Fatalf("%d words: word %d is %x", n, i, words[i])
			}
			words[i] = 1
		}
	}
	if len(Words(0)) != 0 {
		t.Error("words from nothing")
	}
}
