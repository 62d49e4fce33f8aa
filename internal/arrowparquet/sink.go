package arrowparquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// sink collects a leaf's values for one batch and builds an array of them.
type sink interface {
	// add adds the values [from, from+n) of the page.
	add(p *parquet.Page, from, n int, dict *parquet.Dictionary) error
	// null adds n NULLs.
	null(n int)
	// data returns the array's data for everything added, and releases the sink.
	// validity may be nil; the data retains it.
	data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData
	release()
}

// sinkFunc returns a new sink for one batch.
type sinkFunc func(mem memory.Allocator) sink

// buffer is growing Arrow memory.
type buffer struct {
	mem *memory.Buffer
	n   int // bytes in use
}

func newBuffer(mem memory.Allocator) buffer { return buffer{mem: memory.NewResizableBuffer(mem)} }

// extend adds n zero bytes and returns them.
func (b *buffer) extend(n int) []byte {
	if need := b.n + n; need > b.mem.Len() {
		b.mem.Resize(max(need, 2*b.mem.Len(), 64))
	}
	out := b.mem.Bytes()[b.n : b.n+n]
	clear(out)
	b.n += n
	return out
}

// done returns the memory, cut to the bytes in use.
func (b *buffer) done() *memory.Buffer {
	b.mem.Resize(b.n)
	return b.mem
}

// fixedSink collects values of a fixed width and converts each if convert is set.
type fixedSink struct {
	in, out int // bytes per value; in is 0 for byte arrays
	convert func(dst, src []byte) error
	buf     buffer
}

// copySink returns a sink that copies values of width bytes.
func copySink(width int) sinkFunc { return convertSink(width, width, nil) }

// convertSink returns a sink that converts values of in bytes to out bytes. in is 0
// for byte arrays.
func convertSink(in, out int, convert func(dst, src []byte) error) sinkFunc {
	return func(mem memory.Allocator) sink {
		return &fixedSink{in: in, out: out, convert: convert, buf: newBuffer(mem)}
	}
}

func (s *fixedSink) null(n int) { s.buf.extend(n * s.out) }
func (s *fixedSink) release()   { s.buf.mem.Release() }

func (s *fixedSink) add(p *parquet.Page, from, n int, dict *parquet.Dictionary) error {
	dst := s.buf.extend(n * s.out)
	if s.convert == nil && !p.Coded {
		copy(dst, p.Plain[from*s.in:(from+n)*s.in])
		return nil
	}
	for i := range n {
		src := s.value(p, from+i, dict)
		d := dst[i*s.out : (i+1)*s.out]
		if s.convert == nil {
			copy(d, src)
		} else if err := s.convert(d, src); err != nil {
			return err
		}
	}
	return nil
}

func (s *fixedSink) value(p *parquet.Page, i int, dict *parquet.Dictionary) []byte {
	switch {
	case s.in == 0:
		return p.Bytes(i, dict)
	case p.Coded:
		j := int(p.Indices[i])
		return dict.Plain[j*s.in : (j+1)*s.in]
	}
	return p.Plain[i*s.in : (i+1)*s.in]
}

func (s *fixedSink) data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData {
	values := s.buf.done()
	defer values.Release()
	return array.NewData(dt, slots, []*memory.Buffer{validity, values}, nil, nulls, 0)
}

// boolsSink collects booleans, which are bits in both formats.
type boolsSink struct {
	buf  buffer
	bits int
}

func boolSink(mem memory.Allocator) sink { return &boolsSink{buf: newBuffer(mem)} }

func (s *boolsSink) release() { s.buf.mem.Release() }

func (s *boolsSink) null(n int) {
	s.bits += n
	s.buf.extend((s.bits+7)/8 - s.buf.n)
}

func (s *boolsSink) add(p *parquet.Page, from, n int, _ *parquet.Dictionary) error {
	at := s.bits
	s.null(n)
	out := s.buf.mem.Bytes()
	for i := range n {
		bit := p.Plain[(from+i)/8] >> ((from + i) % 8) & 1
		out[(at+i)/8] |= bit << ((at + i) % 8)
	}
	return nil
}

func (s *boolsSink) data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData {
	values := s.buf.done()
	defer values.Release()
	return array.NewData(dt, slots, []*memory.Buffer{validity, values}, nil, nulls, 0)
}

// nullsSink accepts only NULLs.
type nullsSink struct{}

func nullSink(memory.Allocator) sink { return nullsSink{} }

func (nullsSink) release() {}
func (nullsSink) null(int) {}

func (nullsSink) add(_ *parquet.Page, _, n int, _ *parquet.Dictionary) error {
	if n > 0 {
		return errors.New("a column of NULLs has a value")
	}
	return nil
}

func (nullsSink) data(dt arrow.DataType, slots, _ int, _ *memory.Buffer) arrow.ArrayData {
	return array.NewData(dt, slots, []*memory.Buffer{nil}, nil, slots, 0)
}

// varSink collects byte arrays.
type varSink[O int32 | int64] struct {
	offsets, bytes buffer
}

func bytesSink[O int32 | int64](mem memory.Allocator) sink {
	s := &varSink[O]{offsets: newBuffer(mem), bytes: newBuffer(mem)}
	putOffset[O](s.offsets.extend(offsetSize[O]()), 0)
	return s
}

func (s *varSink[O]) release() {
	s.offsets.mem.Release()
	s.bytes.mem.Release()
}

func (s *varSink[O]) null(n int) {
	w := offsetSize[O]()
	dst := s.offsets.extend(n * w)
	for i := range n {
		putOffset(dst[i*w:], O(s.bytes.n))
	}
}

func (s *varSink[O]) add(p *parquet.Page, from, n int, dict *parquet.Dictionary) error {
	w := offsetSize[O]()
	dst := s.offsets.extend(n * w)
	for i := range n {
		v := p.Bytes(from+i, dict)
		if w == 4 && len(v) > math.MaxInt32-s.bytes.n {
			return faults.Unsupported(fault.At{}, "more than 2 GiB of bytes in one batch")
		}
		copy(s.bytes.extend(len(v)), v)
		putOffset(dst[i*w:], O(s.bytes.n))
	}
	return nil
}

func (s *varSink[O]) data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData {
	offsets, bytes := s.offsets.done(), s.bytes.done()
	defer offsets.Release()
	defer bytes.Release()
	return array.NewData(dt, slots, []*memory.Buffer{validity, offsets, bytes}, nil, nulls, 0)
}

func offsetSize[O int32 | int64]() int {
	if _, ok := any(O(0)).(int32); ok {
		return 4
	}
	return 8
}

func putOffset[O int32 | int64](b []byte, v O) {
	if offsetSize[O]() == 4 {
		binary.NativeEndian.PutUint32(b, uint32(v))
	} else {
		binary.NativeEndian.PutUint64(b, uint64(v))
	}
}

// Conversions of single values. Parquet's numbers are little-endian. Arrow's have
// the machine's byte order, which is little-endian on all machines that this
// package supports.

// narrow returns a conversion of 32-bit integers to width bytes. It refuses values
// that do not fit.
func narrow(width int, signed bool) func(dst, src []byte) error {
	lo, hi := int64(0), int64(1)<<(8*width)-1
	if signed {
		lo, hi = -(int64(1) << (8*width - 1)), int64(1)<<(8*width-1)-1
	}
	return func(dst, src []byte) error {
		v := int64(int32(binary.LittleEndian.Uint32(src)))
		if v < lo || v > hi {
			return fmt.Errorf("a value does not fit into %d bits", 8*width)
		}
		copy(dst, src[:width])
		return nil
	}
}

// widenLittle returns a conversion that extends little-endian two's complement
// numbers to width bytes.
func widenLittle(width int) func(dst, src []byte) error {
	return func(dst, src []byte) error {
		copy(dst, src)
		fill(dst[len(src):width], src[len(src)-1])
		return nil
	}
}

// widenBig returns a conversion of big-endian two's complement numbers of any
// length to width little-endian bytes.
func widenBig(width int) func(dst, src []byte) error {
	return func(dst, src []byte) error {
		if len(src) == 0 {
			return errors.New("a decimal without bytes")
		}
		sign := src[0]
		for len(src) > width {
			next := src[1]
			if src[0] != byte(int8(sign)>>7) || (next^sign)&0x80 != 0 {
				return errors.New("a decimal that has more digits than its type")
			}
			src = src[1:]
		}
		for i, c := range src {
			dst[len(src)-1-i] = c
		}
		fill(dst[len(src):width], sign)
		return nil
	}
}

// fill fills dst with the sign given by the top bit of a byte.
func fill(dst []byte, top byte) {
	v := byte(int8(top) >> 7)
	for i := range dst {
		dst[i] = v
	}
}
