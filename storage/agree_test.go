package storage_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

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
	if list, err := s.List(t.Context(), "file"); err != nil || len(list) != 1 || list[0].Size != 6 {
		t.Errorf("a link to a file: %+v, %v", list, err)
	}
	if list, err := s.List(t.Context(), "."); err != nil || len(list) != 3 { // a, file, sub/b or dir/b
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

// Memory and FS, which list with their own code, list the same as local files.
func TestListsAgree(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	m, memory := fstest.MapFS{}, storage.Memory()
	for _, name := range []string{
		"o/a/x.csv", "o/a-b.csv", "o/a.csv", "k/c", "top.csv", "log/a.parquet", "log/b.csv", "log/_SUCCESS", "log/.hidden", "log/dt=1/a.parquet", "log/dt=1/_tmp/x", "log/dt=2/b.parquet", "log/dt=2/x/c.parquet",
		"log/out.bloomjoin/manifest.json", "log/dt=1/out.bloomjoin/manifest.json", "log/out/deep/er/d.parquet", "log/{a,b}.csv", "log/[x].csv",
		"marks/_SUCCESS", "marks/in.bloomjoin/m.json", "other/a.parquet", "_named/a.csv",
		"delta/_delta_log/0.json", "delta/dt=1/a.parquet", "hudi/.hoodie/p", "hudi/a.parquet", "ice/metadata/v1.metadata.json", "ice/data/a.parquet", "nested/delta/_delta_log/0", "nested/delta/a", "nested/b",
	} {
		m[name] = &fstest.MapFile{Data: []byte(name)}
		put(t, name, name)
		w, err := memory.Create(t.Context(), name, storage.CreateOptions{})
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
	show := func(s storage.Source, name string) string {
		list, manifests, err := s.(storage.ManifestLister).ListManifests(context.Background(), name)
		var lines []string
		for _, o := range list {
			lines = append(lines, fmt.Sprintf("%s as %s found %t size %d", o.Name, o.Rel, o.Found, o.Size))
		}
		if glob := strings.ContainsAny(name, "*?[{"); glob {
			slices.Sort(lines) // of patterns, the order is not promised
		}
		slices.Sort(manifests)
		for _, kind := range []error{storage.ErrNoFiles, fs.ErrNotExist, fault.ErrUnsupported} {
			if errors.Is(err, kind) {
				lines = append(lines, kind.Error())
			}
		}
		if err != nil && len(lines) == 0 {
			lines = append(lines, "another error")
		}
		return strings.Join(append(lines, "and "+strings.Join(manifests, " ")), "\n")
	}
	for _, name := range []string{
		"log", "log/", "log/a.parquet", "log/_SUCCESS", "log/dt=1", "log/dt=1/", "log/dt=1/_tmp", "marks", "marks/", "nowhere", "nowhere/", "_named", ".", "other",
		"log/*", "log/*.csv", "log/*.parquet", "log/*/", "log/dt=*", "log/dt=*/*.parquet", "log/dt=[12]", "log/dt=[!1]/*", "*/a.parquet", "log/??.csv", "log/.h*", "log/_*",
		"log/{a,b}.csv", "log/{a,b}.*", "{log,other}/a.parquet", "{log/dt=1,other}", "log/[x].csv", "log/\\[x\\].csv",
		"log/**", "log/**/*.parquet", "log/**/x/*", "**/a.parquet", "log/dt=*/**", "l*/**/c.parquet", "marks/**", "log/**/",
		"ma*", "m*/", "{marks,log}", "{marks/,log/dt=1/}", "o", "o/*", "o/**", "./o", "o//a", "o/a.csv/", "./log/*.csv", "", "{log/a.parquet/x,other}/**",
		"_na*/*", "_named/*", "log/*.bloomjoin/*", "nowhere/*", "log/[", "log/*/*/*",
		"delta", "delta/dt=1", "delta/*", "delta/dt=*", "delta/dt=1/*", "d*", "hudi", "ice", "ice/data", "nested", "nested/*", "nested/delta", "nested/**", "delta/**",
		"delta/dt=1/*.parquet", "delta/dt=1/a.parquet", "delta/dt=*/*.parquet", "hudi/a.parquet", "hudi/*.parquet", "ice/data/", "ice/data/*.parquet", "ice/data/a.parquet", "ice/**/*.parquet", "nested/delta/a", "nested/b", "i*/data", "*/data/*",
	} {
		want := show(storage.Local(), name)
		for what, s := range map[string]storage.Source{"Memory": memory, "FS": storage.FS(m)} {
			if got := show(s, name); got != want {
				t.Errorf("%s lists %q as\n%s\nwant, as local files,\n%s", what, name, got, want)
			}
		}
	}
}

// Files of tables are refused whether they are named, matched, or found in a directory.
func TestTablesAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"delta/_delta_log/0.json", "delta/dt=1/a.parquet", "hudi/.hoodie/p", "hudi/a.parquet", "ice/metadata/v1.metadata.json", "ice/data/a.parquet", "plain/metadata/a.json", "plain/data/a.parquet"} {
		put(t, name, name)
	}
	for name, want := range map[string]bool{
		"delta": true, "delta/dt=1": true, "delta/dt=1/*.parquet": true, "delta/dt=1/a.parquet": true, "hudi/*.parquet": true, "hudi/a.parquet": true, "*/a.parquet": true,
		"ice/data": true, "ice/data/*": true, "ice/data/a.parquet": true, "ice/**/*.parquet": true, "plain/data/*": false, "plain/data/a.parquet": false, "plain": false, "p*/**/*.parquet": false,
	} {
		for _, s := range []storage.Source{storage.Local(), storage.FS(os.DirFS("."))} {
			if _, err := s.List(t.Context(), name); errors.Is(err, fault.ErrUnsupported) != want || !want && err != nil {
				t.Errorf("%T %s: %v", s, name, err)
			}
		}
	}
}

// Markers are not examined even if a pattern matches their names: a lock of an editor is a link
// to nothing, and temporary files come and go.
func TestMarkersAreNotLookedAt(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, "log/a.parquet", "a")
	put(t, "log/dt=1/b.parquet", "b")
	for _, link := range []string{"log/.#a.parquet", "log/dt=1/_b.parquet"} {
		if err := os.Symlink("somebody@host.1", link); err != nil {
			t.Skip(err)
		}
	}
	for _, s := range []storage.Source{storage.Local(), storage.FS(os.DirFS(dir))} {
		for name, want := range map[string]int{"log/*.parquet": 1, "log": 2, "log/*": 2, "log/**": 2, "log/dt=*/*.parquet": 1, "log/dt=*/**": 1, "l*/**/*.parquet": 2} {
			if list, err := s.List(t.Context(), name); err != nil || len(list) != want {
				t.Errorf("%T %s: %v, %v; want %d", s, name, list, err, want)
			}
		}
	}
	if err := os.Symlink("nowhere", "nothing"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"*/**": 2, "*/*.parquet": 1} { // a link to nothing is no directory
		if list, err := storage.Local().List(t.Context(), name); err != nil || len(list) != want {
			t.Errorf("%s: %v, %v; want %d", name, list, err, want)
		}
	}
}

// A path of the system, which newcomers try first, is not in an fs.FS; the error says so.
func TestFSNames(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.csv"), "a")
	s := storage.FS(os.DirFS(dir))
	for _, name := range []string{dir + "/a.csv", "../a.csv", "/"} {
		if _, err := s.List(t.Context(), name); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "from its root on") {
			t.Errorf("%s: %v", name, err)
		}
		if tree, err := s.(interface {
			Tree(ctx context.Context, dir string) ([]storage.Object, error)
		}).Tree(t.Context(), name); err != nil || len(tree) > 0 {
			t.Errorf("Tree %s: %v, %v", name, tree, err)
		}
	}
}

// Links are followed by FS as by Local.
func TestFSFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, "lk/dt=1/a.csv", "a")
	put(t, "real/a.csv", "b")
	put(t, "table/_delta/0.json", "{}")
	put(t, "table/dt=1/a.parquet", "a")
	for from, to := range map[string]string{"lk/dt=2": "../real", "table/_delta_log": "_delta"} {
		if err := os.Symlink(to, from); err != nil {
			t.Skip(err)
		}
	}
	for _, name := range []string{"lk", "lk/dt=*/a.csv", "lk/*", "lk/*/a.csv", "lk/**/*.csv", "table", "table/dt=1", "table/*", "table/dt=1/*", "table/dt=1/a.parquet"} {
		want, wantErr := storage.Local().List(t.Context(), name)
		got, err := storage.FS(os.DirFS(dir)).List(t.Context(), name)
		if !slices.Equal(got, want) || errors.Is(err, fault.ErrUnsupported) != errors.Is(wantErr, fault.ErrUnsupported) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, err, want, wantErr)
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
		if list, err := s.List(ctx, name); err != nil || len(list) != want {
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
