//go:build amd64 && !purego

package zstd

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// entry is a state of a table of finite state entropy (FSE). The assembly knows this layout.
type entry struct {
	base  uint32 // the value, to which extra bits are added
	next  uint16 // the next state, to which count bits are added
	count uint8
	extra uint8
}

// kind is what the format fixes for a kind of table.
type kind struct {
	base        []uint32
	extra       []uint8
	counts      []int16 // predefined
	log, maxLog int     // of the predefined table, and the largest allowed
}

const digits = "0123456789abcdefghijklmnopqrs"

// The tables of sequences, in the order of their headers, and that of Huffman weights.
var (
	kinds = [3]*kind{
		newKind(0, "00000000000000001111223346789abcdefg", "43222222222221112222222223211111----", 6, 9),
		newKind(1, digits, "111111222111111111111111-----", 5, 8),
		newKind(3, "0000000000000000000000000000000011112233445789abcdefg", "1432222221111111111111111111111111111111111111-------", 6, 9),
	}
	weightKind = newKind(0, "0000000000000", "", 0, 6)
)

// newKind makes a kind from two strings with a digit for each symbol: its extra bits, and its
// number of states in the predefined table, where - stands for a probability below one state.
func newKind(base uint32, extra, counts string, log, maxLog int) *kind {
	k := &kind{log: log, maxLog: maxLog}
	for i := range extra {
		bits := strings.IndexByte(digits, extra[i])
		k.base, k.extra = append(k.base, base), append(k.extra, uint8(bits))
		base += 1 << bits
	}
	for i := range counts {
		k.counts = append(k.counts, int16(strings.IndexByte("-"+digits, counts[i])-1))
	}
	return k
}

// word returns the eight bytes at i, with zeros after the end.
func word(b []byte, i int) uint64 {
	if i+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[i:])
	}
	var w [8]byte
	copy(w[:], b[min(i, len(b)):])
	return binary.LittleEndian.Uint64(w[:])
}

// readCounts reads how many states each symbol has. used is the number of bytes, 0 if they are not valid.
func readCounts(src []byte, counts []int16, maxLog int) (used, n, log int) {
	pos := 0
	peek := func() int { return int(word(src, pos>>3) >> (pos & 7) & (1<<20 - 1)) }
	log = peek()&15 + 5
	pos += 4
	if log > maxLog {
		return 0, 0, 0
	}
	rest, threshold, width := 1<<log+1, 1<<log, log+1
	for rest > 1 {
		if n == len(counts) || pos > 8*len(src) {
			return 0, 0, 0
		}
		v, most := peek(), 2*threshold-1-rest
		count := v & (threshold - 1)
		if count < most {
			pos += width - 1
		} else {
			if count = v & (2*threshold - 1); count >= threshold {
				count -= most
			}
			pos += width
		}
		count--
		rest -= max(count, -count)
		counts[n] = int16(count)
		n++
		for more := count == 0; more; {
			k := peek() & 3
			pos += 2
			if more = k == 3; n+k > len(counts) {
				return 0, 0, 0
			}
			clear(counts[n : n+k])
			n += k
		}
		for rest < threshold {
			width--
			threshold >>= 1
		}
	}
	if used = (pos + 7) / 8; rest != 1 || used > len(src) {
		return 0, 0, 0
	}
	return used, n, log
}

// fill makes the table of 1<<log states.
func (k *kind) fill(table []entry, counts []int16, log int) {
	size := 1 << log
	var next [64]uint16
	high := size - 1
	for s, c := range counts {
		next[s] = uint16(max(c, -c))
		if c < 0 {
			table[high].base = uint32(s)
			high--
		}
	}
	at := 0
	for s, c := range counts {
		for range c {
			table[at].base = uint32(s)
			for {
				if at = (at + size>>1 + size>>3 + 3) & (size - 1); at <= high {
					break
				}
			}
		}
	}
	for i := range table[:size] {
		e := &table[i]
		s := e.base
		state := next[s]
		next[s]++
		e.count = uint8(log + 1 - bits.Len16(state))
		e.next = state<<e.count - uint16(size)
		e.base, e.extra = k.base[s], k.extra[s]
	}
}

// table is one of the three tables of sequences. The next block may repeat it.
type table struct {
	entries []entry
	log     int
	most    int // extra bits
	valid   bool
}

// read reads the table in the given mode, and returns the rest of src.
func (t *table) read(mode byte, src []byte, k *kind) (rest []byte, ok bool) {
	var counts [64]int16
	used, n, log := 0, len(k.counts), k.log
	switch mode {
	case 0:
		copy(counts[:], k.counts)
	case 1:
		if len(src) == 0 || int(src[0]) >= len(k.base) {
			return nil, false
		}
		s := src[0]
		t.entries[0] = entry{base: k.base[s], extra: k.extra[s]}
		t.log, t.most, t.valid = 0, int(k.extra[s]), true
		return src[1:], true
	case 2:
		if used, n, log = readCounts(src, counts[:len(k.base)], k.maxLog); used == 0 {
			return nil, false
		}
	default:
		return src, t.valid
	}
	t.log, t.most, t.valid = log, 0, true
	for s, c := range counts[:n] {
		if c != 0 {
			t.most = max(t.most, int(k.extra[s]))
		}
	}
	k.fill(t.entries, counts[:n], log)
	return src[used:], true
}

// code is a Huffman code of literals.
type code struct {
	weights [256]uint8
	n, log  int // log is 0 if there is none
}

// read reads the code's weights at the start of src. used is their number of bytes, 0 if they are not valid.
func (c *code) read(src []byte) (used int) {
	c.n, c.log = 0, 0
	if len(src) == 0 {
		return 0
	}
	size := int(src[0])
	if size >= 128 {
		n := size - 127
		if used = 1 + (n+1)/2; used > len(src) {
			return 0
		}
		for i := range n {
			c.weights[i] = src[1+i/2] >> (4 * (^i & 1)) & 15
		}
		c.n = n
	} else if used = 1 + size; used > len(src) || !c.readCoded(src[1:used]) {
		return 0
	}
	sum := 0
	for _, w := range c.weights[:c.n] {
		if w > maxWidth {
			return 0
		}
		sum += 1 << w >> 1
	}
	log := bits.Len(uint(sum))
	last := 1<<log - sum
	if sum == 0 || log > maxWidth || last&(last-1) != 0 {
		return 0
	}
	c.weights[c.n] = uint8(bits.Len(uint(last)))
	c.n++
	c.log = log
	return used
}

// readCoded reads weights that two alternating states encode.
func (c *code) readCoded(src []byte) bool {
	var counts [13]int16
	var t [64]entry
	used, n, log := readCounts(src, counts[:], weightKind.maxLog)
	if used == 0 {
		return false
	}
	weightKind.fill(t[:], counts[:n], log)
	s, ok := newStream(src[used:], nil)
	if !ok {
		return false
	}
	a, b := int(s.bits(log)), int(s.bits(log))
	for c.n < 254 && s.pos >= 0 {
		c.weights[c.n] = uint8(t[a].base)
		c.n++
		a, b = b, int(t[a].next)+int(s.bits(int(t[a].count)))
	}
	if s.pos >= 0 {
		return false
	}
	c.weights[c.n] = uint8(t[a].base) // the other state's, which is not advanced
	c.n++
	return true
}

// fill makes the table of 1<<width symbols (high byte) and numbers of bits.
func (c *code) fill(table []uint16, width int) {
	var start [maxWidth + 2]int
	for _, w := range c.weights[:c.n] {
		start[w+1] += 1 << w >> 1
	}
	for w := 1; w <= maxWidth; w++ {
		start[w+1] += start[w]
	}
	for s, w := range c.weights[:c.n] {
		if w == 0 {
			continue
		}
		e := uint16(s<<8 | (c.log + 1 - int(w)))
		from := start[w]
		start[w] += 1 << w >> 1
		cells := table[from<<(width-c.log) : start[w]<<(width-c.log)]
		for i := range cells {
			cells[i] = e
		}
	}
}
