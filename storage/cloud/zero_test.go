package cloud_test

import (
	"context"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// An object without a name, and a nil context, are errors.
func TestNoName(t *testing.T) {
	ctx := t.Context()
	local := cloud.New(cloud.Options{})
	defer local.Close()
	for name, s := range map[string]storage.Storage{"no name": local, "no local name": storage.Local()} {
		for call, do := range map[string]func() error{
			"Stat":   func() error { _, err := s.Stat(ctx, ""); return err },
			"Open":   func() error { _, err := s.Open(ctx, storage.Object{Name: ""}); return err },
			"Create": func() error { _, err := s.Create(ctx, "", storage.CreateOptions{}); return err },
			"Delete": func() error { return s.Delete(ctx, storage.Object{Name: ""}) },
			"Sweep":  func() error { return objects.Sweep(ctx, s, "") },
		} {
			if err := do(); err == nil {
				t.Errorf("%s of %s: no error", call, name)
			}
		}
	}
	defer func() {
		if r := recover(); r != "Store.List: nil context" {
			t.Errorf("a nil context: %v", r)
		}
	}()
	var none context.Context
	_ = local.List(none, "mem://b/x", nil)
}
