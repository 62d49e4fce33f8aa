package storage_test

import (
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/storagetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

func TestLocal(t *testing.T) {
	storagetest.Check(t, storage.Local{}, filepath.ToSlash(filepath.Join(t.TempDir(), "dir")))
}
