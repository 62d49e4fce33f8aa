package enc

import "encoding/binary"

// bit encodes a width as a type: an array type of n bits means width n. The
// decoders below are thus compiled once per width, with constant shifts and
// offsets.
type bit struct{}

type bitWidth interface {
	[1]bit | [2]bit | [3]bit | [4]bit | [5]bit | [6]bit | [7]bit | [8]bit |
		[9]bit | [10]bit | [11]bit | [12]bit | [13]bit | [14]bit | [15]bit | [16]bit |
		[17]bit | [18]bit | [19]bit | [20]bit | [21]bit | [22]bit | [23]bit | [24]bit |
		[25]bit | [26]bit | [27]bit | [28]bit | [29]bit | [30]bit | [31]bit | [32]bit
}

var unpackers = [...]func(dst []uint32, src []byte, limit uint64) (int, bool){
	1:  unpackIndices[[1]bit],
	2:  unpackIndices[[2]bit],
	3:  unpackIndices[[3]bit],
	4:  unpackIndices[[4]bit],
	5:  unpackIndices[[5]bit],
	6:  unpackIndices[[6]bit],
	7:  unpackIndices[[7]bit],
	8:  unpackIndices[[8]bit],
	9:  unpackIndices[[9]bit],
	10: unpackIndices[[10]bit],
	11: unpackIndices[[11]bit],
	12: unpackIndices[[12]bit],
	13: unpackIndices[[13]bit],
	14: unpackIndices[[14]bit],
	15: unpackIndices[[15]bit],
	16: unpackIndices[[16]bit],
	17: unpackIndices[[17]bit],
	18: unpackIndices[[18]bit],
	19: unpackIndices[[19]bit],
	20: unpackIndices[[20]bit],
	21: unpackIndices[[21]bit],
	22: unpackIndices[[22]bit],
	23: unpackIndices[[23]bit],
	24: unpackIndices[[24]bit],
	25: unpackIndices[[25]bit],
	26: unpackIndices[[26]bit],
	27: unpackIndices[[27]bit],
	28: unpackIndices[[28]bit],
	29: unpackIndices[[29]bit],
	30: unpackIndices[[30]bit],
	31: unpackIndices[[31]bit],
	32: unpackIndices[[32]bit],
}

var levelUnpackers = [...]func(dst []uint8, src []byte, limit uint64) (int, bool){
	1: unpackLevels[[1]bit],
	2: unpackLevels[[2]bit],
	3: unpackLevels[[3]bit],
	4: unpackLevels[[4]bit],
	5: unpackLevels[[5]bit],
	6: unpackLevels[[6]bit],
	7: unpackLevels[[7]bit],
}

// Unpack decodes len(dst) bit-packed values of width bits (at most 32) from src,
// which must hold them and may be longer. It returns false if one is above limit;
// dst is then undefined.
func Unpack[T uint8 | uint32](dst []T, src []byte, width uint, limit uint32) bool {
	n, ok := 0, true
	switch d := any(dst).(type) {
	case []uint32:
		if width > 0 {
			n, ok = unpackers[width](d, src, uint64(limit))
		}
	case []uint8:
		if width > 0 && int(width) < len(levelUnpackers) {
			n, ok = levelUnpackers[width](d, src, uint64(limit))
		}
	}
	for i := n; i < len(dst); i++ { // the last values, for which loads of eight bytes would exceed src
		v := bitsAt(src, uint(i)*width, width)
		ok = ok && v <= uint64(limit)
		dst[i] = T(v)
	}
	return ok
}

// unpackIndices decodes eight values per step while src has eight more bytes. It
// returns the number of values decoded, and whether all are within the limit.
func unpackIndices[W bitWidth](dst []uint32, src []byte, limit uint64) (int, bool) {
	var w W
	const low = 1<<64 - 1
	left, above := dst, uint64(0) // highest bit set: a difference was negative
	for len(left) >= 8 && len(src) >= len(w)+8 {
		d, s := (*[8]uint32)(left), src[:len(w)+8]
		v0 := binary.LittleEndian.Uint64(s) & (low >> (64 - len(w)))
		v1 := binary.LittleEndian.Uint64(s[1*len(w)/8:]) >> (1 * len(w) % 8) & (low >> (64 - len(w)))
		v2 := binary.LittleEndian.Uint64(s[2*len(w)/8:]) >> (2 * len(w) % 8) & (low >> (64 - len(w)))
		v3 := binary.LittleEndian.Uint64(s[3*len(w)/8:]) >> (3 * len(w) % 8) & (low >> (64 - len(w)))
		v4 := binary.LittleEndian.Uint64(s[4*len(w)/8:]) >> (4 * len(w) % 8) & (low >> (64 - len(w)))
		v5 := binary.LittleEndian.Uint64(s[5*len(w)/8:]) >> (5 * len(w) % 8) & (low >> (64 - len(w)))
		v6 := binary.LittleEndian.Uint64(s[6*len(w)/8:]) >> (6 * len(w) % 8) & (low >> (64 - len(w)))
		v7 := binary.LittleEndian.Uint64(s[7*len(w)/8:]) >> (7 * len(w) % 8) & (low >> (64 - len(w)))
		above |= (limit - v0) | (limit - v1) | ((limit - v2) | (limit - v3)) |
			(((limit - v4) | (limit - v5)) | ((limit - v6) | (limit - v7)))
		d[0], d[1], d[2], d[3] = uint32(v0), uint32(v1), uint32(v2), uint32(v3)
		d[4], d[5], d[6], d[7] = uint32(v4), uint32(v5), uint32(v6), uint32(v7)
		left, src = left[8:], src[len(w):]
	}
	return len(dst) - len(left), above>>63 == 0
}

// unpackLevels does the same for widths below 8. It spreads the eight values of a
// load by halving: the upper four to the upper half of the word, then the upper two
// of each half, then the upper one of each pair.
func unpackLevels[W bitWidth](dst []uint8, src []byte, limit uint64) (int, bool) {
	const shorts, words = 0x0001000100010001, 0x0000000100000001 // 1 in each lane of 16 and of 32 bits
	var w W
	over := (0x80 + min(limit, 0x7f)) * ones // in each byte the limit, plus a bit above all values
	left, within := dst, uint64(1<<64-1)
	for len(left) >= 8 && len(src) >= 8 {
		x := binary.LittleEndian.Uint64(src)
		low := uint64(1)<<(4*len(w)) - 1
		x = x&low | x<<(32-4*len(w))&(low<<32)
		low = (1<<(2*len(w)) - 1) * words
		x = x&low | x<<(16-2*len(w))&(low<<16)
		low = (1<<len(w) - 1) * shorts
		x = x&low | x<<(8-len(w))&(low<<8)
		within &= over - x
		binary.LittleEndian.PutUint64(left, x)
		left, src = left[8:], src[len(w):]
	}
	return len(dst) - len(left), within&(highs) == highs
}
