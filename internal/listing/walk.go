package listing

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// walk lists the data below a directory. It follows links, because part of a log may be stored
// elsewhere. A directory that can be reached in several ways is read once: by its own name if
// there is one, rather than through a link.
type walk struct {
	*lister
	dir     string // empty, or with a slash at its end
	base    string // what Rels begin with
	pattern string // that objects match; empty: all
	first   string // that directories match which are read; empty: all
	out     func(storage.Object) error

	any, some bool     // it has an entry; it has data
	seen      []string // directories of manifests
	entered   []string // directories, before a link is followed
	links     []string // to directories, not followed yet
	visited   map[string]bool
}

// walk runs a walk.
func (l *lister) walk(w *walk) error {
	w.lister, w.out = l, l.out
	if err := l.notInTable(w.dir, true); err != nil {
		return err
	}
	err := w.run(l.ctx)
	l.manifests = append(l.manifests, w.seen...)
	return err
}

// within reports whether a directory is read, or below one that is, rather than above.
func (w *walk) within(dir string) bool {
	_, ok := glob.Top(w.first, dir)
	return ok || w.first == ""
}

// end takes over what a walk of a directory has found that matches a pattern.
func (w *walk) end(err error) error {
	w.manifests = append(w.manifests, w.seen...)
	if err == nil && !w.some { // of an output that nobody has committed, all files are staged
		w.empty = cmp.Or(w.empty, noFiles(w.dir))
		w.manifests = append(w.manifests, strings.TrimSuffix(w.dir, "/")+address.ManifestSuffix)
	}
	return err
}

func (w *walk) run(ctx context.Context) error {
	take := func(o storage.Object) error { return w.take(ctx, o) }
	if err := objects.Walk(ctx, w.src, w.dir, w.enter, take); err != nil || len(w.links) == 0 {
		return err
	}
	w.visited = map[string]bool{}
	for _, dir := range append(w.entered, cmp.Or(w.dir, ".")) {
		w.visit(dir)
	}
	for len(w.links) > 0 {
		slices.Sort(w.links)
		link := w.links[0]
		if w.links = w.links[1:]; w.visit(link) {
			continue
		}
		if err := objects.Walk(ctx, w.src, link+"/", w.enter, take); err != nil {
			return err
		}
	}
	return nil
}

// enter reports whether a directory is to be read.
func (w *walk) enter(dir string) bool {
	switch {
	case glob.Marker(path.Base(objects.Slashes(dir))):
		return false
	case !w.within(dir) && !glob.Leads(w.first, dir):
		return false
	case w.visited != nil:
		return !w.visit(dir)
	}
	w.entered = append(w.entered, dir)
	return true
}

// visit reports whether a directory was read before.
func (w *walk) visit(dir string) bool {
	o, _ := w.src.Stat(w.ctx, dir) // without it, its name will do
	id := cmp.Or(o.Identity, objects.Resolve(w.src, dir))
	before := w.visited[id]
	w.visited[id] = true
	return before
}

// take takes an entry of a directory.
func (w *walk) take(ctx context.Context, o storage.Object) error {
	w.any = true
	name := objects.Slashes(o.Name)
	rel, marker := name[len(w.dir):], glob.Marker(path.Base(name))
	isDir := o.Type&(fs.ModeDir|fs.ModeSymlink) != 0 // a link to a directory has its name, too
	at := rel
	if isDir && marker {
		at += "/"
	}
	if (marker || strings.HasSuffix(rel, ".json")) && !hive.Raw(ctx) { // other entries show no table
		if format, table, mark := hive.Table(at); format != "" {
			if o, err := w.target(o); at == rel || err == nil && o.Type.IsDir() {
				return hive.NotPlain(shown(w.dir+table), format, mark)
			}
		}
	}
	switch {
	case marker:
		if isDir && strings.HasSuffix(rel, address.ManifestSuffix) && (address.IsURL(name) || w.within(path.Dir(name))) {
			w.seen = append(w.seen, o.Name)
		}
		return nil
	case o.Type.IsDir():
		return nil // it was read before, by another name
	}
	link := o.Type&fs.ModeSymlink != 0
	o, err := w.target(o)
	switch {
	case err != nil:
		return err
	case link && o.Type.IsDir():
		w.links = append(w.links, name)
		return nil
	case o.Type != 0:
		return faults.Unsupported(fault.At{File: o.Name}, "%s in a directory that is read; want regular files", faults.KindOf(o.Type)).
			WithHint("name the files by a pattern, or begin its name with _ or .")
	}
	if _, ok := glob.Top(w.pattern, name); !ok && w.pattern != "" {
		return nil
	}
	w.some = true
	if o.Rel, o.Found = w.base+rel, true; link || w.visited != nil {
		o.Type = fs.ModeSymlink
	}
	return w.out(o)
}
