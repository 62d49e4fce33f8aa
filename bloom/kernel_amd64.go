//go:build amd64 && !purego

package bloom

import "golang.org/x/sys/cpu"

// accelerated says whether the processor can run the assembly.
var accelerated = cpu.X86.HasAVX2 && cpu.X86.HasBMI2

// ahead is how many hashes before its turn a block is asked of memory, where
// the filter is larger than farBytes, the part of a level-2 cache that one may
// count on. Below, prefetching is only one instruction more.
const (
	ahead    = 32
	farBytes = 1 << 20
)

// far returns for how many of the hashes the kernels prefetch another.
func (g Geometry) far(n uint64, hashes []uint64) uint64 {
	if n*g.BlockBytes() <= farBytes || len(hashes) <= ahead {
		return 0
	}
	return uint64(len(hashes) - ahead)
}

// sumInts writes the XXH3 of values to dst, which is as long.
func sumInts(dst, values []uint64, flip uint64) {
	n := len(values) &^ 3
	if !accelerated || n == 0 {
		n = 0
	} else {
		hashInts(&dst[0], &values[0], uint64(n), flip)
	}
	sumIntsPortable(dst[n:], values[n:], flip)
}

func (g Geometry) add(words []uint64, n uint64, hashes []uint64) {
	if !accelerated || n >= MaxBlocks || len(hashes) == 0 {
		g.addPortable(words, n, hashes)
		return
	}
	if g == Split512 {
		addSplit512(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes))
	} else {
		addSplit256(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes))
	}
}

func (g Geometry) probe(words []uint64, n uint64, hashes []uint64, base uint32, sel []uint32) uint64 {
	if !accelerated || n >= MaxBlocks || len(hashes) == 0 {
		return g.probePortable(words, n, hashes, base, sel)
	}
	sel = sel[:len(hashes)]
	if g == Split512 {
		return probeSplit512(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes), base, &sel[0])
	}
	return probeSplit256(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes), base, &sel[0])
}
