package cloud

import (
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

// Objects in memory and local files keep the promises of package storage.
func TestCheck(t *testing.T) {
	s := made(Options{})
	defer s.Close()
	for name, dir := range map[string]string{
		"mem": "mem://bucket/dir", "file": address.FileURL(filepath.ToSlash(filepath.Join(t.TempDir(), "100% dir"))), "path": filepath.Join(t.TempDir(), "dir"),
	} {
		t.Run(name, func(t *testing.T) { storagetest.TestStorage(t, s, dir) })
	}
}

// made returns a store as it is inside.
func made(o Options) *store { return New(o).(*store) }

// total returns the number of all requests.
func total(r Requests) int64 { return r.List + r.Head + r.Get + r.Put + r.Part + r.Delete + r.Other }
