package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestLinkNewWithoutLinks: what has no hard links, as directories, is renamed, but not to a name
// that is taken.
func TestLinkNewWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	tmp, taken, free := filepath.Join(dir, "tmp"), filepath.Join(dir, "taken"), filepath.Join(dir, "free")
	if err := errors.Join(os.Mkdir(tmp, 0o777), os.Mkdir(taken, 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := linkNew(tmp, taken); !errors.Is(err, fs.ErrExist) {
		t.Errorf("to a name that is taken: %v", err)
	}
	if err := linkNew(tmp, free); err != nil {
		t.Errorf("to a free name: %v", err)
	}
}
