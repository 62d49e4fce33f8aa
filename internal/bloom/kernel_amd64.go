//go:build amd64 && !purego

package bloom

import "golang.org/x/sys/cpu"

var (
	// accelerated reports whether the processor can run the assembly.
	accelerated = cpu.X86.HasAVX2
	// wide reports whether it can also run the AVX-512 kernels. They exist where
	// they pay: for the hash, and for blocks as large as a vector.
	wide = accelerated && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ
)

// ahead is the prefetch distance in hashes. Filters of up to farBytes, a size that
// fits any level-2 cache, are not prefetched: it would only add instructions.
const (
	ahead    = 32
	farBytes = 1 << 20
)

// far returns for how many of the hashes the kernels prefetch a later one.
func (g Geometry) far(n uint64, hashes []uint64) uint64 {
	if n*g.BlockBytes() <= farBytes || len(hashes) <= ahead {
		return 0
	}
	return uint64(len(hashes) - ahead)
}

// sumInts writes the XXH3 of values to dst, which has the same length.
func sumInts(dst, values []uint64, flip uint64) {
	n := 0
	switch {
	case len(values) < 8 || !accelerated:
	case wide:
		n = len(values) &^ 7
		hashInts512(&dst[0], &values[0], uint64(n), flip)
	default:
		n = len(values) &^ 3
		hashInts(&dst[0], &values[0], uint64(n), flip)
	}
	sumIntsPortable(dst[n:], values[n:], flip)
}

func (g Geometry) add(words []uint64, n uint64, hashes []uint64) {
	if !accelerated || n >= MaxBlocks || len(hashes) == 0 {
		g.addPortable(words, n, hashes)
		return
	}
	switch {
	case g == Split512 && wide:
		addSplit512Wide(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes))
	case g == Split512:
		addSplit512(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes))
	default:
		addSplit256(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes))
	}
}

func (g Geometry) probe(words []uint64, n uint64, hashes []uint64, base uint32, sel []uint32) uint64 {
	if !accelerated || n >= MaxBlocks || len(hashes) == 0 {
		return g.probePortable(words, n, hashes, base, sel)
	}
	sel = sel[:len(hashes)]
	switch {
	case g == Split512 && wide:
		return probeSplit512Wide(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes), base, &sel[0])
	case g == Split512:
		return probeSplit512(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes), base, &sel[0])
	}
	return probeSplit256(&words[0], n, &hashes[0], uint64(len(hashes)), g.far(n, hashes), base, &sel[0])
}
