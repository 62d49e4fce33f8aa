package exact

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// A file stores members in blocks. Each block has its first member, a
// parameter k, and the following gaps in the code of R. F. Rice, "Some practical
// universal noiseless coding techniques", JPL 79-22, 1979. Gaps of a set without
// structure are geometrically distributed; for these the code with the best k is at
// most 4 % above the entropy.
const (
	gapsBlock  = 1 << 16 // members in every block but the last
	gapsHead   = 9       // bytes before the bits of a block: u64 first, u8 k
	gapsRun    = 255     // the k of a block of consecutive members, two or more, which has no bits
	gapsEscape = 32      // quotient from which a gap is stored in full
	// quickK is the largest k for which the code of every gap that is not an escape
	// fits in 56 bits, and so in a word next to seven bits of another byte.
	quickK = 56 - gapsEscape
)

// enoughBelow reports whether at least 3/8 of the gaps are below a power of two.
// The k of a block is the smallest one for which enough gaps are below 2^k. For
// geometric gaps, the best k is the smallest one for which a share of more than
// (3-√5)/2 = 0.382 is below 2^k: going from k to k+1 costs a bit per gap and lowers
// the quotients by x/(1-x²) on average, where x is the share of gaps not below 2^k,
// and that is 1 at x = 0.618. Unlike the mean, a share is not affected by a few
// large gaps.
func enoughBelow(below, gaps int) bool { return 8*below >= 3*gaps }

// gapsWriter counts the bytes of ascending members and, if writes is set, encodes them.
type gapsWriter struct {
	size   uint64
	out    []byte
	writes bool
	block  []uint64 // members of the current block; empty while they are a run:
	first  uint64
	run    uint64 // its members
}

// newGapsWriter returns a gapsWriter that has consumed all members of m.
func newGapsWriter(m *bitmap, writes bool) *gapsWriter {
	n := m.len()
	w := &gapsWriter{size: 8, writes: writes, block: make([]uint64, 0, min(n, gapsBlock)+1)} // one more: to see the end
	if writes {
		w.out = binary.LittleEndian.AppendUint64(nil, n)
	}
	var c cursor
	for c.at < len(m.keys) {
		if m.run(&c) {
			w.addRun(m.keys[c.at]<<containerBits, containerSize)
			c.at++
			continue
		}
		w.spell()
		from := len(w.block)
		w.block = w.block[:from+m.read(&c, w.block[from:min(cap(w.block), gapsBlock, from+readBatch)])]
		if len(w.block) == gapsBlock {
			w.flush()
		}
	}
	w.flush()
	return w
}

// addRun adds consecutive members, without a step for each where they are a block.
func (w *gapsWriter) addRun(first, n uint64) {
	for n > 0 {
		if len(w.block) == 0 && (w.run == 0 || w.first+w.run == first) {
			w.first = first - w.run
			some := min(n, gapsBlock-w.run)
			w.run, first, n = w.run+some, first+some, n-some
		} else {
			w.spell()
			for ; n > 0 && len(w.block) < gapsBlock; n-- {
				w.block = append(w.block, first)
				first++
			}
		}
		if len(w.block) == gapsBlock || w.run == gapsBlock {
			w.flush()
		}
	}
}

// spell makes the current block a list of members.
func (w *gapsWriter) spell() {
	for ; w.run > 0; w.run-- {
		w.block = append(w.block, w.first)
		w.first++
	}
}

// flush ends the current block.
func (w *gapsWriter) flush() {
	if w.run == 1 {
		w.spell()
	}
	first, gaps, k := w.first, w.block, uint(gapsRun)
	if w.run == 0 {
		if len(w.block) == 0 {
			return
		}
		first, gaps = w.block[0], w.block[1:]
		if n := len(gaps); n > 0 && gaps[n-1]-first == uint64(n) {
			gaps = nil
		} else {
			k = toGaps(first, gaps)
		}
	}
	size := gapsHead + int((codedBits(gaps, k)+7)/8)
	w.size += uint64(size)
	if w.writes {
		if cap(w.out)-len(w.out) < size+8 {
			w.out = slices.Grow(w.out, len(w.out)+size+8) // doubles the capacity
		}
		w.out = binary.LittleEndian.AppendUint64(w.out, first)
		w.out = append(w.out, byte(k))
		w.out = appendGaps(w.out, gaps, k, size-gapsHead)
	}
	w.block, w.run = w.block[:0], 0
}

// toGaps replaces the members after the first one by gaps, the number of integers
// skipped before each, and returns the k for them.
func toGaps(first uint64, members []uint64) (k uint) {
	var lengths [128]int // number of gaps by length in bits
	last := first
	for i, v := range members {
		gap := v - last - 1
		last = v
		members[i] = gap
		lengths[bits.Len64(gap)&127]++
	}
	below := lengths[0]
	for !enoughBelow(below, len(members)) {
		k++
		below += lengths[k]
	}
	return k
}

// codedBits returns the size of the coded gaps in bits.
func codedBits(gaps []uint64, k uint) (n uint64) {
	for _, gap := range gaps {
		q := gap >> k
		if q >= gapsEscape {
			q = gapsEscape + 64 - uint64(k)
		}
		n += q
	}
	return n + uint64(len(gaps))*uint64(1+k)
}

// appendGaps appends the coded gaps, which take size bytes.
func appendGaps(out []byte, gaps []uint64, k uint, size int) []byte {
	from := len(out)
	out = slices.Grow(out, size+8) // whole words are written
	w := bitWriter{b: out[from : from+size+8]}
	for len(gaps) > 0 {
		gaps = gaps[w.quick(gaps, k):]
		if len(gaps) > 0 {
			w.one(gaps[0], k)
			gaps = gaps[1:]
		}
	}
	return out[:from+size]
}

// bitWriter writes bits, starting with the lowest bit of each byte.
type bitWriter struct {
	b  []byte
	at int // complete bytes
	// word holds the n < 8 bits of the incomplete byte.
	word uint64
	n    uint
}

// quick writes gaps up to the first escape; it writes none if codes may be longer
// than 56 bits. It returns how many it wrote.
func (w *bitWriter) quick(gaps []uint64, k uint) int {
	if k > quickK {
		return 0
	}
	b, at, word, n := w.b, w.at, w.word, w.n
	low, written := uint64(1)<<k-1, len(gaps)
	for i, gap := range gaps {
		whole := gap >> (k & 63) // compared in 64 bits, because a uint may have 32
		if whole >= gapsEscape {
			written = i
			break
		}
		q := uint(whole)
		word |= (gap&low<<1 | 1) << ((q + n) & 63)
		n += q + 1 + k
		binary.LittleEndian.PutUint64(b[at:], word)
		at += int(n / 8)
		word >>= n &^ 7 & 63
		n &= 7
	}
	w.at, w.word, w.n = at, word, n
	return written
}

// one writes any gap.
func (w *bitWriter) one(gap uint64, k uint) {
	q, n := uint(min(gap>>k, gapsEscape)), k
	if q == gapsEscape {
		n = 64
	}
	w.put(1<<q, q+1)
	if n < 64 {
		gap &= 1<<n - 1
	}
	low := min(n, 32)
	w.put(gap&(1<<low-1), low)
	w.put(gap>>low, n-low)
}

// put writes the n lowest bits of v, where n ≤ 56 and the higher bits are zero.
func (w *bitWriter) put(v uint64, n uint) {
	w.word |= v << w.n
	w.n += n
	binary.LittleEndian.PutUint64(w.b[w.at:], w.word)
	w.at += int(w.n / 8)
	w.word >>= w.n &^ 7
	w.n &= 7
}
