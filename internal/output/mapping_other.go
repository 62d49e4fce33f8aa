//go:build !linux

package output

// forget does nothing: only Linux is known to release mapped bytes from the
// process's memory.
func forget([]byte) {}
