package enc

import (
	"encoding/binary"
	"slices"
)

// The functions in this file pick values by position from a page without decoding
// the others. sel holds positions among the values other than NULL, strictly
// ascending and in range. A caller that breaks this gets a bounds panic or wrong
// values, but never a read outside src. Each function appends to dst and returns
// it, as append does.

const stride = 8 // positions handled per step

// consecutive reports whether strictly ascending positions have no gaps.
func consecutive(sel []uint32) bool {
	return len(sel) > 0 && int(sel[len(sel)-1]-sel[0]) == len(sel)-1
}

// GatherFixed appends the PLAIN values at sel, width bytes each.
func GatherFixed(dst, src []byte, width int, sel []uint32) []byte {
	if consecutive(sel) {
		from := int(sel[0]) * width
		return append(dst, src[from:from+len(sel)*width]...)
	}
	dst, out := Extend(dst, len(sel)*width)
	switch width {
	case 4:
		gather4(out, src, sel)
	case 8:
		gather8(out, src, sel)
	case 12:
		gather12(out, src, sel)
	case 16:
		gather16(out, src, sel)
	default:
		gatherRuns(out, src, width, sel)
	}
	return dst
}

// gather4 and the functions below take eight positions per step: together if they
// are consecutive, else one by one. Scattered positions thus need no search for
// runs, and runs cost no more than a copy.

func gather4(out, src []byte, sel []uint32) {
	for len(sel) >= stride && len(out) >= 4*stride {
		p := (*[stride]uint32)(sel)
		if p[stride-1]-p[0] == stride-1 {
			*(*[4 * stride]byte)(out) = *(*[4 * stride]byte)(src[4*int(p[0]):])
		} else {
			o := (*[4 * stride]byte)(out)
			for i, at := range p {
				*(*[4]byte)(o[4*i:]) = *(*[4]byte)(src[4*int(at):])
			}
		}
		sel, out = sel[stride:], out[4*stride:]
	}
	for i, at := range sel {
		*(*[4]byte)(out[4*i:]) = *(*[4]byte)(src[4*int(at):])
	}
}

func gather8(out, src []byte, sel []uint32) {
	for len(sel) >= stride && len(out) >= 8*stride {
		p := (*[stride]uint32)(sel)
		if p[stride-1]-p[0] == stride-1 {
			*(*[8 * stride]byte)(out) = *(*[8 * stride]byte)(src[8*int(p[0]):])
		} else {
			o := (*[8 * stride]byte)(out)
			for i, at := range p {
				*(*[8]byte)(o[8*i:]) = *(*[8]byte)(src[8*int(at):])
			}
		}
		sel, out = sel[stride:], out[8*stride:]
	}
	for i, at := range sel {
		*(*[8]byte)(out[8*i:]) = *(*[8]byte)(src[8*int(at):])
	}
}

func gather12(out, src []byte, sel []uint32) {
	for i, at := range sel {
		*(*[12]byte)(out[12*i:]) = *(*[12]byte)(src[12*int(at):])
	}
}

func gather16(out, src []byte, sel []uint32) {
	for i, at := range sel {
		*(*[16]byte)(out[16*i:]) = *(*[16]byte)(src[16*int(at):])
	}
}

func gatherRuns(out, src []byte, width int, sel []uint32) {
	for len(sel) > 0 {
		n := 1
		for n < len(sel) && sel[n] == sel[n-1]+1 {
			n++
		}
		from := int(sel[0]) * width
		copy(out, src[from:from+n*width])
		sel, out = sel[n:], out[n*width:]
	}
}

// GatherBools appends the booleans at sel, eight to a byte as in src. The first one
// is the lowest bit of the first byte appended; unused bits of the last byte are
// zero.
func GatherBools(dst, src []byte, sel []uint32) []byte {
	dst, out := Extend(dst, (len(sel)+7)/8)
	for ; len(sel) >= stride; sel, out = sel[stride:], out[1:] {
		p := (*[stride]uint32)(sel)
		first, last := src[p[0]/8], src[p[stride-1]/8]
		if p[stride-1]-p[0] == stride-1 {
			out[0] = byte((uint(first) | uint(last)<<8) >> (p[0] % 8))
			continue
		}
		var b byte
		for i, at := range p {
			b |= src[at/8] >> (at % 8) & 1 << i
		}
		out[0] = b
	}
	if len(sel) > 0 {
		out[0] = 0
		for i, at := range sel {
			out[0] |= src[at/8] >> (at % 8) & 1 << i
		}
	}
	return dst
}

// GatherByteArrays appends the values at sel of n PLAIN byte arrays, with their
// lengths. It checks all n lengths. tail is the number of bytes after the last
// value.
func GatherByteArrays(dst, src []byte, n int, sel []uint32) (_ []byte, tail int, err error) {
	w := ByteArrays{Src: src}
	next := 0 // index of the value at w.pos
	dst = slices.Grow(dst, int(float64(len(src))*float64(len(sel))/float64(max(n, 1))))
	for i := 0; i < len(sel); {
		run := 1 // consecutive values are copied together
		for i+run < len(sel) && sel[i+run] == sel[i]+uint32(run) {
			run++
		}
		if gap := int(sel[i]) - next; gap > 0 && !w.Skip(gap) {
			return nil, 0, ErrShort
		}
		from := w.Pos
		if run == 1 && !w.step() || run > 1 && !w.Skip(run) {
			return nil, 0, ErrShort
		}
		dst = append(dst, src[from:w.Pos]...)
		next = int(sel[i]) + run
		i += run
	}
	if !w.Skip(n - next) {
		return nil, 0, ErrShort
	}
	return dst, len(src) - int(w.Pos), nil
}

// GatherHybrid appends the values at sel of n values of width bits (at most 32) in
// the RLE/bit-packed hybrid encoding. The runs must cover n values. Only the values
// at sel are read; one above limit is an error. Width 0 means n zeros, whatever src
// holds.
func GatherHybrid(dst []uint32, src []byte, n int, width uint, limit uint32, sel []uint32) ([]uint32, error) {
	if width == 0 {
		for range sel {
			dst = append(dst, 0)
		}
		return dst, nil
	}
	for from := 0; from < n; {
		run, err := nextRun(src, width, n-from)
		if err != nil {
			return nil, err
		}
		if k := before(sel, uint32(from+run.n)); k > 0 {
			if dst, err = gatherRun(dst, src[run.data:], run, width, limit, sel[:k], uint32(from)); err != nil {
				return nil, err
			}
			sel = sel[k:]
		}
		src = src[run.end:]
		from += run.n
	}
	return dst, nil
}

// gatherRun appends the values at sel of one run, whose first position is base.
func gatherRun(dst []uint32, data []byte, run hybridRun, width uint, limit uint32, sel []uint32, base uint32) ([]uint32, error) {
	from := len(dst)
	dst = slices.Grow(dst, len(sel))[:from+len(sel)]
	out := dst[from:]
	switch {
	case run.value > int64(limit):
		return nil, ErrBound
	case run.value != bitPacked:
		Fill(out, uint32(run.value))
	case !gatherPacked(out, data, width, limit, sel, base):
		return nil, ErrBound
	}
	return dst, nil
}

// before returns how many of the ascending positions are below end. It examines at
// most about twice as many positions.
func before(sel []uint32, end uint32) int {
	if len(sel) == 0 || sel[0] >= end {
		return 0
	}
	lo, hi := 0, 1 // sel[lo] < end
	for hi < len(sel) && sel[hi] < end {
		lo, hi = hi, 2*hi
	}
	hi = min(hi, len(sel))
	for lo+1 < hi {
		if mid := int(uint(lo+hi) / 2); sel[mid] < end {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// gatherPacked sets dst to the bit-packed values at sel, counted from base. It
// returns false if one is above limit. Long runs of consecutive positions are
// unpacked together, starting at a byte boundary.
func gatherPacked(dst []uint32, packed []byte, width uint, limit uint32, sel []uint32, base uint32) bool {
	const many = 64
	ok := true
	for len(sel) > 0 {
		n := 0
		for len(sel) >= n+many && int(sel[n+many-1]-sel[0]) == n+many-1 {
			n += many
		}
		if n > 0 {
			one := int(-(sel[0] - base) % 8)
			ok = gatherEach(dst[:one], packed, width, limit, sel, base) && ok
			n -= one
			n -= n % 8
			from := uint64(sel[one]-base) / 8 * uint64(width)
			ok = Unpack(dst[one:one+n], packed[from:], width, limit) && ok
			n += one
		} else {
			n = min(many, len(sel))
			ok = gatherEach(dst[:n], packed, width, limit, sel, base) && ok
		}
		dst, sel = dst[n:], sel[n:]
	}
	return ok
}

func gatherEach(dst []uint32, packed []byte, width uint, limit uint32, sel []uint32, base uint32) bool {
	mask, above := uint64(1)<<width-1, uint64(0)
	for i, at := range sel[:len(dst)] {
		bit := uint64(at-base) * uint64(width)
		b := packed[bit/8:]
		var v uint64
		if len(b) >= 8 {
			v = binary.LittleEndian.Uint64(b)
		} else {
			v = shortUint64(b)
		}
		v = v >> (bit % 8) & mask
		above |= uint64(limit) - v
		dst[i] = uint32(v)
	}
	return above>>63 == 0
}

// shortUint64 loads up to eight bytes, padded with zeros.
func shortUint64(b []byte) (v uint64) {
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}
