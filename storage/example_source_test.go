package storage_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

// blobs is a source of objects in a map: what a program's own store has to do.
type blobs map[string]string

func (b blobs) List(ctx context.Context, prefix string, yield func(storage.Object) error) error {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if strings.HasPrefix(name, prefix) {
			if err := errors.Join(ctx.Err(), yield(storage.Object{Name: name, Size: int64(len(b[name])), Identity: b[name]})); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b blobs) Stat(_ context.Context, name string) (storage.Object, error) {
	if content, ok := b[name]; ok {
		return storage.Object{Name: name, Size: int64(len(content)), Identity: content}, nil
	}
	for other := range b {
		if strings.HasPrefix(other, strings.TrimRight(name, "/")+"/") {
			return storage.Object{Name: name, Type: fs.ModeDir}, nil
		}
	}
	return storage.Object{}, fs.ErrNotExist
}

func (b blobs) Open(_ context.Context, o storage.Object) (storage.Reader, error) {
	content, ok := b[o.Name]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case o.Identity != "" && o.Identity != content:
		return nil, storage.ErrChanged
	}
	o.Size, o.Identity = int64(len(content)), content
	return blob{bytes.NewReader([]byte(content)), o}, nil
}

type blob struct {
	*bytes.Reader
	o storage.Object
}

func (b blob) Object() storage.Object { return b.o }
func (b blob) Close() error           { return nil }

func TestOwnSource(t *testing.T) {
	b := blobs{}
	for _, name := range []string{"log/dt=1/a.csv", "log/dt=2/b.csv", "log/dt=2/_tmp/x", "log/_SUCCESS", "log-old/c.csv", "lake/_delta_log/0.json", "lake/d.csv"} {
		b[name] = "content of " + name
	}
	storagetest.TestSource(t, b, "log")
	storagetest.TestSource(t, b, "log/")
	for name, want := range map[string]int{"log/": 2, "log": 2, "log/*/*.csv": 2, "log/**/b.csv": 1, "log*": 3, "log/dt=[1-9]": 2, "log/_S*": 1, "log/{dt=1/a,dt=2/b}.csv": 2} {
		if got, err := list(t.Context(), b, name); err != nil || len(got) != want {
			t.Errorf("%s: %v, %v; want %d", name, got, err, want)
		}
	}
	for _, name := range []string{"lake", "lake/d.csv", "lake/*", "l*/*.csv"} {
		if got, err := list(t.Context(), b, name); err == nil {
			t.Errorf("%s: a table is read as %v", name, got)
		}
	}
}
