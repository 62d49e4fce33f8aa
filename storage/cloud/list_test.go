package cloud

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// fill returns a Store whose bucket mem://b has objects of these keys.
func fill(t *testing.T, keys ...string) *store {
	t.Helper()
	s := made(Options{})
	t.Cleanup(func() { _ = s.Close() })
	b, err := s.bucketOf(t.Context(), place{scheme: schemeMem, bucket: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if _, err := b.put(t.Context(), k, []byte(k), "", ""); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

var everything = objects.Below

// inputs returns what a name stands for.
func inputs(ctx context.Context, s storage.Source, name string) ([]storage.Object, error) {
	all, _, err := listing.List(ctx, s, name)
	return all, err
}

func rels(objects []storage.Object) string {
	var all []string
	for _, o := range objects {
		if o.Found {
			o.Rel = "?" + o.Rel
		}
		all = append(all, o.Rel)
	}
	return strings.Join(all, " ")
}

// Patterns match as those of local files do, and need few requests.
func TestGlob(t *testing.T) {
	s := fill(t, "log/dt=1/a", "log/dt=1/_tmp", "log/dt=2/b", "log/dt=2/sub/c", "log/_x/d", "log/e", "log/.hidden", "log/old_$folder$",
		"log/x%20y/f", "log/[z]/g", "logs/h", "log/a*b")
	for pattern, want := range map[string]struct {
		rels  string
		lists int64
	}{
		"log/*/*":        {"a b ?sub/c g f", 7},
		"log/dt=*/a":     {"a", 3},
		"log/dt=?":       {"?dt=1/a ?dt=2/b ?dt=2/sub/c", 6},
		"log/dt=?/":      {"?dt=1/a ?dt=2/b ?dt=2/sub/c", 6},
		"log/*":          {"?[z]/g a*b ?dt=1/a ?dt=2/b ?dt=2/sub/c e ?x%20y/f", 8},
		"log/_*/*":       {"d", 3},
		"log/.hid*":      {".hidden", 3},
		"log*/[eh]":      {"e h", 4},
		"log/x%20y/*":    {"f", 3},
		`log/\[z\]/*`:    {"g", 3},
		"log/a*b":        {"a*b", 2}, // the object of that name
		"*/dt=[12]/[ab]": {"a b", 3},

		"log/**/[abc]":       {"?dt=1/a ?dt=2/b ?dt=2/sub/c", 2},
		"log/dt=*/**":        {"?dt=1/a ?dt=2/b ?dt=2/sub/c", 2},
		"**/sub/*":           {"?log/dt=2/sub/c", 1},
		"log/{dt=1,x%20y}/*": {"a f", 4},
		"log/dt=[!1]/b":      {"b", 3},
	} {
		before := s.Stats().Requests.List
		objects, err := inputs(t.Context(), s, "mem://b/"+pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		got := strings.Fields(rels(objects))
		wanted := strings.Fields(want.rels)
		slices.Sort(got)
		slices.Sort(wanted)
		if lists := s.Stats().Requests.List - before; !slices.Equal(got, wanted) || lists > want.lists {
			t.Errorf("%s: %v in %d lists, want %v in %d", pattern, got, lists, wanted, want.lists)
		}
	}
	for pattern, text := range map[string]string{"log/q*": "matches no object", "log/[": "pattern", "none/*": "matches no object"} {
		if _, err := inputs(t.Context(), s, "mem://b/"+pattern); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	if _, err := inputs(t.Context(), s, "mem://b/log/q*"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A directory is listed in pages, with no request for each of its objects.
func TestListMany(t *testing.T) {
	var keys []string
	for i := range 2500 {
		keys = append(keys, fmt.Sprintf("log/%05d", i))
	}
	s := fill(t, keys...)
	objects, err := inputs(t.Context(), s, "mem://b/log/")
	if err != nil || len(objects) != 2500 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	for i, o := range objects {
		if o.Name != "mem://b/"+keys[i] || o.Rel != keys[i][4:] || o.Size != 9 || o.Identity == "" || o.ModTime.IsZero() || !o.Found {
			t.Fatalf("%+v", o)
		}
	}
	if r := s.Stats().Requests; total(r) != 4 || r.List != 4 { // one of the directory above, which may be a table
		t.Errorf("%+v", r)
	}
}

// A name with keys below it is a directory, the bucket too.
func TestDirectories(t *testing.T) {
	s := fill(t, "a/b/c", "a/b", "a/d/", "e", "m/_SUCCESS")
	for name, want := range map[string]string{"": "?a/b ?a/b/c ?e", "/": "?a/b ?a/b/c ?e", "/a": "?b ?b/c", "/a/": "?b ?b/c", "/a/b": "b", "/a/b/": "?c"} {
		objects, err := inputs(t.Context(), s, "mem://b"+name)
		if got := rels(objects); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", name, got, err, want)
		}
		for _, o := range objects {
			if _, err := s.Stat(t.Context(), o.Name); err != nil {
				t.Errorf("%+v: %v", o, err)
			}
		}
		if o, err := s.Stat(t.Context(), "mem://b"+name); err != nil || o.Type.IsDir() == (name == "/a/b") {
			t.Errorf("%q: %+v, %v", name, o, err)
		}
	}
	// What a directory without data has is staged, and not yet there for readers of a pattern.
	objects, manifests, err := listing.List(t.Context(), s, "mem://b/{m,a}/")
	if got := rels(objects); err != nil || got != "?a/b ?a/b/c" || !slices.Contains(manifests, "mem://b/m.bloomjoin") {
		t.Errorf("a pattern: %s, %q, %v", got, manifests, err)
	}
	for name, kind := range map[string]error{"/a/d": storage.ErrNoFiles, "/m": storage.ErrNoFiles, "/m*": storage.ErrNoFiles, "/x/": fs.ErrNotExist, "/e/": fs.ErrNotExist} {
		if _, err := inputs(t.Context(), s, "mem://b"+name); !errors.Is(err, kind) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"/x", "/e/"} {
		if _, err := s.Stat(t.Context(), "mem://b"+name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if tree, err := everything(t.Context(), s, "mem://b"); err != nil || rels(tree) != "a/b a/b/c e m/_SUCCESS" {
		t.Errorf("%s, %v", rels(tree), err)
	}
}

// Tables of formats whose files are not all current are refused, also when a
// partition of one is named.
func TestTables(t *testing.T) {
	s := fill(t, "delta/_delta_log/0.json", "delta/dt=1/a", "hudi/x/.hoodie/p", "hudi/x/a", "ice/metadata/v1.metadata.json", "ice/data/a",
		"plain/metadata/a", "plain/_tmp/_delta_log/x", "plain/dt=1/b")
	for dir, format := range map[string]string{
		"delta": "Delta Lake", "delta/dt=1": "Delta Lake", "hudi": "Hudi", "ice/": "Iceberg", "*": "", "del*": "Delta Lake", "plain": "", "plain/dt=1": "",
		"delta/dt=1/a": "Delta Lake", "delta/*/a": "Delta Lake", "delta/dt=1/**": "Delta Lake", "hudi/x/a": "Hudi", "ice/data": "Iceberg", "ice/data/": "Iceberg", "ice/data/*": "Iceberg", "ice/data/a": "Iceberg",
		"ice/data/**": "Iceberg", "i*/data": "Iceberg", "plain/dt=1/*": "", "plain/dt=1/b": "", "plain/metadata/a": "",
	} {
		_, err := inputs(t.Context(), s, "mem://b/"+dir)
		switch {
		case dir == "*":
			if !errors.Is(err, fault.ErrUnsupported) {
				t.Errorf("%s: %v", dir, err)
			}
		case format == "" && err != nil, format != "" && (!errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), format)):
			t.Errorf("%s: %v, want %q", dir, err, format)
		}
		if _, err := inputs(hive.Looking(t.Context(), true), s, "mem://b/"+dir); err != nil {
			t.Errorf("%s, raw: %v", dir, err)
		}
	}
}

// Files that are named one by one take no request each to find out that they are in no table,
// and a directory of many objects takes few.
func TestTablesInFewRequests(t *testing.T) {
	var keys []string
	for i := range 1500 {
		keys = append(keys, fmt.Sprintf("log/%05d", i))
	}
	s := fill(t, append(keys, "log/metadata/v2.json", "log/metadata/x", "big/metadata/v1.metadata.json", "big/data/a", "deep/a")...)
	ctx := hive.Looking(t.Context(), false)
	for _, k := range keys[:100] {
		if _, err := inputs(ctx, s, "mem://b/"+k); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.Stats().Requests; r.List > 5 || r.Head != 100 {
		t.Errorf("%+v", r)
	}
	before := s.Stats().Requests.List
	if _, err := inputs(t.Context(), s, "mem://b/big/data/"); !errors.Is(err, fault.ErrUnsupported) || s.Stats().Requests.List-before > 2 {
		t.Errorf("%v in %d lists", err, s.Stats().Requests.List-before)
	}
	for i := range 1200 {
		b, err := s.bucketOf(t.Context(), place{scheme: schemeMem, bucket: "b"})
		if err == nil {
			_, err = b.put(t.Context(), fmt.Sprintf("big/%05d", i), []byte("x"), "", "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before = s.Stats().Requests.List
	if _, err := inputs(t.Context(), s, "mem://b/big/data/a"); !errors.Is(err, fault.ErrUnsupported) || s.Stats().Requests.List-before > 5 {
		t.Errorf("%v in %d lists", err, s.Stats().Requests.List-before)
	}
}
