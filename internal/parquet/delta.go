package parquet

import (
	"encoding/binary"
	"errors"
	"math"
)

var errDelta = errors.New("invalid header of the delta encoding")

const (
	maxDeltaBlock = 1 << 20 // values

	// deltaBatch is the number of values decoded at a time, a multiple of 8.
	deltaBatch = 128
)

// deltaReader decodes the integers of DELTA_BINARY_PACKED data. As the format
// specifies, arithmetic wraps.
type deltaReader struct {
	src     []byte // remaining blocks, or the rest of one
	left    int    // values still to come
	started bool   // the first value has been returned

	minis    int    // miniblocks per block
	perMini  int    // values per miniblock
	widths   []byte // of the block's remaining miniblocks
	width    uint   // of the current miniblock
	inMini   int    // values left in the miniblock
	minDelta int64
	last     int64
	deltas   [deltaBatch]uint32
}

// openDelta checks the structure of the DELTA_BINARY_PACKED data at the start of
// src, which must have want values. It returns a reader that cannot fail, and the
// bytes after the data.
func openDelta(src []byte, want int) (r *deltaReader, rest []byte, err error) {
	r = new(deltaReader)
	if err := r.readHeader(src); err != nil {
		return nil, nil, err
	}
	if r.left != want {
		return nil, nil, errShortValues
	}
	rest = r.src
	for left := want - 1; left > 0; {
		_, n := binary.Varint(rest)
		if n <= 0 || len(rest)-n < r.minis {
			return nil, nil, errShortValues
		}
		widths := rest[n : n+r.minis]
		rest = rest[n+r.minis:]
		for _, w := range widths {
			if left <= 0 {
				break // miniblocks without values are not stored; their widths may be anything
			}
			switch {
			case w > 64:
				return nil, nil, errDelta
			case packedSize(min(left, r.perMini), uint(w)) > uint64(len(rest)):
				return nil, nil, errShortValues
			}
			rest = rest[r.miniSize(uint(w), len(rest)):]
			left -= r.perMini
		}
	}
	return r, rest, nil
}

// miniSize returns the size of a miniblock, of which at most the bytes there are
// present: some writers cut off the padding of the last one.
func (r *deltaReader) miniSize(width uint, there int) int {
	return min(r.perMini/8*int(width), there)
}

func (r *deltaReader) readHeader(src []byte) error {
	var v [3]uint64
	for i := range v {
		u, n := binary.Uvarint(src)
		if n <= 0 {
			return errShortValues
		}
		v[i], src = u, src[n:]
	}
	first, n := binary.Varint(src)
	if n <= 0 {
		return errShortValues
	}
	block, minis := v[0], v[1]
	if block == 0 || block > maxDeltaBlock || block%128 != 0 ||
		minis == 0 || block%minis != 0 || block/minis%32 != 0 || v[2] > math.MaxInt32 {
		return errDelta
	}
	r.src, r.last = src[n:], first
	r.minis, r.perMini, r.left = int(minis), int(block/minis), int(v[2])
	return nil
}

// next decodes the next values to PLAIN form, size bytes each (4 or 8), and returns
// their number, which is at least one while values remain. out must have room for
// deltaBatch values or for all remaining ones.
func (r *deltaReader) next(out []byte, size int) int {
	switch {
	case r.left == 0:
		return 0
	case !r.started:
		r.started = true
		r.left--
		putInt(out, r.last, size)
		return 1
	case r.inMini == 0:
		r.nextMini()
	}
	batch := min(r.inMini, deltaBatch)
	n := min(batch, r.left)
	out = out[:n*size]
	if r.width > 32 {
		for bit := uint(0); len(out) >= size; bit += r.width {
			r.last += r.minDelta + int64(bitsAt(r.src, bit, r.width))
			putInt(out, r.last, size)
			out = out[size:]
		}
	} else {
		deltas := r.deltas[:n]
		unpack(deltas, r.src, r.width, math.MaxUint32)
		r.last = putSums(out, deltas, size, r.minDelta, r.last)
	}
	r.left -= n
	r.inMini -= batch
	r.src = r.src[min(batch/8*int(r.width), len(r.src)):]
	return n
}

// nextMini moves to the next miniblock, in the next block if this one has no more.
func (r *deltaReader) nextMini() {
	if len(r.widths) == 0 {
		minDelta, n := binary.Varint(r.src)
		r.minDelta, r.widths, r.src = minDelta, r.src[n:n+r.minis], r.src[n+r.minis:]
	}
	r.width, r.widths = uint(r.widths[0]), r.widths[1:]
	r.inMini = r.perMini
}

func putInt(b []byte, v int64, size int) {
	if size == 4 {
		binary.LittleEndian.PutUint32(b, uint32(v))
	} else {
		binary.LittleEndian.PutUint64(b, uint64(v))
	}
}

// putSums stores the running sums of last and the deltas, and returns the final
// one.
func putSums(out []byte, deltas []uint32, size int, minDelta, last int64) int64 {
	if size == 4 {
		for _, d := range deltas {
			last += minDelta + int64(d)
			binary.LittleEndian.PutUint32(out, uint32(last))
			out = out[4:]
		}
		return last
	}
	for _, d := range deltas {
		last += minDelta + int64(d)
		binary.LittleEndian.PutUint64(out, uint64(last))
		out = out[8:]
	}
	return last
}

// decodeDelta decodes want integers at the start of src to PLAIN form, size bytes
// each (4 or 8), using buf's memory if it is large enough. It returns them and the
// bytes after the data.
func decodeDelta(src, buf []byte, want, size int) (values, rest []byte, err error) {
	r, rest, err := openDelta(src, want)
	if err != nil {
		return nil, nil, err
	}
	if want > MaxPageSize/size {
		return nil, nil, errExpands
	}
	values = grow(buf, want*size)
	for out := values; len(out) > 0; {
		out = out[r.next(out, size)*size:]
	}
	return values, rest, nil
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

// bitsAt returns the width bits that start at the given bit of b, least significant
// bit first. They must be present.
func bitsAt(b []byte, bit, width uint) uint64 {
	if width == 0 {
		return 0
	}
	b = b[bit/8:]
	bit %= 8
	var lo uint64
	if len(b) >= 8 {
		lo = binary.LittleEndian.Uint64(b)
	} else {
		for i, c := range b {
			lo |= uint64(c) << (8 * i)
		}
	}
	lo >>= bit
	if bit+width > 64 { // the value extends into a ninth byte
		lo |= uint64(b[8]) << (64 - bit)
	}
	if width == 64 {
		return lo
	}
	return lo & (1<<width - 1)
}
