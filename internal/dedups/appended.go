package dedups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/ring"
)

// Appended is an output that runs with a state continue. It is locked, where the system has
// locks, until it is closed.
type Appended struct {
	file    *os.File
	state   *State
	created bool // by this run, which has committed nothing
}

// OpenAppended opens and locks the output. It must come before [LoadState].
func OpenAppended(name string) (*Appended, error) {
	_, err := os.Stat(name)
	a := &Appended{created: errors.Is(err, os.ErrNotExist)}
	if a.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if err := lock(a.file); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another run is writing to it: %w", name, err), a.file.Close())
	}
	return a, nil
}

// Begin removes what is after the last commit of a state. An output that the state does not know
// is begun; unless force is set, it must be new or empty.
func (a *Appended) Begin(ctx context.Context, s *State, r *ring.Ring, force bool) error {
	a.state = s
	info, err := a.file.Stat()
	if err != nil {
		return err
	}
	if s.Output != a.file.Name() {
		if info.Size() > 0 && !force {
			return fmt.Errorf("%s: it exists and is not the output of this state%w", a.file.Name(), publish.ErrExists)
		}
		s.Output, s.Length, s.Tail = a.file.Name(), 0, 0
		if err := s.Commit(ctx, r); err != nil {
			return err
		}
	} else if err := a.check(info.Size()); err != nil {
		return err
	}
	a.created = false
	if err := a.file.Truncate(s.Length); err != nil {
		return err
	}
	_, err = a.file.Seek(s.Length, io.SeekStart)
	return err
}

// check returns an error if the output lacks what was committed, or has something else.
func (a *Appended) check(size int64) error {
	at := fault.At{File: a.file.Name()}
	const hint = "restore it, or name another output, to which later rows go"
	if size < a.state.Length {
		return faults.Mismatch(at, "size of the output of this state", fmt.Sprintf("%d bytes or more", a.state.Length), fmt.Sprint(size)).WithHint(hint)
	}
	if a.state.Length == 0 {
		return nil
	}
	tail, err := Tail(a.file, a.state.Length)
	if err == nil && tail != a.state.Tail {
		return faults.Mismatch(at, "checksum of the output of this state", fmt.Sprintf("%016x", a.state.Tail), fmt.Sprintf("%016x", tail)).WithHint(hint)
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
func (a *Appended) Write(p []byte) (int, error) { return a.file.Write(p) }

// Commit makes what was written durable, and then the state.
func (a *Appended) Commit(ctx context.Context, r *ring.Ring) (err error) {
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

// Close releases the lock. An output that was never begun is removed.
func (a *Appended) Close() error {
	if a.created {
		_ = os.Remove(a.file.Name()) // it is empty
	}
	return a.file.Close()
}
