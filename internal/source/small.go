package source

import (
	"bytes"
	"io"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
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
	return bytes.NewReader(w.b).ReadAt(p, off)
}

// readOnce returns a reader of the file. If that is small, local and will need a fingerprint,
// its bytes are read now, for all that is read before end is called, which is always a copy.
func (f *File) readOnce(opts Opening) (r io.ReaderAt, end func()) {
	w := &whole{counted: counted{f.reader, f.bytes, f.reading}}
	if _, near := f.reader.(storage.Mapper); !near || !opts.Digests || f.size > smallFile {
		return w.counted, func() {}
	}
	buf := smallBuffers.Get().(*[smallFile]byte)
	if n, _ := w.ReadAt(buf[:f.size], 0); int64(n) == f.size { // else the error comes again
		w.b = buf[:f.size]
		sum := xxh3.Hash128(w.b).Bytes()
		f.print = func() ([]byte, error) { return f.digestTable(sum[:]) }
	}
	return w, func() {
		w.b = nil
		smallBuffers.Put(buf)
	}
}

// Poison makes the bytes of small files useless when the last walk over them has ended, so that
// a later use shows. Tests set it before files are read.
var Poison bool

// LoadPages is MapPages for a pass that has few files at a time. It reads a small file instead
// of mapping it: fewer calls, no page faults. The next file reuses the buffer when the last holder
// has released it.
func (f *File) LoadPages() (end func() error) {
	r, ok := f.reader.(interface{ ReadAll(b []byte) error })
	if !ok || f.size > smallFile {
		return f.MapPages()
	}
	return f.mapWith(func() (p *parquet.Mapping, checked bool, err error) {
		buf := smallBuffers.Get().(*[smallFile]byte)
		b := buf[:f.size:f.size]
		if err := r.ReadAll(b); err != nil {
			smallBuffers.Put(buf)
			return nil, false, err
		}
		return &parquet.Mapping{Bytes: b, Read: func(n int64) { f.bytes.Add(n) }, Unmap: func() error {
			if Poison {
				copy(b, bytes.Repeat([]byte{0xdb}, len(b)))
			}
			smallBuffers.Put(buf)
			return nil
		}}, true, nil
	})
}
