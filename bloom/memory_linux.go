package bloom

import (
	"syscall"
	"unsafe"
)

// adviseHuge asks for huge pages. Where there are none to be had, all goes on
// with small ones, so that an error says nothing.
func adviseHuge(words []uint64) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8/hugePage*hugePage)
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
}
