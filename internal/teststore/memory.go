// Package teststore holds what tests of several packages need of storages: one in memory
// with a view from outside, so that nothing but package storage depends on local files, and
// one that seems to be over a network.
package teststore

import (
	"context"
	"io"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Memory is a storage whose objects a test puts in place and looks at. Of the optional methods it
// has those of staged objects. It panics on errors, which memory has not.
type Memory struct{ storage.Storage }

// Stage implements [objects.Stage].
func (m *Memory) Stage(ctx context.Context, name, owner string) (storage.Writer, objects.Seal, error) {
	return objects.Stage(ctx, m.Storage, name, owner)
}

// Publish implements [objects.Publish].
func (m *Memory) Publish(ctx context.Context, name, token string) (string, func() error, error) {
	return objects.Publish(ctx, m.Storage, name, token)
}

// Discard implements [objects.Discard].
func (m *Memory) Discard(ctx context.Context, name, token string) error {
	return objects.Discard(ctx, m.Storage, name, token)
}

// NewMemory returns an empty storage.
func NewMemory() *Memory { return &Memory{storage.Memory()} }

// Put writes an object.
func (m *Memory) Put(name string, b []byte) {
	w := must(m.Create(context.Background(), name, storage.CreateOptions{}))
	must(w.Write(b))
	must(0, w.Commit(true))
}

// Get returns the bytes of an object, which must not be written to.
func (m *Memory) Get(name string) (b []byte, ok bool) {
	r, err := m.Storage.Open(context.Background(), storage.Object{Name: name})
	if err != nil {
		return nil, false
	}
	return must(io.ReadAll(io.NewSectionReader(r, 0, r.Object().Size))), true
}

// Names returns the names of all objects in ascending order.
func (m *Memory) Names() (names []string) {
	for _, o := range must(objects.Below(context.Background(), m.Storage, ".")) {
		names = append(names, o.Rel)
	}
	return names
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
