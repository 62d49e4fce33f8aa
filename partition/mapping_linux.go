package partition

import "syscall"

// forget lets the system take back the memory of mapped bytes, which stay
// readable.
func forget(b []byte) {
	_ = syscall.Madvise(b, syscall.MADV_DONTNEED) // what is not taken back costs memory, no more
}
