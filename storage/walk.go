package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
)

// files is the file system of the operating system, or an fs.FS.
type files interface {
	stat(name string) (fs.FileInfo, error)
	readDir(name string) ([]fs.DirEntry, error)
	glob(pattern string) ([]string, error) // of a pattern with slashes
	join(elem ...string) string
	paths(dir string) []string // of a directory, without links and with them, with slashes and one at the end
	open(name string) (file, error)
	same(first, now fs.FileInfo) bool // as far as can be told without a name and an identity
}

// osFiles is the file system of the operating system.
type osFiles struct{}

func (osFiles) stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFiles) readDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFiles) join(elem ...string) string                 { return filepath.Join(elem...) }
func (osFiles) glob(pattern string) ([]string, error)      { return glob.Files(filepath.FromSlash(pattern)) }
func (osFiles) open(name string) (file, error)             { return openFile(name) }
func (osFiles) same(first, now fs.FileInfo) bool           { return os.SameFile(first, now) }

func (osFiles) paths(dir string) []string {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	return slices.Compact([]string{withSlash(whole), withSlash(local{}.Resolve(dir))})
}

// withSlash returns a directory with slashes, and one at its end; the root of an fs.FS has none.
func withSlash(dir string) string {
	if dir == "." {
		return ""
	}
	return strings.TrimRight(filepath.ToSlash(dir), "/") + "/"
}

// matchFiles implements finder.match.
func matchFiles(in files, pattern string, wanted func(name string) bool) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		names, err := in.glob(pattern)
		if err != nil {
			yield(Object{}, err)
			return
		}
		for _, name := range names {
			if !wanted(filepath.ToSlash(name)) {
				continue
			}
			info, err := in.stat(name)
			if err != nil {
				yield(Object{}, err)
				return
			}
			if !yield(objectOf(name, "", info), nil) {
				return
			}
		}
	}
}

// walkFiles implements finder.walk.
func walkFiles(ctx context.Context, in files, dir string) (objects []Object, manifests []string, err error) {
	w := walker{in: in}
	objects, err = w.walk(ctx, dir)
	return objects, w.manifests, err
}

// walk lists the files below a directory, in ascending order of Rel. It follows
// links, because part of a log may be stored elsewhere. A directory that can be
// reached in several ways is read once: by its own name if there is one, rather
// than through a link.
func (w *walker) walk(ctx context.Context, root string) ([]Object, error) {
	w.objects, w.links, w.seen = nil, nil, seenDirs{}
	if err := notInTable(ctx, w.in, root); err != nil {
		return nil, err
	}
	if err := w.into(ctx, root, ""); err != nil {
		return nil, err
	}
	for len(w.links) > 0 {
		slices.Sort(w.links)
		rel := w.links[0]
		w.links = w.links[1:]
		if err := w.into(ctx, w.in.join(root, filepath.FromSlash(rel)), rel); err != nil {
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
	in files

	manifests []string // of all walks

	objects []Object
	links   []string // to directories, not followed yet; paths below root
	seen    seenDirs
}

// into lists the files below dir, whose path below the root is rel.
func (w *walker) into(ctx context.Context, dir, rel string) error {
	self, err := w.in.stat(dir)
	if err != nil {
		return err
	}
	if w.seen.add(self) {
		return nil
	}
	if err := plainTable(w.in, dir); err != nil && !hive.Raw(ctx) {
		return err
	}
	list, err := w.in.readDir(dir)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	for _, d := range list {
		if Marker(d.Name()) {
			if strings.HasSuffix(d.Name(), address.ManifestSuffix) {
				w.manifests = append(w.manifests, w.in.join(dir, d.Name()))
			}
			continue
		}
		name, below := w.in.join(dir, d.Name()), path.Join(rel, d.Name())
		info, err := w.in.stat(name)
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

// notInTable refuses directories of tables, and those in them that have their files.
func notInTable(ctx context.Context, in files, dir string) error {
	for _, whole := range in.paths(dir) {
		err := hive.Look(ctx, "", whole, func(table string) error {
			name := filepath.Clean(filepath.FromSlash(table))
			if here, err := os.Getwd(); err == nil && !filepath.IsAbs(dir) {
				if rel, err := filepath.Rel(here, name); err == nil {
					name = rel
				}
			}
			return plainTable(in, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// plainTable refuses directories of table formats, whose Parquet files may hold
// rows that have been deleted or replaced since.
func plainTable(in files, dir string) error {
	for _, t := range []struct{ format, mark string }{
		{"Delta Lake", "_delta_log"}, {"Hudi", ".hoodie"}, {"Iceberg", "metadata/*.metadata.json"},
	} {
		found := false
		if path.Base(t.mark) == t.mark {
			info, err := in.stat(in.join(dir, t.mark))
			found = err == nil && info.IsDir()
		} else if list, err := in.readDir(in.join(dir, path.Dir(t.mark))); err == nil {
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
