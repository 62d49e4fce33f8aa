package exact

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// readBatch is the number of members read at a time, 4 KiB.
const readBatch = 512

// taker takes ascending members: it adds them to a bitmap, or only counts its memory.
type taker struct {
	to     *bitmap // nil: none
	key    uint64  // of the last container
	card   uint64  // its members
	memory uint64  // approximate size of the bitmap
}

func (t *taker) add(values []uint64) {
	if t.to != nil {
		t.to.add(values)
	}
	for _, v := range values {
		t.count(v>>containerBits, 1)
	}
}

// addRun takes n consecutive members.
func (t *taker) addRun(first, n uint64) {
	if t.to != nil {
		t.to.addRun(first, n)
	}
	for n > 0 {
		some := min(n, containerSize-first%containerSize)
		t.count(first>>containerBits, some)
		first, n = first+some, n-some
	}
}

// count counts n members of a container.
func (t *taker) count(key, n uint64) {
	if key != t.key || t.card == 0 {
		t.key, t.card = key, 0
		t.memory += containerMemory
	}
	t.memory += 2 * (min(t.card+n, listMax) - min(t.card, listMax))
	if t.card += n; t.card == containerSize { // its bitmap is shared
		t.memory -= 2 * listMax
	}
}

// readGaps passes the members encoded in b to t. No member may be below least. It is an error
// that wraps fault.ErrCorrupt if b is not exactly what the writer produces for these members.
func readGaps(b []byte, least uint64, t *taker) error {
	if len(b) < 8 {
		return tooShort(b)
	}
	r := gapsReader{b: b, at: 64, members: binary.LittleEndian.Uint64(b), least: least}
	var buf [readBatch]uint64
	for r.members > 0 {
		n, err := r.next(&buf)
		if err != nil {
			return err
		}
		if t.add(buf[:n]); n == 0 {
			t.addRun(r.last-uint64(r.gaps), uint64(r.gaps)+1)
		}
	}
	if more := len(b) - int(r.at/8); more > 0 {
		return bad("bytes behind it", 0, more)
	}
	return nil
}

func bad(what string, want, got any) error {
	return faults.Corrupt(fault.At{}, "exact set: %s: want %v, got %v", what, want, got)
}

func tooShort(b []byte) error {
	return faults.Corrupt(fault.At{}, "exact set is too short: %d bytes", len(b))
}

// gapsReader reads the members of a part in ascending order and validates them.
type gapsReader struct {
	b       []byte
	at      uint64 // bits read
	members uint64 // still to come, as claimed by the part
	least   uint64 // smallest first member that the next block may have
	full    bool   // no member can follow, because the last one was 2^64-1

	k     uint
	first uint64 // member of the block
	gaps  int    // in the block
	left  int    // gaps of the block still to come
	last  uint64 // last member
	below int    // gaps below 2^k so far
	half  int    // gaps below 2^(k-1) so far
}

// next reads between one and len(buf) members of one block, or none if they are a run, which ends
// with r.last.
func (r *gapsReader) next(buf *[readBatch]uint64) (n int, err error) {
	if r.left == 0 {
		if err := r.begin(); err != nil || r.k == gapsRun {
			return 0, err
		}
		buf[0], n = r.last, 1
	}
	end := min(len(buf), n+r.left)
	for i := n; i < end; {
		if i += r.quick(buf[i:end]); i == end {
			break
		}
		if err := r.one(); err != nil {
			return 0, err
		}
		buf[i] = r.last
		i++
	}
	r.left -= end - n
	r.members -= uint64(end)
	if r.left > 0 {
		return end, nil
	}
	return end, r.end()
}

// begin reads the head of a block.
func (r *gapsReader) begin() error {
	at := int(r.at / 8)
	if len(r.b)-at < gapsHead {
		return tooShort(r.b)
	}
	first, k := binary.LittleEndian.Uint64(r.b[at:]), uint(r.b[at+8])
	r.at += 8 * gapsHead
	if r.full || first < r.least {
		return bad("first member of a block", fmt.Sprintf("%d or above", r.least), first)
	}
	r.gaps = int(min(r.members, gapsBlock)) - 1
	r.k, r.first, r.last, r.below, r.half = k, first, first, 0, 0
	if k != gapsRun {
		r.left = r.gaps
		if k > 64 {
			return bad("Rice parameter", "64 at most, or 255", k)
		}
		return nil
	}
	if r.gaps == 0 || first > ^uint64(r.gaps) {
		return bad("consecutive members", "two or more, below 2^64", fmt.Sprintf("%d from %d", r.gaps+1, first))
	}
	r.members -= uint64(r.gaps) + 1
	r.last += uint64(r.gaps)
	r.least, r.full = r.last+1, r.last+1 == 0
	return nil
}

// end checks a block's parameter and padding.
func (r *gapsReader) end() error {
	if !enoughBelow(r.below, r.gaps) {
		return bad("Rice parameter", fmt.Sprintf("3/8 of %d gaps below 2^%d", r.gaps, r.k), r.below)
	}
	if r.gaps > 0 && r.last-r.first == uint64(r.gaps) {
		return bad("Rice parameter of consecutive members", gapsRun, r.k)
	}
	if r.k > 0 && enoughBelow(r.half, r.gaps) {
		return bad("Rice parameter", fmt.Sprintf("less than %d", r.k), r.k)
	}
	if used := r.at % 8; used > 0 {
		if pad := r.b[r.at/8] >> used; pad != 0 {
			return bad("bits behind a block", 0, pad)
		}
		r.at += 8 - used
	}
	r.least, r.full = r.last+1, r.last+1 == 0
	return nil
}

// quick reads members into buf while the next code fits in a word: until an escape,
// the end of the bytes or an error. It returns how many it read.
func (r *gapsReader) quick(buf []uint64) (n int) {
	k := uint64(r.k)
	if k > quickK {
		return 0
	}
	b, end, last, below, half := r.b, r.at, r.last, uint64(0), uint64(0)
	power := uint64(1) << k
	word, have := uint64(0), uint64(0) // the unread bits before end
	for n < len(buf) {
		q := uint64(bits.TrailingZeros64(word))
		if q+1+k > have {
			end -= have
			i := end / 8
			if have = 0; i+8 > uint64(len(b)) {
				break
			}
			word, have = binary.LittleEndian.Uint64(b[i:])>>(end%8), 64-end%8
			end += have
			q = uint64(bits.TrailingZeros64(word))
		}
		gap := q<<(k&63) | word>>((q+1)&63)&(power-1)
		v := last + gap + 1
		if q >= gapsEscape || v <= last {
			break
		}
		below += (gap - power) >> 63
		half += (gap - power/2) >> 63
		word >>= (q + 1 + k) & 63
		have -= q + 1 + k
		buf[n], last = v, v
		n++
	}
	r.at, r.last = end-have, last
	r.below += int(below)
	r.half += int(half)
	return n
}

// one reads one member with any code.
func (r *gapsReader) one() error {
	q := uint64(bits.TrailingZeros64(r.peek(r.at)))
	n := uint64(r.k)
	if q == gapsEscape {
		n = 64
	}
	code := r.at + q + 1
	if code+n > 8*uint64(len(r.b)) {
		return tooShort(r.b)
	}
	gap := r.peek(code) & (1<<n - 1)
	switch {
	case q > gapsEscape:
		return bad("zero bits before a gap", "32 at most", q)
	case q == gapsEscape && gap>>r.k < gapsEscape:
		return bad("gap in full", fmt.Sprintf("32·2^%d or above", r.k), gap)
	case q < gapsEscape && q<<r.k>>r.k != q:
		return bad("gap", "less than 2^64", fmt.Sprintf("%d·2^%d or above", q, r.k))
	case q < gapsEscape:
		gap |= q << r.k
	}
	if most := ^r.last - 1; r.last == ^uint64(0) || gap > most {
		return bad("gap", fmt.Sprintf("a member below 2^64 behind %d", r.last), gap)
	}
	if gap>>r.k == 0 {
		r.below++
	}
	if r.k > 0 && gap>>(r.k-1) == 0 {
		r.half++
	}
	r.at = code + n
	r.last += gap + 1
	return nil
}

// peek returns the 64 bits that start at a bit, padded with zeros at the end.
func (r *gapsReader) peek(at uint64) uint64 {
	b := r.b[min(at/8, uint64(len(r.b))):]
	if len(b) < 9 {
		var end [9]byte
		copy(end[:], b)
		b = end[:]
	}
	return binary.LittleEndian.Uint64(b)>>(at%8) | uint64(b[8])<<(64-at%8)
}
