package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/process"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// A staged file is whole and durable but does not have its name yet, which another process may give
// it. It stands beside its final name as _NAME.HOST-PID-START-RANDOM.staged, and that name is its
// token. RANDOM begins with a checksum of its owner, the place that keeps its token, which alone can
// tell that nobody needs the file any more. A file can be renamed only once, so a token can be
// published only once. A shell's * copies it; readers of tables skip names that begin with "_".
const (
	stagedEnding = ".staged"
	stagedStart  = "_"
)

// Stage creates a file of an owner without its name. seal makes it durable, but for the directory,
// which settle syncs, and returns the token by which Publish finds it.
func (l local) Stage(ctx context.Context, name, owner string) (w Writer, seal func() (token, identity string, settle func() error, err error), err error) {
	w, err = l.create(ctx, name, process.Tag(owner), stagedEnding, CreateOptions{})
	if err != nil {
		return nil, nil, err
	}
	return w, w.(*localWriter).seal, nil
}

func (w *localWriter) seal() (token, identity string, settle func() error, err error) {
	if err := w.Rest(); err != nil {
		return "", "", nil, err
	}
	info, err := os.Lstat(w.f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: it was removed before it was complete (run again)%w", w.f.Name(), quiet.Error{Err: ErrChanged})
	}
	if err != nil {
		return "", "", nil, err
	}
	w.done = true
	return filepath.Base(w.f.Name()), identityOf(info), func() error { return syncDir(filepath.Dir(w.final)) }, nil
}

// staged returns the full name of a staged file.
func staged(name, token string) (string, error) {
	if err := isLocal(name); err != nil {
		return "", err
	}
	if token != filepath.Base(token) || !strings.HasPrefix(token, stagedStart) || !strings.HasSuffix(token, stagedEnding) {
		return "", fmt.Errorf("%s: %q is not the name of a staged file", name, token)
	}
	return filepath.Join(filepath.Dir(name), token), nil
}

// Publish gives a staged file its name, and replaces what has that name. The error wraps
// fs.ErrNotExist if it was published or discarded before.
func (local) Publish(_ context.Context, name, token string) (identity string, settle func() error, err error) {
	from, err := staged(name, token)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Lstat(from)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", from)
	}
	if err == nil {
		err = os.Rename(from, name)
	}
	if err != nil {
		return "", nil, err
	}
	return identityOf(info), func() error { return syncDir(filepath.Dir(name)) }, nil
}

// Discard removes a staged file, if it is still there.
func (local) Discard(_ context.Context, name, token string) error {
	from, err := staged(name, token)
	if err != nil {
		return err
	}
	if err := os.Remove(from); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// SweepStaged is Sweep, and removes an owner's staged files below a directory whose processes have
// ended on this machine, unless kept, which is asked afterwards, has their token.
func (l local) SweepStaged(ctx context.Context, dir, owner string, kept func() (map[string]bool, error)) error {
	if err := isLocal(dir); err != nil {
		return err
	}
	var left []string
	_ = filepath.WalkDir(filepath.Clean(dir)+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(d.Name(), stagedEnding) {
			hidden := "." + strings.TrimPrefix(strings.TrimSuffix(d.Name(), stagedEnding), stagedStart) + tmpEnding
			if _, id, ok := ownerOf(hidden); ok && id.Gone() && strings.HasPrefix(hidden[strings.LastIndexByte(hidden, '-')+1:], process.Tag(owner)) {
				left = append(left, path)
			}
		}
		return ctx.Err() // unreadable directories are skipped
	})
	if len(left) == 0 || ctx.Err() != nil {
		return l.Sweep(ctx, dir)
	}
	keep, err := kept()
	for _, path := range left {
		if err == nil && !keep[filepath.Base(path)] {
			_ = os.Remove(path) // a file that stays is not taken for data
		}
	}
	return cmp.Or(err, l.Sweep(ctx, dir))
}
