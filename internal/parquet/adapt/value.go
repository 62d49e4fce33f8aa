package adapt

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// widening converts PLAIN values of one type to a wider one.
type widening struct {
	from, to valueType
	width    int // bytes of a value of from
	most     int // largest size of a value of to in bytes

	// copy appends all of src in to's form, if every value has one. Otherwise copy
	// is nil: the values are integers, and write appends them. The caller provides
	// the capacity.
	copy  func(dst, src []byte) []byte
	write func(dst []byte, values []int64) []byte

	limited   bool  // the range is not all of 64 bits, or factor is not 1
	low, high int64 // range of the integers that can be converted
	factor    int64 // multiplier of each integer
	foreign   bool  // integers outside the range are not valid values of from
}

// all appends the converted values of src. at is the position of the first value
// that cannot be converted, or -1. If misfits is not nil, the positions of all such
// values are set in it; their output is undefined.
func (w *widening) all(dst, src []byte, misfits []bool) (out []byte, at int, err error) {
	n := len(src) / w.width
	if n > 0 && w.most > enc.MaxPageSize/n {
		return dst, -1, enc.ErrExpands
	}
	if cap(dst)-len(dst) < n*w.most {
		dst = append(make([]byte, 0, len(dst)+n*w.most), dst...)
	}
	if w.copy != nil {
		return w.copy(dst, src), -1, nil
	}
	at = -1
	var block [256]int64
	for from := 0; from < n; from += len(block) {
		values := block[:min(n-from, len(block))]
		w.load(values, src[from*w.width:])
		if w.limited {
			if i := w.scale(values, misfits, from); i >= 0 && at < 0 {
				at = i
			}
		}
		dst = w.write(dst, values)
	}
	return dst, at, nil
}

// scale multiplies integers by w.factor and reports those outside the range, as all
// does. from is the position of the first.
func (w *widening) scale(values []int64, misfits []bool, from int) int {
	low, high, factor := w.low, w.high, w.factor
	at := -1
	for i, x := range values {
		if values[i] = x * factor; x >= low && x <= high {
			continue
		}
		if at < 0 {
			at = from + i
		}
		if misfits != nil {
			misfits[from+i] = true
		}
	}
	return at
}

// load reads little-endian integers.
func (w *widening) load(values []int64, src []byte) {
	switch {
	case w.width == 8:
		for i := range values {
			values[i] = int64(binary.LittleEndian.Uint64(src[8*i:]))
		}
	case w.from.logical.Kind == meta.Int && !w.from.logical.Signed && w.from.logical.BitWidth == 32:
		for i := range values {
			values[i] = int64(binary.LittleEndian.Uint32(src[4*i:]))
		}
	default:
		for i := range values {
			values[i] = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
	}
}

// newWidening returns the conversion between two types, where to is the result of
// widest for both. It is nil if they are stored alike.
func newWidening(from, to *valueType) *widening {
	w := &widening{from: *from, to: *to, low: math.MinInt64, high: math.MaxInt64, factor: 1}
	w.width = (&meta.Leaf{Type: from.physical, TypeLength: from.length}).Width()
	w.most = (&meta.Leaf{Type: to.physical, TypeLength: to.length}).Width()
	switch to.physical {
	case format.Int32:
		w.write = writeInt32
	case format.Int64:
		w.write = writeInt64
	case format.Float:
		w.write = writeFloat
	case format.Double:
		w.write = writeDouble
	}
	switch {
	case to.logical.Kind == meta.Decimal && from.physical == to.physical && from.length == to.length:
		return nil
	case to.logical.Kind == meta.Decimal:
		w.decimal()
	case to.logical.Kind == meta.Time || to.logical.Kind == meta.Timestamp:
		for u := from.logical.Unit; u < to.logical.Unit; u++ {
			w.factor *= 1000
		}
		w.low, w.high = math.MinInt64/w.factor, math.MaxInt64/w.factor
	case from.float():
		w.copy = copyFloats
	case from.logical.Kind == meta.Int && from.logical.Signed && from.logical.BitWidth < 32:
		w.low, w.high = signedRange(from.logical.BitWidth)
		w.foreign = true
	case from.logical.Kind == meta.Int && from.logical.BitWidth < 32:
		w.low, w.high = 0, 1<<from.logical.BitWidth-1
		w.foreign = true
	}
	w.limited = w.low > math.MinInt64 || w.high < math.MaxInt64 || w.factor != 1
	return w
}

func signedRange(bits int) (low, high int64) { return -1 << (bits - 1), 1<<(bits-1) - 1 }

func writeInt32(dst []byte, values []int64) []byte {
	out, tail := enc.Extend(dst, 4*len(values))
	for i, x := range values {
		binary.LittleEndian.PutUint32(tail[4*i:], uint32(x))
	}
	return out
}

func writeInt64(dst []byte, values []int64) []byte {
	out, tail := enc.Extend(dst, 8*len(values))
	for i, x := range values {
		binary.LittleEndian.PutUint64(tail[8*i:], uint64(x))
	}
	return out
}

func writeFloat(dst []byte, values []int64) []byte {
	out, tail := enc.Extend(dst, 4*len(values))
	for i, x := range values {
		binary.LittleEndian.PutUint32(tail[4*i:], math.Float32bits(float32(x)))
	}
	return out
}

func writeDouble(dst []byte, values []int64) []byte {
	out, tail := enc.Extend(dst, 8*len(values))
	for i, x := range values {
		binary.LittleEndian.PutUint64(tail[8*i:], math.Float64bits(float64(x)))
	}
	return out
}

// copyFloats converts float32s to float64s.
func copyFloats(dst, src []byte) []byte {
	out, tail := enc.Extend(dst, 2*len(src))
	enc.Doubles(tail, src)
	return out
}

// decimal sets up the conversion between the representations of an unscaled value:
// a little-endian integer or big-endian two's complement.
func (w *widening) decimal() {
	n := w.to.length
	switch fixed := w.from.physical == format.FixedLenByteArray; {
	case fixed && w.to.physical == format.ByteArray:
		w.most = 4 + w.width
		w.copy = func(dst, src []byte) []byte {
			for ; len(src) > 0; src = src[w.width:] {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(w.width))
				dst = append(dst, src[:w.width]...)
			}
			return dst
		}
	case fixed:
		w.copy = func(dst, src []byte) []byte {
			for ; len(src) > 0; src = src[w.width:] {
				dst, _ = decimal.AppendSigned(dst, src[:w.width], n)
			}
			return dst
		}
	case w.to.physical == format.ByteArray: // in as few bytes as possible
		w.most = 4 + 8
		w.write = func(dst []byte, values []int64) []byte {
			var b [8]byte
			for _, x := range values {
				binary.BigEndian.PutUint64(b[:], uint64(x))
				k := bits.Len64(uint64(x^x>>63))/8 + 1
				dst = binary.LittleEndian.AppendUint32(dst, uint32(k))
				dst = append(dst, b[8-k:]...)
			}
			return dst
		}
	case w.to.physical == format.FixedLenByteArray:
		if n < 8 {
			w.low, w.high = signedRange(8 * n)
		}
		w.write = func(dst []byte, values []int64) []byte {
			var b [8]byte
			for _, x := range values {
				binary.BigEndian.PutUint64(b[:], uint64(x))
				dst, _ = decimal.AppendSigned(dst, b[8-min(n, 8):], n)
			}
			return dst
		}
	}
}
