package objects

import (
	"context"
	"errors"
	"io"
	"io/fs"
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

// plain is a storage without methods for staged objects. before runs once, before an object gets the
// name "dir/a".
type plain struct {
	storage.Storage
	before *func()
}

func (p plain) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	w, err := p.Storage.Create(ctx, name, o)
	if name == "dir/a" {
		w = plainWriter{w, p.before}
	}
	return w, err
}

type plainWriter struct {
	storage.Writer
	before *func()
}

func (w plainWriter) CommitOver(replace bool, over string) (string, func() error, error) {
	if f := *w.before; f != nil {
		*w.before = nil
		f()
	}
	return CommitOver(w.Writer, replace, over)
}

// TestPublishLate: a storage without methods for staged objects copies them. A copy that is late, after
// another process has published the same and a later run something else, changes nothing.
func TestPublishLate(t *testing.T) {
	for _, was := range []bool{false, true} {
		s := plain{struct{ storage.Storage }{storage.Memory()}, new(func())}
		stage := func(content string) string {
			w, seal, err := Stage(t.Context(), s, "dir/a", "")
			if err == nil {
				_, err = w.Write([]byte(content))
			}
			token, _, _, sealErr := seal()
			if err := errors.Join(err, sealErr); err != nil {
				t.Fatal(err)
			}
			return token
		}
		publish := func(token string) {
			t.Helper()
			identity, _, err := Publish(t.Context(), s, "dir/a", token)
			if now, statErr := s.Stat(t.Context(), "dir/a"); err != nil || statErr != nil || now.Identity != identity {
				t.Errorf("%s: %v, %q; %+v, %v", token, err, identity, now, statErr)
			}
		}
		if was {
			publish(stage("old"))
		}
		first, second := stage("first"), stage("second")
		*s.before = func() { publish(first); publish(second) }
		if _, _, err := Publish(t.Context(), s, "dir/a", first); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		r, err := s.Open(t.Context(), storage.Object{Name: "dir/a"})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(io.NewSectionReader(r, 0, 100)); err != nil || string(b) != "second" {
			t.Errorf("%q, %v", b, err)
		}
	}
}
