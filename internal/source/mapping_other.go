//go:build !linux

package source

// forget does nothing: only Linux is known to release mapped bytes from the
// process's memory.
func forget([]byte) {}
