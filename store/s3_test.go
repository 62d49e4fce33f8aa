package store

import (
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/storagetest"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
)

// An S3 service keeps the promises of package storage.
func TestCheckS3(t *testing.T) {
	g := storetest.S3(t)
	g.Setenv(t)
	s := New(Options{})
	defer s.Close()
	storagetest.Check(t, s, g.Name("dir"))
	t.Logf("%+v", s.Stats())
}
