//go:build amd64 && !purego

package zstd

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/cpu"
)

var accelerated = cpu.X86.HasAVX2 && cpu.X86.HasBMI1 && cpu.X86.HasBMI2

const (
	maxSize   = 32 << 20  // offsets within it have at most 24 extra bits, and a sequence 56
	maxWidth  = 11        // bits of a Huffman code
	maxBlock  = 128 << 10 // bytes of literals
	maxRounds = 730       // of literals: 7 symbols each fit into 5120 bytes
	slack     = 64        // bytes after the literals that may be read and written
)

// literals has the streams of literals of one block or two. The assembly knows this layout.
type literals struct {
	tables [2][1 << maxWidth]uint16
	bits   [8]uint64  // loaded bits, from the highest on; the lowest bit that is set marks their end
	in     [8]uintptr // where they were loaded from
	rounds int
	out    [8][5120 + 64]byte
}

// sequences is the decoder of a block's sequences. The assembly knows this layout.
type sequences struct {
	lengths, matches [512]entry
	offsets          [256]entry
	pos              uint64 // in bits
	states           [3]uint64
	lit, out         uintptr
	left             int
	litEnd, outStart uintptr
	outSafe          uintptr
	inSafe           uint64
	pending          [3]uint64 // literal length, match length, offset
	history          [4]uint32
}

// block is one of the two whose literals are decoded together.
type block struct {
	kind     int // 0: not compressed
	last     bool
	body     []byte
	code     *code
	coded    []byte // the literals' streams
	streams  int
	literals []byte
	buf      [maxBlock + slack]byte
}

// Decoder decodes frames. Its memory is reused. It is not safe for concurrent use.
type Decoder struct{ m *machine }

type machine struct {
	literals
	sequences
	blocks [2]block
	codes  [3]code  // the last one, and room for the codes of two blocks
	coded  int      // index of the last one
	tabs   [3]table // of literal lengths, offsets, match lengths
	dst    []byte
	src    []byte
	at     int // in dst
	next   int // in src
}

// Decode decodes the frame src into dst, which must have exactly the decoded length and
// not overlap src. If it returns false, dst holds anything, and another decoder must take over.
func (d *Decoder) Decode(dst, src []byte) bool {
	// Offsets are below 4 GiB. Subtracted from an address in dst, one must not pass address 0.
	low := uintptr(unsafe.Pointer(unsafe.SliceData(dst))) < 1<<32
	if !accelerated || low || len(dst) < MinSize || len(dst) > maxSize {
		return false
	}
	if d.m == nil {
		d.m = &machine{}
		d.m.tabs = [3]table{{entries: d.m.lengths[:]}, {entries: d.m.sequences.offsets[:]}, {entries: d.m.matches[:]}}
	}
	m := d.m
	sum, ok := m.begin(dst, src)
	for last := false; ok && !last; {
		n := 0
		for ; n < len(m.blocks) && ok && !last; n++ {
			ok = m.blocks[n].read(m)
			last = m.blocks[n].last
		}
		ok = ok && m.decodeLiterals(m.blocks[:n])
		for i := 0; i < n && ok; i++ {
			ok = m.finish(&m.blocks[i])
		}
	}
	rest := src[m.next:]
	if sum {
		ok = ok && len(rest) == 4 && binary.LittleEndian.Uint32(rest) == uint32(xxhash.Sum64(dst))
	} else {
		ok = ok && len(rest) == 0
	}
	m.dst, m.src = nil, nil
	return ok && m.at == len(dst)
}

// begin reads the frame's header.
func (m *machine) begin(dst, src []byte) (sum, ok bool) {
	m.dst, m.src, m.at, m.next = dst, src, 0, 0
	m.history = [4]uint32{1, 4, 8}
	m.codes[m.coded].log = 0
	for i := range m.tabs {
		m.tabs[i].valid = false
	}
	if len(src) < 18 || binary.LittleEndian.Uint32(src) != 0xFD2FB528 {
		return false, false
	}
	d := src[4]
	single := d >> 5 & 1
	if d&0xb > 0 { // a dictionary, or a reserved bit
		return false, false
	}
	m.next = 6 - int(single)
	stated, width := word(src, m.next), 1<<(d>>6)
	switch {
	case width == 1 && single == 0:
		width = 0
	case width == 2:
		stated = stated&0xffff + 256
	case width < 8:
		stated &= 1<<(8*width) - 1
	}
	m.next += width
	return d&4 > 0, width == 0 || stated == uint64(len(dst))
}

// read reads a block's header and that of its literals.
func (b *block) read(m *machine) bool {
	head := int(word(m.src, m.next) & (1<<24 - 1))
	m.next += 3
	b.last, b.kind = head&1 > 0, head>>1&3
	stored := head >> 3
	b.streams, b.literals = 0, nil
	if b.kind&1 > 0 || stored > len(m.src)-m.next { // a block of 1 byte, repeated, is rare
		m.next = min(m.next, len(m.src))
		return false
	}
	b.body = m.src[m.next : m.next+stored]
	m.next += stored
	if b.kind == 0 {
		return true
	}
	h := word(b.body, 0)
	format := h >> 2 & 3
	used, width := [...]int{1, 2, 1, 3}[format], [...]int{5, 12, 5, 20}[format]
	shift := 4 - int(^format&1)
	coded := h&2 > 0
	if coded {
		shift, width = 4, [...]int{10, 10, 14, 18}[format]
		used = (11 + 2*width) / 8
		b.streams = [...]int{1, 4, 4, 4}[format]
	}
	n := int(h >> shift & (1<<width - 1))
	stored = n
	if coded {
		stored = int(h >> (4 + width) & (1<<width - 1))
	}
	if n > maxBlock || used+stored > len(b.body) || h&3 == 1 { // 1 byte, repeated, is rare
		return false
	}
	b.literals, b.coded, b.body = b.buf[:n], b.body[used:used+stored], b.body[used+stored:]
	switch h & 3 {
	case 0:
		copy(b.literals, b.coded)
	case 2:
		m.coded = (m.coded + 1) % len(m.codes)
		b.coded = b.coded[m.codes[m.coded].read(b.coded):]
	}
	b.code = &m.codes[m.coded]
	return !coded || b.code.log > 0
}

// stream is a stream of bits that is read from its end.
type stream struct {
	in, out []byte
	pos     int // in bits
}

func newStream(in, out []byte) (stream, bool) {
	if len(in) == 0 || in[len(in)-1] == 0 {
		return stream{}, false
	}
	return stream{in, out, 8*len(in) - 9 + bits.Len8(in[len(in)-1])}, true
}

// bits returns the next n bits, at most 32. Those before the start are 0.
func (s *stream) bits(n int) uint64 {
	s.pos -= n
	if s.pos >= 0 {
		return word(s.in, s.pos>>3) >> (s.pos & 7) & (1<<n - 1)
	}
	return word(s.in, 0) << min(-s.pos, 63) & (1<<n - 1)
}

// symbols decodes the rest of a stream of literals, one symbol at a time.
func (s *stream) symbols(table []uint16, width int) bool {
	for i := range s.out {
		e := table[s.bits(width)]
		s.pos += width - int(e&0xff)
		s.out[i] = byte(e >> 8)
	}
	return s.pos == 0
}

// decodeLiterals decodes the literals of one block or two.
func (m *machine) decodeLiterals(blocks []block) bool {
	var all [8]stream
	var of [2]*block
	n, width := 0, 8
	for i := range blocks {
		b := &blocks[i]
		if b.streams == 0 {
			continue
		}
		if b.code.log > width {
			width = maxWidth
		}
		of[n] = b
		if !b.split(all[4*n : 4*n+4]) {
			return false
		}
		n++
	}
	if n == 0 {
		return true
	}
	for i := range n {
		of[i].code.fill(m.literals.tables[i][:], width)
	}
	m.rounds8(all[:4*n], width)
	if n == 2 {
		m.rounds8(all[:4], width)
	}
	for i := range all[:4*n] {
		if i == 4 {
			m.literals.tables[0] = m.literals.tables[1]
			m.rounds8(all[4:], width)
		}
		if s := &all[i]; s.in != nil && !s.symbols(m.literals.tables[0][:], width) {
			return false
		}
	}
	return true
}

// split finds the streams of literals.
func (b *block) split(all []stream) (ok bool) {
	if b.streams == 1 {
		all[0], ok = newStream(b.coded, b.literals)
		return ok
	}
	part := (len(b.literals) + 3) / 4
	in, out := b.coded, b.literals
	if len(in) < 6 || 3*part > len(out) {
		return false
	}
	sizes := in[:6]
	in = in[6:]
	for i := range all {
		n, made := len(in), len(out)
		if i < 3 {
			n, made = int(binary.LittleEndian.Uint16(sizes[2*i:])), part
		}
		if n > len(in) {
			return false
		}
		if all[i], ok = newStream(in[:n], out[:made]); !ok {
			return false
		}
		in, out = in[n:], out[made:]
	}
	return true
}

// rounds8 decodes the streams of one block or two in rounds, until one of them has too little
// left for a round.
func (m *machine) rounds8(all []stream, width int) {
	symbols := 5
	if width == 8 {
		symbols = 7
	}
	l := &m.literals
	for {
		l.rounds = maxRounds
		for i := range all {
			s := &all[i]
			l.rounds = min(l.rounds, len(s.out)/symbols, (s.pos+7-64)/56)
		}
		if l.rounds <= 0 {
			return
		}
		made := l.rounds * symbols
		for i := range all {
			s := &all[i]
			from := (s.pos+7)/8 - 8
			l.in[i] = uintptr(unsafe.Pointer(&s.in[from]))
			l.bits[i] = (binary.LittleEndian.Uint64(s.in[from:]) | 1) << (-s.pos & 7)
		}
		p := (*uint64)(unsafe.Pointer(l))
		switch {
		case len(all) == 8 && width == 8:
			literals8_8(p)
		case len(all) == 8:
			literals8_11(p)
		case width == 8:
			literals4_8(p)
		default:
			literals4_11(p)
		}
		for i := range all {
			s := &all[i]
			s.pos = 8*(int(l.in[i]-uintptr(unsafe.Pointer(&s.in[0])))+8) - bits.TrailingZeros64(l.bits[i])
			copy(s.out, l.out[i][:made])
			s.out = s.out[made:]
		}
	}
}

// finish writes the block's output.
func (m *machine) finish(b *block) bool {
	out := m.dst[m.at:]
	if b.kind == 0 {
		m.at += copy(out, b.body)
		return len(b.body) <= len(out)
	}
	rest, ok := m.execute(b)
	if !ok || len(rest) > len(m.dst)-m.at {
		return false
	}
	m.at += copy(m.dst[m.at:], rest)
	return true
}

// execute decodes and executes the sequences of a block. It returns the literals that follow the last one.
func (m *machine) execute(b *block) (rest []byte, ok bool) {
	h := word(b.body, 0)
	n, used := int(h&0xff), 1
	switch {
	case n == 255:
		n, used = int(h>>8&0xffff)+0x7f00, 3
	case n >= 128:
		n, used = (n-128)<<8+int(h>>8&0xff), 2
	}
	if n == 0 {
		return b.literals, len(b.body) == 1
	}
	if used+1 > len(b.body) {
		return nil, false
	}
	modes, src := b.body[used], b.body[used+1:]
	if modes&3 > 0 {
		return nil, false
	}
	s := &m.sequences
	most, logs := 0, 0
	for i, k := range kinds {
		t := &m.tabs[i]
		if src, ok = t.read(modes>>(6-2*i)&3, src, k); !ok {
			return nil, false
		}
		most += t.most
		logs += t.log
	}
	in, ok := newStream(src, nil)
	if !ok {
		return nil, false
	}
	states := [3]int{}
	for i := range states {
		states[i] = int(in.bits(m.tabs[i].log))
	}
	s.states = [3]uint64{uint64(states[0]), uint64(states[2]), uint64(states[1])}
	s.left = n - 1 // states follow all but the last
	lits := b.buf[:len(b.literals)+slack]
	at := 0
	start := uint64(uintptr(unsafe.Pointer(&src[0]))) * 8
	first, firstLit := uintptr(unsafe.Pointer(unsafe.SliceData(m.dst))), uintptr(unsafe.Pointer(&lits[0]))
	s.litEnd, s.outStart, s.outSafe = firstLit+uintptr(len(b.literals)), first, first+uintptr(len(m.dst))-96
	s.inSafe = start + 32
	for s.left > 0 {
		if in.pos < 0 {
			return nil, false
		}
		s.pos, s.lit, s.out = start+uint64(in.pos), firstLit+uintptr(at), first+uintptr(m.at)
		var pending int
		p := (*uint64)(unsafe.Pointer(s))
		if most+logs <= 56 {
			pending = sequencesOnce(p)
		} else {
			pending = sequencesTwice(p)
		}
		in.pos, at, m.at = int(s.pos-start), int(s.lit-firstLit), int(s.out-first)
		if s.left == 0 {
			break
		}
		if pending == 0 {
			s.one(&in)
		}
		if !m.pend(b.literals[at:]) {
			return nil, false
		}
		at += int(s.pending[0])
		s.left--
	}
	s.one(&in)
	if in.pos != 0 || !m.pend(b.literals[at:]) {
		return nil, false
	}
	return b.literals[at+int(s.pending[0]):], true
}

// one decodes a sequence and makes it the pending one.
func (s *sequences) one(in *stream) {
	of, m, l := s.offsets[s.states[2]], s.matches[s.states[1]], s.lengths[s.states[0]]
	code := uint64(of.base) + in.bits(int(of.extra))
	match := uint64(m.base) + in.bits(int(m.extra))
	literal := uint64(l.base) + in.bits(int(l.extra))
	if s.left > 0 {
		s.states[0] = uint64(l.next) + in.bits(int(l.count))
		s.states[1] = uint64(m.next) + in.bits(int(m.count))
		s.states[2] = uint64(of.next) + in.bits(int(of.count))
	}
	h := &s.history
	if literal == 0 {
		code++
	}
	switch {
	case code <= 1:
	case code == 2:
		h[0], h[1] = h[1], h[0]
	case code == 3:
		h[0], h[1], h[2] = h[2], h[0], h[1]
	default:
		if literal == 0 {
			code-- // 3 gives offset 0, which pend replaces
		}
		h[0], h[1], h[2] = uint32(code-3), h[0], h[1]
	}
	s.pending = [3]uint64{literal, match, uint64(h[0])}
}

// pend executes the pending sequence. It returns false if the sequence is not valid.
func (m *machine) pend(lits []byte) bool {
	literal, match, offset := int(m.pending[0]), int(m.pending[1]), int(m.pending[2])
	if offset == 0 { // one less than the last
		offset = max(int(m.history[1])-1, 1)
		m.history[0] = uint32(offset)
	}
	out := m.dst[m.at:]
	if literal > len(lits) || literal+match > len(out) || offset > m.at+literal {
		return false
	}
	copy(out, lits[:literal])
	m.at += literal
	for out = out[literal : literal+match]; len(out) > 0; {
		n := copy(out, m.dst[m.at-offset:m.at])
		m.at += n
		out = out[n:]
	}
	return true
}
