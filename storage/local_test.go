package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

func TestLocalList(t *testing.T) {
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
			entries, err := Local().List(t.Context(), base+c.name)
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
	alias, err := Local().List(t.Context(), root+"-alias")
	if err != nil || len(alias) != 6 {
		t.Errorf("through a link to the directory: %d files, %v; want 6", len(alias), err)
	}
}

// A pattern that ends in a wildcard, as Spark writes them, matches no marker files.
func TestLocalListPatternSkipsMarkers(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"_SUCCESS", ".part.crc", ".attempt.tmp", "part-0.parquet", "_temporary/part-1.parquet"} {
		put(t, filepath.Join(root, name), "")
	}
	entries, err := Local().List(t.Context(), root+"/*")
	if err != nil || len(entries) != 1 || entries[0].Rel != "part-0.parquet" {
		t.Errorf("%v, %v; want part-0.parquet", entries, err)
	}
	entries, err = Local().List(t.Context(), root+"/_temp*/*")
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v; want what was named", entries, err)
	}
}

// Links to directories below a log are followed.
func TestLocalListFollowsLinks(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	put(t, filepath.Join(other, "deep/b.parquet"), "")
	put(t, filepath.Join(root, "a.parquet"), "")
	if err := os.Symlink(other, filepath.Join(root, "part")); err != nil {
		t.Fatal(err)
	}
	entries, err := Local().List(t.Context(), root)
	if err != nil || len(entries) != 2 || entries[1].Rel != "part/deep/b.parquet" {
		t.Errorf("%v, %v; want a.parquet and part/deep/b.parquet", entries, err)
	}
	if err := os.Symlink(root, filepath.Join(other, "deep/back")); err != nil {
		t.Fatal(err)
	}
	if again, err := Local().List(t.Context(), root); err != nil || !slices.Equal(again, entries) {
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
	if many, err := Local().List(t.Context(), dag); err != nil || len(many) != 20 || many[0].Rel != "d00/f.parquet" {
		t.Errorf("%d files, %v; want 20", len(many), err)
	}
	broken := t.TempDir()
	put(t, filepath.Join(broken, "a.parquet"), "")
	if err := os.Symlink("nowhere", filepath.Join(broken, "b.parquet")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{broken, broken + "/**", broken + "/**/*.parquet", filepath.Dir(broken) + "/*", filepath.Dir(broken) + "/*/**"} {
		if list, err := Local().List(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a link to nothing in %s: %v, %v", name, list, err)
		}
	}
}

// Patterns match as in shells, and ** any number of directories; the Rels of what ** finds
// are paths below the directory before the first wildcard.
func TestLocalListPatterns(t *testing.T) {
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
		objects, err := Local().List(t.Context(), pattern)
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

func TestLocalListErrors(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "marks/_SUCCESS"), "")
	if err := os.Symlink(filepath.Join(root, "nowhere"), filepath.Join(root, "dangling")); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]error{
		"nothing": fs.ErrNotExist, "no*match": fs.ErrNotExist, "dangling": fs.ErrNotExist, "": fs.ErrNotExist, "marks": fs.ErrNotExist, "[": path.ErrBadPattern,
	} {
		entries, err := Local().List(t.Context(), filepath.Join(root, name))
		if !errors.Is(err, kind) {
			t.Errorf("%q: %v, %v; want %v", name, entries, err, kind)
		}
	}
	_, err := Local().List(t.Context(), "s3://bucket/key")
	says(t, "an object store", err, fault.ErrUnsupported, "unsupported", "s3://")
	_, err = Local().Open(t.Context(), Object{Name: "s3://bucket/key"})
	says(t, "an object store", err, fault.ErrUnsupported, "unsupported", "s3://")
	t.Chdir(root)
	_, err = Local().Create(t.Context(), "s3://bucket/key", CreateOptions{})
	says(t, "an object store", err, fault.ErrUnsupported, "unsupported", "s3://")
	equal(t, "files", tree(t, root), []string{"dangling", "marks/_SUCCESS"})
	// A file whose name looks like a pattern is taken literally.
	put(t, filepath.Join(root, "a[1].parquet"), "")
	if entries, err := Local().List(t.Context(), filepath.Join(root, "a[1].parquet")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func create(t *testing.T, name, content string, private bool) Writer {
	t.Helper()
	s, err := Local().Create(t.Context(), name, CreateOptions{Private: private})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLocalCommit(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "new/dir/out")
	s := create(t, name, "mine", false)
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the object is visible before it is committed")
	}
	// A crash now would leave one file, whose name begins with a dot.
	if left := tree(t, dir); len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), ".") {
		t.Errorf("meanwhile there is %q", left)
	}
	if entries, err := Local().List(t.Context(), dir); err == nil {
		t.Errorf("the attempt is taken for data: %v", entries)
	}
	if err := errors.Join(s.Commit(false), s.Abort()); err != nil {
		t.Fatal(err)
	}
	equal(t, "content", get(t, name), "mine")
	equal(t, "files", tree(t, dir), []string{"new/dir/out"})

	s = create(t, name, "rival", false)
	err := s.Commit(false)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another object: %v, want fs.ErrExist", err)
	}
	if err := s.Abort(); err != nil {
		t.Errorf("abort after a failed commit: %v", err)
	}
	equal(t, "content", get(t, name), "mine")
	equal(t, "files", tree(t, dir), []string{"new/dir/out"})

	s = create(t, name, "newer", false)
	if err := errors.Join(s.Commit(true), s.Abort()); err != nil {
		t.Fatal(err)
	}
	equal(t, "content", get(t, name), "newer")

	s = create(t, name, "dropped", false)
	if err := errors.Join(s.Abort(), s.Abort()); err != nil {
		t.Errorf("abort twice: %v", err)
	}
	equal(t, "content", get(t, name), "newer")
	equal(t, "files", tree(t, dir), []string{"new/dir/out"})
}

func TestLocalCommitOverADirectory(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	put(t, filepath.Join(name, "file"), "kept")
	for _, replace := range []bool{false, true} {
		s := create(t, name, "mine", false)
		if err := s.Commit(replace); err == nil {
			t.Error("a directory was replaced")
		}
		if err := s.Abort(); err != nil {
			t.Error(err)
		}
	}
	equal(t, "files", tree(t, dir), []string{"out/file"})
	put(t, filepath.Join(dir, "file"), "")
	if _, err := Local().Create(t.Context(), filepath.Join(dir, "file/below"), CreateOptions{}); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestLocalPrivate(t *testing.T) {
	dir := t.TempDir()
	for _, private := range []bool{true, false} {
		for _, replace := range []bool{false, true} {
			name := filepath.Join(dir, fmt.Sprint(private, replace))
			if replace {
				put(t, name, "old, for everybody")
			}
			if err := create(t, name, "x", private).Commit(replace); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if mode := info.Mode().Perm(); private && mode != 0o600 || !private && mode&0o600 != 0o600 {
				t.Errorf("private %v, replace %v: mode %o", private, replace, mode)
			}
		}
	}
}

// If many commit the same name at once, one succeeds, and its file is whole.
func TestLocalRivals(t *testing.T) {
	for _, replace := range []bool{false, true} {
		dir := t.TempDir()
		name := filepath.Join(dir, "out")
		const rivals = 16
		var wg sync.WaitGroup
		errs := make([]error, rivals)
		for i := range rivals {
			s := create(t, name, strings.Repeat(string(rune('a'+i)), 10_000), false)
			wg.Go(func() { errs[i] = errors.Join(s.Commit(replace), s.Abort()) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		}
		if want := map[bool]int{false: 1, true: rivals}[replace]; won != want {
			t.Errorf("replace %v: %d of %d won, want %d", replace, won, rivals, want)
		}
		b := []byte(get(t, name))
		if len(b) != 10_000 || bytes.Count(b, b[:1]) != len(b) || !replace && errs[b[0]-'a'] != nil {
			t.Errorf("replace %v: a file of %d bytes that is nobody's", replace, len(b))
		}
		equal(t, "files", tree(t, dir), []string{"out"})
	}
}

func TestLocalOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Local().Open(t.Context(), Object{Name: filepath.Join(dir, "nowhere")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	_, err := Local().Open(t.Context(), Object{Name: dir})
	says(t, "a directory", err, fault.ErrUnsupported, dir, "regular file")
	name := put(t, filepath.Join(dir, "file"), "0123456789")
	src, err := Local().Open(t.Context(), Object{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "size", src.Object().Size, int64(10))
	read := func() (string, error) {
		b := make([]byte, 4)
		n, err := src.ReadAt(b, 3)
		return string(b[:n]), err
	}
	rest := func() {
		if err := src.(Rester).Rest(); err != nil {
			t.Fatal(err)
		}
	}
	// A file at rest is opened again for a read, also for many at once.
	for range 20 {
		rest()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, err := read(); err != nil || got != "3456" {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		wg.Go(rest)
		wg.Wait()
	}
	// Another file under the same name is an error, not other data.
	rest()
	other := put(t, filepath.Join(dir, "other"), "abcdefghij")
	if err := os.Rename(other, name); err != nil {
		t.Fatal(err)
	}
	_, err = read()
	says(t, "a file that was replaced", err, syscall.ESTALE, name, "changed")
	says(t, "a file that was replaced", err, ErrChanged)
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}

func TestListIsCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "")
	if _, err := Local().List(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !slices.Equal(tree(t, dir), []string{"file"}) {
		t.Error("what happened?")
	}
}
