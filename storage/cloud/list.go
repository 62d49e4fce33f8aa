package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// List implements [storage.Source] as [storage.Local] does. Objects come from lists
// alone, with no request for each.
func (s *store) List(ctx context.Context, given string) ([]storage.Object, error) {
	stopped.Needs(ctx, "Store.List")
	objects, _, err := s.ListManifests(ctx, given)
	return objects, err
}

// ListManifests implements [storage.ManifestLister].
func (s *store) ListManifests(ctx context.Context, given string) (objects []storage.Object, manifests []string, err error) {
	stopped.Needs(ctx, "Store.ListManifests")
	n, err := parse(given)
	if err != nil {
		return nil, nil, err
	}
	if n.local {
		if l, ok := s.opts.Local.(storage.ManifestLister); ok {
			objects, manifests, err = l.ListManifests(ctx, n.key)
		} else {
			objects, err = s.opts.Local.List(ctx, n.key)
		}
		for i := range manifests {
			manifests[i] = localObject(n, storage.Object{Name: manifests[i]}).Name
		}
		objects, err = localObjects(n)(objects, err)
		return objects, manifests, err
	}
	b, err := s.bucketOf(ctx, n.place)
	if err != nil {
		return nil, nil, err
	}
	seen := outputs{}
	objects, err = b.find(hive.Looking(ctx, false), n, seen)
	for _, dir := range slices.Sorted(maps.Keys(seen)) {
		manifests = append(manifests, n.of(dir))
	}
	return objects, manifests, err
}

// outputs are the keys of directories of manifests that were seen in lists.
type outputs map[string]bool

// see records the directories of manifests that a key leads through, below a prefix.
func (o outputs) see(key, prefix string) {
	if !strings.Contains(key[len(prefix):], address.ManifestSuffix+"/") {
		return
	}
	for i, c := range []byte(key) {
		if i > len(prefix) && c == '/' && strings.HasSuffix(key[:i], address.ManifestSuffix) {
			o[key[:i]] = true
		}
	}
}

// find lists what a name in a bucket stands for.
func (b *bucket) find(ctx context.Context, n name, seen outputs) ([]storage.Object, error) {
	if n.scheme == schemeHTTP {
		e, err := b.stat(ctx, n.key)
		if err != nil {
			return nil, err
		}
		return []storage.Object{e.object(n.given, lastElement(n.key))}, nil
	}
	if n.key != "" && !strings.HasSuffix(n.key, "/") {
		e, err := b.stat(ctx, n.key)
		if err == nil {
			return []storage.Object{e.object(n.given, path.Base(n.key))}, b.notInTable(ctx, n, dirOf(n.key))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if glob.Is(n.key) {
		if !strings.ContainsAny(n.key, "*?[") { // braces may be a name's own
			objects, err := b.walkPlain(ctx, n, below(n.key), seen)
			if !errors.Is(err, fs.ErrNotExist) {
				return objects, err
			}
		}
		return b.glob(ctx, n, seen)
	}
	return b.walkPlain(ctx, n, below(n.key), seen)
}

// walkPlain is walk of what is not in a table.
func (b *bucket) walkPlain(ctx context.Context, n name, prefix string, seen outputs) ([]storage.Object, error) {
	if err := b.notInTable(ctx, n, prefix, prefix); err != nil {
		return nil, err
	}
	return b.walk(ctx, n, prefix, "", seen)
}

// Tree implements [storage.Storage].
func (s *store) Tree(ctx context.Context, dir string) (objects []storage.Object, err error) {
	stopped.Needs(ctx, "Store.Tree")
	n, err := parse(dir)
	if err != nil {
		return nil, err
	}
	if n.local {
		return localObjects(n)(s.opts.Local.Tree(ctx, n.key))
	}
	if err := n.readOnly(); err != nil { // nothing can be listed
		return nil, err
	}
	b, err := s.bucketOf(ctx, n.place)
	if err != nil {
		return nil, err
	}
	prefix := below(n.key)
	err = b.list(ctx, prefix, "", pageSize, func(e entry) bool {
		if !e.dir && !placeholder(e.key) {
			objects = append(objects, e.object(n.of(e.key), e.key[len(prefix):]))
		}
		return true
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no such bucket
	}
	return objects, err
}

// localObjects makes the names of objects that a file URL stands for file URLs again.
func localObjects(n name) func([]storage.Object, error) ([]storage.Object, error) {
	return func(objects []storage.Object, err error) ([]storage.Object, error) {
		for i := range objects {
			objects[i] = localObject(n, objects[i])
		}
		return objects, err
	}
}

// of returns the name of another key of the same bucket, in the spelling of n.
func (n name) of(key string) string {
	base := strings.TrimSuffix(n.given, n.key)
	if !strings.HasSuffix(base, "/") {
		base += "/" // the name of a bucket
	}
	return base + key
}

// placeholder reports whether a key stands for a directory: consoles and Hadoop
// create such objects.
func placeholder(key string) bool {
	return strings.HasSuffix(key, "/") || strings.HasSuffix(key, "_$folder$")
}

// walk lists the data below a prefix, whose Rel begins with base.
func (b *bucket) walk(ctx context.Context, n name, prefix, base string, seen outputs) (objects []storage.Object, err error) {
	var any bool
	var refused error
	err = b.list(ctx, prefix, "", pageSize, func(e entry) bool {
		any = true
		seen.see(e.key, prefix)
		rel := e.key[len(prefix):]
		if format, dir, mark := hive.Table(rel); format != "" && !hive.Raw(ctx) {
			refused = hive.NotPlain(strings.TrimRight(address.Redact(n.of(prefix+dir)), "/"), format, mark)
			return false
		}
		if !e.dir && !placeholder(e.key) && !glob.Marked("", rel) {
			o := e.object(n.of(e.key), base+rel)
			o.Found = true
			objects = append(objects, o)
		}
		return true
	})
	switch dir := strings.TrimRight(address.Redact(n.of(prefix)), "/"); {
	case err != nil:
		return nil, err
	case refused != nil:
		return nil, refused
	case !any && prefix != "":
		return nil, &faults.NotExist{Name: dir}
	case len(objects) == 0:
		return nil, fmt.Errorf("directory %s holds %w (name the directory with the data)", dir, storage.ErrNoFiles)
	}
	sort.Slice(objects, func(i, j int) bool { return objects[i].Rel < objects[j].Rel })
	return objects, nil
}

// glob lists the objects that match a pattern, and those below a matching directory.
func (b *bucket) glob(ctx context.Context, n name, seen outputs) (objects []storage.Object, err error) {
	pattern := strings.TrimRight(n.key, "/")
	if err := glob.Check(pattern); err != nil {
		return nil, fmt.Errorf("pattern %s: %w", n.given, err)
	}
	if glob.Deep(pattern) {
		objects, err = b.below(ctx, n, pattern, seen)
	} else {
		objects, err = b.beside(ctx, n, pattern, seen)
	}
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("pattern %s: it matches no object (check the address, and quote the pattern)%w", n.given, quiet.Error{Err: fs.ErrNotExist})
	}
	sort.Slice(objects, func(i, j int) bool { return objects[i].Name < objects[j].Name })
	return objects, err
}

// below lists what matches a pattern with **, see [storage.Local].
func (b *bucket) below(ctx context.Context, n name, pattern string, seen outputs) (objects []storage.Object, err error) {
	root := glob.Static(pattern)
	all, err := b.walkPlain(ctx, n, root, seen)
	if err != nil && !errors.Is(err, storage.ErrNoFiles) && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, o := range all {
		if _, ok := glob.Top(pattern, root+o.Rel); ok {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// beside lists what matches a pattern without **.
func (b *bucket) beside(ctx context.Context, n name, pattern string, seen outputs) (objects []storage.Object, err error) {
	prefix := glob.Prefix(pattern)
	delimiter := ""
	if !strings.Contains(pattern[len(prefix):], "/") {
		delimiter = "/" // only the last element is a pattern, so objects below other directories need not be listed
	}
	dirs, near := map[string]bool{}, map[string]bool{} // that match, and of files that do
	err = b.list(ctx, prefix, delimiter, pageSize, func(e entry) bool {
		seen.see(e.key, glob.Static(pattern))
		top, ok := glob.Top(pattern, e.key)
		if !ok || glob.Marked(pattern, top) {
			return true
		}
		switch {
		case len(top) < len(e.key):
			dirs[top] = true
		case !e.dir && !placeholder(e.key):
			objects = append(objects, e.object(n.of(e.key), path.Base(e.key)))
			near[dirOf(e.key)] = true
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, dir := range slices.Sorted(maps.Keys(near)) {
		if err := b.notInTable(ctx, n, dir); err != nil {
			return nil, err
		}
	}
	found, err := b.walkAll(ctx, n, slices.Sorted(maps.Keys(dirs)), seen)
	if objects = append(objects, found...); errors.Is(err, storage.ErrNoFiles) && len(objects) > 0 {
		err = nil
	}
	return objects, err
}

// walkAll lists the data below directories, whose Rels begin with their names. If one holds no
// data, the error wraps ErrNoFiles, and the rest is valid.
func (b *bucket) walkAll(ctx context.Context, n name, dirs []string, seen outputs) ([]storage.Object, error) {
	prefixes := make([]string, len(dirs))
	for i, dir := range dirs {
		prefixes[i] = dir + "/"
	}
	for _, prefix := range prefixes {
		if err := b.notInTable(ctx, n, prefix, prefix); err != nil {
			return nil, err
		}
	}
	lists, saw, empty := make([][]storage.Object, len(dirs)), make([]outputs, len(dirs)), make([]error, len(dirs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(b.s.opts.Requests)
	for i, dir := range dirs {
		g.Go(func() (err error) {
			saw[i] = outputs{}
			lists[i], err = b.walk(ctx, n, prefixes[i], path.Base(dir)+"/", saw[i])
			if errors.Is(err, storage.ErrNoFiles) { // of an output that nobody has committed, all files are staged
				saw[i][dir+address.ManifestSuffix], empty[i], err = true, err, nil
			}
			return err
		})
	}
	err := g.Wait()
	for _, one := range saw {
		maps.Copy(seen, one)
	}
	return slices.Concat(lists...), cmp.Or(err, cmp.Or(empty...))
}

// dirOf returns the directory of a key, with a slash at its end unless it is the bucket.
func dirOf(key string) string { return key[:strings.LastIndexByte(key, '/')+1] }

// notInTable refuses files of Delta Lake, Hudi and Iceberg tables by what is beside dir and above
// it. walked are directories that walk looks at.
func (b *bucket) notInTable(ctx context.Context, n name, dir string, walked ...string) error {
	return hive.Look(ctx, n.place.String(), dir, func(at string) error {
		if slices.Contains(walked, at) {
			return nil
		}
		return b.plainTable(ctx, n, at)
	})
}

// plainTable refuses a directory of a table. The first entries of a list show what it is; only a
// directory with more of them takes more requests. A directory that may not be listed counts as plain.
func (b *bucket) plainTable(ctx context.Context, n name, dir string) error {
	var refused error
	entries := 0
	for marks := []string{""}; len(marks) > 0; {
		mark := marks[0]
		marks = marks[1:]
		err := b.list(ctx, dir+mark, "/", pageSize, func(e entry) bool {
			rel := e.key[len(dir):]
			format, _, shown := hive.Table(rel)
			switch entries++; {
			case format != "":
				refused = hive.NotPlain(strings.TrimRight(address.Redact(n.of(dir)), "/"), format, shown)
			case mark == "" && rel == "metadata/":
				marks = []string{rel}
			case mark == "" && entries == pageSize && rel < "metadata/":
				marks = []string{"_delta_log/", ".hoodie/", "metadata/"}
			}
			return refused == nil && (mark != "" || len(marks) == 0 && rel < "metadata/")
		})
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := cmp.Or(err, refused); err != nil {
			return err
		}
	}
	return nil
}
