package parquet

import (
	"encoding/binary"
	"errors"
	"math"
)

var errDelta = errors.New("invalid header of the delta encoding")

const maxDeltaBlock = 1 << 20 // values

// decodeDelta decodes want integers of DELTA_BINARY_PACKED data at the start
// of src to PLAIN form, size bytes each (4 or 8), in buf's memory where that
// is enough. It returns them and the bytes behind. Arithmetic wraps, as the
// format wants it.
func decodeDelta(src, buf []byte, want, size int) (values, rest []byte, err error) {
	h := deltaHeader{src: src}
	if err := h.read(); err != nil {
		return nil, nil, err
	}
	if h.total != uint64(want) {
		return nil, nil, errShortValues
	}
	if want == 0 {
		return buf[:0], h.src, nil
	}
	switch blocks := (want - 1 + h.minis*h.perMini - 1) / (h.minis * h.perMini); {
	case blocks > len(h.src)/(1+h.minis): // each takes a byte, and one for each miniblock
		return nil, nil, errShortValues
	case want > MaxPageSize/size:
		return nil, nil, errExpands
	}
	values = grow(buf, want*size)
	last, out := h.first, values[putInt(values, h.first, size):]
	src = h.src
	scratch := make([]uint32, deltaBatch)
	for len(out) > 0 {
		minDelta, n := binary.Varint(src)
		if n <= 0 || len(src)-n < h.minis {
			return nil, nil, errShortValues
		}
		widths := src[n : n+h.minis]
		src = src[n+h.minis:]
		for _, w := range widths {
			if len(out) == 0 {
				break // miniblocks without values are not stored, their widths may be anything
			}
			count := min(len(out)/size, h.perMini)
			switch {
			case w > 64:
				return nil, nil, errDelta
			case uint64(len(src))*8 < uint64(count)*uint64(w):
				return nil, nil, errShortValues
			}
			last = unpackDeltas(out[:count*size], src, uint(w), size, minDelta, last, scratch)
			out, src = out[count*size:], src[min(h.perMini/8*int(w), len(src)):]
		}
	}
	return values, src, nil
}

// putInt stores the lower size bytes (4 or 8) of v and returns size.
func putInt(b []byte, v int64, size int) int {
	if size == 4 {
		binary.LittleEndian.PutUint32(b, uint32(v))
	} else {
		binary.LittleEndian.PutUint64(b, uint64(v))
	}
	return size
}

type deltaHeader struct {
	src     []byte
	minis   int // miniblocks per block
	perMini int // values per miniblock
	total   uint64
	first   int64
}

func (h *deltaHeader) read() error {
	var v [3]uint64
	for i := range v {
		u, n := binary.Uvarint(h.src)
		if n <= 0 {
			return errShortValues
		}
		v[i], h.src = u, h.src[n:]
	}
	first, n := binary.Varint(h.src)
	if n <= 0 {
		return errShortValues
	}
	h.src, h.first = h.src[n:], first
	block, minis := v[0], v[1]
	if block == 0 || block > maxDeltaBlock || block%128 != 0 ||
		minis == 0 || block%minis != 0 || block/minis%32 != 0 || v[2] > math.MaxInt32 {
		return errDelta
	}
	h.minis, h.perMini, h.total = int(minis), int(block/minis), v[2]
	return nil
}

// deltaBatch is how many deltas are unpacked at a time, a multiple of 8.
const deltaBatch = 128

// unpackDeltas adds up deltas of width bits, which src holds, from last on. It
// fills out with the sums, size bytes each, and returns the final one.
// scratch has deltaBatch places.
func unpackDeltas(out, src []byte, width uint, size int, minDelta, last int64, scratch []uint32) int64 {
	if width > 32 {
		for bit := uint(0); len(out) >= size; bit += width {
			last += minDelta + int64(bitsAt(src, bit, width))
			out = out[putInt(out, last, size):]
		}
		return last
	}
	for len(out) > 0 {
		deltas := scratch[:min(len(out)/size, deltaBatch)]
		unpack(deltas, src, width, math.MaxUint32)
		last = putSums(out, deltas, size, minDelta, last)
		out, src = out[len(deltas)*size:], src[min(deltaBatch/8*int(width), len(src)):]
	}
	return last
}

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

// bitsAt returns the width bits that begin bit bits into b, least significant
// first. They must be there.
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
	if bit+width > 64 { // a ninth byte
		lo |= uint64(b[8]) << (64 - bit)
	}
	if width == 64 {
		return lo
	}
	return lo & (1<<width - 1)
}

// decodeLengths decodes want lengths, each between 0 and limit, to 32-bit
// integers in PLAIN form.
func decodeLengths(src []byte, want, limit int) (l, rest []byte, err error) {
	l, rest, err = decodeDelta(src, nil, want, 4)
	if err != nil {
		return nil, nil, err
	}
	top := uint32(0)
	for b := l; len(b) >= 4; b = b[4:] {
		top = max(top, binary.LittleEndian.Uint32(b))
	}
	if uint64(top) > uint64(limit) {
		return nil, nil, errBound
	}
	return l, rest, nil
}
