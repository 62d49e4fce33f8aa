package source

import (
	"io"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/storage"
)

// smallFile is the size up to which a local file is read at once rather than in parts.
const smallFile = 256 << 10

var smallBuffers = sync.Pool{New: func() any { return new([smallFile]byte) }}

// whole reads a file that is in memory while it is being opened.
type whole struct {
	counted
	b []byte // nil: no longer
}

func (w *whole) ReadAt(p []byte, off int64) (int, error) {
	if w.b == nil {
		return w.counted.ReadAt(p, off)
	}
	if off < 0 || off > int64(len(w.b)) {
		return 0, io.EOF
	}
	n := copy(p, w.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readOnce returns a reader of the file. If that is small, local and will need a fingerprint,
// its bytes are read now, for all that is read before end is called, which is always a copy.
func (f *File) readOnce(opts Opening) (r io.ReaderAt, end func()) {
	w := &whole{counted: counted{f.reader, f.bytes}}
	if _, near := f.reader.(storage.Mapper); !near || !opts.Digests || f.size > smallFile {
		return w.counted, func() {}
	}
	buf := smallBuffers.Get().(*[smallFile]byte)
	if n, _ := w.ReadAt(buf[:f.size], 0); int64(n) == f.size { // else the error comes again
		w.b = buf[:f.size]
		sum := xxh3.Hash128(w.b).Bytes()
		f.KnownAs(sum[:])
	}
	return w, func() {
		w.b = nil
		smallBuffers.Put(buf)
	}
}
