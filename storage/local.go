package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Local returns the local file system. It is a [Sweeper], [DirRemover], [Resolver] and
// [ManifestLister]; its readers are [Rester]s and [Checker]s and, on Unix systems,
// [Mapper]s, its writers [Rester]s.
//
// List's patterns have *, ?, [a-z], [!a], {a,b} and, for any number of directories, **.
// Links are followed. Files of Delta Lake, Hudi and Iceberg tables are refused, since
// not all of them are current.
//
// The identity of a file is its size and modification time. A [Reader] also
// compares which file it is, so it notices a replacement by a file of equal size
// and time. Commit never replaces a file that appears at the same moment, except
// on file systems without hard links. Delete compares the identity first, but
// not in one step with the removal. Delete removes a link itself, not what it leads to.
func Local() Storage { return local{} }

type local struct{}

var (
	_ Sweeper        = local{}
	_ DirRemover     = local{}
	_ Resolver       = local{}
	_ ManifestLister = local{}
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

func (local) slashes(name string) string { return filepath.ToSlash(name) }

func (local) match(_ context.Context, pattern string, wanted func(string) bool) iter.Seq2[Object, error] {
	return matchFiles(osFiles{}, pattern, wanted)
}

func (local) notInTable(ctx context.Context, dir string) error {
	return notInTable(ctx, osFiles{}, dir)
}

func (local) walk(ctx context.Context, dir string) ([]Object, []string, error) {
	return walkFiles(ctx, osFiles{}, dir)
}

// isLocal refuses empty names, and URLs, although these are valid file names.
func isLocal(name string) error {
	if name == "" {
		return errors.New("a file with an empty name: want its path")
	}
	if i := strings.Index(name, "://"); i > 0 {
		return faults.Unsupported(fault.At{File: name}, "%s:// addresses", name[:i]).WithHint("give a storage that knows them, such as one of package storage/cloud")
	}
	return nil
}

// objectOf describes a file.
func objectOf(name, rel string, info fs.FileInfo) Object {
	if below := len(name) - len(rel); below >= 0 && name[below:] == rel {
		rel = name[below:] // one string for both, where there are many
	}
	o := Object{Name: name, Rel: rel, Type: info.Mode().Type()}
	if o.Type == 0 {
		o.Size, o.ModTime, o.Identity = info.Size(), info.ModTime(), identityOf(info)
	}
	return o
}

// identityOf returns the identity of a file; empty if its time is not known, since two
// contents may have one size.
func identityOf(info fs.FileInfo) string {
	if info.ModTime().IsZero() {
		return ""
	}
	return fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())
}

// Stat implements [Source]. It follows links.
func (local) Stat(_ context.Context, name string) (Object, error) {
	if err := isLocal(name); err != nil {
		return Object{}, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return Object{}, err
	}
	return objectOf(name, "", info), nil
}

// Tree implements [Storage].
func (local) Tree(ctx context.Context, dir string) (objects []Object, err error) {
	root := filepath.Clean(dir)
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real // dir itself may be a link
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the directory does not exist yet, or was removed meanwhile
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() || name == root {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file that is gone by now
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		objects = append(objects, objectOf(name, filepath.ToSlash(rel), info))
		return err
	})
	return objects, err
}

// Delete implements [Storage].
func (local) Delete(_ context.Context, o Object) error {
	if err := isLocal(o.Name); err != nil {
		return err
	}
	if o.Identity != "" {
		info, err := os.Lstat(o.Name)
		if err != nil {
			return err
		}
		if identityOf(info) != o.Identity {
			return fmt.Errorf("%s: %w: it was written again and is not removed", o.Name, ErrChanged)
		}
	}
	return os.Remove(o.Name)
}

// Resolve implements [Resolver]: the absolute path, without links as far as the
// path exists.
func (local) Resolve(name string) string {
	if isLocal(name) != nil {
		return strings.TrimRight(name, "/")
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}

// RemoveDir implements [DirRemover].
func (local) RemoveDir(_ context.Context, name string) error {
	if err := isLocal(name); err != nil {
		return err
	}
	if entries, err := os.ReadDir(name); err != nil || len(entries) > 0 {
		return nil // it is not there, or not empty
	}
	_ = os.Remove(name) // something may have been put there meanwhile
	return nil
}
