package exact

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// The form Gaps: members in blocks, in each the first one, a parameter k, and
// the gaps that follow in the code of R. F. Rice, "Some practical universal
// noiseless coding techniques", JPL 79-22, 1979. Gaps of a set without
// structure are geometrically distributed, for which the code with the best k
// is at most 4 % above the entropy.
const (
	gapsBlock  = 1 << 16 // members of a block, but for the last one
	gapsHead   = 9       // bytes before the bits of a block: u64 first, u8 k
	gapsEscape = 32      // quotient from which on a gap stands in full
	// quickK is the largest k with which the code of a gap that is no escape
	// fits in 56 bits: into a word, beside seven bits of another byte.
	quickK = 56 - gapsEscape
)

// enoughBelow reports whether of so many gaps enough are below a power of two
// for it to divide them: 3/8. The k of a block is the least one for which 2^k
// is that. The best k for geometric gaps is the least for which 2^k exceeds a
// share of (3-√5)/2 = 0.382 of them: from k to k+1 a bit is paid, and the
// quotients fall by x/(1-x²) on average, x being the share of gaps not below
// 2^k, which is 1 at x = 0.618. A share, unlike the mean, does not care about a
// few large gaps.
func enoughBelow(below, gaps int) bool { return 8*below >= 3*gaps }

// gapsWriter counts the bytes of members that come in ascending order, in both
// forms, and writes them as Gaps if told to.
type gapsWriter struct {
	size    uint64 // bytes as Gaps
	roaring uint64 // bytes as Roaring
	out     []byte
	writes  bool
	block   []uint64 // members of the block begun
}

// newGapsWriter returns a gapsWriter that has all members of m behind it.
func newGapsWriter(m *roaring64.Bitmap, writes bool) *gapsWriter {
	n := m.GetCardinality()
	w := &gapsWriter{size: 8, writes: writes, block: make([]uint64, 0, min(n, gapsBlock))}
	if writes {
		w.out = binary.LittleEndian.AppendUint64(nil, n)
	}
	var p packer
	for it := m.ManyIterator(); ; {
		if len(w.block) == cap(w.block) {
			w.flush()
		}
		from := len(w.block)
		n := it.NextMany(w.block[from:min(cap(w.block), from+readBatch)])
		if n == 0 {
			break
		}
		w.block = w.block[:from+n]
		p.add(w.block[from:])
	}
	w.flush()
	p.end()
	w.roaring = p.bytes()
	return w
}

// flush ends the block begun.
func (w *gapsWriter) flush() {
	if len(w.block) == 0 {
		return
	}
	first, gaps := w.block[0], w.block[1:]
	k := toGaps(first, gaps)
	size := gapsHead + int((codedBits(gaps, k)+7)/8)
	w.size += uint64(size)
	if w.writes {
		if cap(w.out)-len(w.out) < size+8 {
			w.out = slices.Grow(w.out, len(w.out)+size+8) // twice as much
		}
		w.out = binary.LittleEndian.AppendUint64(w.out, first)
		w.out = append(w.out, byte(k))
		w.out = appendGaps(w.out, gaps, k, size-gapsHead)
	}
	w.block = w.block[:0]
}

// toGaps turns the members behind the first one into gaps, the number of
// integers left out before each, and returns their k.
func toGaps(first uint64, members []uint64) (k uint) {
	var lengths [128]int // gaps of so many bits
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

// codedBits returns how many bits the gaps take.
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

// appendGaps appends the bits of the gaps, which take size bytes.
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

// bitWriter writes bits from the lowest of each byte on.
type bitWriter struct {
	b  []byte
	at int // bytes that are complete
	// word holds n < 8 bits of the byte that is not.
	word uint64
	n    uint
}

// quick writes gaps up to the first one whose code is longer than 56 bits, or
// an escape. It returns how many.
func (w *bitWriter) quick(gaps []uint64, k uint) int {
	if k > quickK {
		return 0
	}
	b, at, word, n := w.b, w.at, w.word, w.n
	low, written := uint64(1)<<k-1, len(gaps)
	for i, gap := range gaps {
		whole := gap >> (k & 63) // compared in 64 bits: a uint may have 32
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

// one writes a gap, whatever its code.
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

// put writes the n lowest bits of v, at most 56; those above are zero.
func (w *bitWriter) put(v uint64, n uint) {
	w.word |= v << w.n
	w.n += n
	binary.LittleEndian.PutUint64(w.b[w.at:], w.word)
	w.at += int(w.n / 8)
	w.word >>= w.n &^ 7
	w.n &= 7
}
