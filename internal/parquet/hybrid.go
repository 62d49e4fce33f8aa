package parquet

import (
	"bytes"
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
// are all value, or n bit-packed ones. (Four fields, so that it stays in
// registers.)
type hybridRun struct {
	n     int
	value int64 // bitPacked when the values are
	data  int   // where what is behind the header begins
	end   int   // where the next run begins
}

const bitPacked = -1

// nextRun reads the header of the run at the start of src. left, at least 1,
// is the number of values still wanted: a run may go on beyond it, as
// bit-packed ones come in eights. What n values take is there.
func nextRun(src []byte, width uint, left int) (run hybridRun, err error) {
	header := uint64(0)
	if len(src) > 0 && src[0] < 0x80 {
		header, run.data = uint64(src[0]), 1
	} else if header, run.data = binary.Uvarint(src); run.data <= 0 {
		return run, errShortValues
	}
	count, room := header>>1, len(src)-run.data
	if header&1 == 0 {
		size := int(width+7) / 8
		switch {
		case count == 0:
			return run, errRun
		case room < size:
			return run, errShortValues
		}
		run.n, run.end = int(min(count, uint64(left))), run.data+size
		for i, c := range src[run.data:run.end] {
			run.value |= int64(c) << (8 * i)
		}
		return run, nil
	}
	if count == 0 || count > 1<<31 {
		return run, errRun
	}
	run.n, run.value = int(min(count*8, uint64(left))), bitPacked
	if packedSize(run.n, width) > uint64(room) {
		return run, errShortValues
	}
	// The padding of the last group is sometimes cut off.
	run.end = run.data + int(min(count*uint64(width), uint64(room)))
	return run, nil
}

// packedSize is the number of bytes that n bit-packed values take.
func packedSize(n int, width uint) uint64 { return (uint64(n)*uint64(width) + 7) / 8 }

// decodeHybrid decodes len(dst) values of width bits (at most 32) from the
// RLE/bit-packed hybrid encoding in src. Values above limit are an error. The
// last run may go on beyond len(dst).
func decodeHybrid[T uint8 | uint32](dst []T, src []byte, width uint, limit uint32) error {
	for len(dst) > 0 {
		run, err := nextRun(src, width, len(dst))
		switch {
		case err != nil:
			return err
		case run.value == bitPacked:
			if !unpack(dst[:run.n], src[run.data:], width, limit) {
				return errBound
			}
		case run.value > int64(limit):
			return errBound
		default:
			fill(dst[:run.n], T(run.value))
		}
		dst, src = dst[run.n:], src[run.end:]
	}
	return nil
}

// checkZeros checks the runs of n values of no bits, which are all 0. Some
// writers store no run at all for them.
func checkZeros(src []byte, n int) error {
	if len(src) == 0 {
		return nil
	}
	for n > 0 {
		run, err := nextRun(src, 0, n)
		if err != nil {
			return err
		}
		n, src = n-run.n, src[run.end:]
	}
	return nil
}

// fill sets all of dst to v.
func fill[T uint8 | uint32](dst []T, v T) {
	done := min(len(dst), 32)
	for i := range dst[:done] {
		dst[i] = v
	}
	for done < len(dst) {
		done += copy(dst[done:], dst[:done])
	}
}

// constantLevel reports whether src stands for n levels of width bits that
// are all v. It says so from the runs, without decoding them; false means
// "not, or not surely, or src is not valid". v may be above what the column
// allows.
func constantLevel(src []byte, n int, width uint) (v uint32, ok bool) {
	for from := 0; from < n; {
		run, err := nextRun(src, width, n-from)
		if err != nil {
			return 0, false
		}
		first := uint32(run.value)
		if run.value == bitPacked {
			first = uint32(bitsAt(src[run.data:], 0, width))
		}
		if from == 0 {
			v = first
		}
		if first != v || run.value == bitPacked && !constantPacked(src[run.data:], run.n, width, v) {
			return 0, false
		}
		from, src = from+run.n, src[run.end:]
	}
	return v, n > 0
}

// constantPacked reports whether n bit-packed values are all v. Behind the
// first eight, whole groups are compared as bytes with the group before.
func constantPacked(src []byte, n int, width uint, v uint32) bool {
	size, whole := int(width), n/8
	if whole > 1 && !bytes.Equal(src[size:whole*size], src[:(whole-1)*size]) {
		return false
	}
	for i := range n {
		if (i < 8 || i >= whole*8) && bitsAt(src, uint(i)*width, width) != uint64(v) {
			return false
		}
	}
	return true
}

// levelWidth is the number of bits that a level takes.
func levelWidth(max int) uint { return uint(bits.Len(uint(max))) }
