package bloom

// The kernels in portable Go. The words of block b start at b·words(). A word of
// Split256 holds lane 2i in its lower half and lane 2i+1 in its upper half.

type (
	block256 = [4]uint64
	block512 = [8]uint64
)

// add256 sets the bits of every hash in a Split256 filter of n blocks.
func add256(words []uint64, n uint64, hashes []uint64) {
	for _, h := range hashes {
		b := (*block256)(words[4*index(h, n):])
		x := uint32(h)
		b[0] |= 1<<(x*salts[0]>>27) | 1<<(32|x*salts[1]>>27)
		b[1] |= 1<<(x*salts[2]>>27) | 1<<(32|x*salts[3]>>27)
		b[2] |= 1<<(x*salts[4]>>27) | 1<<(32|x*salts[5]>>27)
		b[3] |= 1<<(x*salts[6]>>27) | 1<<(32|x*salts[7]>>27)
	}
}

// add512 sets the bits of every hash in a Split512 filter of n blocks.
func add512(words []uint64, n uint64, hashes []uint64) {
	for _, h := range hashes {
		b := (*block512)(words[8*index(h, n):])
		x := h * spread
		b[0] |= 1 << (x >> 58)
		b[1] |= 1 << (x >> 52 & 63)
		b[2] |= 1 << (x >> 46 & 63)
		b[3] |= 1 << (x >> 40 & 63)
		b[4] |= 1 << (x >> 34 & 63)
		b[5] |= 1 << (x >> 28 & 63)
		b[6] |= 1 << (x >> 22 & 63)
		b[7] |= 1 << (x >> 16 & 63)
	}
}

// has256 tests all eight bits of hash h without a branch: most probes miss, in a
// random lane, which a branch predictor cannot learn.
func has256(b *block256, h uint64) uint64 {
	x := uint32(h)
	m := b[0] >> (x * salts[0] >> 27) & (b[0] >> (32 | x*salts[1]>>27))
	m &= b[1] >> (x * salts[2] >> 27) & (b[1] >> (32 | x*salts[3]>>27))
	m &= b[2] >> (x * salts[4] >> 27) & (b[2] >> (32 | x*salts[5]>>27))
	m &= b[3] >> (x * salts[6] >> 27) & (b[3] >> (32 | x*salts[7]>>27))
	return m & 1
}

// has512 is has256 for Split512.
func has512(b *block512, h uint64) uint64 {
	x := h * spread
	m := b[0] >> (x >> 58) & (b[1] >> (x >> 52 & 63))
	m &= b[2] >> (x >> 46 & 63) & (b[3] >> (x >> 40 & 63))
	m &= b[4] >> (x >> 34 & 63) & (b[5] >> (x >> 28 & 63))
	m &= b[6] >> (x >> 22 & 63) & (b[7] >> (x >> 16 & 63))
	return m & 1
}

// probe256 probes a Split256 filter of n blocks. For every hash found it writes
// base plus its position to sel, which is at least as long as hashes. It returns
// the number of hits.
func probe256(words []uint64, n uint64, hashes []uint64, base uint32, sel []uint32) (hits uint64) {
	sel = sel[:len(hashes)]
	for i, h := range hashes {
		sel[hits] = base + uint32(i) // overwritten unless it is a hit
		hits += has256((*block256)(words[4*index(h, n):]), h)
	}
	return hits
}

// probe512 is probe256 for Split512.
func probe512(words []uint64, n uint64, hashes []uint64, base uint32, sel []uint32) (hits uint64) {
	sel = sel[:len(hashes)]
	for i, h := range hashes {
		sel[hits] = base + uint32(i)
		hits += has512((*block512)(words[8*index(h, n):]), h)
	}
	return hits
}

// addPortable and probePortable dispatch to the geometry's kernel.

func (g Geometry) addPortable(words []uint64, n uint64, hashes []uint64) {
	if g == Split512 {
		add512(words, n, hashes)
	} else {
		add256(words, n, hashes)
	}
}

func (g Geometry) probePortable(words []uint64, n uint64, hashes []uint64, base uint32, sel []uint32) uint64 {
	if g == Split512 {
		return probe512(words, n, hashes, base, sel)
	}
	return probe256(words, n, hashes, base, sel)
}
