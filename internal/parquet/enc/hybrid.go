package enc

import (
	"encoding/binary"
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
		return run, ErrShort
	}
	count, room := header>>1, len(src)-run.data
	if header&1 == 0 {
		size := int(width+7) / 8
		switch {
		case count == 0:
			return run, errRun
		case room < size:
			return run, ErrShort
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
	if PackedSize(run.n, width) > uint64(room) {
		return run, ErrShort
	}
	// Some writers cut off the padding of the last group.
	run.end = run.data + int(min(count*uint64(width), uint64(room)))
	return run, nil
}

// PackedSize returns the number of bytes that n bit-packed values take.
func PackedSize(n int, width uint) uint64 { return (uint64(n)*uint64(width) + 7) / 8 }

// DecodeHybrid decodes len(dst) values of width bits (at most 32) from the
// RLE/bit-packed hybrid encoding in src. A value above limit is an error. The last
// run may be longer than needed.
func DecodeHybrid[T uint8 | uint32](dst []T, src []byte, width uint, limit uint32) error {
	for len(dst) > 0 {
		run, err := nextRun(src, width, len(dst))
		switch {
		case err != nil:
			return err
		case run.value == bitPacked:
			if !Unpack(dst[:run.n], src[run.data:], width, limit) {
				return ErrBound
			}
		case run.value > int64(limit):
			return ErrBound
		default:
			Fill(dst[:run.n], T(run.value))
		}
		dst, src = dst[run.n:], src[run.end:]
	}
	return nil
}

// CheckZeros checks the runs of n values of zero bits, which are all 0. Some
// writers store no runs for them.
func CheckZeros(src []byte, n int) error {
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

// Fill sets all of dst to v.
func Fill[T uint8 | uint32](dst []T, v T) {
	done := min(len(dst), 32)
	for i := range dst[:done] {
		dst[i] = v
	}
	for done < len(dst) {
		done += copy(dst[done:], dst[:done])
	}
}

// AppendHybrid appends v, values of width bits (1 to 32), in the RLE/bit-packed
// hybrid encoding. It finds runs that start at a multiple of eight values after the
// end of the last run.
func AppendHybrid[T uint8 | uint32](dst []byte, v []T, width uint) []byte {
	from := 0 // first value not written yet
	for i := 0; i+8 <= len(v); {
		x := v[i]
		if g := v[i : i+8 : i+8]; g[1] != x || g[2] != x || g[3] != x || g[4] != x || g[5] != x || g[6] != x || g[7] != x {
			i += 8
			continue
		}
		end := i + 8
		for end < len(v) && v[end] == x {
			end++
		}
		// A run pays if it takes fewer bytes than bit-packed values, counting its header and
		// value and the header of what follows.
		if n := end - i; n*int(width) <= 8*int(3+(width+7)/8) {
			i += (end - i) &^ 7
			continue
		}
		dst = appendPacked(dst, v[from:i], width)
		dst = AppendRun(dst, uint32(x), end-i, width)
		from, i = end, end
	}
	return appendPacked(dst, v[from:], width)
}

// AppendRun appends a run of n times x.
func AppendRun(dst []byte, x uint32, n int, width uint) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for w := uint(0); w < width; w += 8 {
		dst = append(dst, byte(x>>w))
	}
	return dst
}

// appendPacked appends a run of bit-packed values, padded with zeros to a multiple
// of eight.
func appendPacked[T uint8 | uint32](dst []byte, v []T, width uint) []byte {
	if len(v) == 0 {
		return dst
	}
	groups := (len(v) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	n := len(dst)
	size := groups * int(width)
	dst = GrowTo(dst, n+size+packSlack)
	whole := len(v) &^ 7
	pack(dst[n:], v[:whole], width)
	if whole < len(v) {
		var last [8]T
		copy(last[:], v[whole:])
		pack(dst[n+whole/8*int(width):], last[:], width)
	}
	return dst[:n+size]
}

// packSlack is the number of bytes after its output that pack may overwrite.
const packSlack = 16

// pack packs groups of eight values of width bits, least significant bit first.
func pack[T uint8 | uint32](dst []byte, v []T, width uint) {
	switch {
	case width == 1:
		packBits(dst, v)
	case width <= 8:
		packNarrow(dst, v, width)
	case width <= 16:
		packMiddle(dst, v, width)
	default:
		packWide(dst, v, width)
	}
}

func packBits[T uint8 | uint32](dst []byte, v []T) {
	if b, ok := any(v).([]uint8); ok { // the levels of most columns
		for ; len(b) >= 8; b = b[8:] {
			// Bit 0 of byte i moves to bit 56+i, and the products do not overlap.
			dst[0] = byte(binary.LittleEndian.Uint64(b) * 0x0102040810204080 >> 56)
			dst = dst[1:]
		}
		return
	}
	for ; len(v) >= 8; v = v[8:] {
		dst[0] = byte(v[0] | v[1]<<1 | v[2]<<2 | v[3]<<3 | v[4]<<4 | v[5]<<5 | v[6]<<6 | v[7]<<7)
		dst = dst[1:]
	}
}

func packNarrow[T uint8 | uint32](dst []byte, v []T, width uint) {
	w := width & 15
	for ; len(v) >= 8; v = v[8:] {
		lo := uint64(v[0]) | uint64(v[1])<<w | uint64(v[2])<<(2*w&63) | uint64(v[3])<<(3*w&63)
		hi := uint64(v[4]) | uint64(v[5])<<w | uint64(v[6])<<(2*w&63) | uint64(v[7])<<(3*w&63)
		binary.LittleEndian.PutUint64(dst, lo|hi<<(4*w&63))
		dst = dst[w:]
	}
}

func packMiddle[T uint8 | uint32](dst []byte, v []T, width uint) {
	w := width & 31
	for ; len(v) >= 8; v = v[8:] {
		lo := uint64(v[0]) | uint64(v[1])<<w | uint64(v[2])<<(2*w&63) | uint64(v[3])<<(3*w&63)
		hi := uint64(v[4]) | uint64(v[5])<<w | uint64(v[6])<<(2*w&63) | uint64(v[7])<<(3*w&63)
		binary.LittleEndian.PutUint64(dst, lo|hi<<(4*w)) // a shift by 64 gives 0
		binary.LittleEndian.PutUint64(dst[8:], hi>>((64-4*w)&63))
		dst = dst[w:]
	}
}

func packWide[T uint8 | uint32](dst []byte, v []T, width uint) {
	var acc uint64
	have := uint(0) // bits in acc, fewer than 32
	for _, x := range v {
		acc |= uint64(x) << (have & 63)
		have += width
		if have >= 32 {
			binary.LittleEndian.PutUint32(dst, uint32(acc))
			dst = dst[4:]
			acc >>= 32
			have -= 32
		}
	}
	binary.LittleEndian.PutUint32(dst, uint32(acc)) // eight values end at a byte boundary
}
