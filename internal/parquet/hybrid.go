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

// hybridRun is a run of the RLE/bit-packed hybrid encoding: n copies of value, or n
// bit-packed values. (It has only four fields, so that it stays in registers.)
type hybridRun struct {
	n     int
	value int64 // bitPacked for a bit-packed run
	data  int   // offset of the bytes after the header
	end   int   // offset of the next run
}

const bitPacked = -1

// nextRun reads the header of the run at the start of src. left, at least 1, is the
// number of values still wanted; n is limited to it, since bit-packed runs come in
// multiples of eight. nextRun checks that src has the bytes of n values.
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
	// Some writers cut off the padding of the last group.
	run.end = run.data + int(min(count*uint64(width), uint64(room)))
	return run, nil
}

// packedSize returns the number of bytes that n bit-packed values take.
func packedSize(n int, width uint) uint64 { return (uint64(n)*uint64(width) + 7) / 8 }

// decodeHybrid decodes len(dst) values of width bits (at most 32) from the
// RLE/bit-packed hybrid encoding in src. A value above limit is an error. The last
// run may be longer than needed.
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

// checkZeros checks the runs of n values of zero bits, which are all 0. Some
// writers store no runs for them.
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

// unpackHighFirst unpacks values of at most 8 bits, highest bit of each byte first,
// the order of the deprecated BIT_PACKED encoding. It returns false if one is above
// limit. src must have all of them.
func unpackHighFirst(dst []uint8, src []byte, width uint, limit uint8) bool {
	ok := true
	bits, have := uint(0), uint(0) // the lowest have bits of bits are not unpacked yet
	for i := range dst {
		if have < width {
			bits, have = bits<<8|uint(src[0]), have+8
			src = src[1:]
		}
		have -= width
		dst[i] = uint8(bits >> have & (1<<width - 1))
		ok = ok && dst[i] <= limit
	}
	return ok
}

// constantLevel reports whether src encodes n levels of width bits that all equal
// v. It inspects the runs without decoding them, so false may also mean "not
// certain" or that src is invalid. v may exceed the column's maximum.
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

// constantPacked reports whether n bit-packed values all equal v. After the first
// eight, whole groups are compared bytewise with the previous group.
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

// levelWidth returns the number of bits of a level.
func levelWidth(max int) uint { return uint(bits.Len(uint(max))) }
