// Command snappy writes the decoder of package internal/snappy, in AVX2 and BMI1:
//
//	go run ./snappy -out ../internal/snappy/steps_amd64.s -stubs ../internal/snappy/steps_amd64.go -pkg snappy
//
// A step of the decoder is an optional literal of at most 32 bytes and then one copy. Its only
// branch is rarely taken, since no processor predicts the kinds of short elements; other
// elements are out of line. The comment of package internal/snappy says why no step reads or
// writes outside of the slices; the constants below are its figures.
//
// Most of the time a step waits for its own chain of look-ups. Functions for several blocks
// therefore take one step of each in turn.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	maxIn     = 38    // the most input that a step uses: 1 + 32 of a literal, 5 of a copy
	reachIn   = 98    // the most that it reads: 1 + 32, then 1 + 64 of a literal out of line
	maxOut    = 96    // the most output that it makes: 32 of a literal, 64 of a copy
	reachOut  = 127   // the most that it writes: 32, then 63 + 32 of a copy that overlaps
	window    = 65535 // the largest offset of a copy-1 or copy-2
	rareEvery = 256   // if copies out of line are closer on average, in bytes of output, steps with them in line are faster
	rareFirst = 16    // copies out of line that may be closer at first
)

// tables are read at the tag, a byte whose lower two bits are the kind of element.
// The last two are read at an offset below 16.
const (
	masks       = 0                   // uint32: which bits of the bytes after the tag belong to the offset
	bases       = masks + 256*4       // int64: what the negated offset is if those bits are all set, for the wide step
	leanBases   = bases + 256*8       // int64: the same for the lean step, which takes copy-4s out of line
	longLengths = leanBases + 256*8   // int32: the negated length, for the long step
	lengths     = longLengths + 256*4 // int32: the same for the other steps, which take long copies out of line
	patterns    = lengths + 256*4     // 16 bytes: which byte of an offset's repeats is where
	strides     = patterns + 16*16    // byte: the largest multiple of the offset in 16
)

// Numbers that make a step branch out of line:
const (
	longCopy = 1 << 30 // subtracted from the negated lengths of copies of more than 32 bytes: above any offset in an output
	ofText   = 1 << 31 // the mark of literals: their negated length, negated
	farCopy  = 1 << 40 // the lean step's bases of copy-4s: all other negated offsets are below 1
)

// ofTag returns a tag's entries: which bits after it belong to the offset, what the
// negated offset is if these are all set, and the negated length.
func ofTag(tag int) (mask uint32, base int64, length int32) {
	length = -int32(1 + tag>>2)
	switch tag & 3 {
	case 0:
		return 0, 0, -ofText // the offset is 0, above any negated length
	case 1:
		return 0xff, -0xff - int64(tag>>5)<<8, -int32(4 + tag>>2&7)
	case 2:
		return 0xffff, -0xffff, length
	}
	return 0xffffffff, -0xffffffff, length
}

func tables() Mem {
	g := GLOBL("tables", RODATA|NOPTR)
	for tag := range 256 {
		mask, _, _ := ofTag(tag)
		DATA(masks+tag*4, U32(mask))
	}
	for tag := range 256 {
		_, base, _ := ofTag(tag)
		DATA(bases+tag*8, U64(uint64(base)))
	}
	for tag := range 256 {
		_, base, _ := ofTag(tag)
		if tag&3 == 3 {
			base = farCopy
		}
		DATA(leanBases+tag*8, U64(uint64(base)))
	}
	for tag := range 256 {
		_, _, length := ofTag(tag)
		DATA(longLengths+tag*4, U32(uint32(length)))
	}
	for tag := range 256 {
		_, _, length := ofTag(tag)
		if -64 <= length && length < -32 {
			length -= longCopy
		}
		DATA(lengths+tag*4, U32(uint32(length)))
	}
	for offset := range 16 {
		for i := range 16 {
			DATA(patterns+offset*16+i, U8(i%max(offset, 1)))
		}
	}
	for offset := range 16 {
		DATA(strides+offset, U8(16-16%max(offset, 1)))
	}
	return g
}

// decoder has the registers and locals of a function.
type decoder struct {
	tab, count         reg.GPVirtual // the tables; steps until the ends are looked at again
	tag, minus, length reg.GPVirtual // of a step's copy: its tag, negated offset and negated length
	blocks             []place
	ahead              bool // the tag after a copy is taken from the bytes loaded with the copy: shorter waits, more instructions
}

// place is where one of the blocks is.
type place struct {
	name    string
	in, out reg.GPVirtual // the positions in input and output
	next    reg.GPVirtual // the tag at in, if the decoder is ahead

	start, inEnd, outEnd  Mem // the output's start; the ends, less what a step accesses but does not use
	leanFrom, isLong      Mem // where lean steps begin; whether long ones replace the others
	farCopies, longCopies Mem // the output positions below which such copies have been frequent
}

// kind is the kind of a step, see the comment of package internal/snappy.
type kind string

const (
	lean kind = "lean"
	wide kind = "wide"
	long kind = "long"
)

func behind(r reg.GPVirtual, disp int) Mem { return Mem{Base: r, Disp: disp} }

func (d *decoder) table(disp int, index reg.GPVirtual, scale uint8) Mem {
	return Mem{Base: d.tab, Index: index, Scale: scale, Disp: disp}
}

func move(src, dst Mem) {
	y := YMM()
	VMOVDQU(src, y)
	VMOVDQU(y, dst)
}

// step emits a step of a block, and returns a function that emits its part out of line.
func (d *decoder) step(b *place, k kind) (late func()) {
	in, out, x, label := b.in, b.out, d.minus, string(k)+b.name

	// The literal. As if there were one of at most 32 bytes, 32 bytes are moved, and the copy
	// after the literal is loaded. If there is none (tag & 0x83 != 0), conditional moves take
	// that back, and the tag counts as the copy's.
	next, size, in2 := b.next, GP64(), GP64()
	if !d.ahead {
		next = GP64()
		MOVBQZX(behind(in, 0), next)
	}
	move(behind(in, 1), behind(out, 0))
	MOVL(next.As32(), size.As32())
	SHRL(Imm(2), size.As32())
	there := Mem{Base: in, Index: size, Scale: 1, Disp: 2}
	switch here := GP64(); {
	case !d.ahead:
		MOVBLZX(there, d.tag.As32())
		d.passLiteral(b, next, size, in2, there)
		CMOVLNE(next.As32(), d.tag.As32())
		if k == lean {
			MOVWLZX(behind(in, 1), x.As32())
		} else {
			MOVL(behind(in, 1), x.As32())
		}
	case k == lean:
		MOVL(behind(in, 0), here.As32())
		MOVL(there, x.As32())
		d.passLiteral(b, next, size, in2, there)
		CMOVLNE(here.As32(), x.As32())
	default:
		MOVQ(behind(in, 0), here)
		MOVQ(there, x)
		d.passLiteral(b, next, size, in2, there)
		CMOVQNE(here, x)
	}
	if d.ahead {
		d.peek(next, k != lean)
		MOVBLZX(x.As8(), d.tag.As32())
		SHRQ(Imm(8), x)
	}

	// The copy: -offset = (^word & mask) + base.
	ANDNL(d.table(masks, d.tag, 4), x.As32(), x.As32())
	base, length, other := bases, lengths, label+"odd"
	switch k {
	case lean:
		base = leanBases
	case long:
		length, other = longLengths, "slow"+b.name
	}
	ADDQ(d.table(base, d.tag, 8), x)
	MOVLQSX(d.table(length, d.tag, 4), d.length)
	CMPQ(x, d.length) // above: the copy overlaps, or is out of line
	JGT(LabelRef(other))
	d.copy(b, k, k == long)
	SUBQ(d.length, out)
	d.advance(b, k != lean)
	Label(label + "stepped")
	return func() {
		if k != long {
			d.odd(b, k, label)
		}
	}
}

// odd emits the part of a lean or wide step that is out of line. slow has the rest.
func (d *decoder) odd(b *place, k kind, label string) {
	Label(label + "odd")
	if k == lean {
		TESTQ(d.minus, d.minus)
		JGT(LabelRef("copy4" + b.name))
	}
	CMPQ(d.length, I8(-64))
	JGE(LabelRef("slow" + b.name))
	ADDQ(Imm(longCopy), d.length)
	CMPQ(d.minus, d.length) // a literal's offset is 0
	JGT(LabelRef("slow" + b.name))
	d.copy(b, k, true)
	SUBQ(d.length, b.out)
	d.advance(b, k != lean)
	d.rare(b, b.longCopies, label+"stepped")
	MOVQ(I32(-1), b.leanFrom)
	MOVQ(I32(-1), b.isLong)
	JMP(LabelRef("outer"))
	if k == lean {
		d.copy4(b, label+"stepped")
	}
}

// rare counts a copy that is out of line, and jumps to the end of the step unless these are frequent.
func (d *decoder) rare(b *place, counter Mem, stepped string) {
	s := GP64()
	MOVQ(counter, s)
	ADDQ(U32(rareEvery), s)
	MOVQ(s, counter)
	CMPQ(b.out, s)
	JCC(LabelRef(stepped))
}

// passLiteral moves past the literal, if there is one. The flags then say "equal".
func (d *decoder) passLiteral(b *place, next, size, in2 reg.GPVirtual, there Mem) {
	LEAQ(there, in2)
	LEAQ(Mem{Base: b.out, Index: size, Scale: 1, Disp: 1}, size)
	TESTB(U8(0x83), next.As8())
	CMOVQEQ(in2, b.in)
	CMOVQEQ(size, b.out)
}

// peek finds the tag after the copy before the copy is done. Counted from the copy's own tag it
// is the third, fourth or, after a copy-4, sixth byte.
func (d *decoder) peek(next reg.GPVirtual, far bool) {
	third, sixth, kind := GP64(), GP64(), GP64()
	MOVL(d.minus.As32(), third.As32())
	SHRL(Imm(16), third.As32())
	if far {
		MOVQ(d.minus, sixth)
		SHRQ(Imm(40), sixth)
		MOVL(d.minus.As32(), kind.As32())
		ANDL(Imm(3), kind.As32())
	}
	MOVL(d.minus.As32(), next.As32())
	SHRL(Imm(24), next.As32())
	TESTB(Imm(1), d.minus.As8())
	CMOVLNE(third.As32(), next.As32())
	if far {
		CMPL(kind.As32(), Imm(3))
		CMOVLEQ(sixth.As32(), next.As32())
	}
	MOVBLZX(next.As8(), next.As32())
}

// copy moves a copy's 32 or 64 bytes, which do not overlap.
func (d *decoder) copy(b *place, k kind, long bool) {
	from := Mem{Base: b.out, Index: d.minus, Scale: 1}
	if k != lean {
		s := GP64()
		LEAQ(from, s)
		CMPQ(s, b.start)
		JCS(LabelRef("stop" + b.name))
		from = behind(s, 0)
	}
	move(from, behind(b.out, 0))
	if long {
		move(from.Offset(32), behind(b.out, 32))
	}
}

// advance moves past the copy's tag and offset. far: it may be a copy-4.
func (d *decoder) advance(b *place, far bool) {
	ANDL(Imm(3), d.tag.As32())
	if !far {
		LEAQ(Mem{Base: b.in, Index: d.tag, Scale: 1, Disp: 1}, b.in)
		return
	}
	LEAQ(Mem{Base: b.in, Index: d.tag, Scale: 1, Disp: 2}, b.in)
	CMPL(d.tag.As32(), Imm(3))
	SBBQ(Imm(0), b.in) // one byte less, except for a copy-4
}

// copy4 emits the copy-4 of a lean step. If these are frequent, all further steps are wide until
// the function returns.
func (d *decoder) copy4(b *place, stepped string) {
	x, s := d.minus, GP64()
	Label("copy4" + b.name)
	MOVL(behind(b.in, 1), x.As32())
	NEGQ(x)
	MOVQ(b.out, s)
	SUBQ(b.start, s)
	ADDQ(x, s)
	JLT(LabelRef("stop" + b.name))
	CMPQ(d.length, I8(-64))
	JGE(LabelRef("copy4length" + b.name))
	ADDQ(Imm(longCopy), d.length)
	Label("copy4length" + b.name)
	CMPQ(x, I8(-64))
	JGT(LabelRef("slow" + b.name))
	d.copy(b, lean, true)
	SUBQ(d.length, b.out)
	if d.ahead {
		MOVBLZX(behind(b.in, 5), b.next.As32())
	}
	ADDQ(Imm(5), b.in)
	d.rare(b, b.farCopies, stepped)
	MOVQ(I32(-1), b.leanFrom)
	JMP(LabelRef("outer"))
}

// slow emits everything else that the second half of a step may be. It ends at outer, which
// limits the number of steps again, or at stop.
func (d *decoder) slow(b *place) {
	out, x := b.out, d.minus
	s, y := GP64(), YMM()
	at := func(label string) string { return label + b.name }

	Label(at("slow"))
	CMPQ(d.length, I8(-64))
	JLT(LabelRef(at("literal")))
	TESTQ(x, x)
	JGE(LabelRef(at("stop"))) // offset 0
	LEAQ(Mem{Base: out, Index: x, Scale: 1}, s)
	CMPQ(s, b.start)
	JCS(LabelRef(at("stop")))
	CMPQ(x, I8(-16))
	JGT(LabelRef(at("pattern")))
	CMPQ(x, I8(-32))
	JLT(LabelRef(at("apart")))
	// An offset of 16 to 32: store the same 32 bytes every offset bytes, each time over the surplus of the last.
	VMOVDQU(behind(s, 0), y)
	NEGQ(x)
	MOVQ(x, s)
	JMP(LabelRef(at("stores")))

	Label(at("apart"))
	move(behind(s, 0), behind(out, 0))
	move(behind(s, 32), behind(out, 32))
	SUBQ(d.length, out)
	JMP(LabelRef(at("next")))

	Label(at("pattern")) // An offset below 16: store its bytes as often as they fit into 16.
	VMOVDQU(behind(s, 0), y.AsX())
	NEGQ(x)
	MOVBQZX(d.table(strides, x, 1), s)
	SHLQ(Imm(4), x)
	VPSHUFB(d.table(patterns, x, 1), y.AsX(), y.AsX())
	Label(at("stores"))
	MOVQ(out, x)
	SUBQ(d.length, out)
	Label(at("store"))
	VMOVDQU(y, behind(x, 0))
	ADDQ(s, x)
	CMPQ(x, out)
	JCS(LabelRef(at("store")))
	Label(at("next"))
	d.advance(b, true)
	JMP(LabelRef("outer"))

	d.literal(b)
}

// literal emits a literal of more than 32 bytes, or a second one in a step.
func (d *decoder) literal(b *place) {
	in, out, size, tag := b.in, b.out, d.length, d.tag
	s, e := GP64(), GP64()
	at := func(label string) string { return label + b.name }

	Label(at("literal"))
	SHRL(Imm(2), tag.As32())
	CMPL(tag.As32(), Imm(60))
	JCC(LabelRef(at("long")))
	move(behind(in, 1), behind(out, 0))
	move(behind(in, 33), behind(out, 32))
	LEAQ(Mem{Base: in, Index: tag, Scale: 1, Disp: 2}, in)
	LEAQ(Mem{Base: out, Index: tag, Scale: 1, Disp: 1}, out)
	JMP(LabelRef("outer"))

	Label(at("long")) // With one or two bytes of length.
	MOVBQZX(behind(in, 1), size)
	LEAQ(behind(in, 2), s)
	JEQ(LabelRef(at("sized")))
	CMPL(tag.As32(), Imm(61))
	JNE(LabelRef(at("stop")))
	MOVWQZX(behind(in, 1), size)
	INCQ(s)
	Label(at("sized"))
	INCQ(size)
	LEAQ(Mem{Base: s, Index: size, Scale: 1}, e)
	CMPQ(e, b.inEnd)
	JHI(LabelRef(at("stop")))
	LEAQ(Mem{Base: out, Index: size, Scale: 1}, d.minus)
	CMPQ(d.minus, b.outEnd)
	JHI(LabelRef(at("stop")))
	Label(at("move"))
	move(behind(s, 0), behind(out, 0))
	ADDQ(Imm(32), s)
	ADDQ(Imm(32), out)
	CMPQ(s, e)
	JCS(LabelRef(at("move")))
	SUBQ(e, s)
	SUBQ(s, out)
	MOVQ(e, in)
	JMP(LabelRef("outer"))
}

// limit lowers the count to the number of steps of each bytes that fit between here and there,
// which are less than 2 GiB apart. If none fits, the block is at its end.
func (d *decoder) limit(b *place, here reg.GPVirtual, there Mem, each uint64) {
	n := GP64()
	MOVQ(there, n)
	SUBQ(here, n)
	JLE(LabelRef("end" + b.name))
	IMUL3Q(U32(uint32((1<<36+each-1)/each)), n, n)
	SHRQ(Imm(36), n)
	JEQ(LabelRef("end" + b.name))
	CMPQ(n, d.count)
	CMOVQCS(n, d.count)
}

// Fields of the Go type state, and its size.
const (
	srcPtr, dstPtr, srcLen, dstLen, srcPos, dstPos, stateSize = 0, 8, 16, 24, 32, 40, 48
)

// load emits the loads of the i-th block.
func (d *decoder) load(p reg.GPVirtual, i int) {
	b := &place{
		name: fmt.Sprint(i), in: GP64(), out: GP64(), next: GP64(),
		start: AllocLocal(8), inEnd: AllocLocal(8), outEnd: AllocLocal(8), leanFrom: AllocLocal(8), isLong: AllocLocal(8), farCopies: AllocLocal(8), longCopies: AllocLocal(8),
	}
	x, state := GP64(), func(field int) Mem { return behind(p, i*stateSize+field) }
	MOVQ(state(srcPtr), b.in)
	MOVQ(b.in, x)
	ADDQ(state(srcLen), x)
	SUBQ(Imm(reachIn-maxIn), x)
	MOVQ(x, b.inEnd)
	ADDQ(state(srcPos), b.in)
	MOVQ(state(dstPtr), b.out)
	MOVQ(b.out, b.start)
	LEAQ(behind(b.out, window), x)
	MOVQ(x, b.leanFrom)
	MOVQ(b.out, x)
	ADDQ(state(dstLen), x)
	SUBQ(Imm(reachOut-maxOut), x)
	MOVQ(x, b.outEnd)
	ADDQ(state(dstPos), b.out)
	LEAQ(behind(b.out, -rareFirst*rareEvery), x)
	MOVQ(x, b.farCopies)
	MOVQ(x, b.longCopies)
	MOVQ(U32(0), b.isLong)
	d.blocks = append(d.blocks, *b)
}

func decode(tab Mem, n int) {
	name := fmt.Sprintf("decode%d", n)
	TEXT(name, NOSPLIT, "func(s *uint64) int") // states, a type that avo does not know
	Pragma("noescape")
	Doc(fmt.Sprintf("%s decodes elements of %d blocks in turns until one needs the caller. The result is", name, n),
		"twice its index, plus one if it has too little input or output left for a step.")
	d := &decoder{tab: GP64(), count: GP64(), tag: GP64(), minus: GP64(), length: GP64(), ahead: n < 3}
	LEAQ(tab, d.tab)
	p := Load(Param("s"), GP64()).(reg.GPVirtual)
	for i := range n {
		d.load(p, i)
	}

	// As many steps as surely fit.
	Label("outer")
	MOVQ(U32(1<<30), d.count)
	for _, b := range d.blocks {
		d.limit(&b, b.in, b.inEnd, maxIn)
		d.limit(&b, b.out, b.outEnd, maxOut)
	}
	for _, b := range d.blocks {
		if d.ahead {
			MOVBQZX(behind(b.in, 0), b.next)
		}
	}
	for _, b := range d.blocks {
		CMPQ(b.out, b.leanFrom)
		JCS(LabelRef("wide"))
	}
	late := d.loop("loop", lean)

	// In the first 64 KiB, an offset of a copy-1 or copy-2 may lead before the output's start.
	Label("wide")
	x := GP64()
	MOVQ(U32(1024), x)
	CMPQ(d.count, x)
	CMOVQHI(x, d.count)
	for _, b := range d.blocks {
		CMPQ(b.isLong, Imm(0))
		JNE(LabelRef("long"))
	}
	late = append(late, d.loop("wideloop", wide)...)
	Label("long")
	late = append(late, d.loop("longloop", long)...)

	for _, emit := range late {
		emit()
	}
	for _, b := range d.blocks {
		d.slow(&b)
	}
	d.leave()
}

// loop emits count steps of each block. It returns functions that emit the parts out of line.
func (d *decoder) loop(label string, k kind) (late []func()) {
	Label(label)
	for _, b := range d.blocks {
		late = append(late, d.step(&b, k))
	}
	DECQ(d.count)
	JNE(LabelRef(label))
	JMP(LabelRef("outer"))
	return late
}

// leave stores the positions and returns.
func (d *decoder) leave() {
	for i, b := range d.blocks {
		for k, label := range []string{"stop", "end"} {
			Label(label + b.name)
			MOVQ(U32(2*i+k), d.count)
			JMP(LabelRef("leave"))
		}
	}
	Label("leave")
	VZEROUPPER()
	p := Load(Param("s"), GP64()).(reg.GPVirtual)
	for i, b := range d.blocks {
		state := func(field int) Mem { return behind(p, i*stateSize+field) }
		SUBQ(state(srcPtr), b.in)
		MOVQ(b.in, state(srcPos))
		SUBQ(state(dstPtr), b.out)
		MOVQ(b.out, state(dstPos))
	}
	Store(d.count, ReturnIndex(0))
	RET()
}

func main() {
	ConstraintExpr("amd64,!purego")
	t := tables()
	for n := range 3 {
		decode(t, n+1)
	}
	Generate()
}
