//go:build amd64 && !purego

package zstd

import (
	"encoding/binary"
	"math/bits"
)

// entry is a state of a table of finite state entropy (FSE). The assembly knows this layout.
type entry struct {
	base  uint32 // what the state stands for, less the extra bits
	next  uint16 // the next state, less the bits
	count uint8  // of these bits
	extra uint8  // bits
}

// kind is one of the three tables of sequences.
type kind struct {
	base     []uint32
	extra    []uint8
	maxLog   int
	counts   []int16 // predefined
	usualLog int
}

var (
	lengthKind = kind{
		append(ascending(0, 16), 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536),
		[]uint8{16: 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 9,
		[]int16{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1}, 6,
	}
	matchKind = kind{
		append(ascending(3, 32), 35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539),
		[]uint8{32: 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 9,
		[]int16{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}, 6,
	}
	offsetKind = offsets()
)

func offsets() kind {
	k := kind{maxLog: 8, usualLog: 5, counts: []int16{1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1}}
	for i := range 29 {
		k.base, k.extra = append(k.base, 1<<i), append(k.extra, uint8(i))
	}
	return k
}

func ascending(first uint32, n int) (all []uint32) {
	for i := range n {
		all = append(all, first+uint32(i))
	}
	return all
}

// word returns the eight bytes at i, those behind the end as 0.
func word(b []byte, i int) uint64 {
	if i+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[i:])
	}
	var w [8]byte
	copy(w[:], b[min(i, len(b)):])
	return binary.LittleEndian.Uint64(w[:])
}

// readCounts reads how many states each symbol has. It returns the number of bytes, 0 if that is wrong.
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
func fill(table []entry, counts []int16, log int, base []uint32, extra []uint8) {
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
		e.base, e.extra = base[s], extra[s]
	}
}

// table is one of the three of sequences, as it stands for the next block that repeats it.
type table struct {
	entries []entry
	log     int
	most    int // extra bits
	valid   bool
}

// read reads the table in the given mode, and returns what is behind it in src.
func (t *table) read(mode byte, src []byte, k *kind) (rest []byte, ok bool) {
	var counts [64]int16
	used, n, log := 0, len(k.counts), k.usualLog
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
	fill(t.entries, counts[:n], log, k.base, k.extra)
	return src[used:], true
}

// code is a Huffman code of literals.
type code struct {
	weights [256]uint8
	n, log  int // log is 0 if there is none
}

var plain, none = ascending(0, 256), make([]uint8, 256)

// read reads the code's weights at the start of src, and returns their number of bytes, 0 if they are wrong.
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

// readCoded reads weights that are coded by two states in turns.
func (c *code) readCoded(src []byte) bool {
	var counts [maxWidth + 2]int16
	var t [64]entry
	used, n, log := readCounts(src, counts[:], 6)
	if used == 0 {
		return false
	}
	fill(t[:], counts[:n], log, plain, none)
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
