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

// readGaps passes the members encoded in b to p and ends p. No member may be below
// least. It is an error that wraps fault.ErrCorrupt if b is not exactly what the
// writer produces for these members.
func readGaps(b []byte, least uint64, p *packer) error {
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
		p.add(buf[:n])
	}
	if more := len(b) - int(r.at/8); more > 0 {
		return bad("bytes behind it", 0, more)
	}
	p.end()
	return nil
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
	gaps  int    // in the block
	left  int    // gaps of the block still to come
	last  uint64 // last member
	below int    // gaps below 2^k so far
	half  int    // gaps below 2^(k-1) so far
}

// next reads between one and len(buf) members of one block.
func (r *gapsReader) next(buf *[readBatch]uint64) (n int, err error) {
	if r.left == 0 {
		if err := r.begin(); err != nil {
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
	if k > 64 {
		return bad("Rice parameter", "64 at most", k)
	}
	r.gaps = int(min(r.members, gapsBlock)) - 1
	r.k, r.left, r.last, r.below, r.half = k, r.gaps, first, 0, 0
	return nil
}

// end checks a block's parameter and padding.
func (r *gapsReader) end() error {
	if !enoughBelow(r.below, r.gaps) {
		return bad("Rice parameter", fmt.Sprintf("3/8 of %d gaps below 2^%d", r.gaps, r.k), r.below)
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
