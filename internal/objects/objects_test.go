package objects

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/storage"
)

func TestLocalIsDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{dir: true, file: false, dir + "/new": false, dir + "/new/": true} {
		if got := IsDir(t.Context(), storage.Local(), name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
