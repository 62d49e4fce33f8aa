package listing

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// deep lists what matches a pattern with **. The objects' Rels are their paths below the
// directory before the first wildcard, as if it had been named.
func (l *lister) deep(pattern string) error {
	root := glob.Static(pattern)
	first, _, _ := strings.Cut("/"+pattern, "/**")
	first = first[min(1, len(first)):]
	if len(first) <= len(root) { // no wildcards before the first **
		first = ""
	}
	if first == "" || !l.stepwise() {
		return l.walk(&walk{dir: root, pattern: pattern, first: first})
	}
	return l.match(first, func(o storage.Object) error {
		if o, err := l.target(o); err == nil && o.Type.IsDir() { // what cannot be examined is no directory to look into
			dir := objects.Slashes(o.Name) + "/"
			return l.walk(&walk{dir: dir, base: dir[len(root):], pattern: pattern})
		}
		return nil
	})
}

// beside lists what matches a pattern without **. Objects have the last elements of their names as
// Rels; those of a directory, its last element before their paths.
func (l *lister) beside(pattern string) error {
	var dirs []string // to be walked, as many at once as there may be requests
	looked := "none"
	err := l.match(pattern, func(o storage.Object) error {
		o, err := l.target(o)
		if err != nil {
			return err
		}
		name := objects.Slashes(o.Name)
		if o.Type.IsDir() {
			if dirs = append(dirs, name); len(dirs) < l.atOnce {
				return nil
			}
		}
		err = l.walkAll(dirs)
		if dirs = nil; err != nil || o.Type.IsDir() {
			return err
		}
		if dir := dirOf(name); dir != looked {
			looked = dir
			if err := l.notInTable(dir, false); err != nil {
				return err
			}
		}
		o.Rel = path.Base(name)
		return l.out(o)
	})
	if err != nil {
		return err
	}
	return l.walkAll(dirs)
}

// target returns what a link leads to, with the link's name. Others are their own targets.
func (l *lister) target(o storage.Object) (storage.Object, error) {
	if o.Type&fs.ModeSymlink == 0 {
		return o, nil
	}
	name := o.Name
	o, err := l.src.Stat(l.ctx, name)
	o.Name = name
	return o, err
}

// stepwise reports whether a pattern is best matched directory by directory. Where that takes
// time, or the source has one list for all, objects below directories that match nothing are
// listed in vain.
func (l *lister) stepwise() bool { return objects.Walks(l.src) && l.atOnce == 1 }

// match calls found for the objects, directories and links that match a pattern without **. It
// does not examine markers: one may be a link to nothing, or gone by now.
func (l *lister) match(pattern string, found func(storage.Object) error) error {
	take := func(o storage.Object) error {
		name := objects.Slashes(o.Name)
		if address.IsURL(name) && o.Type.IsDir() && strings.HasSuffix(name, address.ManifestSuffix) {
			l.manifests = append(l.manifests, o.Name)
		}
		if !glob.Matches(pattern, name) || glob.Marked(pattern, name) {
			return nil
		}
		return found(o)
	}
	if l.stepwise() {
		return l.step(pattern, "", strings.Split(pattern, "/"), take)
	}
	prefix := glob.Prefix(pattern)
	var enter func(string) bool // only the last element has wildcards: one level
	if strings.Contains(pattern[len(prefix):], "/") {
		enter = func(dir string) bool { return glob.Leads(pattern, dir) }
	}
	return objects.Walk(l.ctx, l.src, prefix, enter, take)
}

// step is match of what is in dir and matches the elements of the pattern after it.
func (l *lister) step(pattern, dir string, elements []string, found func(storage.Object) error) error {
	literal := func() bool { return glob.Prefix(elements[0]) == elements[0] }
	for len(elements) > 1 && literal() {
		dir, elements = dir+elements[0]+"/", elements[1:]
	}
	if literal() {
		o, err := l.src.Stat(l.ctx, dir+elements[0])
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil
		}
		if err != nil {
			return err
		}
		return found(o)
	}
	return objects.Walk(l.ctx, l.src, dir+glob.Prefix(elements[0]), nil, func(o storage.Object) error {
		name := objects.Slashes(o.Name)
		switch {
		case len(elements) == 1:
			return found(o)
		case !glob.Matches(elements[0], name[len(dir):]) || glob.Marked(pattern, name):
			return nil
		}
		if o, err := l.target(o); err != nil || !o.Type.IsDir() {
			return nil
		}
		return l.step(pattern, name+"/", elements[1:], found)
	})
}

// walkAll lists the data below directories in their order, and reads all of them at once.
func (l *lister) walkAll(dirs []string) error {
	walks := make([]*walk, len(dirs))
	for i, dir := range dirs {
		if err := l.notInTable(dir+"/", true); err != nil {
			return err
		}
		walks[i] = &walk{lister: l, dir: dir + "/", base: path.Base(dir) + "/", out: l.out}
	}
	if len(walks) == 1 {
		return walks[0].end(walks[0].run(l.ctx))
	}
	ctx, cancel := context.WithCancel(l.ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	queues, errs := make([]chan storage.Object, len(walks)), make([]error, len(walks))
	for i, w := range walks {
		queues[i] = make(chan storage.Object, 1000)
		w.out = func(o storage.Object) error {
			select {
			case queues[i] <- o:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		wait.Go(func() {
			defer close(queues[i])
			errs[i] = w.run(ctx)
		})
	}
	for i, w := range walks {
		for o := range queues[i] {
			if err := l.out(o); err != nil {
				return err
			}
		}
		if err := w.end(errs[i]); err != nil {
			return err
		}
	}
	return nil
}
