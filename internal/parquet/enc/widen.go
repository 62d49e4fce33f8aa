package enc

import (
	"encoding/binary"
	"math"
)

// Doubles converts floats of 4 bytes to those of 8. dst must have room for as many. It keeps the bits
// of NaNs, because the processor would turn signalling NaNs into quiet ones.
func Doubles(dst, src []byte) {
	for i := range len(src) / 4 {
		b := binary.LittleEndian.Uint32(src[4*i:])
		wide := math.Float64bits(float64(math.Float32frombits(b)))
		if b&(1<<31-1) > 0xff<<23 {
			wide = uint64(b>>31)<<63 | 0x7ff<<52 | uint64(b&(1<<23-1))<<29
		}
		binary.LittleEndian.PutUint64(dst[8*i:], wide)
	}
}
