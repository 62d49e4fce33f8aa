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

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// List implements [Source]. Patterns have *, ?, [a-z], [!a], {a,b} and, for any number of
// directories, **. Links are followed. Directories of Delta Lake, Hudi and Iceberg tables
// are refused, since not all of their files are current.
func (l Local) List(ctx context.Context, name string) ([]Object, error) {
	objects, _, err := l.ListManifests(ctx, name)
	return objects, err
}

// ListManifests implements [ManifestLister].
func (Local) ListManifests(ctx context.Context, name string) (objects []Object, manifests []string, err error) {
	if err := isLocal(name); err != nil {
		return nil, nil, err
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		w := walker{}
		objects, err = w.walk(ctx, name)
		return objects, w.manifests, err
	case err == nil:
		return []Object{objectOf(name, filepath.Base(name), info)}, nil, nil
	case !errors.Is(err, fs.ErrNotExist) || !glob.Is(name):
		return nil, nil, missing(name, err)
	}
	return matching(ctx, name)
}

// matching lists what matches a pattern: files, and those below directories.
func matching(ctx context.Context, name string) (objects []Object, manifests []string, err error) {
	pattern := filepath.Clean(name)
	if err := glob.Check(filepath.ToSlash(pattern)); err != nil {
		return nil, nil, fmt.Errorf("pattern %s: %w", name, err)
	}
	w := walker{}
	for _, p := range glob.Alternatives(filepath.ToSlash(pattern)) {
		var found []Object
		if p = path.Clean(p); glob.Deep(p) {
			found, err = w.below(ctx, p)
		} else {
			found, err = w.beside(ctx, filepath.FromSlash(p))
		}
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, found...)
	}
	if strings.HasSuffix(filepath.ToSlash(name), "/") { // directories only
		objects = slices.DeleteFunc(objects, func(o Object) bool { return !o.Found })
	}
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("pattern %s: it matches no file (check the path, and quote the pattern)%w", name, quiet.Error{Err: fs.ErrNotExist})
	}
	return objects, w.manifests, err
}

// below lists what matches a pattern with **. The files' Rels are their paths below the
// directory before the first wildcard, as if it had been named.
func (w *walker) below(ctx context.Context, pattern string) (objects []Object, err error) {
	root := glob.Static(pattern)
	dirs := []string{root}
	if first, _, _ := strings.Cut("/"+pattern, "/**"); len(first) > len(root)+1 { // wildcards before the first **
		if dirs, err = glob.Files(first[1:]); err != nil {
			return nil, err
		}
	}
	for _, dir := range dirs {
		if info, err := os.Stat(filepath.Join(dir, ".")); err != nil || !info.IsDir() || glob.Marked(pattern, filepath.ToSlash(dir)) {
			continue
		}
		found, err := w.walk(ctx, filepath.Join(dir, "."))
		if err != nil && !errors.Is(err, ErrNoFiles) {
			return nil, err
		}
		for _, o := range found {
			whole := filepath.ToSlash(o.Name)
			if _, ok := glob.Top(pattern, whole); ok {
				o.Rel = strings.TrimPrefix(whole, root)
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

// beside lists what matches a pattern without **. Files have their names as Rels; those of
// a directory, its name before their paths.
func (w *walker) beside(ctx context.Context, pattern string) (objects []Object, err error) {
	matches, err := glob.Files(pattern)
	if err != nil {
		return nil, err
	}
	for _, m := range matches {
		if glob.Marked(filepath.ToSlash(pattern), filepath.ToSlash(m)) {
			continue
		}
		info, err := os.Stat(m)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(m)
		if !info.IsDir() {
			objects = append(objects, objectOf(m, base, info))
			continue
		}
		below, err := w.walk(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, o := range below {
			o.Rel = base + "/" + o.Rel
			objects = append(objects, o)
		}
	}
	return objects, nil
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
			return faults.Unsupported(fault.At{File: name}, "%s in a directory that is read; want regular files", kindOf(info.Mode())).
				WithHint("name the files by a pattern, or begin its name with _ or .")
		}
	}
	return nil
}

// kindOf names the type of what is not a regular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe (FIFO)"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsDir():
		return "a directory"
	}
	return "a special file"
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
			return faults.Unsupported(fault.At{File: dir}, "a %s table (it has %s); read as plain Parquet, rows that were deleted would come back", t.format, t.mark).
				WithHint("write the table's current rows to Parquet first, or name the files that are current")
		}
	}
	return nil
}
