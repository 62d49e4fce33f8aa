package parquet

import (
	"encoding/binary"
	"math/bits"
)

// The functions of this file pick values by position out of a page, without
// decoding the others. sel holds positions among the values that are there,
// strictly ascending and below their number; a caller that breaks this gets a
// bounds panic or wrong values, never a read outside of src. Each appends to
// dst and returns it, as append does.

const stride = 8 // positions that are looked at together

// consecutive reports whether strictly ascending positions have no gaps.
func consecutive(sel []uint32) bool {
	return len(sel) > 0 && int(sel[len(sel)-1]-sel[0]) == len(sel)-1
}

// extend makes room for n more bytes behind b and returns all with the new
// ones apart.
func extend(b []byte, n int) (all, more []byte) {
	from := len(b)
	if cap(b)-from < n {
		b = append(make([]byte, 0, max(from+n, 2*cap(b))), b...)
	}
	all = b[:from+n]
	return all, all[from:]
}

// gatherFixed appends the values at sel of PLAIN values of width bytes each.
func gatherFixed(dst, src []byte, width int, sel []uint32) []byte {
	if consecutive(sel) {
		from := int(sel[0]) * width
		return append(dst, src[from:from+len(sel)*width]...)
	}
	dst, out := extend(dst, len(sel)*width)
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

// gather4 and its likes take eight positions a step: at once when they are
// consecutive, one by one when not. Scattered positions thus cost no search
// for runs, and runs no more than a copy.

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

// gatherBools appends the booleans at sel, eight to a byte as in src, the
// first one in the lowest bit of the first byte appended. Bits behind the
// last one are zero.
func gatherBools(dst, src []byte, sel []uint32) []byte {
	dst, out := extend(dst, (len(sel)+7)/8)
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

// gatherByteArrays appends the values at sel of n PLAIN byte arrays, with
// their lengths. All n lengths are checked, and that src ends with the last
// value.
func gatherByteArrays(dst, src []byte, n int, sel []uint32) ([]byte, error) {
	pos, next := 0, 0 // offset of value next
	for i := 0; i < len(sel); {
		var err error
		if pos, err = skipByteArrays(src, pos, int(sel[i])-next); err != nil {
			return nil, err
		}
		run := 1
		for i+run < len(sel) && sel[i+run] == sel[i]+uint32(run) {
			run++
		}
		end, err := skipByteArrays(src, pos, run)
		if err != nil {
			return nil, err
		}
		dst = append(dst, src[pos:end]...)
		pos, next = end, int(sel[i])+run
		i += run
	}
	pos, err := skipByteArrays(src, pos, n-next)
	if err == nil && pos != len(src) {
		err = errTrailing
	}
	return dst, err
}

// skipByteArrays returns the offset behind n PLAIN byte arrays that begin at
// pos, which is at most len(src).
//
// Where a value begins depends on the length before it, a load after each
// load. Values of equal length, as identifiers have, are therefore guessed
// and checked four at a time, which needs no waiting; after a wrong guess the
// next few are taken one by one.
func skipByteArrays(src []byte, pos, n int) (int, error) {
	const guess, patience = 4, 16
	for n > 0 {
		for n >= guess {
			b := src[pos:]
			if len(b) < 4 {
				return 0, errShortValues
			}
			size := binary.LittleEndian.Uint32(b)
			step := 4 + uint64(size)
			if uint64(len(b)) < guess*step ||
				binary.LittleEndian.Uint32(b[step:]) != size ||
				binary.LittleEndian.Uint32(b[2*step:]) != size ||
				binary.LittleEndian.Uint32(b[3*step:]) != size {
				break
			}
			pos += int(guess * step)
			n -= guess
		}
		k := min(n, patience)
		n -= k
		for range k {
			b := src[pos:]
			if len(b) < 4 {
				return 0, errShortValues
			}
			size := uint64(binary.LittleEndian.Uint32(b))
			if size > uint64(len(b)-4) {
				return 0, errShortValues
			}
			pos += 4 + int(size)
		}
	}
	return pos, nil
}

// gatherHybrid appends the values at sel of n values of width bits (at most
// 32) in the RLE/bit-packed hybrid encoding. The runs must cover n values;
// of the values only those at sel are looked at, and are an error above limit.
// Width 0 stands for n zeros, whatever src holds.
func gatherHybrid(dst []uint32, src []byte, n int, width uint, limit uint32, sel []uint32) ([]uint32, error) {
	if width == 0 {
		for range sel {
			dst = append(dst, 0)
		}
		return dst, nil
	}
	for from := 0; from < n; {
		run, rest, err := nextRun(src, width, n-from)
		if err != nil {
			return nil, err
		}
		k := before(sel, uint32(from+run.n))
		if k > 0 && run.packed == nil {
			if run.value > limit {
				return nil, errBound
			}
			for range k {
				dst = append(dst, run.value)
			}
		} else if k > 0 {
			if dst, err = gatherPacked(dst, run.packed, width, limit, sel[:k], uint32(from)); err != nil {
				return nil, err
			}
		}
		sel, src = sel[k:], rest
		from += run.n
	}
	return dst, nil
}

// before returns how many of the ascending positions are below end. It looks
// no farther than twice as many.
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

// gatherPacked appends the values at sel, counted from base, of bit-packed
// values.
func gatherPacked(dst []uint32, packed []byte, width uint, limit uint32, sel []uint32, base uint32) ([]uint32, error) {
	mask := uint64(1)<<width - 1
	top := uint32(0)
	for _, at := range sel {
		bit := uint64(at-base) * uint64(width)
		b := packed[bit/8:]
		var v uint64
		if len(b) >= 8 {
			v = binary.LittleEndian.Uint64(b)
		} else {
			v = shortUint64(b)
		}
		x := uint32(v >> (bit % 8) & mask)
		top = max(top, x)
		dst = append(dst, x)
	}
	if top > limit {
		return nil, errBound
	}
	return dst, nil
}

// shortUint64 loads fewer than eight bytes, the missing ones as zeros.
func shortUint64(b []byte) (v uint64) {
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}

// countLevels returns how many of the levels are level.
func countLevels(levels []uint8, level uint8) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	same := uint64(level) * low
	for ; len(levels) >= 8; levels = levels[8:] {
		x := binary.LittleEndian.Uint64(levels) ^ same
		// The high bit of each byte of y is set where x's byte is not zero.
		y := (x&^high + ^uint64(high)) | x
		n += 8 - bits.OnesCount64(y&high)
	}
	for _, l := range levels {
		if l == level {
			n++
		}
	}
	return n
}

// selectLevels appends the levels at the entries sel.
func selectLevels(dst, levels []uint8, sel []uint32) []uint8 {
	if consecutive(sel) {
		return append(dst, levels[sel[0]:int(sel[0])+len(sel)]...)
	}
	for _, at := range sel {
		dst = append(dst, levels[at])
	}
	return dst
}

// selectValues turns entries into values: for each entry in sel whose
// definition level is level it appends the value's position among the values
// that are there.
func selectValues(dst []uint32, def []uint8, level uint8, sel []uint32) []uint32 {
	from, rank := uint32(0), 0 // values before entry from
	for _, at := range sel {
		rank += countLevels(def[from:at], level)
		if def[at] == level {
			dst = append(dst, uint32(rank))
		}
		from = at
	}
	return dst
}
