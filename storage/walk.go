package storage

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// files is the file system of the operating system, or an fs.FS.
type files interface {
	stat(name string) (fs.FileInfo, error)
	readDir(name string) ([]fs.DirEntry, error) // in ascending order; of names with slashes
	open(name string) (file, error)
	same(first, now fs.FileInfo) bool // as far as can be told without a name and an identity
}

// osFiles is the file system of the operating system.
type osFiles struct{}

func (osFiles) stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFiles) readDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFiles) open(name string) (file, error)             { return openFile(name) }
func (osFiles) same(first, now fs.FileInfo) bool           { return os.SameFile(first, now) }

// enterAll makes a walk of a list.
func enterAll(string) bool { return true }

// walkFiles yields the files and links whose names begin with prefix, a directory at a time.
// Directories that enter refuses are yielded, and not read; nil refuses all. What is gone by the
// time that it is looked at was never there.
func walkFiles(ctx context.Context, in files, prefix string, enter func(dir string) bool, yield func(Object) error) error {
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	entries, err := in.readDir(cmp.Or(dir, "."))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		err, entries = nil, nil
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if !slices.IsSortedFunc(entries, byPath) {
		slices.SortFunc(entries, byPath)
	}
	for _, d := range entries {
		name := dir + d.Name()
		switch {
		case !strings.HasPrefix(name, prefix):
		case !d.IsDir():
			info, failed := d.Info()
			if errors.Is(failed, fs.ErrNotExist) {
				continue
			}
			if err = failed; err == nil {
				err = yield(objectOf(filepath.FromSlash(name), info))
			}
		case enter != nil && enter(name):
			err = walkFiles(ctx, in, name+"/", enter, yield)
		default:
			err = yield(Object{Name: filepath.FromSlash(name), Type: fs.ModeDir})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// byPath compares entries by the names of what they stand for: those below a directory have a
// slash after its name.
func byPath(a, b fs.DirEntry) int {
	x, y := a.Name(), b.Name()
	n := min(len(x), len(y))
	if c := strings.Compare(x[:n], y[:n]); c != 0 {
		return c
	}
	next := func(name string, d fs.DirEntry) int {
		switch {
		case n < len(name):
			return int(name[n])
		case d.IsDir():
			return '/'
		}
		return -1
	}
	return next(x, a) - next(y, b)
}
