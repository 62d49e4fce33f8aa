//go:build !unix

package storage

import (
	"io/fs"
	"os"
)

func dirIdentity(fs.FileInfo) string { return "" }

func openFile(name string) (file, error) { return os.Open(name) }

func openMode(name string, flags int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flags, mode)
}
