// Package spill keeps on disk what does not fit into memory: streams of chunks
// of bytes in a temporary file, each read back as it was written, or not at
// all.
//
//	File ── Stream ── Write(chunk) … ── Reader ── Next ──► the chunks again
//	                                 ── Free ──► its room is there for others
//
// A chunk stands behind its length and a checksum, which also knows the stream
// and the chunk's place in it. What a chunk may hold besides bytes: integers in
// pairs ([AppendPairs]), and Arrow records ([AppendRecord]).
package spill

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
)

// extentBytes is the unit in which a stream gets room. What of it is not
// written takes no disk where files may have holes.
const extentBytes = 256 << 10

// File is a temporary file of streams, which has no name where the system lets
// it be: then it is gone with the process, however that ends. It is made when
// the first chunk is written. Many goroutines may use it at once.
type File struct {
	Window int // see [Window]; not to be changed while somebody reads

	dir   string
	about fault.Text

	written atomic.Int64
	streams atomic.Uint64

	mu      sync.Mutex
	file    *os.File // nil until something is written
	name    string   // if it still has one
	extents []uint32 // by extent: bytes of it that were ever written
	free    []uint32 // extents that nobody uses
	disk    int64    // sum of extents
	closed  bool
}

// Window is how many bytes are read at a time where chunks are no larger, unless
// [File.Window] is set.
const Window = 64 << 10

// New returns a file in dir; empty: [os.TempDir]. Its errors begin with about,
// which says what waits there and what helps.
func New(dir string, about fault.Text) *File { return &File{Window: Window, dir: dir, about: about} }

// Written returns how many bytes were written.
func (f *File) Written() int64 { return f.written.Load() }

// Disk returns how many bytes of the disk the file takes, which is the most
// that it has taken: room is used again, but not given back before Close.
func (f *File) Disk() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk
}

// Close gives the disk back. Nobody may use the file any more.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	if f.name != "" {
		err = errors.Join(err, os.Remove(f.name))
	}
	f.file, f.extents, f.free = nil, nil, nil
	return err
}

func (f *File) fault(err error) error { return fault.Errorf("%s: %w", f.about, err) }

// corrupt says that bytes came back other than they went.
func (f *File) corrupt(what, want, got string) error {
	e := fault.Corrupt(fault.At{File: f.file.Name()}, "%s", what)
	return f.fault(e.Wanted(want, got).WithHint("the disk or another program changed a temporary file; check the disk, and run again"))
}

// open makes the file. The lock is held.
func (f *File) open() (err error) {
	if f.closed {
		return f.fault(os.ErrClosed)
	}
	if f.file != nil {
		return nil
	}
	if f.file, err = unnamed(cmp.Or(f.dir, os.TempDir())); err == nil {
		return nil
	}
	if f.file, err = os.CreateTemp(f.dir, "bloomjoin-spill-*"); err != nil {
		return f.fault(err)
	}
	f.name = f.file.Name()
	if os.Remove(f.name) == nil {
		f.name = ""
	}
	return nil
}

// handle returns the file, if it is there.
func (f *File) handle() (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil, f.fault(os.ErrClosed)
	}
	return f.file, nil
}

// take returns an extent for a stream to write to.
func (f *File) take() (uint32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.open(); err != nil {
		return 0, err
	}
	if n := len(f.free); n > 0 {
		x := f.free[n-1]
		f.free = f.free[:n-1]
		return x, nil
	}
	f.extents = append(f.extents, 0)
	return uint32(len(f.extents) - 1), nil
}

// give takes extents back.
func (f *File) give(extents []uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = append(f.free, extents...)
}

// write writes b into an extent from byte at on.
func (f *File) write(extent uint32, at int, b []byte) error {
	file, err := f.handle()
	if err != nil {
		return err
	}
	n, err := file.WriteAt(b, int64(extent)*extentBytes+int64(at))
	f.written.Add(int64(n))
	f.mu.Lock()
	if end := uint32(at + n); end > f.extents[extent] {
		f.disk += int64(end - f.extents[extent])
		f.extents[extent] = end
	}
	f.mu.Unlock()
	if err != nil {
		return f.fault(err)
	}
	return nil
}
