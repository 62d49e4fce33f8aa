package cloud_test

import (
	"context"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// A store that New has not made, and an object without a name, are errors.
func TestNoStore(t *testing.T) {
	ctx := t.Context()
	local := cloud.New(cloud.Options{})
	defer local.Close()
	for name, c := range map[string]struct {
		s    storage.Storage
		name string
	}{
		"nil": {(*cloud.Store)(nil), "mem://b/x"}, "zero": {new(cloud.Store), "mem://b/x"}, "zero, local": {new(cloud.Store), "x"},
		"no name": {local, ""}, "no local name": {storage.Local{}, ""},
	} {
		for call, do := range map[string]func() error{
			"List":   func() error { _, err := c.s.List(ctx, c.name); return err },
			"Stat":   func() error { _, err := c.s.Stat(ctx, c.name); return err },
			"Open":   func() error { _, err := c.s.Open(ctx, storage.Object{Name: c.name}); return err },
			"Create": func() error { _, err := c.s.Create(ctx, c.name, storage.CreateOptions{}); return err },
			"Delete": func() error { return c.s.Delete(ctx, storage.Object{Name: c.name}) },
			"Sweep":  func() error { return objects.Sweep(ctx, c.s, c.name) },
		} {
			if err := do(); err == nil {
				t.Errorf("%s of %s: no error", call, name)
			}
		}
	}
	for _, s := range []*cloud.Store{nil, {}} {
		if _, err := s.Tree(ctx, "mem://b/x"); err == nil {
			t.Error("Tree: no error")
		}
		if err := s.RemoveDir(ctx, "mem://b/x"); err == nil {
			t.Error("RemoveDir: no error")
		}
		if err := s.Close(); err != nil || s.Stats() != (cloud.Stats{}) || s.Concurrency("mem://b/x") != 1 || s.Resolve("mem://b/x") != "mem://b/x" {
			t.Errorf("close %v, stats %v, resolves to %s", err, s.Stats(), s.Resolve("mem://b/x"))
		}
	}
	defer func() {
		if r := recover(); r != "Store.List: nil context" {
			t.Errorf("a nil context: %v", r)
		}
	}()
	var none context.Context
	_, _ = local.List(none, "mem://b/x")
}
