package arrowparquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// sink collects a leaf's values for one batch and builds an array of them.
type sink interface {
	// add adds the values of the page other than NULL.
	add(p *parquet.Page, dict *parquet.Dictionary) error
	// spread moves the values of the last page to the given places, ascending, among n
	// slots. The other slots become NULL.
	spread(at []uint32, n int)
	// data returns the array's data for everything added, and releases the sink.
	// validity may be nil; the data retains it.
	data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData
	release()
}

// sinkFunc returns a new sink for one batch of about the given number of values.
type sinkFunc func(mem memory.Allocator, values int) sink

// buffer is growing Arrow memory.
type buffer struct {
	mem *memory.Buffer
	n   int // bytes in use
}

// newBuffer returns memory for about the given number of bytes.
func newBuffer(mem memory.Allocator, size int) buffer {
	b := buffer{mem: memory.NewResizableBuffer(mem)}
	b.mem.Reserve(min(size, 1<<20))
	return b
}

// extend adds n bytes, whose values are undefined, and returns them.
func (b *buffer) extend(n int) []byte {
	if need := b.n + n; need > b.mem.Len() {
		if need > b.mem.Cap() {
			b.mem.Reserve(max(need, 2*b.mem.Cap()))
		}
		b.mem.Resize(b.mem.Cap())
	}
	b.n += n
	return b.mem.Bytes()[b.n-n : b.n]
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
	return func(mem memory.Allocator, values int) sink {
		return &fixedSink{in: in, out: out, convert: convert, buf: newBuffer(mem, values*out)}
	}
}

func (s *fixedSink) release() { s.buf.mem.Release() }

func (s *fixedSink) add(p *parquet.Page, dict *parquet.Dictionary) error {
	dst := s.buf.extend(p.NonNull * s.out)
	switch {
	case s.convert != nil:
		clear(dst)
		for i := range p.NonNull {
			if err := s.convert(dst[i*s.out:(i+1)*s.out], s.value(p, i, dict)); err != nil {
				return err
			}
		}
		return nil
	case p.Coded:
		dict.AppendValues(dst[:0], p.Indices[:p.NonNull], s.in, math.MaxInt)
	default:
		copy(dst, p.Plain)
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

func (s *fixedSink) spread(at []uint32, n int) {
	first := s.buf.n - len(at)*s.out
	s.buf.extend((n - len(at)) * s.out)
	b := s.buf.mem.Bytes()[first:s.buf.n]
	for v := len(at) - 1; v >= 0; v-- {
		to := int(at[v])
		clear(b[(to+1)*s.out : n*s.out])
		if n = to; to == v {
			return
		}
		if s.out == 8 {
			*(*[8]byte)(b[8*to:]) = *(*[8]byte)(b[8*v:])
		} else {
			copy(b[to*s.out:(to+1)*s.out], b[v*s.out:])
		}
	}
	clear(b[:n*s.out])
}

func (s *fixedSink) data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData {
	values := s.buf.done()
	defer values.Release()
	return array.NewData(dt, slots, []*memory.Buffer{validity, values}, nil, nulls, 0)
}

// boolsSink collects booleans, which are bits in both formats, as bytes.
type boolsSink struct{ fixedSink }

func boolSink(mem memory.Allocator, values int) sink {
	return &boolsSink{fixedSink{out: 1, buf: newBuffer(mem, values)}}
}

func (s *boolsSink) add(p *parquet.Page, _ *parquet.Dictionary) error {
	for i, dst := 0, s.buf.extend(p.NonNull); i < len(dst); i++ {
		dst[i] = p.Plain[i/8] >> (i % 8) & 1
	}
	return nil
}

func (s *boolsSink) data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData {
	b := s.buf.mem.Bytes()
	for i := range slots { // in place: writing is never ahead of reading
		bit := b[i] << (i % 8)
		if i%8 > 0 {
			bit |= b[i/8]
		}
		b[i/8] = bit
	}
	s.buf.n = (slots + 7) / 8
	return s.fixedSink.data(dt, slots, nulls, validity)
}

// nullsSink accepts only NULLs.
type nullsSink struct{}

func nullSink(memory.Allocator, int) sink { return nullsSink{} }

func (nullsSink) release()             {}
func (nullsSink) spread([]uint32, int) {}

func (nullsSink) add(p *parquet.Page, _ *parquet.Dictionary) error {
	if p.NonNull > 0 {
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
	values, seen   int // expected and added
}

func bytesSink[O int32 | int64](mem memory.Allocator, values int) sink {
	s := &varSink[O]{offsets: newBuffer(mem, (values+1)*offsetSize[O]()), bytes: newBuffer(mem, 0), values: values}
	clear(s.offsets.extend(offsetSize[O]()))
	return s
}

func (s *varSink[O]) release() {
	s.offsets.mem.Release()
	s.bytes.mem.Release()
}

func (s *varSink[O]) add(p *parquet.Page, dict *parquet.Dictionary) error {
	size := int(p.PlainSize(dict, 0)) - 4*p.NonNull
	if offsetSize[O]() == 4 && size > math.MaxInt32-s.bytes.n {
		return faults.Unsupported(fault.At{}, "more than 2 GiB of bytes in one batch")
	}
	ends := offsetsIn[O](s.offsets.extend(p.NonNull * offsetSize[O]()))
	end := s.bytes.n
	if s.seen += p.NonNull; s.seen < s.values && end+size > s.bytes.mem.Cap() { // expect the others to be slightly larger on average
		s.bytes.mem.Reserve(int(float64(end+size) * min(1.05*float64(s.values)/float64(s.seen), 4)))
	}
	parquet.CopyBytes(p, dict, s.bytes.extend(size), ends, end)
	return nil
}

func (s *varSink[O]) spread(at []uint32, n int) {
	first := s.offsets.n/offsetSize[O]() - len(at) - 1
	s.offsets.extend((n - len(at)) * offsetSize[O]())
	b := offsetsIn[O](s.offsets.mem.Bytes()[:s.offsets.n])[first:] // the start of the first slot, then the end of each
	for v := len(at) - 1; v >= 0; v-- {
		to := int(at[v])
		end := b[v+1]
		for i := to + 1; i <= n; i++ {
			b[i] = end
		}
		if n = to; to == v {
			return
		}
	}
	for i := 1; i <= n; i++ {
		b[i] = b[0]
	}
}

func (s *varSink[O]) data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData {
	offsets, bytes := s.offsets.done(), s.bytes.done()
	defer offsets.Release()
	defer bytes.Release()
	return array.NewData(dt, slots, []*memory.Buffer{validity, offsets, bytes}, nil, nulls, 0)
}

func offsetSize[O int32 | int64]() int { return int(unsafe.Sizeof(O(0))) }

// offsetsIn returns the offsets in Arrow memory, which is aligned.
func offsetsIn[O int32 | int64](b []byte) []O {
	return unsafe.Slice((*O)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/offsetSize[O]())
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
