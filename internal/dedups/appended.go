package dedups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/ring"
)

// Appended is an output that runs with a state continue. It is locked, where the system has
// locks, until it is closed.
type Appended struct {
	file    *os.File
	state   *State
	created bool         // by this run
	begin   func() error // before the first write; nil: it was
}

// OpenAppended opens and locks the output. It must come before [LoadState].
func OpenAppended(name string) (*Appended, error) {
	_, err := os.Stat(name)
	a := &Appended{created: errors.Is(err, os.ErrNotExist)}
	if a.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if err = lock(a.file); err == nil {
		err = a.named()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another run is writing to it: %w", name, err), a.file.Close())
	}
	return a, nil
}

// named returns an error if a run that ended since the file was opened has removed it.
func (a *Appended) named() error {
	here, err := a.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(a.file.Name())
	if err == nil && !os.SameFile(here, there) {
		err = os.ErrNotExist
	}
	return err
}

// Begin compares the output with the state. One that the state does not know must be new or
// empty, unless force is set. Before the first write, what is after the last commit is removed,
// and the state of a new output is committed.
func (a *Appended) Begin(ctx context.Context, s *State, r *ring.Ring, force bool) error {
	a.state = s
	info, err := a.file.Stat()
	if err != nil {
		return err
	}
	name, err := filepath.Abs(a.file.Name())
	if err != nil {
		return err
	}
	fresh := s.Output != name
	if fresh && info.Size() > 0 && !force {
		return faults.Errorf("%s: %w, and is not that of this state ({Force} replaces it)", a.file.Name(), publish.ErrExists)
	}
	if !fresh {
		if err := a.check(info.Size()); err != nil {
			return err
		}
	} else {
		s.Output, s.Length, s.Tail = name, 0, 0
	}
	a.begin = func() error {
		if fresh {
			if err := s.Commit(ctx, r); err != nil {
				return err
			}
		}
		if err := a.file.Truncate(s.Length); err != nil {
			return err
		}
		_, err := a.file.Seek(s.Length, io.SeekStart)
		return err
	}
	return nil
}

// Ready removes what was not committed, once. With a new output it must come before the ring has
// a row of this run: the state that it commits says that nothing was read.
func (a *Appended) Ready() error {
	if a.begin == nil {
		return nil
	}
	if err := a.begin(); err != nil {
		return err
	}
	a.begin = nil
	return nil
}

// check returns an error if the output lacks what was committed, or has something else.
func (a *Appended) check(size int64) error {
	at := fault.At{File: a.file.Name()}
	const hint = "restore it, or name another output, to which later rows go"
	if size < a.state.Length {
		return faults.Of(cause.State, faults.Mismatch(at, "size of the output of this state", fmt.Sprintf("%d bytes or more", a.state.Length), size)).WithHint(hint)
	}
	if a.state.Length == 0 {
		return nil
	}
	tail, err := Tail(a.file, a.state.Length)
	if err == nil && tail != a.state.Tail {
		return faults.Of(cause.State, faults.Mismatch(at, "checksum of the output of this state", fmt.Sprintf("%016x", a.state.Tail), fmt.Sprintf("%016x", tail))).WithHint(hint)
	}
	return err
}

// Start returns the first n bytes, or fewer.
func (a *Appended) Start(n int) ([]byte, error) {
	b := make([]byte, n)
	n, err := a.file.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// Write implements [io.Writer].
func (a *Appended) Write(p []byte) (int, error) {
	if err := a.Ready(); err != nil {
		return 0, err
	}
	return a.file.Write(p)
}

// Commit makes what was written durable, and then the state.
func (a *Appended) Commit(ctx context.Context, r *ring.Ring) (err error) {
	if err := a.Ready(); err != nil {
		return err
	}
	if err := a.file.Sync(); err != nil {
		return err
	}
	s := a.state
	if s.Length, err = a.file.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	if s.Tail, err = Tail(a.file, s.Length); err != nil {
		return err
	}
	return s.Commit(ctx, r)
}

// Rewind removes what was not committed, if it can.
func (a *Appended) Rewind() {
	if a.state != nil && a.begin == nil {
		_ = a.file.Truncate(a.state.Length) // otherwise the next run does
	}
}

// Close releases the lock. A new output that was never begun is removed.
func (a *Appended) Close() error {
	if a.created && (a.state == nil || a.begin != nil) {
		_ = os.Remove(a.file.Name()) // it is empty
	}
	return a.file.Close()
}
