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

// hybridRun is one run of the RLE/bit-packed hybrid encoding: n values that
// are all value, or n bit-packed ones.
type hybridRun struct {
	n      int
	value  uint32
	packed []byte // nil for a repeated value; else what n values take
}

// nextRun reads the run at the start of src and returns what follows. left,
// at least 1, is the number of values still wanted: a run may go on beyond
// it, as bit-packed ones come in eights.
func nextRun(src []byte, width uint, left int) (hybridRun, []byte, error) {
	header, n := binary.Uvarint(src)
	if n <= 0 {
		return hybridRun{}, nil, errShortValues
	}
	src = src[n:]
	count := header >> 1
	if count == 0 {
		return hybridRun{}, nil, errRun
	}
	if header&1 == 0 {
		size := int(width+7) / 8
		if len(src) < size {
			return hybridRun{}, nil, errShortValues
		}
		return hybridRun{n: int(min(count, uint64(left))), value: uint32(shortUint64(src[:size]))}, src[size:], nil
	}
	if count > 1<<31 {
		return hybridRun{}, nil, errRun
	}
	run := hybridRun{n: int(min(count*8, uint64(left)))}
	need := (uint64(run.n)*uint64(width) + 7) / 8
	if need > uint64(len(src)) {
		return hybridRun{}, nil, errShortValues
	}
	run.packed = src[:need:need]
	// The padding of the last group is sometimes cut off.
	return run, src[min(count*uint64(width), uint64(len(src))):], nil
}

// decodeHybrid decodes len(dst) values of width bits (at most 32) from the
// RLE/bit-packed hybrid encoding in src. Values above max are an error. The
// last run may go on beyond len(dst).
func decodeHybrid[T uint8 | uint32](dst []T, src []byte, width uint, max uint32) error {
	for len(dst) > 0 {
		run, rest, err := nextRun(src, width, len(dst))
		if err != nil {
			return err
		}
		if run.packed == nil {
			if run.value > max {
				return errBound
			}
			for i := range dst[:run.n] {
				dst[i] = T(run.value)
			}
		} else if err := unpack(dst[:run.n], run.packed, width, max); err != nil {
			return err
		}
		dst, src = dst[run.n:], rest
	}
	return nil
}

// unpack decodes bit-packed values; src holds len(dst) of them.
func unpack[T uint8 | uint32](dst []T, src []byte, width uint, max uint32) error {
	mask := uint64(1)<<width - 1
	var acc uint64
	var have uint
	for i := range dst {
		for have < width {
			acc |= uint64(src[0]) << have
			src = src[1:]
			have += 8
		}
		v := uint32(acc & mask)
		if v > max {
			return errBound
		}
		dst[i] = T(v)
		acc >>= width
		have -= width
	}
	return nil
}

// levelWidth is the number of bits that a level takes.
func levelWidth(max int) uint { return uint(bits.Len(uint(max))) }
