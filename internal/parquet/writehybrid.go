package parquet

import "encoding/binary"

// appendHybrid appends v, values of width bits (1 to 32), in the RLE/bit-packed
// hybrid encoding. It finds runs that start at a multiple of eight values after the
// end of the last run.
func appendHybrid[T uint8 | uint32](dst []byte, v []T, width uint) []byte {
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
		if !runPays(end-i, width) {
			i += (end - i) &^ 7
			continue
		}
		dst = appendPacked(dst, v[from:i], width)
		dst = appendRun(dst, uint32(x), end-i, width)
		from, i = end, end
	}
	return appendPacked(dst, v[from:], width)
}

// runPays reports whether a run of n values takes fewer bytes than bit-packed
// values, counting its header and value and the header of what follows.
func runPays(n int, width uint) bool { return n*int(width) > 8*int(3+(width+7)/8) }

// appendRun appends a run of n times x.
func appendRun(dst []byte, x uint32, n int, width uint) []byte {
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
	dst = growTo(dst, n+size+packSlack)
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

// growTo returns s with length n. Existing elements are kept; new ones are
// undefined.
func growTo[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	out := make([]T, n, max(n, 2*cap(s)))
	copy(out, s)
	return out
}
