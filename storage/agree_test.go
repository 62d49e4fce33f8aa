package storage_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

// list returns the inputs that a name stands for.
func list(ctx context.Context, s storage.Source, name string) ([]storage.Object, error) {
	all, _, err := listing.List(ctx, s, name)
	return all, err
}

func TestMemory(t *testing.T) {
	storagetest.TestStorage(t, storage.Memory(), "dir")
	storagetest.TestStorage(t, storage.Memory(), "/a/b/dir")
}

func TestFS(t *testing.T) {
	dir := t.TempDir()
	m := fstest.MapFS{}
	for _, name := range []string{"log/dt=1/a.parquet", "log/dt=2/b.parquet", "log/_SUCCESS", "log/c.csv"} {
		m[name] = &fstest.MapFile{Data: []byte("content of " + name)}
		put(t, filepath.Join(dir, name), "content of "+name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, files := range map[string]fs.FS{"MapFS": m, "DirFS": os.DirFS(dir), "Root": root.FS()} {
		t.Run(name, func(t *testing.T) {
			storagetest.TestSource(t, storage.FS(files), "log")
			storagetest.TestSource(t, storage.FS(files), "log/")
			storagetest.TestSource(t, storage.FS(files), ".")
		})
	}
}

// put writes a local file and the directories above it.
func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A file of an fs.FS that changes, a link, and one that has only Read are not read as
// something else.
func TestFSRefuses(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a"), "one")
	put(t, filepath.Join(dir, "sub/b"), "b")
	s := storage.FS(os.DirFS(dir))
	r, err := s.Open(t.Context(), storage.Object{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	put(t, filepath.Join(dir, "a"), "longer")
	if err := r.(storage.Checker).Changed(); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("a file that has changed: %v", err)
	}
	for link, to := range map[string]string{"file": "a", "dir": "sub"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	if list, err := list(t.Context(), s, "file"); err != nil || len(list) != 1 || list[0].Size != 6 {
		t.Errorf("a link to a file: %+v, %v", list, err)
	}
	if list, err := list(t.Context(), s, "."); err != nil || len(list) != 3 { // a, file, sub/b or dir/b
		t.Errorf("a link to a directory: %+v, %v", list, err)
	}

	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if f, err := w.Create("z"); err != nil {
		t.Fatal(err)
	} else if _, err := io.WriteString(f, "z"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.FS(z).Open(t.Context(), storage.Object{Name: "z"}); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("a file of a zip archive: %v", err)
	}
}

// A path of the system, which newcomers try first, is not in an fs.FS; the error says so.
func TestFSNames(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.csv"), "a")
	s := storage.FS(os.DirFS(dir))
	for _, name := range []string{dir + "/a.csv", "../a.csv", "/"} {
		if _, err := list(t.Context(), s, name); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "from its root on") {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := objects.Below(t.Context(), s, name); err != nil || len(all) > 0 {
			t.Errorf("below %s: %v, %v", name, all, err)
		}
	}
}

// More files are open than there are descriptors: their readers rest.
func TestFSRests(t *testing.T) {
	m := fstest.MapFS{"a": &fstest.MapFile{Data: []byte("content"), ModTime: time.Unix(1, 0)}}
	r, err := storage.FS(m).Open(t.Context(), storage.Object{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		_, err := r.ReadAt(make([]byte, 3), 0)
		return err
	}
	if err := errors.Join(r.(storage.Rester).Rest(), read(), r.(storage.Rester).Rest()); err != nil {
		t.Error(err)
	}
	m["a"] = &fstest.MapFile{Data: []byte("CONTENT"), ModTime: time.Unix(2, 0)}
	if err := read(); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("after a change at rest: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := read(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// An object may have the name of a directory, and one name is written in several ways.
func TestMemoryNames(t *testing.T) {
	ctx, s := t.Context(), storage.Memory()
	for _, name := range []string{"k/a", "k/a/b", "k/c", "./out/x", "out//y", "s3://b//k/x", "s3://p/1", "s3://q/2"} {
		w, err := s.Create(ctx, name, storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, name); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(false); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"k/*": 3, "k/*/": 1, "./out": 2, "out": 2, "out/*": 2, "./out/y": 1, "s3://b/k": 1, "s3://b//k/": 1, "{s3://p,s3://q}/*": 2, "s3://*/*": 3, ".": 8} {
		if list, err := list(ctx, s, name); err != nil || len(list) != want {
			t.Errorf("%s: %v, %v; want %d", name, list, err, want)
		}
	}
	w, err := s.Create(ctx, "aborted", storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(false); err == nil {
		t.Error("Commit after Abort succeeds")
	}
}
