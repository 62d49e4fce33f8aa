package parquet

import (
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

// canEncode reports whether values of the leaf can be written in encoding e, other
// than PLAIN.
func canEncode(l *Leaf, e format.Encoding) bool {
	switch e {
	case format.RLE:
		return l.Type == format.Boolean
	case format.DeltaBinaryPacked:
		return l.Type == format.Int32 || l.Type == format.Int64
	case format.DeltaLengthByteArray:
		return l.Type == format.ByteArray
	case format.DeltaByteArray:
		return l.Type == format.ByteArray || l.Type == format.FixedLenByteArray
	case format.ByteStreamSplit:
		return l.width() > 0 && l.Type != format.Int96
	}
	return false
}

// appendValues appends n values, given in PLAIN encoding, in encoding e if
// possible, and returns the encoding used. Byte arrays must be well-formed.
func (ws *workspace) appendValues(dst []byte, l *Leaf, e format.Encoding, plain []byte, n int) ([]byte, format.Encoding) {
	if n == 0 || !canEncode(l, e) {
		return append(dst, plain...), format.Plain
	}
	switch e {
	case format.RLE:
		dst = ws.appendBooleans(dst, plain, n)
	case format.DeltaBinaryPacked:
		dst = ws.appendIntegers(dst, plain, l.width())
	case format.DeltaLengthByteArray:
		dst = ws.appendLengths(dst, plain, n)
	case format.DeltaByteArray:
		dst = ws.appendPrefixes(dst, plain, n, l.width())
	case format.ByteStreamSplit:
		dst = appendSplit(dst, plain, l.width())
	}
	return dst, e
}

// appendBits appends n bits of src, starting at bit from, after the first have bits
// of dst.
func appendBits(dst []byte, have int, src []byte, from, n int) []byte {
	dst = growTo(dst, (have+n+7)/8)
	clear(dst[(have+7)/8:])
	for n > 0 {
		// as many bits as both current bytes have left
		k := min(n, 8-have%8, 8-from%8)
		b := src[from/8] >> (from % 8) & (1<<k - 1)
		dst[have/8] |= b << (have % 8)
		have, from, n = have+k, from+k, n-k
	}
	return dst
}

func (ws *workspace) appendBooleans(dst, plain []byte, n int) []byte {
	bools := growTo(ws.levels, n)
	ws.levels = bools
	for i := range bools {
		bools[i] = plain[i/8] >> (i % 8) & 1
	}
	at := len(dst)
	dst = appendHybrid(append(dst, 0, 0, 0, 0), bools, 1)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

func (ws *workspace) appendIntegers(dst, plain []byte, width int) []byte {
	values := ws.deltas[:0]
	if width == 4 {
		for ; len(plain) >= 4; plain = plain[4:] {
			values = append(values, int64(int32(binary.LittleEndian.Uint32(plain))))
		}
	} else {
		for ; len(plain) >= 8; plain = plain[8:] {
			values = append(values, int64(binary.LittleEndian.Uint64(plain)))
		}
	}
	ws.deltas = values
	return appendDelta(dst, values, width == 4)
}

// appendLengths appends DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
func (ws *workspace) appendLengths(dst, plain []byte, n int) []byte {
	lengths := ws.deltas[:0]
	rest := plain
	for range n {
		size := binary.LittleEndian.Uint32(rest)
		lengths = append(lengths, int64(size))
		rest = rest[4+size:]
	}
	ws.deltas = lengths
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
func (ws *workspace) appendPrefixes(dst, plain []byte, n, width int) []byte {
	numbers := growTo(ws.deltas, 2*n)
	ws.deltas = numbers
	prefixes, suffixes := numbers[:n], numbers[n:]
	tails := ws.values[:0]
	var last []byte
	for i := range n {
		var v []byte
		if width > 0 {
			v, plain = plain[:width], plain[width:]
		} else {
			size := binary.LittleEndian.Uint32(plain)
			v, plain = plain[4:4+size], plain[4+size:]
		}
		k := sharedPrefix(last, v)
		prefixes[i], suffixes[i] = int64(k), int64(len(v)-k)
		tails = append(tails, v[k:]...)
		last = v
	}
	ws.values = tails
	dst = appendDelta(dst, prefixes, true)
	dst = appendDelta(dst, suffixes, true)
	return append(dst, tails...)
}

// appendSplit appends BYTE_STREAM_SPLIT: the first bytes of all values, then the
// second bytes, and so on.
func appendSplit(dst, plain []byte, width int) []byte {
	n := len(plain) / width
	at := len(dst)
	dst = growTo(dst, at+n*width)
	for k := range width {
		stream := dst[at+k*n : at+(k+1)*n]
		for i := range stream {
			stream[i] = plain[i*width+k]
		}
	}
	return dst
}

const (
	deltaBlock = 128 // values
	deltaMini  = 32  // values in a miniblock
)

// appendDelta appends DELTA_BINARY_PACKED. narrow means 32-bit values; deltas wrap
// in that width, as the format specifies.
func appendDelta(dst []byte, values []int64, narrow bool) []byte {
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaBlock/deltaMini)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	if len(values) == 0 {
		return binary.AppendVarint(dst, 0)
	}
	dst = binary.AppendVarint(dst, values[0])
	var deltas [deltaBlock]int64
	for i := 1; i < len(values); i += deltaBlock {
		n := min(deltaBlock, len(values)-i)
		least := int64(0)
		for k := range n {
			d := values[i+k] - values[i+k-1]
			if narrow {
				d = int64(int32(d))
			}
			deltas[k] = d
			if k == 0 || d < least {
				least = d
			}
		}
		dst = appendDeltaBlock(dst, deltas[:n], least, narrow)
	}
	return dst
}

func appendDeltaBlock(dst []byte, deltas []int64, least int64, narrow bool) []byte {
	dst = binary.AppendVarint(dst, least)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0) // the miniblocks' widths; 0 for missing ones
	for m := 0; len(deltas) > 0; m++ {
		var mini [deltaMini]uint64
		n := min(deltaMini, len(deltas))
		all := uint64(0)
		for k, d := range deltas[:n] {
			u := uint64(d - least)
			if narrow {
				u = uint64(uint32(u))
			}
			mini[k] = u
			all |= u
		}
		deltas = deltas[n:]
		width := uint(bits.Len64(all))
		dst[at+m] = byte(width)
		dst = packDeltas(dst, &mini, width)
	}
	return dst
}

// packDeltas appends the values of a miniblock, width bits each.
func packDeltas(dst []byte, v *[deltaMini]uint64, width uint) []byte {
	if width == 0 {
		return dst
	}
	n := len(dst)
	size := deltaMini / 8 * int(width)
	dst = growTo(dst, n+size+packSlack)
	out := dst[n:]
	var acc uint64
	have := uint(0)
	for _, x := range v {
		acc |= x << have
		if have += width; have >= 64 {
			binary.LittleEndian.PutUint64(out, acc)
			out = out[8:]
			have -= 64
			acc = x >> (width - have) // a shift by 64 gives 0
		}
	}
	binary.LittleEndian.PutUint64(out, acc)
	return dst[:n+size]
}
