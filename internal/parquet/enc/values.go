package enc

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// Decode converts n values of type t to PLAIN form. width is their size, 0 for
// byte arrays and booleans. The result is in src's memory if src has that form, else
// in buf's or newly allocated. tail is the number of bytes after the last value.
func Decode(t format.Type, width int, e format.Encoding, src, buf []byte, n int) (plain []byte, tail int, err error) {
	if n == 0 && e != format.Plain {
		return nil, 0, nil // writers differ in what they store for no values
	}
	switch e {
	case format.Plain:
		return CheckPlain(t, width, src, n)
	case format.RLE:
		if t == format.Boolean {
			return rleBooleans(src, buf, n)
		}
	case format.DeltaBinaryPacked:
		if t == format.Int32 || t == format.Int64 {
			plain, rest, err := decodeDelta(src, buf, n, width)
			return plain, len(rest), err
		}
	case format.DeltaLengthByteArray:
		if t == format.ByteArray {
			return deltaLengthBytes(src, buf, n)
		}
	case format.DeltaByteArray:
		if t == format.ByteArray || t == format.FixedLenByteArray {
			return DecodeDeltaBytes(t, width, src, buf, n, MaxPageSize)
		}
	case format.ByteStreamSplit:
		if width > 0 && t != format.Int96 {
			return unsplit(src, buf, n, width)
		}
	}
	return nil, 0, fmt.Errorf("%w: %v for %v", ErrEncoding, e, t)
}

// CheckPlain checks n PLAIN values of type t at the start of src. width is their
// size, as for Decode. tail is the number of bytes after the last one.
func CheckPlain(t format.Type, width int, src []byte, n int) (plain []byte, tail int, err error) {
	size := uint64(0)
	switch {
	case t == format.Boolean:
		size = (uint64(n) + 7) / 8
	case t == format.ByteArray:
		w := ByteArrays{Src: src}
		if !w.Skip(n) {
			return nil, 0, ErrShort
		}
		size = w.Pos
	default:
		size = uint64(n) * uint64(width)
	}
	if size > uint64(len(src)) {
		return nil, 0, ErrShort
	}
	return src[:size], len(src) - int(size), nil
}

// rleBooleans decodes booleans from runs of 1-bit values, which are preceded by
// their total length.
func rleBooleans(src, buf []byte, n int) (plain []byte, tail int, err error) {
	if len(src) < 4 {
		return nil, 0, ErrShort
	}
	size := binary.LittleEndian.Uint32(src)
	if uint64(size) > uint64(len(src)-4) {
		return nil, 0, ErrShort
	}
	tail = len(src) - 4 - int(size)
	src = src[4 : 4+size]
	out := Reuse(buf, (n+7)/8)
	clear(out)
	for from := 0; from < n; {
		run, err := nextRun(src, 1, n-from)
		switch {
		case err != nil:
			return nil, 0, err
		case run.value > 1:
			return nil, 0, ErrBound
		case run.value == bitPacked:
			orBits(out, from, src[run.data:], run.n)
		case run.value == 1:
			setBits(out, from, run.n)
		}
		from, src = from+run.n, src[run.end:]
	}
	return out, tail, nil
}
