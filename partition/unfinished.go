package partition

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/storage"
)

// of returns those of the directories of manifests seen on the way whose outputs a name
// stands for: a pattern is compared with more names than it matches.
func of(name string, list []storage.Object, manifests []string) []string {
	if _, pattern := treeOf(name, list); !pattern {
		return manifests
	}
	return slices.DeleteFunc(manifests, func(m string) bool {
		dir := filepath.ToSlash(strings.TrimSuffix(m, address.ManifestSuffix))
		_, matches := glob.Top(filepath.ToSlash(name), dir)
		return !matches && !slices.ContainsFunc(list, func(e storage.Object) bool {
			return strings.HasPrefix(filepath.ToSlash(e.Name), dir+"/")
		})
	})
}

// finished returns an error if the names stand for an output, or a part of one, whose run
// has not been committed: it lacks rows. Outputs below the names are known by their
// manifests; those above by looking for them.
func (o *OpenOptions) finished(ctx context.Context, names []string, lists [][]storage.Object, manifests []string) error {
	s, ok := o.Store.(storage.Storage)
	if o.Uncommitted || !ok {
		return nil
	}
	var looks []unfinishedIn
	seen := map[string]bool{}
	look := func(dir, root string, sure bool) {
		if !seen[dir] {
			seen[dir] = true
			looks = append(looks, unfinishedIn{dir, root, sure})
		}
	}
	for _, m := range manifests {
		look(absolute(strings.TrimSuffix(m, address.ManifestSuffix)), "", true)
	}
	above := func(root string) {
		if seen["root "+root] {
			return
		}
		seen["root "+root] = true
		for _, r := range []string{root, storage.Resolve(s, root)} {
			for dir := r; ; dir = address.Parent(dir) {
				look(dir, r, dir == r)
				if up := address.Parent(dir); up == dir || address.IsURL(up) && strings.Count(up, "/") < 3 {
					break
				}
			}
		}
	}
	for i, name := range names {
		if name == "-" || !mayHoldRuns(name) {
			continue
		}
		root, _ := treeOf(name, lists[i])
		if len(lists[i]) == 1 && lists[i][0].Name == name { // a file, of which there may be many
			if isLink(name) {
				above(address.Parent(storage.Resolve(s, name)))
			}
			above(address.Parent(absolute(name)))
			continue
		}
		above(absolute(root))
		if address.IsURL(name) {
			continue // lists have shown all manifests
		}
		for _, e := range lists[i] {
			if isLink(e.Name) {
				above(address.Parent(storage.Resolve(s, e.Name)))
			}
			for dir := address.Parent(absolute(e.Name)); !seen[dir]; dir = address.Parent(dir) {
				look(dir, "", false)
				if isLink(dir) {
					above(storage.Resolve(s, dir))
				}
			}
		}
	}
	return lookAll(ctx, s, looks)
}

// isLink reports whether a name is that of a symbolic link.
func isLink(name string) bool {
	if address.IsURL(name) {
		return false
	}
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// mayHoldRuns reports whether outputs can be written where a name is.
func mayHoldRuns(name string) bool {
	scheme, _, _ := strings.Cut(name, "://")
	return !address.IsURL(name) || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")
}

// unfinishedIn is a directory that may be an output.
type unfinishedIn struct {
	dir  string
	root string // what is read of it, which may be below; empty: all
	sure bool   // that it can be listed
}

// lookAll looks at several directories at once, since each look may be a request.
func lookAll(ctx context.Context, s storage.Storage, looks []unfinishedIn) error {
	errs := make([]error, len(looks))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, l := range looks {
		g.Go(func() error {
			errs[i] = l.check(ctx, s)
			return nil
		})
	}
	_ = g.Wait() // nothing fails
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if the directory is an output that is not finished.
func (l unfinishedIn) check(ctx context.Context, s storage.Storage) error {
	manifests := publish.ManifestsOf(l.dir)
	if manifests == "" {
		return nil
	}
	d := publish.Dir{Owner: publish.Owner{Store: s, InDir: true}, Name: l.dir, Manifests: manifests}
	why, err := d.Unfinished(ctx)
	switch {
	case err != nil && !l.sure && errors.Is(err, fs.ErrPermission):
		return nil // who may read a part need not be allowed to see what is beside the whole
	case err != nil || why == "":
		return err
	}
	if rel, ok := strings.CutPrefix(filepath.ToSlash(l.root), strings.TrimRight(filepath.ToSlash(l.dir), "/")+"/"); ok && d.Finished(ctx, path.Join(rel, "x")) {
		return nil // what is read is complete, although other parts are not
	}
	return fault.Errorf("%s/: this output is not finished, and rows may be missing: %s (finish or commit the run; {Uncommitted} reads what is there)", near(l.dir), why)
}

// near returns a path below the working directory as people write it.
func near(dir string) string {
	here, err := os.Getwd()
	if err != nil || address.IsURL(dir) {
		return dir
	}
	if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return dir
}
