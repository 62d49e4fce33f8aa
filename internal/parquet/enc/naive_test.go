package enc

import (
	"encoding/binary"
	"math/big"
)

// The encodings again, as their specification words them
// (https://parquet.apache.org/docs/file-format/data-pages/encodings): one bit, one
// value at a time. Slow, and short enough to be checked by eye.

// naiveBits reads value i of width bits.
func naiveBits(src []byte, i int, width uint) (v uint64) {
	for k := range width {
		bit := uint(i)*width + k
		v |= uint64(src[bit/8]>>(bit%8)&1) << k
	}
	return v
}

// naiveHybrid decodes n values of width bits. A run may extend past n, and the part
// of a bit-packed run past n may be missing.
func naiveHybrid(src []byte, n int, width uint) (v []uint32, ok bool) {
	for len(v) < n {
		header, k := binary.Uvarint(src)
		if k <= 0 || header < 2 {
			return nil, false
		}
		src = src[k:]
		left := n - len(v)
		if header%2 == 0 {
			size := int(width+7) / 8
			if len(src) < size {
				return nil, false
			}
			word := append(append([]byte{}, src[:size]...), 0, 0, 0, 0)
			for range min(uint64(left), header/2) {
				v = append(v, binary.LittleEndian.Uint32(word))
			}
			src = src[size:]
			continue
		}
		groups := header / 2
		if groups > 1<<31 {
			return nil, false
		}
		count := int(min(uint64(left), 8*groups))
		if (count*int(width)+7)/8 > len(src) {
			return nil, false
		}
		for i := range count {
			v = append(v, uint32(naiveBits(src, i, width)))
		}
		src = src[min(groups*uint64(width), uint64(len(src))):]
	}
	return v, true
}

// naiveDelta decodes n integers of DELTA_BINARY_PACKED and returns the bytes after
// them and the largest width of a miniblock. Sums are big integers, reduced to 64
// bits at the end.
func naiveDelta(src []byte, n int) (v []int64, rest []byte, widest int, ok bool) {
	var header [3]uint64
	for i := range header {
		u, k := binary.Uvarint(src)
		if k <= 0 {
			return nil, nil, 0, false
		}
		header[i], src = u, src[k:]
	}
	first, k := binary.Varint(src)
	block, minis := header[0], header[1]
	if k <= 0 || block == 0 || block%128 != 0 || block > maxDeltaBlock || minis == 0 || block%minis != 0 ||
		block/minis%32 != 0 || header[2] != uint64(n) {
		return nil, nil, 0, false
	}
	src = src[k:]
	if n == 0 {
		return nil, src, 0, true
	}
	sum := big.NewInt(first)
	emit := func() {
		low := new(big.Int).And(sum, new(big.Int).SetUint64(1<<64-1))
		v = append(v, int64(low.Uint64()))
	}
	for emit(); len(v) < n; {
		least, k := binary.Varint(src)
		if k <= 0 || len(src)-k < int(minis) {
			return nil, nil, 0, false
		}
		widths := src[k:][:minis]
		src = src[k+int(minis):]
		for _, width := range widths {
			count := min(n-len(v), int(block/minis))
			if count == 0 {
				break
			}
			if width > 64 || (count*int(width)+7)/8 > len(src) {
				return nil, nil, 0, false
			}
			widest = max(widest, int(width))
			for i := range count {
				delta := new(big.Int).SetUint64(naiveBits(src, i, uint(width)))
				sum.Add(sum, delta.Add(delta, big.NewInt(least)))
				emit()
			}
			src = src[min(int(block/minis)/8*int(width), len(src)):]
		}
	}
	return v, src, widest, true
}

// naivePlain decodes n PLAIN byte arrays, which must take all of src.
func naivePlain(src []byte, n int) (v [][]byte, ok bool) {
	for range n {
		if len(src) < 4 {
			return nil, false
		}
		size := int64(binary.LittleEndian.Uint32(src))
		if size > int64(len(src)-4) {
			return nil, false
		}
		v = append(v, src[4:][:size])
		src = src[4+size:]
	}
	return v, len(src) == 0
}

// naiveLengths decodes n lengths.
func naiveLengths(src []byte, n int) (v []int, rest []byte, ok bool) {
	wide, rest, _, ok := naiveDelta(src, n)
	for _, x := range wide {
		if int32(x) < 0 { // lengths are 32-bit integers
			return nil, nil, false
		}
		v = append(v, int(int32(x)))
	}
	return v, rest, ok
}

// naiveDeltaLength decodes DELTA_LENGTH_BYTE_ARRAY, which must take all of src.
func naiveDeltaLength(src []byte, n int) (v [][]byte, ok bool) {
	lengths, rest, ok := naiveLengths(src, n)
	if !ok {
		return nil, false
	}
	for _, k := range lengths {
		if k > len(rest) {
			return nil, false
		}
		v = append(v, rest[:k])
		rest = rest[k:]
	}
	return v, len(rest) == 0
}

// naiveDeltaBytes decodes DELTA_BYTE_ARRAY, which must take all of src.
func naiveDeltaBytes(src []byte, n int) (v [][]byte, ok bool) {
	prefixes, rest, ok := naiveLengths(src, n)
	if !ok {
		return nil, false
	}
	suffixes, rest, ok := naiveLengths(rest, n)
	if !ok {
		return nil, false
	}
	var last []byte
	for i, p := range prefixes {
		s := suffixes[i]
		if p > len(last) || s > len(rest) {
			return nil, false
		}
		last = append(append([]byte{}, last[:p]...), rest[:s]...)
		v = append(v, last)
		rest = rest[s:]
	}
	return v, len(rest) == 0
}

// toPlain returns the PLAIN encoding of byte arrays.
func toPlain(v [][]byte) (plain []byte) {
	for _, b := range v {
		plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(b))), b...)
	}
	return plain
}
