package spill

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// AppendInts appends integers for [Ints], eight bytes each.
func AppendInts(dst []byte, values []uint64) []byte {
	dst = slices.Grow(dst, 8*len(values))
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}

// Ints decodes the output of AppendInts, using dst's memory if it is large enough.
func Ints(dst []uint64, b []byte) ([]uint64, error) {
	if len(b)%8 != 0 {
		return nil, fmt.Errorf("integers in %d bytes, want a multiple of eight", len(b))
	}
	dst = slices.Grow(dst[:0], len(b)/8)[:len(b)/8]
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return dst, nil
}
