// Package ring remembers which keys came within a window of time: a ring of Bloom filters, one
// for each slot of the window. The oldest slot is dropped whole.
//
//	hashes, slot numbers ── Ring.Judge ──► a verdict each, in order
//	Ring ── Encode ──► bytes with checksums ── Decode ──► Ring
//
// In come hashes of keys, each with the number of the slot that its row's time is in; out comes,
// for each, whether it was recorded before. Verdicts depend on the order of the hashes alone.
//
// The filters are of bloom.Split512, and interleaved bit by bit: the bits of all slots that a
// hash selects in a lane stand beside each other. A look-up in all slots therefore reads eight
// words, whose AND has a bit for each slot that may hold the key, within a block of some KiB.
// (Bit-sliced signature files: Faloutsos and Chan, VLDB 1988.) Where the slots do not fill whole
// bytes, each has several filters, its ways, among which hashes are divided.
package ring

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/internal/hugepage"
)

// MostSlots is the largest number of slots: a word has a bit for each.
const MostSlots = 64

const (
	lanes     = 8
	blockBits = 512
	pad       = 8 // a word is read where fewer bytes belong to a position
	spread    = 0x9e3779b97f4a7c15
)

// Verdict is the answer of a ring about a row.
type Verdict uint8

const (
	Fresh Verdict = iota // not recorded in the window before; now it is
	Seen                 // recorded before, or a false positive
	Late                 // older than all slots: nothing is known of it
	Ahead                // too far in the future, see [Params].Jump: nothing is known of it
)

// Ring is a ring of filters. It must not be used concurrently.
type Ring struct {
	Clock
	params Params
	width  uint64 // bytes for the bits of all slots and ways at one position
	ways   uint64
	stride uint64 // bytes of a block of all slots
	slots  uint64 // the bits of way 0 in a word
	bits   []byte
	counts []uint64 // keys recorded, by slot
	masks  []uint64 // of the hashes that are judged together

	rate  float64 // see Rate
	rated uint64  // recorded keys when rate was computed; 0: it is out of date
}

// New returns an empty ring. The parameters are those of [Plan].
func New(p Params) *Ring {
	r := &Ring{Clock: p.Clock(), params: p, counts: make([]uint64, p.Slots), masks: make([]uint64, together)}
	r.width, r.ways = p.layout()
	r.stride = blockBits * r.width
	for slot := range uint64(p.Slots) {
		r.slots |= 1 << (slot * r.ways)
	}
	words := hugepage.Words(p.Bytes() / 8)
	r.bits = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), p.Bytes())
	return r
}

// Params returns the parameters.
func (r *Ring) Params() Params { return r.params }

// together is the number of hashes whose words are requested from memory at the same time.
const together = 64

// Judge appends the verdict on each row, and records the keys of fresh ones. slots are the
// numbers of the rows' slots.
func (r *Ring) Judge(hashes []uint64, slots []int64, dst []Verdict) []Verdict {
	for len(hashes) > 0 {
		n := min(together, len(hashes))
		for i, h := range hashes[:n] { // loads without branches, which overlap; the lines are near afterwards
			r.masks[i] = r.has(h)
		}
		for i, h := range hashes[:n] {
			dst = append(dst, r.judge(h, slots[i]))
		}
		hashes, slots = hashes[n:], slots[n:]
	}
	return dst
}

func (r *Ring) judge(h uint64, slot int64) Verdict {
	v, dropped := r.Place(slot)
	if dropped > 0 {
		r.drop(dropped)
	}
	if v != Fresh {
		return v
	}
	if r.has(h) != 0 {
		return Seen
	}
	r.record(h, modulo(slot, int64(r.params.Slots)))
	return Fresh
}

// has returns a bit for each slot that may hold the key.
func (r *Ring) has(h uint64) uint64 {
	block := r.block(h)
	x, w := h*spread, r.width
	m := word(block, (x>>58)*w) & word(block, (64+x>>52&63)*w)
	m &= word(block, (128+x>>46&63)*w) & word(block, (192+x>>40&63)*w)
	m &= word(block, (256+x>>34&63)*w) & word(block, (320+x>>28&63)*w)
	m &= word(block, (384+x>>22&63)*w) & word(block, (448+x>>16&63)*w)
	return m & (r.slots << r.way(h))
}

// way returns which filter of its slot a hash belongs to, by bits that lanes do not use.
func (r *Ring) way(h uint64) uint64 { return h * spread & 0xffff * r.ways >> 16 }

// block returns the block of a hash, with what is read past it.
func (r *Ring) block(h uint64) []byte {
	hi, lo := bits.Mul64(h>>32, r.params.Blocks)
	at := (hi<<32 | lo>>32) * r.stride
	return r.bits[at : at+r.stride+pad]
}

func word(block []byte, at uint64) uint64 { return binary.LittleEndian.Uint64(block[at:]) }

func (r *Ring) record(h, slot uint64) {
	block := r.block(h)
	x, column := h*spread, slot*r.ways+r.way(h)
	for lane := range uint64(lanes) {
		bit := lane*64 + x>>(58-6*lane)&63
		block[bit*r.width+column/8] |= 1 << (column % 8)
	}
	r.counts[slot]++
}

// drop forgets the n oldest slots, up to the newest one, which has moved already.
func (r *Ring) drop(n int64) {
	r.rated = 0
	if n >= int64(r.params.Slots) {
		clear(r.bits)
		clear(r.counts)
		return
	}
	gone := make([]byte, r.width)
	for slot := r.newest - n + 1; slot <= r.newest; slot++ {
		in := modulo(slot, int64(r.params.Slots))
		for column := in * r.ways; column < (in+1)*r.ways; column++ {
			gone[column/8] |= 1 << (column % 8)
		}
		r.counts[in] = 0
	}
	// A pattern of width words is one of whole positions.
	keep := make([]uint64, r.width)
	pattern := unsafe.Slice((*byte)(unsafe.Pointer(&keep[0])), 8*len(keep))
	for i := range pattern {
		pattern[i] = ^gone[uint64(i)%r.width]
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&r.bits[0])), (len(r.bits)-pad)/8)
	for len(words) > 0 {
		for i, k := range keep {
			words[i] &= k
		}
		words = words[len(keep):]
	}
}

// Recorded returns the number of keys in the ring.
func (r *Ring) Recorded() (n uint64) {
	for _, c := range r.counts {
		n += c
	}
	return n
}

// Rate returns the probability that a key that is not in the ring is taken for one that is: the
// probability of a false positive in any of its filters, given the keys that they hold.
func (r *Ring) Rate() float64 {
	if n := r.Recorded(); r.rated == 0 || n-r.rated > r.rated/128 {
		r.rate, r.rated = rate(r.params.Blocks, r.ways, r.counts), max(n, 1)
	}
	return r.rate
}

// Clock knows which slots a ring holds: as many as it has, up to the newest one that a row was in.
type Clock struct {
	slots, jump int64
	newest      int64
	begun       bool
}

// Clock returns a clock for a ring with such parameters that has seen no row.
func (p Params) Clock() Clock { return Clock{slots: int64(p.Slots), jump: p.Jump} }

// Place moves on to a row's slot, if it is newer than all before, and returns how many slots were
// dropped for it. The verdict is Fresh unless the row belongs to no slot.
func (c *Clock) Place(slot int64) (v Verdict, dropped int64) {
	switch {
	case !c.begun:
		c.begun, c.newest = true, slot
	case slot > c.newest:
		if c.jump > 0 && slot-c.newest > c.jump {
			return Ahead, 0
		}
		dropped = slot - c.newest
		c.newest = slot
	case !c.Holds(slot):
		return Late, 0
	}
	return Fresh, dropped
}

// Holds reports whether the slot, which is not newer than the newest, has not been dropped.
func (c *Clock) Holds(slot int64) bool { return slot > c.Gone() }

// Gone returns the newest slot that was dropped.
func (c *Clock) Gone() int64 { return c.newest - c.slots }

// SlotOf returns the number of the slot that the time n·unit + rest is in: n is an int64 if
// negative is set, and rest less than a unit. Units, rest and width are in nanoseconds. ok is
// false if numbers of slots do not go so far from 1970.
func SlotOf(n uint64, negative bool, unit, rest, width uint64) (slot int64, ok bool) {
	if negative {
		n = -n
	}
	hi, lo := bits.Mul64(n, unit)
	carry := uint64(0)
	if negative { // away from 1970
		lo, carry = bits.Sub64(lo, rest, 0)
		hi, rest = hi-carry, width-1
	}
	lo, carry = bits.Add64(lo, rest, 0)
	if hi += carry; hi >= width {
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, width)
	if slot = int64(q); negative {
		slot = -slot
	}
	return slot, q <= 1<<62
}

// modulo returns the remainder that is not negative.
func modulo(a, b int64) uint64 { return uint64(((a % b) + b) % b) }
