package source

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/storage"
)

// finished returns an error if a name is an output, or a part of one, whose run has not been
// committed: it lacks rows. lists are the objects read for each name, manifests the directories of
// manifests that there may be below it; finished looks for those above.
func (o *Opening) finished(ctx context.Context, names []string, lists [][]Entry, manifests [][]string) error {
	if o.Uncommitted {
		return nil
	}
	_, resolves := o.Store.(storage.Resolver)
	l := looks{store: asStorage(o.Store), resolves: resolves, roots: map[string]bool{}, dirs: map[string]bool{}}
	for i, name := range names {
		if name == "-" || address.IsWeb(name) || lake.IsName(name) {
			continue
		}
		root, _ := treeOf(name, lists[i])
		if len(lists[i]) == 1 && lists[i][0].Name == name { // a file, of which there may be many
			root = address.Parent(l.absolute(name))
		}
		l.above(l.absolute(root), lists[i])
		for _, e := range lists[i] {
			l.around(e)
		}
		if len(manifests[i]) > 0 {
			held := l.holding(lists[i])
			for _, m := range manifests[i] {
				dir := l.absolute(strings.TrimSuffix(m, address.ManifestSuffix))
				if held[dir] || o.mayRead(&l, name, dir, lists[i]) {
					l.above(dir, nil)
				}
			}
		}
	}
	return l.check(ctx)
}

// asStorage returns a source as a storage. One that is only read, such as [storage.FS], has
// outputs all the same.
func asStorage(s storage.Source) storage.Storage {
	if s, ok := s.(storage.Storage); ok {
		return s
	}
	return readOnly{s}
}

// readOnly refuses to write.
type readOnly struct{ storage.Source }

func (readOnly) Create(context.Context, string, storage.CreateOptions) (storage.Writer, error) {
	return nil, errors.ErrUnsupported
}

func (readOnly) Delete(context.Context, storage.Object) error { return errors.ErrUnsupported }

// holding returns the directories, as absolute paths, that hold objects at any depth.
func (l *looks) holding(list []Entry) map[string]bool {
	held := map[string]bool{}
	for _, e := range list {
		for dir := address.Parent(l.absolute(e.Name)); !held[dir]; dir = address.Parent(dir) {
			held[dir] = true
		}
	}
	return held
}

// mayRead reports whether files that are still to be written in an output, which was seen
// below a name, would be read.
func (o *Opening) mayRead(l *looks, name, dir string, list []Entry) bool {
	below := filepath.ToSlash(dir) + "/"
	root, pattern := treeOf(name, list)
	if pattern {
		if _, matches := glob.Top(filepath.ToSlash(l.absolute(name)), below+"a.parquet"); !matches {
			return false
		}
	}
	rel := strings.TrimPrefix(below, strings.TrimRight(filepath.ToSlash(l.absolute(root)), "/")+"/")
	matches := func(file string) func(glob.Rule) bool {
		return func(r glob.Rule) bool { return r.Match(below+file, rel+file) }
	}
	return !slices.ContainsFunc(o.exclude, matches("a")) &&
		(len(o.include) == 0 || slices.ContainsFunc(o.include, matches("a.parquet")))
}

// isLink reports whether a name is that of a symbolic link.
func isLink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// looks are the directories that may be outputs, each once.
type looks struct {
	store    storage.Storage
	resolves bool // names may be relative to the working directory, and links
	list     []unfinishedIn
	roots    map[string]bool // for which above was called
	dirs     map[string]bool
}

// absolute is the function of that name. A name in a storage that does not resolve any is
// what it is, as far as its lists are concerned.
func (l *looks) absolute(name string) string {
	if l.resolves || address.IsURL(name) {
		return absolute(name)
	}
	return path.Clean(name)
}

// target returns where links lead. A storage that does not say may be around the local one.
func (l *looks) target(name string) string {
	if l.resolves {
		return objects.Resolve(l.store, name)
	}
	return objects.Resolve(storage.Local(), name)
}

func (l *looks) add(u unfinishedIn) {
	if !l.dirs[u.dir] {
		l.dirs[u.dir] = true
		l.list = append(l.list, u)
	}
}

// above adds a directory and those above it, by the path given and without links. list is
// what is read of it; nil: anything in it.
func (l *looks) above(root string, list []Entry) {
	root = l.absolute(address.Local(root))
	if l.roots[root] {
		return
	}
	l.roots[root] = true
	places := []string{root, l.target(root)}
	if !l.resolves {
		places = append(places, absolute(root))
	}
	for _, r := range places {
		for dir := r; ; dir = address.Parent(dir) {
			l.add(unfinishedIn{dir: dir, root: r, list: list})
			if address.Parent(dir) == dir {
				break
			}
		}
	}
}

// around adds the directories of a local file, and of the targets of links. In object stores,
// listing has shown all manifests already.
func (l *looks) around(e Entry) {
	name := address.Local(e.Name)
	if address.IsURL(name) {
		return
	}
	if isLink(name) {
		l.above(address.Parent(l.target(name)), nil)
	}
	for dir := address.Parent(l.absolute(name)); !l.dirs[dir]; dir = address.Parent(dir) {
		l.add(unfinishedIn{dir: dir})
		if isLink(dir) {
			l.above(l.target(dir), nil)
		}
	}
}

// check looks at several directories at once, since each look may be a request.
func (l *looks) check(ctx context.Context) error {
	errs := make([]error, len(l.list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, u := range l.list {
		g.Go(func() error {
			errs[i] = u.check(ctx, l)
			return nil
		})
	}
	_ = g.Wait() // nothing fails
	return cmp.Or(errs...)
}

// unfinishedIn is a directory that may be an output.
type unfinishedIn struct {
	dir  string
	root string  // what is read of it, which may be below; empty: all
	list []Entry // what is read of the root
}

// check returns an error if the directory is an output that is not finished. Who may read
// a part need not be allowed to see what is beside the whole.
func (u unfinishedIn) check(ctx context.Context, l *looks) error {
	s := l.store
	manifests := publish.ManifestsOf(u.dir)
	if manifests == "" {
		return nil
	}
	marker := func(ctx context.Context, name string) (string, bool, error) { return MarkerOf(ctx, s, name) }
	d := publish.Dir{Owner: publish.Owner{Store: s, InDir: true, Marker: marker}, Name: u.dir, Manifests: manifests}
	why, err := d.Unfinished(ctx)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) { // of a list
		return nil
	}
	if err != nil || why == "" || u.apart(ctx, l, &d) {
		return err
	}
	return cause.Mark(cause.Unfinished, faults.Errorf("%s/: this output is not whole: %s (finish or commit the run; {Uncommitted} reads what is there)", near(u.dir), why))
}

// apart reports whether what is read is one name=value directory of the output, which is
// complete, although others are not.
func (u unfinishedIn) apart(ctx context.Context, l *looks, d *publish.Dir) bool {
	rel, ok := strings.CutPrefix(filepath.ToSlash(u.root), strings.TrimRight(filepath.ToSlash(u.dir), "/")+"/")
	deeper := func(e Entry) bool {
		below := strings.TrimPrefix(filepath.ToSlash(l.absolute(address.Local(e.Name))), filepath.ToSlash(u.root)+"/")
		return strings.Contains(path.Dir(below), "=")
	}
	return ok && !slices.ContainsFunc(u.list, deeper) && d.Finished(ctx, path.Join(rel, "x"))
}

// near returns a path below the working directory as people write it.
func near(dir string) string {
	here, _ := os.Getwd() // without it, or from it to a URL, there is no way
	if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return dir
}
