package enc

import (
	"encoding/binary"
	"math"
	"math/bits"
)

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
		return nil, nil, ErrShort
	}
	rest = r.src
	for left := want - 1; left > 0; {
		_, n := binary.Varint(rest)
		if n <= 0 || len(rest)-n < r.minis {
			return nil, nil, ErrShort
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
			case PackedSize(min(left, r.perMini), uint(w)) > uint64(len(rest)):
				return nil, nil, ErrShort
			}
			rest = rest[min(r.perMini/8*int(w), len(rest)):] // some writers cut off the padding of the last one
			left -= r.perMini
		}
	}
	return r, rest, nil
}

func (r *deltaReader) readHeader(src []byte) error {
	var v [3]uint64
	for i := range v {
		u, n := binary.Uvarint(src)
		if n <= 0 {
			return ErrShort
		}
		v[i], src = u, src[n:]
	}
	first, n := binary.Varint(src)
	if n <= 0 {
		return ErrShort
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
		Unpack(deltas, r.src, r.width, math.MaxUint32)
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
		return nil, nil, ErrExpands
	}
	values = Reuse(buf, want*size)
	for out := values; len(out) > 0; {
		out = out[r.next(out, size)*size:]
	}
	return values, rest, nil
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
	dst = GrowTo(dst, n+size+packSlack)
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
