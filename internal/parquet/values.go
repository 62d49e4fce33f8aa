package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

var (
	errEncoding = errors.New("encoding not supported")
	errTrailing = errors.New("more bytes than the values take")
	errExpands  = errors.New("values expand beyond the limit for a page")
)

// width is the number of bytes of a PLAIN value, 0 when values differ in it
// or take less than one (booleans).
func (l *Leaf) width() int {
	switch l.Type {
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	case format.Int96:
		return 12
	case format.FixedLenByteArray:
		return l.TypeLength
	}
	return 0
}

// decodeValues turns n values into PLAIN form. The result is in src's memory
// where that form is what stands there, else in buf's or its own.
func decodeValues(l *Leaf, enc format.Encoding, src, buf []byte, n int) ([]byte, error) {
	if n == 0 && enc != format.Plain {
		return nil, nil // writers differ in what they store for no values
	}
	switch enc {
	case format.Plain:
		return plainValues(l, src, n)
	case format.RLE:
		if l.Type == format.Boolean {
			return rleBooleans(src, buf, n)
		}
	case format.DeltaBinaryPacked:
		if l.Type == format.Int32 || l.Type == format.Int64 {
			return deltaIntegers(l, src, buf, n)
		}
	case format.DeltaLengthByteArray:
		if l.Type == format.ByteArray {
			return deltaLengthBytes(src, buf, n)
		}
	case format.DeltaByteArray:
		if l.Type == format.ByteArray || l.Type == format.FixedLenByteArray {
			return deltaBytes(l, src, buf, n)
		}
	case format.ByteStreamSplit:
		if w := l.width(); w > 0 && l.Type != format.Int96 {
			return unsplitBytes(src, buf, n, w)
		}
	}
	return nil, fmt.Errorf("%w: %v for %v", errEncoding, enc, l.Type)
}

// plainValues checks PLAIN values. Bytes behind the last one are an error.
func plainValues(l *Leaf, src []byte, n int) ([]byte, error) {
	size := uint64(0)
	switch {
	case l.Type == format.Boolean:
		size = (uint64(n) + 7) / 8
	case l.Type == format.ByteArray:
		rest := src
		for range n {
			if len(rest) < 4 {
				return nil, errShortValues
			}
			k := uint64(binary.LittleEndian.Uint32(rest))
			if k > uint64(len(rest)-4) {
				return nil, errShortValues
			}
			rest = rest[4+k:]
		}
		size = uint64(len(src) - len(rest))
	default:
		size = uint64(n) * uint64(l.width())
	}
	switch {
	case size > uint64(len(src)):
		return nil, errShortValues
	case size < uint64(len(src)):
		return nil, errTrailing
	}
	return src, nil
}

func rleBooleans(src, buf []byte, n int) ([]byte, error) {
	if len(src) < 4 {
		return nil, errShortValues
	}
	size := binary.LittleEndian.Uint32(src)
	if uint64(size) > uint64(len(src)-4) {
		return nil, errShortValues
	}
	bools := make([]uint8, n)
	if err := decodeHybrid(bools, src[4:4+size], 1, 1); err != nil {
		return nil, err
	}
	out := grow(buf, (n+7)/8)
	clear(out)
	for i, b := range bools {
		out[i/8] |= b << (i % 8)
	}
	return out, nil
}

func deltaIntegers(l *Leaf, src, buf []byte, n int) ([]byte, error) {
	out := grow(buf, n*l.width())[:0]
	emit := func(v int64) error {
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
		return nil
	}
	if l.Type == format.Int32 {
		emit = func(v int64) error {
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
			return nil
		}
	}
	_, err := decodeDelta(src, n, emit)
	return out, err
}

func deltaLengthBytes(src, buf []byte, n int) ([]byte, error) {
	lengths, rest, err := decodeLengths(src, n, len(src))
	if err != nil {
		return nil, err
	}
	out := grow(buf, len(rest)+4*n)[:0]
	for _, k := range lengths {
		if int(k) > len(rest) {
			return nil, errShortValues
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(k))
		out = append(out, rest[:k]...)
		rest = rest[k:]
	}
	if len(rest) > 0 {
		return nil, errTrailing
	}
	return out, nil
}

// deltaBytes decodes DELTA_BYTE_ARRAY: each value is so many bytes of the one
// before and a suffix.
func deltaBytes(l *Leaf, src, buf []byte, n int) ([]byte, error) {
	prefixes, rest, err := decodeLengths(src, n, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	suffixes, rest, err := decodeLengths(rest, n, len(rest))
	if err != nil {
		return nil, err
	}
	out := buf[:0]
	last := 0 // where the previous value begins in out
	have := 0 // its length
	for i := range prefixes {
		p, s := int(prefixes[i]), int(suffixes[i])
		switch {
		case p > have || s > len(rest):
			return nil, errShortValues
		case l.Type == format.FixedLenByteArray && p+s != l.TypeLength:
			return nil, errBound
		case len(out)+4+p+s > MaxPageSize:
			return nil, errExpands
		}
		if l.Type == format.ByteArray {
			out = binary.LittleEndian.AppendUint32(out, uint32(p+s))
		}
		start := len(out)
		out = append(out, out[last:last+p]...)
		out = append(out, rest[:s]...)
		rest = rest[s:]
		last, have = start, p+s
	}
	if len(rest) > 0 {
		return nil, errTrailing
	}
	return out, nil
}

// unsplitBytes decodes BYTE_STREAM_SPLIT values of w bytes: all first bytes,
// then all second bytes, and so on.
func unsplitBytes(src, buf []byte, n, w int) ([]byte, error) {
	if uint64(len(src)) != uint64(n)*uint64(w) {
		return nil, errShortValues
	}
	out := grow(buf, len(src))
	for k := range w {
		for i, c := range src[k*n : (k+1)*n] {
			out[i*w+k] = c
		}
	}
	return out, nil
}

// grow returns a slice of n bytes, in buf's memory when that is enough.
func grow(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n)
	}
	return buf[:n]
}
