package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Local returns the local file system. It is a [Sweeper], [DirRemover] and [Resolver];
// its readers are [Rester]s and [Checker]s and, on Unix systems, [Mapper]s, its writers
// [Rester]s.
//
// The identity of a file is its size and modification time. A [Reader] also
// compares which file it is, so it notices a replacement by a file of equal size
// and time. Commit never replaces a file that appears at the same moment, except
// on file systems without hard links. Delete compares the identity first, but
// not in one step with the removal. Delete removes a link itself, not what it leads to.
func Local() Storage { return local{} }

type local struct{}

var (
	_ Sweeper    = local{}
	_ DirRemover = local{}
	_ Resolver   = local{}
)

// List implements [Source].
func (l local) List(ctx context.Context, prefix string, yield func(Object) error) error {
	return l.Walk(ctx, prefix, enterAll, yield)
}

// Walk is List that reads only the directories that enter enters; it yields others.
func (local) Walk(ctx context.Context, prefix string, enter func(dir string) bool, yield func(Object) error) error {
	if err := isLocal(prefix); err != nil && prefix != "" {
		return err
	}
	return walkFiles(ctx, osFiles{}, filepath.ToSlash(prefix), enter, yield)
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

// objectOf describes a file or directory.
func objectOf(name string, info fs.FileInfo) Object {
	o := Object{Name: name, Type: info.Mode().Type()}
	switch {
	case o.Type == 0:
		o.Size, o.ModTime, o.Identity = info.Size(), info.ModTime(), identityOf(info)
	case o.Type.IsDir():
		o.Identity = dirIdentity(info)
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
		return Object{}, missing(name, err)
	}
	return objectOf(name, info), nil
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
func (l local) Resolve(name string) string {
	if isLocal(name) != nil {
		return strings.TrimRight(name, "/")
	}
	if strings.Contains(name, "..") { // perhaps above what a link leads to
		if real, err := filepath.EvalSymlinks(name); err == nil {
			name = real
		}
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	if dir, base := filepath.Split(abs); base != "" {
		return filepath.Join(l.Resolve(dir), base)
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
