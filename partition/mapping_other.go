//go:build !linux

package partition

// forget does nothing: only on Linux it is known to take mapped bytes out of
// the process's memory.
func forget([]byte) {}
