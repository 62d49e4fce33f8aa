package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestLinkNewWithoutLinks: without hard links a file is renamed, but not to a name that is taken.
func TestLinkNewWithoutLinks(t *testing.T) {
	for _, none := range []error{errors.ErrUnsupported, fs.ErrPermission} {
		dir := t.TempDir()
		tmp, taken := put(t, filepath.Join(dir, "tmp"), "new"), put(t, filepath.Join(dir, "taken"), "old")
		link := func(_, _ string) error { return none }
		if err := linkBy(link, tmp, taken); !errors.Is(err, fs.ErrExist) {
			t.Errorf("to a name that is taken: %v", err)
		}
		if b, err := os.ReadFile(taken); string(b) != "old" || err != nil {
			t.Errorf("it has %q, %v", b, err)
		}
		if err := linkBy(link, tmp, filepath.Join(dir, "free")); err != nil {
			t.Errorf("to a free name: %v", err)
		}
	}
}
