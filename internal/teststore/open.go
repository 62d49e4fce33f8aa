package teststore

import (
	"bytes"
	"os"
	"runtime"
	"testing"
)

// Descriptors returns the number of open descriptors of this process, or 0 on systems
// that do not show it.
func Descriptors(t testing.TB) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// Mapped reports whether a file below dir is mapped into memory. On systems that do not
// show it, Mapped returns false.
func Mapped(t testing.TB, dir string) bool {
	t.Helper()
	if runtime.GOOS != "linux" {
		return false
	}
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(b, []byte(dir))
}
