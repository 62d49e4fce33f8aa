package spill

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamed creates an anonymous file in dir, which disappears when the process ends,
// even in a crash. It returns an error if the file system does not support that or
// the file cannot be created.
func unnamed(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|os.O_EXCL, 0o600)
}
