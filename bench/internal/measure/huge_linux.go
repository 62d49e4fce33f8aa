package measure

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// AdviseHuge requests huge pages for buf, as package bloom does for filters.
func AdviseHuge(buf []uint64) error {
	const page = 2 << 20
	at := uintptr(unsafe.Pointer(&buf[0]))
	skip := (page - at%page) % page / 8
	n := (uintptr(len(buf)) - min(skip, uintptr(len(buf)))) * 8 / page * page
	if n == 0 {
		return nil
	}
	return unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&buf[skip])), n), unix.MADV_HUGEPAGE)
}
