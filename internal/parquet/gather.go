package parquet

import (
	"encoding/binary"
	"math/bits"
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

// extend adds room for n bytes to b. It returns the extended slice and its new
// part.
func extend(b []byte, n int) (all, more []byte) {
	from := len(b)
	if cap(b)-from < n {
		b = append(make([]byte, 0, max(from+n, 2*cap(b))), b...)
	}
	all = b[:from+n]
	return all, all[from:]
}

// gatherFixed appends the PLAIN values at sel, width bytes each.
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

// gatherBools appends the booleans at sel, eight to a byte as in src. The first one
// is the lowest bit of the first byte appended; unused bits of the last byte are
// zero.
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

// gatherByteArrays appends the values at sel of n PLAIN byte arrays, with their
// lengths. It checks all n lengths. tail is the number of bytes after the last
// value.
func gatherByteArrays(dst, src []byte, n int, sel []uint32) (_ []byte, tail int, err error) {
	w := byteArrayWalk{src: src}
	next := 0 // index of the value at w.pos
	dst = slices.Grow(dst, int(float64(len(src))*float64(len(sel))/float64(max(n, 1))))
	for i := 0; i < len(sel); {
		run := 1 // consecutive values are copied together
		for i+run < len(sel) && sel[i+run] == sel[i]+uint32(run) {
			run++
		}
		if gap := int(sel[i]) - next; gap > 0 && !w.skip(gap) {
			return nil, 0, errShortValues
		}
		from := w.pos
		if run == 1 && !w.step() || run > 1 && !w.skip(run) {
			return nil, 0, errShortValues
		}
		dst = append(dst, src[from:w.pos]...)
		next = int(sel[i]) + run
		i += run
	}
	if !w.skip(n - next) {
		return nil, 0, errShortValues
	}
	return dst, len(src) - int(w.pos), nil
}

// byteArrayWalk steps through PLAIN byte arrays.
//
// The start of a value depends on the length before it, so each load has to wait
// for the previous one. Values of equal length, such as identifiers, are therefore
// guessed and checked four at a time, which needs no waiting. After a wrong guess
// the next values are taken one by one.
type byteArrayWalk struct {
	src  []byte
	pos  uint64 // at most len(src)
	wait int    // values until the next guess
}

const (
	guessed = 4  // values per guess
	unlucky = 32 // values between a wrong guess and the next one
)

// skip moves past n values. It returns false if src ends before they do.
func (w *byteArrayWalk) skip(n int) bool {
	for n > 0 {
		src, pos := w.src, w.pos
		for w.wait == 0 && n >= guessed {
			size := guess(src[pos:])
			if size == 0 {
				w.wait = unlucky
			} else {
				pos += size
				n -= guessed
			}
		}
		k := n
		if w.wait > 0 {
			k = min(n, w.wait)
			w.wait -= k
		}
		n -= k
		for range k {
			if pos+4 > uint64(len(src)) {
				return false
			}
			// Written out, because slicing would lengthen the dependency chain from
			// one length to the next.
			pos += 4 + (uint64(src[pos]) | uint64(src[pos+1])<<8 | uint64(src[pos+2])<<16 | uint64(src[pos+3])<<24)
		}
		if pos > uint64(len(src)) {
			return false
		}
		w.pos = pos
	}
	return true
}

// step moves past one value. It returns false if src ends before it does.
func (w *byteArrayWalk) step() bool {
	b := w.src[w.pos:]
	if len(b) < 4 {
		return false
	}
	size := 4 + uint64(binary.LittleEndian.Uint32(b))
	w.pos += size
	return size <= uint64(len(b))
}

// guess returns the total size of the first `guessed` values of b if they have
// equal length, else 0.
func guess(b []byte) uint64 {
	if len(b) < 4 {
		return 0
	}
	length := binary.LittleEndian.Uint32(b)
	step := 4 + uint64(length)
	if guessed*step > uint64(len(b)) ||
		binary.LittleEndian.Uint32(b[step:]) != length ||
		binary.LittleEndian.Uint32(b[2*step:]) != length ||
		binary.LittleEndian.Uint32(b[3*step:]) != length {
		return 0
	}
	return guessed * step
}

// gatherHybrid appends the values at sel of n values of width bits (at most 32) in
// the RLE/bit-packed hybrid encoding. The runs must cover n values. Only the values
// at sel are read; one above limit is an error. Width 0 means n zeros, whatever src
// holds.
func gatherHybrid(dst []uint32, src []byte, n int, width uint, limit uint32, sel []uint32) ([]uint32, error) {
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
		return nil, errBound
	case run.value != bitPacked:
		fill(out, uint32(run.value))
	case !gatherPacked(out, data, width, limit, sel, base):
		return nil, errBound
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
			ok = unpack(dst[one:one+n], packed[from:], width, limit) && ok
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

// countLevels returns how many of the levels equal level.
func countLevels(levels []uint8, level uint8) int {
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

// selectLevels appends the levels of the entries in sel.
func selectLevels(dst, levels []uint8, sel []uint32) []uint8 {
	if consecutive(sel) {
		return append(dst, levels[sel[0]:int(sel[0])+len(sel)]...)
	}
	dst, out := extend(dst, len(sel))
	for i, at := range sel {
		out[i] = levels[at]
	}
	return dst
}

// selectValues maps entries to values: for each entry in sel whose definition level
// is level, it appends the value's position among the values other than NULL. (If
// no value is NULL, the result would be sel.)
func selectValues(dst []uint32, def []uint8, level uint8, sel []uint32) []uint32 {
	found := len(dst)
	dst = slices.Grow(dst, len(sel))[:found+len(sel)]
	from, rank := 0, 0 // entries before the window, and values among them
	for len(sel) > 0 {
		first := sel[0]
		rank += countLevels(def[from:first], level)
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
