package hugepage

import (
	"syscall"
	"unsafe"
)

// advise asks for huge pages, of which words are whole ones. Where there are none to be had, all goes on
// with small ones, so that an error says nothing.
func advise(words []uint64) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
}
