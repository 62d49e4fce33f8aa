package storage_test

import (
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

func TestLocal(t *testing.T) {
	storagetest.TestStorage(t, storage.Local(), filepath.ToSlash(filepath.Join(t.TempDir(), "dir")))
}
