// Package spill keeps data on disk that does not fit in memory: streams of chunks
// of bytes in a temporary file. A chunk is read back exactly as it was written, or
// reading fails.
//
//	File ── Stream ── Write(chunk) … ── Reader ── Next ──► the chunks again
//	                                 ── Free ──► its room is reused
//
// A chunk is preceded by its length and a checksum that covers the stream and the
// chunk's position in it. Besides bytes, chunks can hold pairs of integers
// ([AppendPairs]) and Arrow records ([AppendRecord]).
package spill

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// extentBytes is the unit of allocation for streams. On file systems with sparse
// files, its unwritten part takes no disk space.
const extentBytes = 256 << 10

// File is a temporary file that holds streams. Where the OS supports it, it is
// anonymous, so a crash leaves nothing behind. It is created when the first chunk
// is written. It is safe for concurrent use.
type File struct {
	Window int // see [Window]; must not change during reads

	dir   string
	about fault.Text

	written atomic.Int64
	streams atomic.Uint64

	mu      sync.Mutex
	file    *os.File // nil until something is written
	name    string   // empty if the file is anonymous
	extents []uint32 // per extent: bytes of it that were ever written
	free    []uint32 // unused extents
	disk    int64    // sum of extents
	closed  bool
}

// Window is the default of [File.Window]: the number of bytes read at a time,
// unless a chunk is larger.
const Window = 64 << 10

// New returns a File in dir; empty: [os.TempDir]. Its errors start with about,
// which should say what is stored there and how to avoid it.
func New(dir string, about fault.Text) *File { return &File{Window: Window, dir: dir, about: about} }

// Written returns the number of bytes written.
func (f *File) Written() int64 { return f.written.Load() }

// Disk returns the disk space that the file takes, in bytes. It never falls before
// Close: freed space is reused but not returned.
func (f *File) Disk() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk
}

// Close frees the disk space. The file must not be used afterwards.
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

func (f *File) fault(err error) error { return faults.Errorf("%s: %w", f.about, err) }

// corrupt returns the error for bytes that differ from those written.
func (f *File) corrupt(what string, want, got any) error {
	e := faults.Corrupt(fault.At{File: f.file.Name()}, "%s", what)
	return f.fault(faults.Wanted(e, want, got).WithHint("the disk or another program changed a temporary file; check the disk, and run again"))
}

// open creates the file. The caller holds the lock.
func (f *File) open() (err error) {
	if f.closed {
		return f.fault(os.ErrClosed)
	}
	if f.file != nil {
		return nil
	}
	if f.file, f.name, err = create(f.dir); err != nil {
		return f.fault(err)
	}
	return nil
}

// create creates a temporary file. If name is not empty, the caller removes the file after closing it.
func create(dir string) (f *os.File, name string, err error) {
	if f, err = unnamed(cmp.Or(dir, os.TempDir())); err == nil {
		return f, "", nil
	}
	if f, err = os.CreateTemp(dir, "bloomjoin-spill-*"); err != nil {
		return nil, "", err
	}
	if name = f.Name(); os.Remove(name) == nil {
		name = ""
	}
	return f, name, nil
}

// handle returns the open file.
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

// give returns extents to the free list.
func (f *File) give(extents []uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = append(f.free, extents...)
}

// write writes b to an extent, starting at byte at.
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
