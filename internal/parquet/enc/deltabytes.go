package enc

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"
)

// deltaLengthBytes decodes DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
func deltaLengthBytes(src, buf []byte, n int) (plain []byte, tail int, err error) {
	lengths, rest, err := openLengths(src, n)
	if err != nil {
		return nil, 0, err
	}
	if len(rest)+4*n > MaxPageSize {
		return nil, 0, ErrExpands
	}
	out := Reuse(buf, len(rest)+4*n)
	to := out
	for b := lengths.batch(); len(b) > 0; b = lengths.batch() {
		for ; len(b) >= 4; b = b[4:] {
			k := uint(binary.LittleEndian.Uint32(b))
			if k > uint(len(rest)) {
				return nil, 0, ErrShort
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
		Copy32((*[32]byte)(dst), (*[32]byte)(src))
		return
	}
	copy(dst[:n], src)
}

// Copy32 copies through registers. (An assignment of the arrays, which may overlap,
// compiles to a call.)
func Copy32(dst, src *[32]byte) {
	a, b := binary.LittleEndian.Uint64(src[:]), binary.LittleEndian.Uint64(src[8:])
	c, d := binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:])
	binary.LittleEndian.PutUint64(dst[:], a)
	binary.LittleEndian.PutUint64(dst[8:], b)
	binary.LittleEndian.PutUint64(dst[16:], c)
	binary.LittleEndian.PutUint64(dst[24:], d)
}

// DecodeDeltaBytes decodes DELTA_BYTE_ARRAY: each value is a prefix of the previous one
// and a suffix. It reads the lengths twice, first to compute the total size, which
// may be at most most. width is the size of a value, 0 for byte arrays.
func DecodeDeltaBytes(t format.Type, width int, src, buf []byte, n int, most int64) (plain []byte, tail int, err error) {
	head := 0 // bytes before each value
	if t == format.ByteArray {
		head = 4
	}
	size, tail, err := deltaBytesSize(src, n, width, head, most)
	if err != nil {
		return nil, 0, err
	}
	prefixes, suffixes, rest, err := openPrefixes(src, n)
	if err != nil {
		return nil, 0, err
	}
	out := Reuse(buf, size)
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

// deltaBytesSize checks the lengths of DELTA_BYTE_ARRAY, which are width if head is 0.
// It returns the total size of the values, each with head bytes before it, and the number of bytes after the
// last suffix.
func deltaBytesSize(src []byte, n, width, head int, most int64) (size, tail int, err error) {
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
				return 0, 0, ErrShort
			case head == 0 && p+s != uint(width):
				return 0, 0, ErrBound
			}
			have = p + s
			left -= s
			if size += int(have); int64(size) > most {
				return 0, 0, ErrExpands
			}
		}
	}
	return size, int(left), nil
}

// lengthReader returns lengths in batches.
type lengthReader struct {
	r    *deltaReader
	buf  [4 * deltaBatch]byte
	left []byte // the unread part of buf
}

// openLengths is openDelta for lengths.
func openLengths(src []byte, want int) (l *lengthReader, rest []byte, err error) {
	r, rest, err := openDelta(src, want)
	return &lengthReader{r: r}, rest, err
}

// batch returns the next lengths in PLAIN form, 32 bits each, at least one while
// any remain. Negative ones read as unsigned exceed every page size. The caller
// advances l.left past the ones it used.
func (l *lengthReader) batch() []byte {
	if len(l.left) == 0 {
		l.left = l.buf[:4*l.r.next(l.buf[:], 4)]
	}
	return l.left
}
