package storage_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestCreateInVanishingDirectory: a process that removes empty directories does not disturb
// another one that is about to write there.
func TestCreateInVanishingDirectory(t *testing.T) {
	s := storage.Local()
	dir := filepath.ToSlash(t.TempDir()) + "/dt=1"
	var done atomic.Bool
	removed := make(chan error)
	go func() {
		for !done.Load() {
			if err := objects.RemoveDir(t.Context(), s, dir); err != nil {
				removed <- err
				return
			}
		}
		removed <- nil
	}()
	for range 2000 {
		w, err := s.Create(t.Context(), dir+"/a", storage.CreateOptions{})
		if err == nil {
			err = w.Abort()
		}
		if err != nil {
			t.Error(err)
			break
		}
	}
	done.Store(true)
	if err := <-removed; err != nil {
		t.Error(err)
	}
}
