package shuffle

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

// An entry is a key and a tag: where in the log the key occurs, or which ID row has
// it. Integer keys are stored as such, others as the bytes of their normal form.

// entryStream is a stream of entries on disk.
type entryStream struct {
	*spill.Stream
	count atomic.Int64 // entries
	bytes atomic.Int64 // of their keys, if these are not integers
}

func newEntryStreams(f *spill.File, n int) []*entryStream {
	all := make([]*entryStream, n)
	for i, s := range f.Streams(n) {
		all[i] = &entryStream{Stream: s}
	}
	return all
}

// free frees the disk space.
func (s *entryStream) free() {
	s.Free()
	s.count.Store(0)
	s.bytes.Store(0)
}

// entryWriter writes to entry streams by number, with a buffer for each. One
// goroutine uses it; several writers may share the streams.
type entryWriter struct {
	streams []*entryStream
	share   *budget.Share
	size    int          // bytes of a buffer
	pairs   []spill.Pair // of integers: the key, and the tag and its sign; room of them for each stream
	room    int          // pairs of a stream
	filled  []uint32     // by stream: pairs in use
	raw     [][]byte     // by stream, of other keys: tag, length, key
	counts  []int64      // by stream, of raw: entries
	flushes []uint32     // by stream: how often its buffer was written
	out     []byte
}

// Bounds on the bytes of one stream's buffer.
const (
	minBuffer = 512
	maxBuffer = 16 << 10
	pairBytes = 16
)

// newEntryWriter returns a writer with buffers of size bytes, for integers or other
// keys. The error wraps [fault.ErrMemory].
func newEntryWriter(streams []*entryStream, integers bool, size int, s *budget.Share) (*entryWriter, error) {
	w := &entryWriter{streams: streams, share: s, size: size, flushes: make([]uint32, len(streams))}
	if err := s.Take(w.bytes()); err != nil {
		return nil, err
	}
	if integers {
		w.room = size / pairBytes
		w.pairs, w.filled = make([]spill.Pair, w.room*len(streams)), make([]uint32, len(streams))
		return w, nil
	}
	w.raw, w.counts = make([][]byte, len(streams)), make([]int64, len(streams))
	return w, nil
}

// bytes returns the memory of the writer, including what writing a buffer takes.
func (w *entryWriter) bytes() int64 { return int64(len(w.streams))*int64(w.size+64) + 2*int64(w.size) }

// putInt appends an integer to stream n.
func (w *entryWriter) putInt(n int, v, negative, tag uint64) error {
	at := w.filled[n]
	w.pairs[n*w.room+int(at)] = spill.Pair{A: v, B: tag<<1 | negative}
	w.filled[n] = at + 1
	if int(at)+1 == w.room {
		return w.flush(n)
	}
	return nil
}

// putKey appends a key to stream n, and returns its position in the stream's
// buffer.
func (w *entryWriter) putKey(n int, key []byte, tag uint64) (at int, err error) {
	b := w.raw[n]
	if len(b) > 0 && len(b)+len(key)+2*binary.MaxVarintLen64 > w.size {
		if err := w.flush(n); err != nil {
			return 0, err
		}
		b = w.raw[n]
	}
	if b == nil {
		b = make([]byte, 0, w.size)
	}
	b = binary.AppendUvarint(b, tag)
	b = binary.AppendUvarint(b, uint64(len(key)))
	at = len(b)
	w.raw[n] = append(b, key...)
	w.counts[n]++
	if len(w.raw[n]) > w.size { // the only entry of the buffer
		if err := w.flush(n); err != nil {
			return 0, err
		}
		w.raw[n] = nil
	}
	return at, nil
}

// put appends entry i of a batch to stream n, with another tag.
func (w *entryWriter) put(n int, b *entryBatch, i int, tag uint64) error {
	if w.pairs != nil {
		return w.putInt(n, b.pairs[i].A, b.pairs[i].B&1, tag)
	}
	_, err := w.putKey(n, b.keys[i], tag)
	return err
}

// flush writes the buffer of stream n.
func (w *entryWriter) flush(n int) error {
	s := w.streams[n]
	w.flushes[n]++
	if w.pairs != nil {
		p := w.pairs[n*w.room:][:w.filled[n]]
		w.filled[n] = 0
		if len(p) == 0 {
			return nil
		}
		s.count.Add(int64(len(p)))
		w.out = spill.AppendPairs(w.out[:0], p)
		return s.Write(w.out, false)
	}
	raw := w.raw[n]
	w.raw[n] = raw[:0]
	if len(raw) == 0 {
		return nil
	}
	s.count.Add(w.counts[n])
	s.bytes.Add(int64(len(raw)))
	w.counts[n] = 0
	return s.Write(raw, true)
}

// close writes all buffers and gives their memory back.
func (w *entryWriter) close() error {
	var err error
	for n := range w.streams {
		if err == nil {
			err = w.flush(n)
		}
	}
	w.drop()
	return err
}

// finish is close, or drop after an error, which it returns.
func (w *entryWriter) finish(err error) error {
	if err != nil {
		w.drop()
		return err
	}
	return w.close()
}

// drop is close without writing.
func (w *entryWriter) drop() {
	if w.share != nil {
		w.share.Give(w.bytes())
	}
	*w = entryWriter{}
}

// entryBatch holds the entries of one chunk.
type entryBatch struct {
	pairs []spill.Pair // key and tag<<1|sign; the hash of a key that is not an integer
	keys  [][]byte     // nil for integers
}

func (b *entryBatch) tag(i int) uint64 { return b.pairs[i].B >> 1 }

// entryReader reads the entries of a stream, those of each writer in order.
type entryReader struct {
	integers bool
	hash     bloom.Hash
	r        *spill.Reader
	chunk    []byte
	batch    entryBatch
}

// open starts reading a stream.
func (r *entryReader) open(s *entryStream) { r.r = s.Reader() }

// next returns the next entries, valid until the next call, and io.EOF after the
// last ones.
func (r *entryReader) next(ctx context.Context) (*entryBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	if r.chunk, err = r.r.Next(r.chunk); err != nil {
		return nil, err
	}
	if r.integers {
		r.batch.pairs, err = spill.Pairs(r.batch.pairs, r.chunk)
	} else {
		err = r.parse()
	}
	if err != nil {
		return nil, faults.Errorf("%s: %w", waitsOnDisk, err)
	}
	return &r.batch, nil
}

// parse finds the keys in a chunk.
func (r *entryReader) parse() error {
	b := &r.batch
	b.pairs, b.keys = b.pairs[:0], b.keys[:0]
	for rest := r.chunk; len(rest) > 0; {
		tag, n := binary.Uvarint(rest)
		size, m := binary.Uvarint(rest[max(n, 0):])
		if n <= 0 || m <= 0 || size > uint64(len(rest)-n-m) {
			return errors.New("an entry that goes on behind the end of its chunk")
		}
		end := n + m + int(size)
		key := rest[n+m : end : end]
		b.pairs = append(b.pairs, spill.Pair{A: r.hash.Sum(key), B: tag << 1})
		b.keys = append(b.keys, key)
		rest = rest[end:]
	}
	return nil
}

// each calls fn with all entries of a stream.
func (r *entryReader) each(ctx context.Context, s *entryStream, fn func(*entryBatch) error) error {
	r.open(s)
	for {
		b, err := r.next(ctx)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = fn(b)
		}
		if err != nil {
			return err
		}
	}
}

// levelHash returns the hash that divides entries at a level of division.
func levelHash(level int) bloom.Hash { return bloom.Hash{ID: bloom.XXH3, Seed: uint64(level)} }

// hashes returns the hashes of the entries at a level.
func (b *entryBatch) hashes(dst []uint64, values *[]uint64, level int) []uint64 {
	h := levelHash(level)
	dst = slices.Grow(dst[:0], len(b.pairs))[:len(b.pairs)]
	if b.keys != nil {
		for i, k := range b.keys {
			dst[i] = h.Sum(k)
		}
		return dst
	}
	*values = slices.Grow((*values)[:0], len(b.pairs))[:len(b.pairs)]
	for i, p := range b.pairs {
		(*values)[i] = p.A
	}
	h.Sum64(dst, *values)
	return dst
}
