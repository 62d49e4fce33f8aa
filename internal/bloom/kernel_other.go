//go:build !amd64 || purego

package bloom

const accelerated = false

// Without assembly, the portable kernels do all the work.

func (g Geometry) add(words []uint64, n uint64, hashes []uint64) {
	g.addPortable(words, n, hashes)
}

func (g Geometry) probe(words []uint64, n uint64, hashes []uint64, base uint32, sel []uint32) uint64 {
	return g.probePortable(words, n, hashes, base, sel)
}

func sumInts(dst, values []uint64, flip uint64) { sumIntsPortable(dst, values, flip) }
