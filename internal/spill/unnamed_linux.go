package spill

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamed makes a file in the directory that never has a name, so that nothing
// is left of it when the process ends, however that is. The error means that the
// file system cannot do that, or that no file can be made there.
func unnamed(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|os.O_EXCL, 0o600)
}
