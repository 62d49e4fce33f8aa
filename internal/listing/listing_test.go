package listing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// list is List without manifests.
func list(ctx context.Context, s storage.Source, name string) ([]storage.Object, error) {
	all, _, err := List(ctx, s, name)
	return all, err
}

// put writes a file and creates the directories above it.
func put(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// tree lists the files below a directory, including hidden ones.
func tree(t testing.TB, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

// says checks the kind of an error, and that its text has the words.
func says(t testing.TB, what string, err, kind error, words ...string) {
	t.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) {
		t.Errorf("%s: %v, want an error that is %v", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the text lacks %q: %v", what, w, err)
		}
	}
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

func TestNames(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"b.parquet", "a.parquet", "year=2001/c.parquet", "year=2001/deep/d.parquet",
		"_SUCCESS", ".hidden.parquet", "_temporary/x.parquet", ".cache/y.parquet", "year=2001/_manifest.json", "year=2001/.a.tmp", "out.bloomjoin/manifest.json", "year=2001/x.bloomjoin/y.json", ".bloomjoin/z.json", "w.bloomjoin",
		"z.txt",
	} {
		put(t, filepath.Join(root, name), "")
	}
	outside := put(t, filepath.Join(t.TempDir(), "real.parquet"), "")
	if err := os.Symlink(outside, filepath.Join(root, "link.parquet")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, root+"-alias"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want []string // Rel, "?" before those that were found in a directory
	}{
		{"", []string{"?a.parquet", "?b.parquet", "?link.parquet", "?year=2001/c.parquet", "?year=2001/deep/d.parquet", "?z.txt"}},
		{"/", []string{"?a.parquet", "?b.parquet", "?link.parquet", "?year=2001/c.parquet", "?year=2001/deep/d.parquet", "?z.txt"}},
		{"/a.parquet", []string{"a.parquet"}},
		{"/_SUCCESS", []string{"_SUCCESS"}}, // named by the user
		{"/.hidden.parquet", []string{".hidden.parquet"}},
		{"/link.parquet", []string{"link.parquet"}},
		{"/?.parquet", []string{"a.parquet", "b.parquet"}},
		{"/year=*", []string{"?year=2001/c.parquet", "?year=2001/deep/d.parquet"}},
		{"/year=*/*.parquet", []string{"c.parquet"}},
		{"/[ab].parquet", []string{"a.parquet", "b.parquet"}},
	} {
		for _, base := range []string{root, root + "-alias"} {
			if base != root && (c.name == "" || c.name == "/") {
				continue // see below
			}
			entries, err := list(t.Context(), storage.Local(), base+c.name)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			var got []string
			for _, e := range entries {
				mark := ""
				if e.Found {
					mark = "?"
				}
				got = append(got, mark+e.Rel)
				if _, err := os.Stat(e.Name); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
			equal(t, c.name, got, c.want)
		}
	}
	// A link to a directory is listed as the directory.
	alias, err := list(t.Context(), storage.Local(), root+"-alias")
	if err != nil || len(alias) != 6 {
		t.Errorf("through a link to the directory: %d files, %v; want 6", len(alias), err)
	}
}

// A pattern that ends in a wildcard, as Spark writes them, matches no marker files.
func TestListPatternSkipsMarkers(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"_SUCCESS", ".part.crc", ".attempt.tmp", "part-0.parquet", "_temporary/part-1.parquet"} {
		put(t, filepath.Join(root, name), "")
	}
	entries, err := list(t.Context(), storage.Local(), root+"/*")
	if err != nil || len(entries) != 1 || entries[0].Rel != "part-0.parquet" {
		t.Errorf("%v, %v; want part-0.parquet", entries, err)
	}
	entries, err = list(t.Context(), storage.Local(), root+"/_temp*/*")
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v; want what was named", entries, err)
	}
}

// Links to directories below a log are followed.
func TestListFollowsLinks(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	put(t, filepath.Join(other, "deep/b.parquet"), "")
	put(t, filepath.Join(root, "a.parquet"), "")
	if err := os.Symlink(other, filepath.Join(root, "part")); err != nil {
		t.Fatal(err)
	}
	entries, err := list(t.Context(), storage.Local(), root)
	if err != nil || len(entries) != 2 || entries[1].Rel != "part/deep/b.parquet" {
		t.Errorf("%v, %v; want a.parquet and part/deep/b.parquet", entries, err)
	}
	if err := os.Symlink(root, filepath.Join(other, "deep/back")); err != nil {
		t.Fatal(err)
	}
	if again, err := list(t.Context(), storage.Local(), root); err != nil || !slices.Equal(again, entries) {
		t.Errorf("a circle of links: %v, %v; want each file once", again, err)
	}
	// Twenty directories, each with two links to the next: a million paths.
	dag := t.TempDir()
	for i := range 20 {
		put(t, filepath.Join(dag, fmt.Sprintf("d%02d", i), "f.parquet"), "")
		for _, link := range []string{"l", "r"} {
			if err := os.Symlink(filepath.Join(dag, fmt.Sprintf("d%02d", (i+1)%20)), filepath.Join(dag, fmt.Sprintf("d%02d", i), link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if many, err := list(t.Context(), storage.Local(), dag); err != nil || len(many) != 20 || many[0].Rel != "d00/f.parquet" {
		t.Errorf("%d files, %v; want 20", len(many), err)
	}
	// After a link, .. is the directory above the one that it leads to.
	put(t, filepath.Join(other, "near/c.parquet"), "")
	put(t, filepath.Join(root, "near/d.parquet"), "")
	if err := os.Symlink(filepath.Join(other, "deep"), filepath.Join(root, "to")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	for name, want := range map[string]string{
		"to/../near": "c.parquet", "to/../near/": "c.parquet", "to/../near/*": "c.parquet", "to/../n*/**": "near/c.parquet", root + "/to/../near": "c.parquet",
		"near/../near/*": "d.parquet", "part/deep/../near/*": "c.parquet",
	} {
		list, err := list(t.Context(), storage.Local(), name)
		if err != nil || len(list) != 1 || list[0].Rel != want {
			t.Errorf("%s: %v, %v; want %s", name, list, err, want)
		}
	}
	broken := t.TempDir()
	put(t, filepath.Join(broken, "a.parquet"), "")
	if err := os.Symlink("nowhere", filepath.Join(broken, "b.parquet")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{broken, broken + "/**", broken + "/**/*.parquet", filepath.Dir(broken) + "/*", filepath.Dir(broken) + "/*/**"} {
		if list, err := list(t.Context(), storage.Local(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a link to nothing in %s: %v, %v", name, list, err)
		}
	}
}

// Patterns match as in shells, and ** any number of directories; the Rels of what ** finds
// are paths below the directory before the first wildcard.
func TestListPatterns(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"log/a.parquet", "log/b.parquet", "log/b.arrow", "log/x/c.parquet", "log/x/y/d.parquet", "log/x/y/_tmp/e.parquet", "log/.h/f.parquet",
		"log/out.bloomjoin/m.parquet", "log/z.parquet/part", "other/g.parquet",
	} {
		put(t, filepath.Join(root, name), "1")
	}
	if err := os.Symlink(filepath.Join(root, "other"), filepath.Join(root, "log/linked")); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		"log/**/*.parquet":      "a.parquet b.parquet linked/g.parquet x/c.parquet x/y/d.parquet z.parquet/part",
		"log/**":                "a.parquet b.arrow b.parquet linked/g.parquet x/c.parquet x/y/d.parquet z.parquet/part",
		"log/x/**/d.*":          "y/d.parquet",
		"l*g/**/y/*":            "log/x/y/d.parquet",
		"**/y/*":                "log/x/y/d.parquet",
		"log/*.{parquet,arrow}": "a.parquet b.arrow b.parquet z.parquet/part",
		"log/[!a].parquet":      "b.parquet z.parquet/part",
		"log/[^a].parquet":      "b.parquet z.parquet/part",
		"log/{x/c,a}.parquet":   "a.parquet c.parquet",
		"log/{a,?}.parquet":     "a.parquet b.parquet z.parquet/part",
		"log/{x,../other}/*":    "c.parquet g.parquet y/d.parquet",
		"log/*/":                "linked/g.parquet x/c.parquet x/y/d.parquet z.parquet/part",
		"log/.h/*":              "f.parquet",
		"log/o*":                "",
		"log/*.bloomjoin/*":     "m.parquet",
	} {
		t.Chdir(root) // a pattern may begin with its wildcard
		objects, err := list(t.Context(), storage.Local(), pattern)
		var got []string
		for _, o := range objects {
			got = append(got, o.Rel)
		}
		slices.Sort(got)
		if rels := strings.Join(got, " "); rels != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, want %q; %v", pattern, rels, want, err)
		}
	}
}

func TestListErrors(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "marks/_SUCCESS"), "")
	if err := os.Symlink(filepath.Join(root, "nowhere"), filepath.Join(root, "dangling")); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]error{
		"nothing": fs.ErrNotExist, "no*match": fs.ErrNotExist, "dangling": fs.ErrNotExist, "": fs.ErrNotExist, "marks": fs.ErrNotExist, "[": path.ErrBadPattern,
	} {
		entries, err := list(t.Context(), storage.Local(), filepath.Join(root, name))
		if !errors.Is(err, kind) {
			t.Errorf("%q: %v, %v; want %v", name, entries, err, kind)
		}
	}
	_, err := list(t.Context(), storage.Local(), "s3://bucket/key")
	says(t, "an object store", err, fault.ErrUnsupported, "unsupported", "s3://")
	_, err = storage.Local().Open(t.Context(), storage.Object{Name: "s3://bucket/key"})
	says(t, "an object store", err, fault.ErrUnsupported, "unsupported", "s3://")
	t.Chdir(root)
	_, err = storage.Local().Create(t.Context(), "s3://bucket/key", storage.CreateOptions{})
	says(t, "an object store", err, fault.ErrUnsupported, "unsupported", "s3://")
	equal(t, "files", tree(t, root), []string{"dangling", "marks/_SUCCESS"})
	// A file whose name looks like a pattern is taken literally.
	put(t, filepath.Join(root, "a[1].parquet"), "")
	if entries, err := list(t.Context(), storage.Local(), filepath.Join(root, "a[1].parquet")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestListIsCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "")
	if _, err := list(ctx, storage.Local(), dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !slices.Equal(tree(t, dir), []string{"file"}) {
		t.Error("what happened?")
	}
}

// Memory and FS, which list with their own code, list the same as local files.
func TestAgree(t *testing.T) {
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
		list, manifests, err := List(context.Background(), s, name)
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
			if _, err := list(t.Context(), s, name); errors.Is(err, fault.ErrUnsupported) != want || !want && err != nil {
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
			if list, err := list(t.Context(), s, name); err != nil || len(list) != want {
				t.Errorf("%T %s: %v, %v; want %d", s, name, list, err, want)
			}
		}
	}
	if err := os.Symlink("nowhere", "nothing"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"*/**": 2, "*/*.parquet": 1} { // a link to nothing is no directory
		if list, err := list(t.Context(), storage.Local(), name); err != nil || len(list) != want {
			t.Errorf("%s: %v, %v; want %d", name, list, err, want)
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
		want, wantErr := list(t.Context(), storage.Local(), name)
		got, err := list(t.Context(), storage.FS(os.DirFS(dir)), name)
		if !slices.Equal(got, want) || errors.Is(err, fault.ErrUnsupported) != errors.Is(wantErr, fault.ErrUnsupported) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, err, want, wantErr)
		}
	}
}

// What is yielded comes in ascending order of names, one object at a time, and the error of yield
// ends it, whatever it wraps.
func TestEach(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sub/c", "sub-c", "sub.d", "sub/a/x", "sub/a-b", "z/y", "b", "a/_tmp/x", "e/_SUCCESS"} {
		put(t, filepath.Join(dir, name), name)
	}
	s := remote{storage.Local(), 8}
	for _, src := range []storage.Source{storage.Local(), s} {
		for pattern, want := range map[string]string{
			"": "b sub-c sub.d sub/a-b sub/a/x sub/c z/y", "/*": "b sub-c sub.d sub/a-b sub/a/x sub/c z/y", "/**": "b sub-c sub.d sub/a-b sub/a/x sub/c z/y",
			"/s*/*": "sub/a-b sub/a/x sub/c", "/*/": "sub/a-b sub/a/x sub/c z/y", "/s*/c": "sub/c",
		} {
			var got []string
			_, err := Each(t.Context(), src, dir+pattern, func(o storage.Object) error {
				got = append(got, strings.TrimPrefix(o.Name, dir+"/"))
				return nil
			})
			if names := strings.Join(got, " "); err != nil || names != want {
				t.Errorf("%T %q: %s, %v; want %s", src, pattern, names, err, want)
			}
			for _, stop := range []error{errors.New("stop"), storage.ErrNoFiles, errors.ErrUnsupported, fs.ErrNotExist} {
				calls := 0
				_, err := Each(t.Context(), src, dir+pattern, func(storage.Object) error {
					calls++
					return stop
				})
				if err != stop || calls != 1 { //nolint:errorlint // the error itself comes back
					t.Errorf("%T %q: %v after %d calls, want %v", src, pattern, err, calls, stop)
				}
			}
		}
	}
}

// remote is a source in which requests take time.
type remote struct {
	storage.Source
	atOnce int
}

func (r remote) Concurrency(string) int { return r.atOnce }

// Walk lists one level, or all, as services do.
func (r remote) Walk(ctx context.Context, prefix string, enter func(dir string) bool, yield func(storage.Object) error) error {
	return objects.Walk(ctx, struct{ storage.Source }{r.Source}, prefix, enter, yield)
}
