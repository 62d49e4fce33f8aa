package parquet

import (
	"encoding/binary"
	"errors"
	"math"
)

var errDelta = errors.New("invalid header of the delta encoding")

const maxDeltaBlock = 1 << 20 // values

// decodeDelta decodes want integers of DELTA_BINARY_PACKED data at the start
// of src, emitting each, and returns the bytes behind. Arithmetic wraps, as
// the format wants it; emit truncates to the type's width.
func decodeDelta(src []byte, want int, emit func(int64) error) ([]byte, error) {
	h := deltaHeader{src: src}
	if err := h.read(); err != nil {
		return nil, err
	}
	if h.total != uint64(want) {
		return nil, errShortValues
	}
	if want == 0 {
		return h.src, nil
	}
	if err := emit(h.first); err != nil {
		return nil, err
	}
	left, last := want-1, h.first
	src = h.src
	for left > 0 {
		minDelta, n := binary.Varint(src)
		if n <= 0 || len(src)-n < h.minis {
			return nil, errShortValues
		}
		widths := src[n : n+h.minis]
		src = src[n+h.minis:]
		for _, w := range widths {
			if left == 0 {
				break // miniblocks without values are not stored, their widths may be anything
			}
			var err error
			count := min(left, h.perMini)
			src, last, err = unpackDeltas(src, uint(w), count, h.perMini, minDelta, last, emit)
			if err != nil {
				return nil, err
			}
			left -= count
		}
	}
	return src, nil
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

// unpackDeltas reads one miniblock of perMini deltas of width bits, count of
// which are values.
func unpackDeltas(src []byte, width uint, count, perMini int, minDelta, last int64,
	emit func(int64) error) ([]byte, int64, error) {
	if width > 64 {
		return nil, 0, errDelta
	}
	if uint64(len(src))*8 < uint64(count)*uint64(width) {
		return nil, 0, errShortValues
	}
	bit := uint(0)
	for range count {
		last += minDelta + int64(bitsAt(src, bit, width))
		bit += width
		if err := emit(last); err != nil {
			return nil, 0, err
		}
	}
	return src[min(perMini/8*int(width), len(src)):], last, nil
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

// decodeLengths decodes want lengths, each between 0 and limit.
func decodeLengths(src []byte, want, limit int) ([]int32, []byte, error) {
	if want > len(src)*maxDeltaBlock { // a block takes a byte at least
		return nil, nil, errShortValues
	}
	lengths := make([]int32, 0, want)
	rest, err := decodeDelta(src, want, func(v int64) error {
		n := int32(v)
		if n < 0 || int(n) > limit {
			return errBound
		}
		lengths = append(lengths, n)
		return nil
	})
	return lengths, rest, err
}
