package parquet

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

var (
	errShortValues = errors.New("fewer values than stated")
	errRun         = errors.New("invalid run of the RLE/bit-packed encoding")
	errBound       = errors.New("a value is too large")
)

// decodeHybrid decodes len(dst) values of width bits (at most 32) from the
// RLE/bit-packed hybrid encoding in src. Values above max are an error. The
// last run may go on beyond len(dst): bit-packed ones come in eights.
func decodeHybrid[T uint8 | uint32](dst []T, src []byte, width uint, max uint32) error {
	for len(dst) > 0 {
		header, n := binary.Uvarint(src)
		if n <= 0 {
			return errShortValues
		}
		src = src[n:]
		var done int
		var err error
		if header&1 == 1 {
			done, src, err = unpackRun(dst, src, header>>1, width, max)
		} else {
			done, src, err = repeatRun(dst, src, header>>1, width, max)
		}
		if err != nil {
			return err
		}
		dst = dst[done:]
	}
	return nil
}

func repeatRun[T uint8 | uint32](dst []T, src []byte, count uint64, width uint, max uint32) (int, []byte, error) {
	size := int(width+7) / 8
	if len(src) < size {
		return 0, nil, errShortValues
	}
	var v uint32
	for i := range size {
		v |= uint32(src[i]) << (8 * i)
	}
	if count == 0 {
		return 0, nil, errRun
	}
	if v > max {
		return 0, nil, errBound
	}
	n := int(min(count, uint64(len(dst))))
	for i := range dst[:n] {
		dst[i] = T(v)
	}
	return n, src[size:], nil
}

func unpackRun[T uint8 | uint32](dst []T, src []byte, groups uint64, width uint, max uint32) (int, []byte, error) {
	if groups == 0 || groups > 1<<31 {
		return 0, nil, errRun
	}
	n := int(min(groups*8, uint64(len(dst))))
	need := (uint64(n)*uint64(width) + 7) / 8
	if need > uint64(len(src)) {
		return 0, nil, errShortValues
	}
	mask := uint64(1)<<width - 1
	var acc uint64
	var have uint
	in := src
	for i := range dst[:n] {
		for have < width {
			acc |= uint64(in[0]) << have
			in = in[1:]
			have += 8
		}
		v := uint32(acc & mask)
		if v > max {
			return 0, nil, errBound
		}
		dst[i] = T(v)
		acc >>= width
		have -= width
	}
	// The padding of the last group is sometimes cut off.
	return n, src[min(groups*uint64(width), uint64(len(src))):], nil
}

// levelWidth is the number of bits that a level takes.
func levelWidth(max int) uint { return uint(bits.Len(uint(max))) }
