package source

import "syscall"

// forget lets the system reclaim the memory of mapped bytes, which stay readable.
func forget(b []byte) {
	_ = syscall.Madvise(b, syscall.MADV_DONTNEED) // a failure only costs memory
}
