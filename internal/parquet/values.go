package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

var (
	errEncoding = errors.New("encoding not supported")
	errTrailing = errors.New("more bytes than the values take")
	errExpands  = errors.New("values expand beyond the limit for a page")
)

// width returns the size of a PLAIN value in bytes, 0 for byte arrays and booleans.
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

// decodeValues converts n values to PLAIN form. The result is in src's memory if
// src has that form, else in buf's or newly allocated. tail is the number of bytes
// after the last value.
func decodeValues(l *Leaf, enc format.Encoding, src, buf []byte, n int) (plain []byte, tail int, err error) {
	if n == 0 && enc != format.Plain {
		return nil, 0, nil // writers differ in what they store for no values
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
			return deltaBytes(l, src, buf, n, MaxPageSize)
		}
	case format.ByteStreamSplit:
		if w := l.width(); w > 0 && l.Type != format.Int96 {
			return unsplit(src, buf, n, w)
		}
	}
	return nil, 0, fmt.Errorf("%w: %v for %v", errEncoding, enc, l.Type)
}

// plainValues checks n PLAIN values at the start of src. tail is the number of
// bytes after the last one.
func plainValues(l *Leaf, src []byte, n int) (plain []byte, tail int, err error) {
	size := uint64(0)
	switch {
	case l.Type == format.Boolean:
		size = (uint64(n) + 7) / 8
	case l.Type == format.ByteArray:
		w := byteArrayWalk{src: src}
		if !w.skip(n) {
			return nil, 0, errShortValues
		}
		size = w.pos
	default:
		size = uint64(n) * uint64(l.width())
	}
	if size > uint64(len(src)) {
		return nil, 0, errShortValues
	}
	return src[:size], len(src) - int(size), nil
}

// rleBooleans decodes booleans from runs of 1-bit values, which are preceded by
// their total length.
func rleBooleans(src, buf []byte, n int) (plain []byte, tail int, err error) {
	if len(src) < 4 {
		return nil, 0, errShortValues
	}
	size := binary.LittleEndian.Uint32(src)
	if uint64(size) > uint64(len(src)-4) {
		return nil, 0, errShortValues
	}
	tail = len(src) - 4 - int(size)
	src = src[4 : 4+size]
	out := grow(buf, (n+7)/8)
	clear(out)
	for from := 0; from < n; {
		run, err := nextRun(src, 1, n-from)
		switch {
		case err != nil:
			return nil, 0, err
		case run.value > 1:
			return nil, 0, errBound
		case run.value == bitPacked:
			orBits(out, from, src[run.data:], run.n)
		case run.value == 1:
			setBits(out, from, run.n)
		}
		from, src = from+run.n, src[run.end:]
	}
	return out, tail, nil
}

// setBits sets n bits of b, starting at bit at.
func setBits(b []byte, at, n int) {
	for ; n > 0 && at%8 != 0; at, n = at+1, n-1 {
		b[at/8] |= 1 << (at % 8)
	}
	fill(b[at/8:at/8+n/8], 0xff)
	if n%8 > 0 {
		b[at/8+n/8] |= 1<<(n%8) - 1
	}
}

// orBits ORs n bits of src into b, starting at bit at of b.
func orBits(b []byte, at int, src []byte, n int) {
	shift := at % 8
	b = b[at/8:]
	for i := 0; n > 0; i, n = i+1, n-8 {
		c := uint16(src[i]&(1<<min(n, 8)-1)) << shift
		b[i] |= byte(c)
		if c > 0xff {
			b[i+1] |= byte(c >> 8)
		}
	}
}

func deltaIntegers(l *Leaf, src, buf []byte, n int) (plain []byte, tail int, err error) {
	plain, rest, err := decodeDelta(src, buf, n, l.width())
	return plain, len(rest), err
}

// deltaLengthBytes decodes DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
func deltaLengthBytes(src, buf []byte, n int) (plain []byte, tail int, err error) {
	lengths, rest, err := openLengths(src, n)
	if err != nil {
		return nil, 0, err
	}
	if len(rest)+4*n > MaxPageSize {
		return nil, 0, errExpands
	}
	out := grow(buf, len(rest)+4*n)
	to := out
	for b := lengths.batch(); len(b) > 0; b = lengths.batch() {
		for ; len(b) >= 4; b = b[4:] {
			k := uint(binary.LittleEndian.Uint32(b))
			if k > uint(len(rest)) {
				return nil, 0, errShortValues
			}
			binary.LittleEndian.PutUint32(to, uint32(k))
			copyShort(to[4:], rest, int(k))
			to, rest = to[4+k:], rest[k:]
		}
		lengths.left = nil
	}
	return out[:len(out)-len(rest)], len(rest), nil
}

// copyShort copies the first n bytes of src. It copies up to 32 bytes as 32 if
// there is room, which takes no call and no loop. The bytes after them in dst must
// therefore be written later.
func copyShort(dst, src []byte, n int) {
	if n <= 32 && len(dst) >= 32 && len(src) >= 32 {
		copy32((*[32]byte)(dst), (*[32]byte)(src))
		return
	}
	copy(dst[:n], src)
}

// copy32 copies through registers. (An assignment of the arrays, which may overlap,
// compiles to a call.)
func copy32(dst, src *[32]byte) {
	a, b := binary.LittleEndian.Uint64(src[:]), binary.LittleEndian.Uint64(src[8:])
	c, d := binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:])
	binary.LittleEndian.PutUint64(dst[:], a)
	binary.LittleEndian.PutUint64(dst[8:], b)
	binary.LittleEndian.PutUint64(dst[16:], c)
	binary.LittleEndian.PutUint64(dst[24:], d)
}

// deltaBytes decodes DELTA_BYTE_ARRAY: each value is a prefix of the previous one
// and a suffix. It reads the lengths twice, first to compute the total size, which
// may be at most most.
func deltaBytes(l *Leaf, src, buf []byte, n int, most int64) (plain []byte, tail int, err error) {
	head := 0 // bytes before each value
	if l.Type == format.ByteArray {
		head = 4
	}
	size, tail, err := deltaBytesSize(l, src, n, head, most)
	if err != nil {
		return nil, 0, err
	}
	prefixes, suffixes, rest, err := openPrefixes(src, n)
	if err != nil {
		return nil, 0, err
	}
	out := grow(buf, size)
	var before []byte // the previous value, followed by the rest of out
	to := out
	for {
		ps, ss := prefixes.batch(), suffixes.batch()
		k := min(len(ps), len(ss))
		if k == 0 {
			return out, tail, nil
		}
		prefixes.left, suffixes.left = ps[k:], ss[k:]
		for ps, ss = ps[:k], ss[:k]; len(ps) >= 4 && len(ss) >= 4; ps, ss = ps[4:], ss[4:] {
			p, s := int(binary.LittleEndian.Uint32(ps)), int(binary.LittleEndian.Uint32(ss))
			if head > 0 {
				binary.LittleEndian.PutUint32(to, uint32(p+s))
			}
			to = to[head:]
			copyShort(to, before, p)
			copyShort(to[p:], rest, s)
			before, to, rest = to, to[p+s:], rest[s:]
		}
	}
}

// openPrefixes opens the lengths of DELTA_BYTE_ARRAY and returns the suffixes after
// them.
func openPrefixes(src []byte, n int) (prefixes, suffixes *lengthReader, rest []byte, err error) {
	if prefixes, rest, err = openLengths(src, n); err == nil {
		suffixes, rest, err = openLengths(rest, n)
	}
	return prefixes, suffixes, rest, err
}

// deltaBytesSize checks the lengths of DELTA_BYTE_ARRAY. It returns the total size
// of the values, each with head bytes before it, and the number of bytes after the
// last suffix.
func deltaBytesSize(l *Leaf, src []byte, n, head int, most int64) (size, tail int, err error) {
	prefixes, suffixes, rest, err := openPrefixes(src, n)
	if err != nil {
		return 0, 0, err
	}
	size, have, left := head*n, uint(0), uint(len(rest)) // size of all values so far, of the previous value, and of the remaining suffixes
	for {
		ps, ss := prefixes.batch(), suffixes.batch()
		k := min(len(ps), len(ss))
		if k == 0 {
			break
		}
		prefixes.left, suffixes.left = ps[k:], ss[k:]
		for ps, ss = ps[:k], ss[:k]; len(ps) >= 4 && len(ss) >= 4; ps, ss = ps[4:], ss[4:] {
			p, s := uint(binary.LittleEndian.Uint32(ps)), uint(binary.LittleEndian.Uint32(ss))
			switch {
			case p > have || s > left:
				return 0, 0, errShortValues
			case head == 0 && p+s != uint(l.TypeLength):
				return 0, 0, errBound
			}
			have = p + s
			left -= s
			if size += int(have); int64(size) > most {
				return 0, 0, errExpands
			}
		}
	}
	return size, int(left), nil
}

// grow returns a slice of n bytes, using buf's memory if it is large enough.
func grow(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n)
	}
	return buf[:n]
}
