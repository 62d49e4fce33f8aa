package enc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	ones  = 0x0101010101010101 // 1 in each byte
	highs = 0x8080808080808080 // highest bit of each byte
)

// sameLevels returns a word with the highest bit of each byte set where that byte
// of x is level.
func sameLevels(x uint64, level uint8) uint64 {
	x ^= uint64(level) * ones
	return ^(x&^highs + ^uint64(highs) | x) & highs
}

// CountLevels returns how many of the levels equal level.
func CountLevels(levels []uint8, level uint8) int {
	n := 0
	for ; len(levels) >= 8; levels = levels[8:] {
		n += bits.OnesCount64(sameLevels(binary.LittleEndian.Uint64(levels), level))
	}
	for _, l := range levels {
		if l == level {
			n++
		}
	}
	return n
}

// levelBits returns a bit for each of at most 64 levels, set where it equals level.
func levelBits(levels []uint8, level uint8) (set uint64) {
	shift := 0
	for ; len(levels) >= 8; levels = levels[8:] {
		// The product gathers the lowest bits of all bytes in the highest byte.
		set |= sameLevels(binary.LittleEndian.Uint64(levels), level) >> 7 * 0x0102040810204080 >> 56 << shift
		shift += 8
	}
	for i, l := range levels {
		if l == level {
			set |= 1 << (shift + i)
		}
	}
	return set
}

// SelectLevels appends the levels of the entries in sel.
func SelectLevels(dst, levels []uint8, sel []uint32) []uint8 {
	if consecutive(sel) {
		return append(dst, levels[sel[0]:int(sel[0])+len(sel)]...)
	}
	dst, out := Extend(dst, len(sel))
	for i, at := range sel {
		out[i] = levels[at]
	}
	return dst
}

// SelectValues maps entries to values: for each entry in sel whose definition level
// is level, it appends the value's position among the values other than NULL. (If
// no value is NULL, the result would be sel.)
func SelectValues(dst []uint32, def []uint8, level uint8, sel []uint32) []uint32 {
	found := len(dst)
	dst = slices.Grow(dst, len(sel))[:found+len(sel)]
	from, rank := 0, 0 // entries before the window, and values among them
	for len(sel) > 0 {
		first := sel[0]
		rank += CountLevels(def[from:first], level)
		from = int(first)
		window := def[from:min(from+64, len(def))]
		if len(sel) == 1 || sel[1]-first >= 64 {
			window = window[:1]
		}
		set := levelBits(window, level)
		if len(sel) >= 64 && sel[63]-first == 63 { // consecutive entries
			for range bits.OnesCount64(set) {
				dst[found] = uint32(rank)
				found, rank = found+1, rank+1
			}
			from, sel = from+64, sel[64:]
			continue
		}
		k := 0
		for ; k < len(sel) && sel[k]-first < uint32(len(window)); k++ {
			at := sel[k] - first
			dst[found] = uint32(rank + bits.OnesCount64(set&(1<<at-1)))
			found += int(set >> at & 1)
		}
		sel = sel[k:]
		rank += bits.OnesCount64(set)
		from += len(window)
	}
	return dst[:found]
}

// UnpackHighFirst unpacks values of at most 8 bits, highest bit of each byte first,
// the order of the deprecated BIT_PACKED encoding. It returns false if one is above
// limit. src must have all of them.
func UnpackHighFirst(dst []uint8, src []byte, width uint, limit uint8) bool {
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

// ConstantLevel reports whether src encodes n levels of width bits that all equal
// v. It inspects the runs without decoding them, so false may also mean "not
// certain" or that src is invalid. v may exceed the column's maximum.
func ConstantLevel(src []byte, n int, width uint) (v uint32, ok bool) {
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

// LevelWidth returns the number of bits of a level.
func LevelWidth(max int) uint { return uint(bits.Len(uint(max))) }
