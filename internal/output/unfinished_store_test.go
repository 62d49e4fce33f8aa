package output

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Half an output is refused wherever it stands: in the local file system, in a read-only view
// of it, and in memory, by relative names.
func TestUnfinishedInAnyStore(t *testing.T) {
	in, dir := roomtest.Logs(t), t.TempDir()
	t.Chdir(dir)
	half := func(store storage.Storage, name string, shard dataset.Shard) error {
		_, err := job{[]string{in}, Destination{Output: Output{Name: name, Store: store, Shard: shard}, Run: runOf(1)}}.do(t)
		return err
	}
	memory := storage.Memory()
	for _, store := range []storage.Storage{storage.Local(), memory} {
		if err := half(store, "out/", dataset.Shard{}); err != nil {
			t.Fatal(err)
		}
		cutShort(t, store, "out")
	}
	open := func(s storage.Source, name string) error {
		files, err := source.Open(context.Background(), []string{name}, source.Opening{OpenOptions: source.OpenOptions{Store: s, Hive: dataset.HiveOff}})
		if err == nil {
			err = source.Close(files)
		}
		return err
	}
	stores := map[string]storage.Source{"local": storage.Local(), "FS": storage.FS(os.DirFS(dir)), "memory": memory}
	for what, s := range stores {
		for _, name := range []string{"out", "out/", "out/*", "out/**", "."} {
			if err := open(s, name); err == nil || !strings.Contains(err.Error(), "not whole") {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}
	// A program's storage around the local one, which forwards nothing that is optional, below
	// the output and through a link.
	wrapped := struct{ storage.Storage }{storage.Local()}
	if err := os.Symlink(dir+"/out/y=1", dir+"/link"); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"out", "link", dir + "/link"} {
		if err := open(wrapped, name); err == nil || !strings.Contains(err.Error(), "not whole") {
			t.Errorf("wrapped %s: %v", name, err)
		}
	}
	t.Chdir("out")
	for _, name := range []string{".", "*", "y=1", "*/*"} {
		if err := open(wrapped, name); err == nil || !strings.Contains(err.Error(), "not whole") {
			t.Errorf("wrapped, below the output, %s: %v", name, err)
		}
	}
	// An output was moved, and a link put in its place, beside its manifests.
	t.Chdir(dir)
	if err := half(storage.Local(), "moved/", dataset.Shard{Index: 0, Of: 2}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename("moved", "real"), os.Symlink("real", "moved")); err != nil {
		t.Fatal(err)
	}
	t.Chdir("moved")
	t.Setenv("PWD", dir+"/moved") // as a shell has it
	for _, s := range []storage.Source{storage.Local(), wrapped} {
		if err := open(s, "."); err == nil || !strings.Contains(err.Error(), "not whole") {
			t.Errorf("%T, below a link: %v", s, err)
		}
	}
	t.Chdir(dir)
	if err := errors.Join(os.RemoveAll("real"), os.RemoveAll("moved.bloomjoin"), os.Remove("moved"), os.Remove("link")); err != nil {
		t.Fatal(err)
	}
	for _, store := range []storage.Storage{storage.Local(), memory} {
		if err := half(store, "out/", dataset.Shard{}); !errors.Is(err, ErrDone) {
			t.Fatal(err)
		}
	}
	for what, s := range stores {
		for _, name := range []string{"out", "out/*", "."} {
			if err := open(s, name); err != nil {
				t.Errorf("%s %s, whole: %v", what, name, err)
			}
		}
	}
}
