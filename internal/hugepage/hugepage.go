// Package hugepage allocates large arrays that are read and written at random.
//
// One that is larger than the caches costs a walk through the page tables for
// nearly every access, unless its pages are huge: 2 MiB instead of 4 KiB. One
// that just fits the second-level cache stays there only if its memory is in
// one piece: small pages, scattered, get into each other's way.
package hugepage

import "unsafe"

const (
	// Bytes is the size of a huge page where there are any.
	Bytes = 2 << 20
	// From is the size from which on an array gets huge pages.
	From = 1 << 20

	line = 64 // bytes in a cache line
)

// Words returns n zero words that begin on a cache line, and, if they take From
// bytes or more, on a huge page, the last of which is theirs to its end. They
// are the garbage collector's, as all memory in Go.
func Words(n uint64) []uint64 {
	align, whole := layout(n)
	words := make([]uint64, whole+align/8)
	past := uint64(uintptr(unsafe.Pointer(&words[0]))) % align
	words = words[(align-past)%align/8:][:whole]
	if align == Bytes {
		advise(words)
	}
	return words[:n:n]
}

// Size returns how many bytes [Words] allocates for n words.
func Size(n uint64) uint64 {
	align, whole := layout(n)
	return whole*8 + align
}

// layout returns the bytes that n words are aligned to, and how many words are
// theirs.
func layout(n uint64) (align, words uint64) {
	align = line
	if n*8 >= From {
		align = Bytes
	}
	return align, (n*8 + align - 1) / align * align / 8
}
