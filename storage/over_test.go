package storage

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

// TestCommitOver: a writer replaces the object that was seen, and no other; what it returns
// identifies what it wrote.
func TestCommitOver(t *testing.T) {
	for what, c := range map[string]struct {
		store Storage
		name  string
	}{"local": {Local(), filepath.Join(t.TempDir(), "a")}, "memory": {Memory(), "dir/a"}} {
		t.Run(what, func(t *testing.T) {
			write := func(text string, replace bool, over string) (string, error) {
				w, err := c.store.Create(t.Context(), c.name, CreateOptions{})
				if err == nil {
					_, err = w.Write([]byte(text))
				}
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := w.Abort(); err != nil {
						t.Error(err)
					}
				}()
				identity, settle, err := w.(interface {
					CommitOver(replace bool, over string) (identity string, settle func() error, err error)
				}).CommitOver(replace, over)
				if settle != nil {
					err = errors.Join(err, settle())
				}
				return identity, err
			}
			if _, err := write("one", true, "0-0"); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrChanged) {
				t.Errorf("over what is not there: %v", err)
			}
			first, err := write("one", false, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := write("other", false, ""); !errors.Is(err, fs.ErrExist) {
				t.Errorf("where an object is: %v", err)
			}
			second, err := write("second", true, first)
			if o, failed := c.store.Stat(t.Context(), c.name); err != nil || failed != nil || second != o.Identity || second == first {
				t.Errorf("identity %q after %q, %v, %v; want %q", second, first, err, failed, o.Identity)
			}
			if _, err := write("third", true, first); !errors.Is(err, ErrChanged) {
				t.Errorf("over an earlier object: %v", err)
			}
			if o, err := c.store.Stat(t.Context(), c.name); err != nil || o.Identity != second {
				t.Errorf("%+v, %v, want the second", o, err)
			}
			if _, err := write("fourth", true, ""); err != nil {
				t.Errorf("over any: %v", err)
			}
		})
	}
}
