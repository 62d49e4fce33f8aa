//go:build amd64 && !purego && linux

package snappy

// Each of these changes to steps_amd64.s makes a test of this file fail, in -short:
//   - a step reads 97 bytes, uses 37, writes 126 or makes 95 (each alone, and with the
//     distance between the pair kept)
//   - a run of steps starts although an end is passed (JLE) or less than a step away (JEQ),
//     or is as long as one of both ends allows
//   - lean steps begin after 65,534 bytes, or at once
//   - the comparison with the start is left out for copies up to 32, longer ones,
//     overlapping ones, or a lean step's copy-4
//   - overlap is not noticed in copies of more than 32 bytes, of either step, or in a lean
//     step's copy-4, or the length of the latter is used as the table has it
//   - a wide step continues 4 bytes after a copy-4, in line or out of line, or takes its
//     next tag from there; a long step moves 32 bytes, or knows two bytes of offset only
//   - the mark of long copies is 2^24, which offsets reach
//   - offset 0, lengths of three bytes, or a length byte (tag 60) is not told from the others
//   - a long literal is not compared with the input's end, or the output's
//   - the ends, the start or the first 64 KiB of one of several blocks are not checked
//
// and each of these to decode_amd64.go: an element's check of its own length, literal (in
// input and output), offset (0 and start) and copy is left out; the fourth byte of an offset is
// not read; the size is not compared at the end; dst may be anywhere; the wrong block is taken out.

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"
	"golang.org/x/sys/unix"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// guarded is memory between two pages whose access ends the process.
type guarded []byte

func newGuarded(t testing.TB, size int) guarded {
	page := unix.Getpagesize()
	m, err := unix.Mmap(-1, 0, (size+page-1)/page*page+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	for _, end := range [][]byte{m[:page], m[len(m)-page:]} {
		if err := unix.Mprotect(end, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return guarded(m[page : len(m)-page])
}

func (g guarded) first(n int) []byte { return g[:n:n] }
func (g guarded) last(n int) []byte  { return g[len(g)-n:] }

// rig decodes blocks with the assembly, of any size, in guarded memory: alone, or in turns
// with others.
type rig struct {
	t        testing.TB
	src, dst guarded
	r        *rand.Rand
	others   []other
}

// other is a valid block that is decoded at the same time.
type other struct {
	block Block
	want  []byte
}

func newRig(t testing.TB, size int) rig {
	if !accelerated {
		t.Skip("this processor has no AVX2 and BMI1")
	}
	g := rig{t, newGuarded(t, 2*size), newGuarded(t, size), rand.New(rand.NewPCG(21, 22)), nil}
	hex := columns(g.r)["hex"]
	for _, size := range []int{100, 5000, 60_000, 200_000, 300_000, 350_000} {
		for _, block := range [][]byte{elements(g.r, size, false), s2.EncodeSnappy(nil, text(g.r, size)), encode(hex[:size])} { // long, wide and lean steps
			want, err := s2.Decode(nil, block)
			if err != nil {
				t.Fatal(err)
			}
			src, dst := newGuarded(t, len(block)), newGuarded(t, len(want))
			copy(src.last(len(block)), block)
			g.others = append(g.others, other{Block{Dst: dst.last(len(want)), Src: src.last(len(block))}, want})
		}
	}
	return g
}

// decode decodes a block at each position among a random number of blocks. It reports whether
// the assembly has decoded it.
func (g rig) decode(dst, src []byte) (right bool) {
	n := g.r.IntN(AtOnce)
	for at := range n + 1 {
		for i := range dst {
			dst[i] = 0xEE
		}
		got := g.among(n, at, dst, src)
		if at > 0 && got != right {
			g.t.Fatalf("% .30x: %t as block %d of %d, %t before", src, got, at, n+1, right)
		}
		right = got
	}
	return right
}

// among decodes a block in turns with n others, which are at their start, too, or have
// been decoded in part.
func (g rig) among(n, at int, dst, src []byte) bool {
	var t turns
	block := Block{Dst: dst, Src: src}
	first, later := g.r.IntN(len(g.others)), n > 0 && g.r.IntN(3) == 0
	other := func(k int) *Block { return &g.others[(first+k*(1+first%5))%len(g.others)].block }
	if later { // the first ends before the others, which are beyond the first 64 KiB then
		other = func(k int) *Block { return &g.others[len(g.others)-7+3*k].block }
	}
	add := func(b *Block) {
		if !t.add(b) {
			g.t.Fatalf("a block of %d bytes is not taken", len(b.Dst))
		}
	}
	var own bool
	if later { // the block takes the place of one that has ended
		for k := range n + 1 {
			add(other(k))
		}
		g.finish(&t, &block)
	}
	for i := t.n; i <= n; i++ {
		if i != at && !later {
			add(other(i))
		} else if own = t.add(&block); !own {
			return false
		}
	}
	right := false
	for own && t.n > 0 {
		own, right = g.finish(&t, &block)
	}
	for t.n > 0 && g.r.IntN(8) == 0 {
		g.finish(&t, &block)
	}
	return right
}

// finish decodes until a block ends. If that is another block, it must be right.
func (g rig) finish(t *turns, block *Block) (another, right bool) {
	b, right := t.next()
	if b == block {
		return false, right
	}
	i := slices.IndexFunc(g.others, func(o other) bool { return &o.block.Dst[0] == &b.Dst[0] })
	if !right || !bytes.Equal(b.Dst, g.others[i].want) {
		g.t.Fatalf("% .30x: another block, of %d bytes, is decoded wrongly beside this one", block.Src, len(b.Dst))
	}
	return true, true
}

// check compares decode with s2. It reports whether the block was decoded.
func (g rig) check(block []byte, atEnd bool) bool {
	g.t.Helper()
	size, err := s2.DecodedLen(block)
	if err != nil || size > len(g.dst) {
		return false
	}
	want, err := s2.Decode(nil, block)
	src, dst := g.src.first(len(block)), g.dst.first(size)
	behind := g.dst[size:min(size+300, len(g.dst))]
	if atEnd {
		src, dst, behind = g.src.last(len(block)), g.dst.last(size), nil
	}
	copy(src, block)
	for i := range behind {
		behind[i] = 0xA5
	}
	decoded := g.decode(dst, src)
	switch {
	case decoded && err != nil:
		g.t.Fatalf("% .30x: s2 says %v", block, err)
	case decoded && !bytes.Equal(dst, want):
		g.t.Fatalf("% .30x: wrong bytes", block)
	case !bytes.Equal(src, block):
		g.t.Fatalf("% .30x: the input has changed", block)
	}
	if len(bytes.TrimRight(behind, "\xA5")) > 0 {
		g.t.Fatalf("% .30x: written behind the end", block)
	}
	return decoded
}

// Random, changed and cut blocks are decoded like by s2, and nothing outside of the
// slices is touched.
func TestHostile(t *testing.T) {
	g := newRig(t, largest)
	r := rand.New(rand.NewPCG(7, 8))
	decoded, n := 0, cases.Count(1000, 4000, 1_000_000)
	for range n {
		switch b, plain := hostile(r); {
		case g.check(b, r.IntN(4) > 0):
			decoded++
		case plain:
			t.Fatalf("% .30x: not decoded", b)
		}
	}
	if decoded < n/4 || decoded > n*7/8 {
		t.Errorf("%d blocks of %d were decoded", decoded, n)
	}
}

// If only the first bytes of a block are needed, these are right.
func TestNeed(t *testing.T) {
	g := newRig(t, largest)
	r := rand.New(rand.NewPCG(23, 24))
	right := 0
	for range cases.Count(400, 2000, 100_000) {
		b, plain := hostile(r)
		size, err := s2.DecodedLen(b)
		if err != nil || size < 2 || size > len(g.dst) {
			continue
		}
		want, err := s2.Decode(nil, b)
		src, dst := g.src.last(len(b)), g.dst.last(size)
		copy(src, b)
		var turns turns
		block := Block{Dst: dst, Src: src, Need: 1 + r.IntN(size-1)}
		if r.IntN(2) == 0 {
			turns.add(&g.others[r.IntN(len(g.others))].block)
		}
		if !turns.add(&block) {
			t.Fatal("the block is not taken")
		}
		for another := true; another; {
			var ok bool
			if another, ok = g.finish(&turns, &block); !another && ok && err == nil {
				right++
				if !bytes.Equal(dst[:block.Need], want[:block.Need]) {
					t.Fatalf("% .30x: the first %d of %d bytes are wrong", b, block.Need, size)
				}
			} else if !another && !ok && plain {
				t.Fatalf("% .30x: not decoded", b)
			}
		}
	}
	if right < 100 {
		t.Errorf("only %d blocks were decoded", right)
	}
}

// The steps that reach farthest are tried at every distance from both ends, after others
// that use and make as much as a step can.
func TestEnds(t *testing.T) {
	g := newRig(t, largest)
	r := rand.New(rand.NewPCG(9, 10))
	type step struct{ literal, copy, offset int }
	element := func(c step, far bool) (b []byte) {
		b = literal(nil, random(r, c.literal), shortest(c.literal))
		switch {
		case c.offset == 0: // another literal
			return literal(b, random(r, c.copy), 0)
		case far:
			return copy4(b, c.copy, c.offset)
		}
		return copy2(b, c.copy, c.offset)
	}
	for _, c := range []step{
		{32, 64, 100}, {32, 64, 64}, {32, 64, 32}, {32, 64, 31}, {32, 64, 21}, {32, 64, 16}, {32, 64, 9}, {32, 64, 15},
		{32, 64, 1}, {32, 32, 50}, {32, 4, 40}, {33, 8, 9}, {60, 64, 99}, {61, 64, 99}, {256, 64, 99}, {257, 64, 99}, {32, 60, 0},
	} {
		for k := range 4 * 43 {
			n, far, first := k/4, k&1 > 0, 300+k&2*35_000 // lean steps behind the longer
			if n > 3 && n < 38 || first > 300 && n != 1 && n != 40 {
				continue
			}
			full, last, made := element(step{32, 64, 100}, far), element(c, far), c.literal+c.copy
			b := append(literal(nil, random(r, first), 3), bytes.Repeat(full, n)...)
			b, size := append(append(b, last...), last...), first+96*n+2*made
			for rest := range cases.Count(140, 180, 300) / (1 + n/4) {
				// The block ends rest bytes later, in short elements or a literal.
				g.check(block(size+rest, append(bytes.Clone(b), bytes.Repeat([]byte{0, 'a'}, rest)...)), true)
				g.check(block(size+rest+1, literal(bytes.Clone(b), random(r, rest+1), shortest(rest+1))), true)
				// Its output ends within, or its input does.
				g.check(block(max(1, size-rest), append(bytes.Clone(b), random(r, 300)...)), true)
				g.check(block(size+20_000, b[:max(1, len(b)-rest)]), true)
			}
		}
	}
}

// An offset may lead to the output's start, however far that is, but not before it.
func TestStart(t *testing.T) {
	g := newRig(t, largest)
	r := rand.New(rand.NewPCG(13, 14))
	for _, made := range []int{1, 5, 20, 31, 40, 300, 1000, 2000, 65_000, 65_533, 65_534, 65_535, 65_536, 70_000} {
		for _, size := range []int{4, 11, 12, 32, 33, 60, 64} {
			for k, beyond := range []int{0, 1, 0, 1, 1 << 30, math.MaxUint32 - made} {
				offset := made + beyond
				if k < 2 && offset > math.MaxUint16 {
					continue
				}
				b := literal(nil, random(r, made), shortest(made))
				if k < 2 {
					b = copy2(b, size, offset)
				} else {
					b = copy4(b, size, offset)
				}
				b = literal(b, random(r, 300), 2) // both ends are far
				for _, atEnd := range []bool{false, true} {
					if g.check(block(made+size+300, b), atEnd) != (beyond == 0) {
						t.Errorf("offset %d after %d bytes, length %d: decoded is %t", offset, made, size, beyond > 0)
					}
				}
			}
		}
	}
}

// Offset 0 is not decoded: only s2 knows what it means.
func TestOffsetZero(t *testing.T) {
	g := newRig(t, largest)
	r := rand.New(rand.NewPCG(15, 16))
	for _, rest := range []int{0, 300} {
		for size := 4; size < 12; size++ {
			for _, b := range [][]byte{copy1(nil, size, 0), copy2(nil, size, 0), copy4(nil, size, 0)} {
				b = append(literal(nil, random(r, 300), 2), b...)
				if rest > 0 {
					b = literal(b, random(r, rest), 2)
				}
				if g.check(block(300+size+rest, b), true) {
					t.Errorf("length %d, %d bytes behind: decoded", size, rest)
				}
			}
		}
	}
}

// In the first 4 GiB of memory, an offset might lead to the other end.
func TestLowAddress(t *testing.T) {
	g := newRig(t, largest)
	dst, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_32BIT)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Munmap(dst)
	for _, made := range []int{300, 70_000} {
		b := literal(nil, random(rand.New(rand.NewPCG(17, 18)), made), 3)
		for _, copies := range [][]byte{copy4(nil, 8, math.MaxUint32), copy4(nil, 60, math.MaxUint32)} {
			b := append(bytes.Clone(b), copies...)
			if g.decode(dst[:len(dst):len(dst)], block(len(dst), append(b, make([]byte, 300)...))) {
				t.Errorf("after %d bytes: decoded", made)
			}
		}
	}
}

// Offsets that would reach a smaller mark of lengths are decoded.
func TestLargeOffsets(t *testing.T) {
	const offset = 1 << 24
	g := newRig(t, 2*offset)
	r := rand.New(rand.NewPCG(19, 20))
	long := literal(nil, random(r, 100), 1)
	size := 100
	for size < offset+1000 { // wide steps
		long, size = copy4(long, 32, 100), size+32
	}
	for _, length := range []int{32, 33, 48, 64} {
		for _, beyond := range []int{0, 32, 33, 64, 65, 900} {
			b := bytes.Clone(long)
			for range 8 {
				b = copy4(b, length, offset+beyond)
			}
			b = literal(b, random(r, 300), 2)
			if !g.check(block(size+8*length+300, b), true) {
				t.Errorf("length %d, offset 2^24+%d: not decoded", length, beyond)
			}
			if g.check(block(min(size+8*length+300+offset, 2*offset), b), true) {
				t.Errorf("length %d, offset 2^24+%d: decoded to a size that it has not", length, beyond)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	g := newRig(f, largest)
	r := rand.New(rand.NewPCG(11, 12))
	for range 30 {
		f.Add(elements(r, 1+r.IntN(3000), false))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) <= largest {
			g.t = t
			g.check(b, true)
		}
	})
}
