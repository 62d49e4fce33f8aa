package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
)

// ErrNoFiles says that a directory holds nothing that could be data. It wraps
// fs.ErrNotExist.
var ErrNoFiles = fmt.Errorf("no files%w", quiet{fs.ErrNotExist})

// List implements [Store]. Patterns are those of [filepath.Match].
func (Local) List(ctx context.Context, name string) ([]Entry, error) {
	if err := local(name); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return walk(ctx, name)
	case err == nil:
		return []Entry{{Name: name, Rel: filepath.Base(name)}}, nil
	case !errors.Is(err, fs.ErrNotExist) || !strings.ContainsAny(name, `*?[`):
		return nil, missing(name, err)
	}
	pattern := filepath.Clean(name)
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", name, err)
	}
	var entries []Entry
	for _, m := range matches {
		if marked(pattern, m) {
			continue
		}
		info, err := os.Stat(m)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			below, err := walk(ctx, m)
			if err != nil {
				return nil, err
			}
			for _, e := range below {
				e.Rel = filepath.Base(m) + "/" + e.Rel
				entries = append(entries, e)
			}
			continue
		}
		entries = append(entries, Entry{Name: m, Rel: filepath.Base(m)})
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("pattern %s: it matches no file (check the path, and quote the pattern)%w", name, quiet{fs.ErrNotExist})
	}
	return entries, nil
}

// marks reports whether a name is not data: a marker such as _SUCCESS, an
// attempt, a hidden file.
func marks(name string) bool { return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") }

// marked reports whether a wildcard of the pattern has matched a name that is
// not data. What the pattern spells out is meant.
func marked(pattern, match string) bool {
	want := strings.Split(filepath.ToSlash(pattern), "/")
	got := strings.Split(filepath.ToSlash(match), "/")
	for i, name := range got {
		if marks(name) && want[i][:1] != name[:1] {
			return true
		}
	}
	return false
}

// walk lists the files below a directory, in ascending order of Rel. Links are
// followed: a part of a log that stands elsewhere is part of it. A directory
// that can be reached in several ways is read once, by its own name rather than
// through a link.
func walk(ctx context.Context, root string) ([]Entry, error) {
	w := walker{ctx: ctx, root: root}
	if dir, _, ok := cutPartition(filepath.ToSlash(filepath.Clean(root)) + "/"); ok {
		if err := plainTable(filepath.FromSlash(dir)); err != nil { // a partition of a table
			return nil, err
		}
	}
	if err := w.into(root, ""); err != nil {
		return nil, err
	}
	for len(w.links) > 0 {
		sort.Slice(w.links, func(i, j int) bool { return w.links[i] < w.links[j] })
		rel := w.links[0]
		w.links = w.links[1:]
		if err := w.into(filepath.Join(root, filepath.FromSlash(rel)), rel); err != nil {
			return nil, err
		}
	}
	if len(w.entries) == 0 {
		return nil, fmt.Errorf("directory %s holds %w (name the directory with the data)", root, ErrNoFiles)
	}
	sort.Slice(w.entries, func(i, j int) bool { return w.entries[i].Rel < w.entries[j].Rel })
	return w.entries, nil
}

type walker struct {
	ctx     context.Context
	root    string
	entries []Entry
	links   []string // to directories, by their paths below root; not yet followed
	seen    seenDirs
}

// into lists the files below dir, whose path below the root is rel.
func (w *walker) into(dir, rel string) error {
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
	if err := errors.Join(err, w.ctx.Err()); err != nil {
		return err
	}
	for _, d := range list {
		if marks(d.Name()) {
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
			if err := w.into(name, below); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			w.entries = append(w.entries, Entry{Name: name, Rel: below, Found: true})
		default:
			return fault.Unsupported(fault.At{File: name}, "%s in a directory that is read; want regular files", kindOf(info.Mode())).
				WithHint("name the files by a pattern, or begin its name with _ or .")
		}
	}
	return nil
}

// kindOf names what is no regular file and no directory.
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

// plainTable refuses directories of table formats whose Parquet files are not
// all part of the table: some hold rows that were deleted or replaced since.
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
			return fault.Unsupported(fault.At{File: dir}, "a %s table (it has %s); read as plain Parquet, rows that were deleted would come back", t.format, t.mark).
				WithHint("write the table's current rows to Parquet first, or name the files that are current")
		}
	}
	return nil
}

// cutPartition cuts a path that ends in a slash before its first name=value
// element. ok is false if there is none.
func cutPartition(dir string) (before, after string, ok bool) {
	at := 0
	for _, element := range strings.SplitAfter(dir, "/") {
		if i := strings.IndexByte(element, '='); i > 0 && strings.HasSuffix(element, "/") {
			return dir[:at], dir[at:], true
		}
		at += len(element)
	}
	return dir, "", false
}

// Tree implements [Store].
func (Local) Tree(ctx context.Context, dir string) (objects []Object, err error) {
	root := filepath.Clean(dir)
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real // the user may name a directory by a link
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // there is no directory yet, or no longer
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() || name == root {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // an attempt that has ended meanwhile
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		objects = append(objects, Object{filepath.ToSlash(rel), info.Mode().IsRegular(), info.Size(), info.ModTime()})
		return err
	})
	return objects, err
}
