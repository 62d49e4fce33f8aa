//go:build !unix

package storage

import (
	"io/fs"
	"os"
)

// seenDirs is the set of directories that a walk has visited.
type seenDirs []fs.FileInfo

// add adds a directory, and reports whether the set had it before.
func (s *seenDirs) add(info fs.FileInfo) bool {
	for _, other := range *s {
		if os.SameFile(other, info) {
			return true
		}
	}
	*s = append(*s, info)
	return false
}

func openFile(name string) (file, error) { return os.Open(name) }

func openMode(name string, flags int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flags, mode)
}
