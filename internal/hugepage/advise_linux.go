package hugepage

import (
	"syscall"
	"unsafe"
)

// advise asks for huge pages for words, which start and end on huge page
// boundaries. Errors are ignored, because small pages work as well.
func advise(words []uint64) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
}
