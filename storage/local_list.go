package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
)

// List implements [Source].
func (l local) List(ctx context.Context, name string) ([]Object, error) {
	objects, _, err := l.ListManifests(ctx, name)
	return objects, err
}

// ListManifests implements [ManifestLister].
func (l local) ListManifests(ctx context.Context, name string) ([]Object, []string, error) {
	return list(ctx, l, name)
}

// match implements finder.
func (local) match(_ context.Context, pattern string) (all []Object, err error) {
	names, err := glob.Files(filepath.FromSlash(pattern))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		all = append(all, objectOf(name, "", info))
	}
	return all, nil
}

// walk implements finder.
func (local) walk(ctx context.Context, dir string) (objects []Object, manifests []string, err error) {
	w := walker{}
	objects, err = w.walk(ctx, dir)
	return objects, w.manifests, err
}

// walk lists the files below a directory, in ascending order of Rel. It follows
// links, because part of a log may be stored elsewhere. A directory that can be
// reached in several ways is read once: by its own name if there is one, rather
// than through a link.
func (w *walker) walk(ctx context.Context, root string) ([]Object, error) {
	w.objects, w.links, w.seen = nil, nil, seenDirs{}
	if dir, _, ok := hive.Cut(filepath.ToSlash(filepath.Clean(root)) + "/"); ok {
		if err := plainTable(filepath.FromSlash(dir)); err != nil { // root is a partition of a table
			return nil, err
		}
	}
	if err := w.into(ctx, root, ""); err != nil {
		return nil, err
	}
	for len(w.links) > 0 {
		slices.Sort(w.links)
		rel := w.links[0]
		w.links = w.links[1:]
		if err := w.into(ctx, filepath.Join(root, filepath.FromSlash(rel)), rel); err != nil {
			return nil, err
		}
	}
	if len(w.objects) == 0 {
		return nil, fmt.Errorf("directory %s holds %w (name the directory with the data)", root, ErrNoFiles)
	}
	slices.SortFunc(w.objects, func(a, b Object) int { return strings.Compare(a.Rel, b.Rel) })
	return w.objects, nil
}

type walker struct {
	manifests []string // of all walks

	objects []Object
	links   []string // to directories, not followed yet; paths below root
	seen    seenDirs
}

// into lists the files below dir, whose path below the root is rel.
func (w *walker) into(ctx context.Context, dir, rel string) error {
	self, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if w.seen.add(self) {
		return nil
	}
	if err := plainTable(dir); err != nil {
		return err
	}
	list, err := os.ReadDir(dir)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	for _, d := range list {
		if Marker(d.Name()) {
			if strings.HasSuffix(d.Name(), address.ManifestSuffix) {
				w.manifests = append(w.manifests, filepath.Join(dir, d.Name()))
			}
			continue
		}
		name, below := filepath.Join(dir, d.Name()), path.Join(rel, d.Name())
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return err
		case info.IsDir() && d.Type()&fs.ModeSymlink != 0:
			w.links = append(w.links, below)
		case info.IsDir():
			if err := w.into(ctx, name, below); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			o := objectOf(name, below, info)
			o.Found = true
			w.objects = append(w.objects, o)
		default:
			return inDirectory(name, info.Mode())
		}
	}
	return nil
}

// plainTable refuses directories of table formats, whose Parquet files may hold
// rows that have been deleted or replaced since.
func plainTable(dir string) error {
	for _, t := range []struct{ format, mark string }{
		{"Delta Lake", "_delta_log"}, {"Hudi", ".hoodie"}, {"Iceberg", "metadata/*.metadata.json"},
	} {
		found := false
		if path.Base(t.mark) == t.mark {
			info, err := os.Stat(filepath.Join(dir, t.mark))
			found = err == nil && info.IsDir()
		} else if list, err := os.ReadDir(filepath.Join(dir, path.Dir(t.mark))); err == nil {
			for _, d := range list {
				match, _ := path.Match(path.Base(t.mark), d.Name())
				found = found || match
			}
		}
		if found {
			return hive.NotPlain(dir, t.format, t.mark)
		}
	}
	return nil
}
