package enc

import "encoding/binary"

// AppendBits appends n bits of src, starting at bit from, after the first have bits
// of dst.
func AppendBits(dst []byte, have int, src []byte, from, n int) []byte {
	dst = GrowTo(dst, (have+n+7)/8)
	clear(dst[(have+7)/8:])
	for n > 0 {
		// as many bits as both current bytes have left
		k := min(n, 8-have%8, 8-from%8)
		b := src[from/8] >> (from % 8) & (1<<k - 1)
		dst[have/8] |= b << (have % 8)
		have, from, n = have+k, from+k, n-k
	}
	return dst
}

// setBits sets n bits of b, starting at bit at.
func setBits(b []byte, at, n int) {
	for ; n > 0 && at%8 != 0; at, n = at+1, n-1 {
		b[at/8] |= 1 << (at % 8)
	}
	Fill(b[at/8:at/8+n/8], 0xff)
	if n%8 > 0 {
		b[at/8+n/8] |= 1<<(n%8) - 1
	}
}

// orBits ORs n bits of src into b, starting at bit at of b.
func orBits(b []byte, at int, src []byte, n int) {
	shift := at % 8
	b = b[at/8:]
	for i := 0; n > 0; i, n = i+1, n-8 {
		c := uint16(src[i]&(1<<min(n, 8)-1)) << shift
		b[i] |= byte(c)
		if c > 0xff {
			b[i+1] |= byte(c >> 8)
		}
	}
}

// bitsAt returns the width bits that start at the given bit of b, least significant
// bit first. They must be present.
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
	if bit+width > 64 { // the value extends into a ninth byte
		lo |= uint64(b[8]) << (64 - bit)
	}
	if width == 64 {
		return lo
	}
	return lo & (1<<width - 1)
}
