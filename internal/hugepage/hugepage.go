// Package hugepage allocates large arrays for random access.
//
// If an array is larger than the caches, nearly every access needs a page table
// walk, unless its pages are huge: 2 MiB instead of 4 KiB. An array that just fits
// the second-level cache stays there only if its memory is contiguous: scattered
// small pages evict each other.
package hugepage

import "unsafe"

const (
	// Bytes is the size of a huge page, where the system has them.
	Bytes = 2 << 20
	// From is the size in bytes from which arrays get huge pages.
	From = 1 << 20

	line = 64 // bytes in a cache line
)

// Words returns n zero words that start on a cache line. If they take From bytes or
// more, they start on a huge page, and the rest of their last huge page is not used
// for anything else. They are garbage-collected like all Go memory.
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

// Size returns the number of bytes that [Words] allocates for n words.
func Size(n uint64) uint64 {
	align, whole := layout(n)
	return whole*8 + align
}

// layout returns the alignment of n words in bytes, and n rounded up to that
// alignment.
func layout(n uint64) (align, words uint64) {
	align = line
	if n*8 >= From {
		align = Bytes
	}
	return align, (n*8 + align - 1) / align * align / 8
}
