// Package storagetest tests implementations of package storage's interfaces.
//
// A program that keeps its data elsewhere calls [TestSource] or [TestStorage] in a test of
// its own. What they find would otherwise be found by a join: as rows of the wrong version
// of an object, or as half an output.
package storagetest

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestStorage tests what package storage promises of every [storage.Storage]. dir is a
// directory of it that does not exist yet, without a slash at the end. Objects are left in
// it, and one in a directory beside it whose name is longer.
func TestStorage(t *testing.T, s storage.Storage, dir string) {
	t.Helper()
	c := checker{t, s, dir}
	c.nothing()
	c.create()
	c.pinned()
	c.remove()
	c.writers()
	c.list()
	TestSource(t, s, dir)
}

type checker struct {
	*testing.T
	s   storage.Storage
	dir string
}

// want reports an error that is not of the kind.
func (c checker) want(what string, err, kind error) {
	c.Helper()
	if !errors.Is(err, kind) {
		c.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// write creates an object and commits it.
func (c checker) write(name, content string, replace bool) error {
	c.Helper()
	w, err := c.s.Create(c.Context(), c.dir+"/"+name, storage.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		c.Fatal(err)
	}
	if err := objects.Rest(w); err != nil {
		c.Fatal(err)
	}
	return errors.Join(w.Commit(replace), w.Abort())
}

// stat describes an object that must be there.
func (c checker) stat(name string) storage.Object {
	c.Helper()
	o, err := c.s.Stat(c.Context(), c.dir+"/"+name)
	if err != nil {
		c.Fatal(err)
	}
	return o
}

// read reads an object whole.
func (c checker) read(o storage.Object) (string, error) {
	r, err := c.s.Open(c.Context(), o)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // it was only read
	if err := objects.Rest(r); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Object().Size))
	return string(b), err
}

func (c checker) nothing() {
	_, err := c.s.Stat(c.Context(), c.dir)
	c.want("Stat of nothing", err, fs.ErrNotExist)
	_, err = c.s.Open(c.Context(), storage.Object{Name: c.dir})
	c.want("Open of nothing", err, fs.ErrNotExist)
	c.want("Delete of nothing", c.s.Delete(c.Context(), storage.Object{Name: c.dir}), fs.ErrNotExist)
	if all := all(c.T, c.s, c.dir); len(all) != 0 {
		c.Errorf("List of nothing: %v", all)
	}
	if objects.IsDir(c.Context(), c.s, c.dir) || !objects.IsDir(c.Context(), c.s, c.dir+"/") {
		c.Error("nothing is a directory if and only if its name ends in a slash")
	}
}

func (c checker) create() {
	w, err := c.s.Create(c.Context(), c.dir+"/sub/a", storage.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if _, err := io.WriteString(w, "half"); err != nil {
		c.Fatal(err)
	}
	_, err = c.s.Stat(c.Context(), c.dir+"/sub/a")
	c.want("before Commit", err, fs.ErrNotExist)
	c.want("Abort", errors.Join(w.Abort(), w.Abort()), nil)
	if all := all(c.T, c.s, c.dir); len(all) != 0 {
		c.Errorf("List after Abort: %v", all)
	}
	c.want("Commit", c.write("sub/a", "one", false), nil)
	c.want("Commit over an object", c.write("sub/a", "two", false), fs.ErrExist)
	if got, err := c.read(c.stat("sub/a")); err != nil || got != "one" {
		c.Errorf("after two commits: %q, %v", got, err)
	}
	if !objects.IsDir(c.Context(), c.s, c.dir+"/sub") || objects.IsDir(c.Context(), c.s, c.dir+"/sub/a") {
		c.Error("what has an object below it is a directory; an object is not")
	}
}

func (c checker) pinned() {
	first := c.stat("sub/a")
	r, err := c.s.Open(c.Context(), first)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it was only read
	if o := r.Object(); o.Name != first.Name || o.Size != 3 || o.Identity != first.Identity || o.Identity == "" || o.Type != 0 {
		c.Errorf("opened %+v, described as %+v", o, first)
	}
	c.want("replacing", c.write("sub/a", "uno", true), nil) // of the same size
	if err := objects.Rest(r); err != nil {
		c.Fatal(err)
	}
	_, err = r.ReadAt(make([]byte, 3), 0)
	if err == nil {
		err = objects.Changed(r)
	}
	c.want("reading an object that was replaced", err, storage.ErrChanged)
	_, err = c.read(first)
	c.want("opening an object that was replaced", err, storage.ErrChanged)
	for _, o := range []storage.Object{c.stat("sub/a"), {Name: first.Name}} {
		if got, err := c.read(o); err != nil || got != "uno" {
			c.Errorf("%+v: %q, %v", o, got, err)
		}
	}
	c.want("deleting an object that was replaced", c.s.Delete(c.Context(), first), storage.ErrChanged)
	c.stat("sub/a")
}

func (c checker) remove() {
	c.want("Delete", c.s.Delete(c.Context(), c.stat("sub/a")), nil)
	_, err := c.s.Stat(c.Context(), c.dir+"/sub/a")
	c.want("after Delete", err, fs.ErrNotExist)
	c.want("Commit after Delete", c.write("sub/a", "four", false), nil)
	c.want("Delete of any content", c.s.Delete(c.Context(), storage.Object{Name: c.dir + "/sub/a"}), nil)
}

// writers commits what a writer was given, once, and lets one of several rivals win.
func (c checker) writers() {
	w, err := c.s.Create(c.Context(), c.dir+"/w", storage.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	b := []byte("0123")
	for range 3 {
		if _, err := w.Write(b); err != nil {
			c.Fatal(err)
		}
		copy(b, "wxyz") // the caller's bytes are its own
	}
	c.want("writing", errors.Join(objects.Rest(w), w.Commit(true)), nil) // replace, where there is nothing
	c.want("Abort after Commit", w.Abort(), nil)
	if got, err := c.read(c.stat("w")); err != nil || got != "0123wxyzwxyz" {
		c.Errorf("written in parts, of one buffer: %q, %v", got, err)
	}
	c.want("Delete", c.s.Delete(c.Context(), c.stat("w")), nil)

	var wait sync.WaitGroup
	results := make([]error, 4)
	for i := range results {
		wait.Go(func() { results[i] = c.write("rival", strings.Repeat("r", i+1), false) })
	}
	wait.Wait()
	won := -1
	for i, err := range results {
		switch {
		case err == nil && won >= 0:
			c.Errorf("two of several Commits without replace succeed")
		case err == nil:
			won = i
		default:
			c.want("Commit of a rival", err, fs.ErrExist)
		}
	}
	if got, err := c.read(c.stat("rival")); err != nil || len(got) != won+1 {
		c.Errorf("rival %d has won, and %q is there, %v", won, got, err)
	}
	c.want("Delete", c.s.Delete(c.Context(), c.stat("rival")), nil)
}

func (c checker) list() {
	c.want("a neighbour", (checker{c.T, c.s, c.dir + "-old"}).write("x", "x", false), nil)
	for _, name := range []string{"b", "a", "sub/c", "sub-c", "_SUCCESS", ".hidden", "_tmp/d"} {
		c.want("Commit", c.write(name, name, false), nil)
	}
	const below = ".hidden _SUCCESS _tmp/d a b sub-c sub/c"
	for prefix, want := range map[string]string{
		"/": below, "": below + " x", "/s": "sub-c sub/c", "/sub": "sub-c sub/c", "/sub/": "sub/c", "/_": "_SUCCESS _tmp/d", "/a": "a", "/a/": "", "/none": "", "-o": "x",
	} {
		var names []string
		for _, o := range all(c.T, c.s, c.dir+prefix) {
			got, err := c.read(o)
			if err != nil || o.Size != int64(len(got)) || o.Identity == "" || !strings.HasSuffix(o.Name, "/"+got) { // each has its path as content
				c.Errorf("List %q: %+v, %q, %v", prefix, o, got, err)
			}
			if now, err := c.s.Stat(c.Context(), o.Name); err != nil || now.Identity != o.Identity {
				c.Errorf("List %q: %+v; Stat: %+v, %v", prefix, o, now, err)
			}
			names = append(names, got)
		}
		if prefix == "" { // a neighbour sorts by the name of its directory
			slices.Sort(names)
		}
		if got := strings.Join(names, " "); got != want {
			c.Errorf("List %q: %s, want %s", prefix, got, want)
		}
	}
	rels := func(objects []storage.Object, _ []string, err error) string {
		c.Helper()
		if err != nil {
			c.Error(err)
		}
		var all []string
		for _, o := range objects {
			if o.Found {
				o.Rel = "?" + o.Rel
			}
			all = append(all, o.Rel)
		}
		return strings.Join(all, " ")
	}
	for name, want := range map[string]string{
		"": "?a ?b ?sub-c ?sub/c", "/": "?a ?b ?sub-c ?sub/c", "/a": "a", "/_SUCCESS": "_SUCCESS", "/sub": "?c", "/[ab]": "a b", "/?": "a b", "/_*": "_SUCCESS ?_tmp/d",
	} {
		if got := rels(listing.List(c.Context(), c.s, c.dir+name)); got != want {
			c.Errorf("inputs %q: %s, want %s", name, got, want)
		}
	}
	c.want("only markers", c.write("marks/_SUCCESS", "", false), nil)
	_, _, err := listing.List(c.Context(), c.s, c.dir+"/marks")
	c.want("inputs of markers only", err, storage.ErrNoFiles)
}

// all returns what List yields, which must be in order and begin with prefix.
func all(t *testing.T, s storage.Source, prefix string) (all []storage.Object) {
	t.Helper()
	err := s.List(t.Context(), prefix, func(o storage.Object) error {
		all = append(all, o)
		return nil
	})
	if err != nil {
		t.Errorf("List %q: %v", prefix, err)
	}
	for i, o := range all {
		if !strings.HasPrefix(objects.Slashes(o.Name), prefix) || o.Type.IsDir() || i > 0 && objects.Slashes(all[i-1].Name) >= objects.Slashes(o.Name) {
			t.Errorf("List %q has %+v at %d: want objects in ascending order of names that begin so", prefix, o, i)
		}
	}
	return all
}

var errStop = errors.New("stop")

// lists tests List below a directory.
func lists(t *testing.T, s storage.Source, dir string) {
	t.Helper()
	prefix := strings.TrimRight(dir, "/") + "/"
	whole := all(t, s, prefix)
	if len(whole) == 0 {
		t.Fatalf("List %q has no objects", prefix)
	}
	name := whole[len(whole)/2].Name
	some := prefix + name[len(prefix):][:(len(name)-len(prefix)+1)/2] // within a name
	var want []storage.Object
	for _, o := range whole {
		if strings.HasPrefix(o.Name, some) {
			want = append(want, o)
		}
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if got := all(t, s, some); !slices.EqualFunc(got, want, func(a, b storage.Object) bool {
				return a.Name == b.Name && a.Size == b.Size && a.Identity == b.Identity
			}) {
				t.Errorf("List %q: %+v, want %+v", some, got, want)
			}
		})
	}
	wait.Wait()
	if got := all(t, s, prefix+"there is no such object"); len(got) > 0 {
		t.Errorf("List of nothing: %+v", got)
	}
	calls := 0
	err := s.List(t.Context(), prefix, func(storage.Object) error {
		calls++
		return errStop
	})
	if !errors.Is(err, errStop) || calls != 1 {
		t.Errorf("List whose first object is refused: %v after %d calls, want the error of the first", err, calls)
	}
	if o, err := s.Stat(t.Context(), dir); err != nil || !o.Type.IsDir() {
		t.Errorf("Stat %q: %+v, %v; want a directory", dir, o, err)
	}
}

// TestSource tests what package storage promises of every [storage.Source]. dir is a
// directory of it with at least one object that is data and not empty. It changes nothing.
func TestSource(t *testing.T, s storage.Source, dir string) {
	t.Helper()
	lists(t, s, dir)
	list, _, err := listing.List(t.Context(), s, dir)
	if err != nil {
		t.Fatalf("inputs %q: %v", dir, err)
	}
	bytes := false
	for _, o := range list {
		now, err := s.Stat(t.Context(), o.Name)
		if err != nil || now.Size != o.Size || now.Type != 0 || o.Identity != "" && now.Identity != o.Identity {
			t.Errorf("Stat %q: %+v, %v; listed as %+v", o.Name, now, err, o)
		}
		one, _, err := listing.List(t.Context(), s, o.Name)
		if err != nil || len(one) != 1 || one[0].Size != o.Size {
			t.Errorf("inputs %q: %+v, %v; want the one object", o.Name, one, err)
		}
		bytes = bytes || o.Size > 0
		reads(t, s, o)
		stale(t, s, o, list)
	}
	if !bytes {
		t.Errorf("directory %q has no object with bytes: nothing was read", dir)
	}
	nowhere := dir + "/there is no such object"
	_, statErr := s.Stat(t.Context(), nowhere)
	_, openErr := s.Open(t.Context(), storage.Object{Name: nowhere})
	for what, err := range map[string]error{"Stat": statErr, "Open": openErr} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of nothing: %v, want %v", what, err, fs.ErrNotExist)
		}
	}
}

// reads opens an object and reads it in several ways.
func reads(t *testing.T, s storage.Source, o storage.Object) {
	t.Helper()
	r, err := s.Open(t.Context(), o)
	if err != nil {
		t.Errorf("Open %q: %v", o.Name, err)
		return
	}
	defer func() { _ = r.Close() }() // it was only read
	if got := r.Object(); got.Size != o.Size || o.Identity != "" && got.Identity != o.Identity {
		t.Errorf("opened %+v, listed as %+v", got, o)
	}
	const block = 64 << 10
	for _, part := range [][2]int64{{0, min(o.Size, block)}, {max(o.Size-block, 0), o.Size}} { // of a large object, its ends
		blocks(t, r, o, part[0], part[1])
	}
	if n, err := r.ReadAt(make([]byte, 9), o.Size); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%q: %d bytes after the end, %v, want %v", o.Name, n, err, io.EOF)
	}
	if n, err := r.ReadAt(make([]byte, min(o.Size, block)+9), max(o.Size-block, 0)); int64(n) != min(o.Size, block) || !errors.Is(err, io.EOF) {
		t.Errorf("%q: %d bytes across the end, %v, want %d and %v", o.Name, n, err, min(o.Size, block), io.EOF)
	}
}

// stale opens an object with the identity of another one: it is not what was meant.
func stale(t *testing.T, s storage.Source, o storage.Object, list []storage.Object) {
	t.Helper()
	i := slices.IndexFunc(list, func(other storage.Object) bool { return other.Identity != "" && other.Identity != o.Identity })
	if i < 0 || o.Identity == "" {
		return
	}
	o.Identity = list[i].Identity
	r, err := s.Open(t.Context(), o)
	if err == nil {
		defer func() { _ = r.Close() }() // it was only read
		_, err = r.ReadAt(make([]byte, 1), 0)
	}
	if !errors.Is(err, storage.ErrChanged) {
		t.Errorf("Open and ReadAt of %q with another identity: %v, want %v", o.Name, err, storage.ErrChanged)
	}
}

// blocks reads a range whole, and in parts from many goroutines at once, backwards.
func blocks(t *testing.T, r storage.Reader, o storage.Object, lo, hi int64) {
	t.Helper()
	all := make([]byte, hi-lo)
	if n, err := r.ReadAt(all, lo); n != len(all) || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("%q: %d of %d bytes from %d on, %v", o.Name, n, len(all), lo, err)
	}
	var wait sync.WaitGroup
	for part := range int64(8) {
		wait.Go(func() {
			from, to := (hi-lo)*(7-part)/8, (hi-lo)*(8-part)/8
			b := make([]byte, to-from)
			if n, err := r.ReadAt(b, lo+from); n != len(b) || err != nil && !errors.Is(err, io.EOF) || string(b) != string(all[from:to]) {
				t.Errorf("%q: bytes %d to %d differ when parts are read at once: %d, %v", o.Name, lo+from, lo+to, n, err)
			}
		})
	}
	wait.Wait()
}
