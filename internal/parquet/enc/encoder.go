package enc

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"
)

// CanEncode reports whether values of type t can be written in encoding e, other than
// PLAIN. width is their size, 0 for byte arrays and booleans.
func CanEncode(t format.Type, width int, e format.Encoding) bool {
	switch e {
	case format.RLE:
		return t == format.Boolean
	case format.DeltaBinaryPacked:
		return t == format.Int32 || t == format.Int64
	case format.DeltaLengthByteArray:
		return t == format.ByteArray
	case format.DeltaByteArray:
		return t == format.ByteArray || t == format.FixedLenByteArray
	case format.ByteStreamSplit:
		return width > 0 && t != format.Int96
	}
	return false
}

// Encoder is memory that is reused between pages. The zero value is ready to
// use. It is not safe for concurrent use.
type Encoder struct {
	bools  []uint8
	deltas []int64
	tails  []byte // of DELTA_BYTE_ARRAY
}

// Trim frees memory for single values if it is more than most bytes.
func (v *Encoder) Trim(most int) {
	if cap(v.tails) > most {
		v.tails = nil
	}
}

// Append appends n values of type t, given in PLAIN encoding, in encoding e if
// possible, and returns the encoding used. width is their size, as for CanEncode.
// Byte arrays must be well-formed.
func (v *Encoder) Append(dst []byte, t format.Type, width int, e format.Encoding, plain []byte, n int) ([]byte, format.Encoding) {
	if n == 0 || !CanEncode(t, width, e) {
		return append(dst, plain...), format.Plain
	}
	switch e {
	case format.RLE:
		dst = v.appendBooleans(dst, plain, n)
	case format.DeltaBinaryPacked:
		dst = v.appendIntegers(dst, plain, width)
	case format.DeltaLengthByteArray:
		dst = v.appendLengths(dst, plain, n)
	case format.DeltaByteArray:
		dst = v.appendPrefixes(dst, plain, n, width)
	case format.ByteStreamSplit:
		dst = appendSplit(dst, plain, width)
	}
	return dst, e
}

func (v *Encoder) appendBooleans(dst, plain []byte, n int) []byte {
	bools := GrowTo(v.bools, n)
	v.bools = bools
	for i := range bools {
		bools[i] = plain[i/8] >> (i % 8) & 1
	}
	at := len(dst)
	dst = AppendHybrid(append(dst, 0, 0, 0, 0), bools, 1)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

func (v *Encoder) appendIntegers(dst, plain []byte, width int) []byte {
	values := v.deltas[:0]
	if width == 4 {
		for ; len(plain) >= 4; plain = plain[4:] {
			values = append(values, int64(int32(binary.LittleEndian.Uint32(plain))))
		}
	} else {
		for ; len(plain) >= 8; plain = plain[8:] {
			values = append(values, int64(binary.LittleEndian.Uint64(plain)))
		}
	}
	v.deltas = values
	return appendDelta(dst, values, width == 4)
}

// appendLengths appends DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
func (v *Encoder) appendLengths(dst, plain []byte, n int) []byte {
	lengths := v.deltas[:0]
	rest := plain
	for range n {
		size := binary.LittleEndian.Uint32(rest)
		lengths = append(lengths, int64(size))
		rest = rest[4+size:]
	}
	v.deltas = lengths
	dst = appendDelta(dst, lengths, true)
	for _, size := range lengths {
		dst = append(dst, plain[4:4+size]...)
		plain = plain[4+size:]
	}
	return dst
}

// appendPrefixes appends DELTA_BYTE_ARRAY: for each value, the number of bytes
// shared with the previous one, and the other bytes. width is the size of a value,
// 0 for byte arrays.
func (v *Encoder) appendPrefixes(dst, plain []byte, n, width int) []byte {
	numbers := GrowTo(v.deltas, 2*n)
	v.deltas = numbers
	prefixes, suffixes := numbers[:n], numbers[n:]
	tails := v.tails[:0]
	var last []byte
	for i := range n {
		var value []byte
		if width > 0 {
			value, plain = plain[:width], plain[width:]
		} else {
			size := binary.LittleEndian.Uint32(plain)
			value, plain = plain[4:4+size], plain[4+size:]
		}
		k := SharedPrefix(last, value)
		prefixes[i], suffixes[i] = int64(k), int64(len(value)-k)
		tails = append(tails, value[k:]...)
		last = value
	}
	v.tails = tails
	dst = appendDelta(dst, prefixes, true)
	dst = appendDelta(dst, suffixes, true)
	return append(dst, tails...)
}
