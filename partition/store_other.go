//go:build !unix

package partition

import (
	"io/fs"
	"os"
)

// descriptors returns how many files the process may have open.
func descriptors() int { return 1 << 10 }

// seenDirs are directories that were walked.
type seenDirs []fs.FileInfo

// add notes a directory, and reports whether it was noted before.
func (s *seenDirs) add(info fs.FileInfo) bool {
	for _, other := range *s {
		if os.SameFile(other, info) {
			return true
		}
	}
	*s = append(*s, info)
	return false
}
