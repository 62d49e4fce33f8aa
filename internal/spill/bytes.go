package spill

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Bytes are written once and then read at any position. They are in memory or, if there are
// many, in a temporary file. Write and Flush come before ReadAt, which is safe for
// concurrent use.
type Bytes struct {
	Dir string // of the file; empty: os.TempDir. It must not change after Write

	about fault.Text
	size  int64
	held  []byte
	file  *os.File // nil: held has all
	name  string   // of a file that could not be unlinked
	w     *bufio.Writer
}

// heldBytes is the maximum number of bytes held in memory.
const heldBytes = 4 << 20

// NewBytes returns empty Bytes. Errors start with about, see [New].
func NewBytes(about fault.Text) *Bytes { return &Bytes{about: about} }

// Size returns the number of bytes written.
func (b *Bytes) Size() int64 { return b.size }

// Write implements [io.Writer].
func (b *Bytes) Write(p []byte) (int, error) {
	if b.file == nil && len(b.held)+len(p) > heldBytes {
		if err := b.toFile(); err != nil {
			return 0, b.fault(err)
		}
	}
	b.size += int64(len(p))
	if b.file == nil {
		b.held = append(b.held, p...)
		return len(p), nil
	}
	n, err := b.w.Write(p)
	return n, b.fault(err)
}

func (b *Bytes) toFile() (err error) {
	if b.file, b.name, err = create(b.Dir); err != nil {
		return err
	}
	b.w = bufio.NewWriterSize(b.file, 256<<10)
	_, err = b.w.Write(b.held)
	b.held = nil
	return err
}

// Flush makes what was written readable.
func (b *Bytes) Flush() error {
	if b.file == nil {
		return nil
	}
	return b.fault(b.w.Flush())
}

// ReadAt implements [io.ReaderAt].
func (b *Bytes) ReadAt(p []byte, at int64) (n int, err error) {
	if b.file != nil {
		if n, err = b.file.ReadAt(p, at); err != io.EOF {
			err = b.fault(err)
		}
		return n, err
	}
	if at < b.size {
		n = copy(p, b.held[at:])
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Close frees the disk space.
func (b *Bytes) Close() error {
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	if b.name != "" {
		err = errors.Join(err, os.Remove(b.name))
	}
	return b.fault(err)
}

func (b *Bytes) fault(err error) error {
	if err == nil {
		return nil
	}
	return faults.Errorf("%s: %w", b.about, err)
}
