package parquet

import (
	"encoding/binary"
	"math/rand/v2"
)

const maxSeed = 8 << 10 // bytes; larger files have too many mutations

func plain32(v []int32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func randomString(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// pick returns runs of up to longest positions below n, separated by random gaps of
// about the given size.
func pick(rng *rand.Rand, n, gap, longest int) (sel []uint32) {
	for i := rng.IntN(gap + 1); i < n; i += 1 + rng.IntN(gap) {
		for range 1 + rng.IntN(longest) {
			if i < n {
				sel = append(sel, uint32(i))
				i++
			}
		}
	}
	return sel
}
