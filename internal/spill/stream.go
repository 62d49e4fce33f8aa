package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/zeebo/xxh3"
)

// headerBytes is the size of a chunk's header: its stored size and its uncompressed
// size, four bytes each, and a checksum.
const headerBytes = 16

// MaxChunk is the largest size of a chunk in bytes.
const MaxChunk = math.MaxInt32 - 64

// Stream is a sequence of chunks. Goroutines may write to it concurrently; the
// chunks of each goroutine stay in order. Once all chunks are written, goroutines
// may read it concurrently.
type Stream struct {
	file *File
	id   uint64

	mu      sync.Mutex
	extents []uint32
	size    int64 // bytes, including headers
	chunks  uint64
}

// Stream returns a new stream.
func (f *File) Stream() *Stream { return &Stream{file: f, id: f.streams.Add(1)} }

// Streams returns n new streams.
func (f *File) Streams(n int) []*Stream {
	all := make([]*Stream, n)
	for i := range all {
		all[i] = f.Stream()
	}
	return all
}

// Free empties the stream and makes its disk space available to others.
func (s *Stream) Free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file.give(s.extents)
	s.extents, s.size, s.chunks = nil, 0, 0
	s.id = s.file.streams.Add(1)
}

var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Write appends a chunk, compressed if compress is set and that makes it smaller.
func (s *Stream) Write(chunk []byte, compress bool) error {
	if len(chunk) > MaxChunk {
		return s.file.fault(fmt.Errorf("a chunk of %d bytes, want at most %d", len(chunk), MaxChunk))
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	most := len(chunk)
	if compress {
		most = s2.MaxEncodedLen(len(chunk))
	}
	b := slices.Grow((*buf)[:0], headerBytes+most)[:headerBytes]
	packed := false
	if compress {
		p := s2.Encode(b[headerBytes:cap(b)], chunk)
		if packed = len(p) < len(chunk); packed {
			b = b[:headerBytes+len(p)]
		}
	}
	if !packed {
		b = append(b, chunk...)
	}
	*buf = b
	binary.LittleEndian.PutUint32(b, uint32(len(b)-headerBytes))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(chunk)))

	at, extents, seed, err := s.reserve(len(b))
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b[8:], checksum(b, seed))
	for _, x := range extents {
		n := min(extentBytes-at, len(b))
		if err := s.file.write(x, at, b[:n]); err != nil {
			return err
		}
		b, at = b[n:], 0
	}
	return nil
}

// checksum returns the checksum of a chunk with its header.
func checksum(b []byte, seed uint64) uint64 {
	sizes := binary.LittleEndian.Uint64(b)
	return xxh3.HashSeed(b[headerBytes:], seed^sizes*0x9e3779b97f4a7c15)
}

// seed returns a seed that differs for every position in every stream.
func seed(stream, chunk uint64) uint64 { return stream<<40 ^ chunk }

// reserve allocates n bytes. They start at byte at of the first extent returned.
func (s *Stream) reserve(n int) (at int, extents []uint32, sum uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := int(s.size / extentBytes)
	for int64(len(s.extents))*extentBytes < s.size+int64(n) {
		x, err := s.file.take()
		if err != nil {
			return 0, nil, 0, err
		}
		s.extents = append(s.extents, x)
	}
	at = int(s.size % extentBytes)
	extents = s.extents[first : first+(at+n+extentBytes-1)/extentBytes]
	sum = seed(s.id, s.chunks)
	s.size += int64(n)
	s.chunks++
	return at, extents, sum, nil
}

// Reader reads the chunks of a stream in order. It is not safe for concurrent use.
type Reader struct {
	s     *Stream
	at    int64
	chunk uint64
	raw   []byte // bytes read ahead, starting at at
	win   []byte // memory of raw
}

// Reader returns a Reader that starts at the first chunk.
func (s *Stream) Reader() *Reader { return &Reader{s: s} }

// Place is the position of a Reader.
type Place struct {
	at    int64
	chunk uint64
}

// Place returns the current position.
func (r *Reader) Place() Place { return Place{r.at, r.chunk} }

// Seek moves to a position of this or another Reader of the stream.
func (r *Reader) Seek(p Place) { r.at, r.chunk, r.raw = p.at, p.chunk, nil }

// Next returns the next chunk, using dst's memory if it is large enough, or io.EOF
// after the last one. Bytes that differ from those written are an error that wraps
// fault.ErrCorrupt.
func (r *Reader) Next(dst []byte) ([]byte, error) {
	if r.at == r.s.size {
		if r.chunk != r.s.chunks {
			return nil, r.s.file.corrupt("chunks of a stream", r.s.chunks, r.chunk)
		}
		return nil, io.EOF
	}
	head, err := r.peek(headerBytes)
	if err != nil {
		return nil, err
	}
	n, size := int64(binary.LittleEndian.Uint32(head)), int(binary.LittleEndian.Uint32(head[4:]))
	if n > r.s.size-r.at-headerBytes || size > MaxChunk || int64(size) < n {
		return nil, r.s.file.corrupt("lengths before a chunk", fmt.Sprintf("at most the %d bytes that are left", r.s.size-r.at-headerBytes), fmt.Sprintf("%d, unpacked %d", n, size))
	}
	b, err := r.peek(headerBytes + int(n))
	if err != nil {
		return nil, err
	}
	if want, got := binary.LittleEndian.Uint64(b[8:]), checksum(b, seed(r.s.id, r.chunk)); want != got {
		return nil, r.s.file.corrupt("checksum of a chunk", fmt.Sprintf("%016x", want), fmt.Sprintf("%016x", got))
	}
	r.raw = r.raw[len(b):]
	r.at += int64(len(b))
	r.chunk++
	b = b[headerBytes:]
	dst = slices.Grow(dst[:0], size)[:size]
	if len(b) == size {
		copy(dst, b)
		return dst, nil
	}
	out, err := s2.Decode(dst, b)
	if err == nil && len(out) != size {
		err = errors.New("other lengths")
	}
	if err != nil { // although the checksum was right
		return nil, r.s.file.fault(fmt.Errorf("unpacking a chunk of %d bytes: %w", size, err))
	}
	return dst, nil
}

// peek returns the next n bytes.
func (r *Reader) peek(n int) ([]byte, error) {
	if len(r.raw) >= n {
		return r.raw[:n], nil
	}
	want := int(min(int64(max(n, r.s.file.Window)), r.s.size-r.at))
	if n > want {
		return nil, r.s.file.corrupt("bytes of a chunk", n, want)
	}
	kept := len(r.raw)
	if cap(r.win) < want {
		r.win = append(make([]byte, 0, want), r.raw...)
	} else {
		r.win = append(r.win[:0], r.raw...) // may overlap: moves raw to the front
	}
	r.win = r.win[:want]
	if err := r.s.read(r.win[kept:], r.at+int64(kept)); err != nil {
		return nil, err
	}
	r.raw = r.win
	return r.raw[:n], nil
}

// read fills b with the bytes at position at of the stream.
func (s *Stream) read(b []byte, at int64) error {
	file, err := s.file.handle()
	if err != nil {
		return err
	}
	for len(b) > 0 {
		x, in := s.extents[at/extentBytes], int(at%extentBytes)
		n := min(len(b), extentBytes-in)
		got, err := file.ReadAt(b[:n], int64(x)*extentBytes+int64(in))
		if err == io.EOF {
			return s.file.corrupt("bytes of a chunk", n, got)
		}
		if err != nil {
			return s.file.fault(err)
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}
