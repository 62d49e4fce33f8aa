package enc

import "encoding/binary"

// unsplit decodes n BYTE_STREAM_SPLIT values of w bytes: all first bytes, then all
// second bytes, and so on. tail is the number of bytes after them.
func unsplit(src, buf []byte, n, w int) (plain []byte, tail int, err error) {
	size := uint64(n) * uint64(w)
	if size > uint64(len(src)) {
		return nil, 0, ErrShort
	}
	src, tail = src[:size], len(src)-int(size)
	out := Reuse(buf, len(src))
	whole := n &^ 7
	switch {
	case whole == 0:
	case w == 4:
		unsplit4(out, src, n)
	case w%8 == 0:
		for k := 0; k < w; k += 8 {
			unsplit8(out[k:], src[k*n:], n, w)
		}
	default:
		whole = 0
	}
	for k := range w {
		for i, c := range src[k*n+whole : (k+1)*n] {
			out[(whole+i)*w+k] = c
		}
	}
	return out, tail, nil
}

// unsplit4 decodes 4-byte values, eight at a time. The last n%8 values are left
// out.
func unsplit4(out, src []byte, n int) {
	s0, s1, s2, s3 := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
	for len(s0) >= 8 && len(s1) >= 8 && len(s2) >= 8 && len(s3) >= 8 {
		v0, v1 := binary.LittleEndian.Uint64(s0), binary.LittleEndian.Uint64(s1)
		v2, v3 := binary.LittleEndian.Uint64(s2), binary.LittleEndian.Uint64(s3)
		v0, v1 = swap8(v0, v1)
		v2, v3 = swap8(v2, v3)
		v0, v2 = swap16(v0, v2)
		v1, v3 = swap16(v1, v3)
		o := (*[32]byte)(out) // word i holds values i and i+4
		binary.LittleEndian.PutUint64(o[0:], v0&0xffffffff|v1<<32)
		binary.LittleEndian.PutUint64(o[8:], v2&0xffffffff|v3<<32)
		binary.LittleEndian.PutUint64(o[16:], v0>>32|v1>>32<<32)
		binary.LittleEndian.PutUint64(o[24:], v2>>32|v3>>32<<32)
		s0, s1, s2, s3, out = s0[8:], s1[8:], s2[8:], s3[8:], out[32:]
	}
}

// unsplit8 decodes eight of the streams of values w bytes apart, eight values at a
// time. It transposes blocks of 8×8 bytes: it swaps single bytes, then pairs, then
// fours.
func unsplit8(out, src []byte, n, w int) {
	for i := 0; i+8 <= n; i += 8 {
		s := src[i:]
		v0, v1 := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[n:])
		v2, v3 := binary.LittleEndian.Uint64(s[2*n:]), binary.LittleEndian.Uint64(s[3*n:])
		v4, v5 := binary.LittleEndian.Uint64(s[4*n:]), binary.LittleEndian.Uint64(s[5*n:])
		v6, v7 := binary.LittleEndian.Uint64(s[6*n:]), binary.LittleEndian.Uint64(s[7*n:])
		v0, v1 = swap8(v0, v1)
		v2, v3 = swap8(v2, v3)
		v4, v5 = swap8(v4, v5)
		v6, v7 = swap8(v6, v7)
		v0, v2 = swap16(v0, v2)
		v1, v3 = swap16(v1, v3)
		v4, v6 = swap16(v4, v6)
		v5, v7 = swap16(v5, v7)
		v0, v4 = swap32(v0, v4)
		v1, v5 = swap32(v1, v5)
		v2, v6 = swap32(v2, v6)
		v3, v7 = swap32(v3, v7)
		o := out[i*w:]
		binary.LittleEndian.PutUint64(o, v0)
		binary.LittleEndian.PutUint64(o[w:], v1)
		binary.LittleEndian.PutUint64(o[2*w:], v2)
		binary.LittleEndian.PutUint64(o[3*w:], v3)
		binary.LittleEndian.PutUint64(o[4*w:], v4)
		binary.LittleEndian.PutUint64(o[5*w:], v5)
		binary.LittleEndian.PutUint64(o[6*w:], v6)
		binary.LittleEndian.PutUint64(o[7*w:], v7)
	}
}

// swap8 swaps the odd bytes of x with the even bytes of y; swap16 and swap32 do the
// same with lanes of 16 and 32 bits.

func swap8(x, y uint64) (uint64, uint64) {
	t := (x>>8 ^ y) & 0x00ff00ff00ff00ff
	return x ^ t<<8, y ^ t
}

func swap16(x, y uint64) (uint64, uint64) {
	t := (x>>16 ^ y) & 0x0000ffff0000ffff
	return x ^ t<<16, y ^ t
}

func swap32(x, y uint64) (uint64, uint64) {
	return x&0xffffffff | y<<32, x>>32 | y>>32<<32
}

// appendSplit appends BYTE_STREAM_SPLIT: the first bytes of all values, then the
// second bytes, and so on.
func appendSplit(dst, plain []byte, width int) []byte {
	n := len(plain) / width
	at := len(dst)
	dst = GrowTo(dst, at+n*width)
	for k := range width {
		stream := dst[at+k*n : at+(k+1)*n]
		for i := range stream {
			stream[i] = plain[i*width+k]
		}
	}
	return dst
}
