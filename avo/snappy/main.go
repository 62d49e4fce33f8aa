// Command snappy writes the decoder of package internal/snappy, in AVX2 and BMI1:
//
//	go run ./snappy -out ../internal/snappy/steps_amd64.s -stubs ../internal/snappy/steps_amd64.go -pkg snappy
//
// A step of the decoder is an optional literal of at most 32 bytes and then one
// copy, with one branch, which is rarely taken: blocks are made of
// short elements whose kinds no processor predicts. What else an element may be is
// out of line. The package's comment says why no step reads or writes outside of
// the slices; the constants below are its figures.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	maxIn    = 38    // the most input that a step uses: 1 + 32 of a literal, 5 of a copy
	reachIn  = 98    // and reads: 1 + 32, then 1 + 64 of a literal out of line
	maxOut   = 96    // the most output that it makes: 32 of a literal, 64 of a copy
	reachOut = 127   // and writes: 32, then 63 + 32 of a copy that overlaps
	window   = 65535 // the largest offset of a copy-1 or copy-2
	farEvery = 256   // bytes of output for each copy-4, on average, below which the wide step is faster
)

// tables are read at the tag, a byte whose lower two bits are the kind of element.
// The last two are read at an offset below 16.
const (
	masks    = 0                // uint32: which bits of the bytes behind the tag belong to the offset
	bases    = masks + 256*4    // int64: what the negated offset is if those bits are all set, for the wide step
	lean     = bases + 256*8    // int64: and for the lean step, which takes copy-4s out of line
	lengths  = lean + 256*8     // int32: the negated length
	patterns = lengths + 256*4  // 16 bytes: which byte of an offset's repeats is where
	strides  = patterns + 16*16 // byte: the largest multiple of the offset in 16
)

// Figures that lead out of line:
const (
	longCopy = 1 << 30 // subtracted from the negated lengths of copies of more than 32 bytes: above any offset in an output
	ofText   = 1 << 31 // the mark of literals: their negated length, negated
	farCopy  = 1 << 40 // the lean step's bases of copy-4s: all other negated offsets are below 1
)

// ofTag returns a tag's entries: which bits behind it belong to the offset, what the
// negated offset is if these are all set, and the negated length.
func ofTag(tag int) (mask uint32, base int64, length int32) {
	length = -int32(1 + tag>>2)
	if length < -32 {
		length -= longCopy
	}
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
		DATA(lean+tag*8, U64(uint64(base)))
	}
	for tag := range 256 {
		_, _, length := ofTag(tag)
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

// decoder has the registers and locals of the function.
type decoder struct {
	tab, in, out       reg.GPVirtual // the tables; the positions in input and output
	next               reg.GPVirtual // the tag at in
	tag, minus, length reg.GPVirtual // of a step's copy: its tag, negated offset and negated length

	start, inEnd, outEnd Mem // the output's start; the ends, less what a step reaches beyond what it uses
	leanFrom, fars       Mem // where lean steps begin; the output's start and farEvery bytes for each copy-4 that these met
}

func behind(r reg.GPVirtual, disp int) Mem { return Mem{Base: r, Disp: disp} }

func (d *decoder) table(disp int, index reg.GPVirtual, scale uint8) Mem {
	return Mem{Base: d.tab, Index: index, Scale: scale, Disp: disp}
}

func move(src, dst Mem) {
	y := YMM()
	VMOVDQU(src, y)
	VMOVDQU(y, dst)
}

// step emits a step, and returns what of it is out of line. The lean step has copy-4s
// out of line, and knows that no other copy's source is before the output's start. The
// wide one has them in line, and compares.
func (d *decoder) step(label string, isLean bool) (late func()) {
	in, out, x := d.in, d.out, d.minus

	// The literal, of which 32 bytes are always moved. The bytes of its copy are
	// loaded as if it were one; if it is none, the conditional moves take that
	// back. What is neither (tag & 0x83 != 0) counts as the copy's tag.
	here, size, in2 := GP64(), GP64(), GP64()
	move(behind(in, 1), behind(out, 0))
	MOVL(d.next.As32(), size.As32())
	SHRL(Imm(2), size.As32())
	there := Mem{Base: in, Index: size, Scale: 1, Disp: 2}
	if isLean {
		MOVL(behind(in, 0), here.As32())
		MOVL(there, x.As32())
	} else {
		MOVQ(behind(in, 0), here)
		MOVQ(there, x)
	}
	LEAQ(there, in2)
	LEAQ(Mem{Base: out, Index: size, Scale: 1, Disp: 1}, size)
	TESTB(U8(0x83), d.next.As8())
	CMOVQEQ(in2, in)
	CMOVQEQ(size, out)
	CMOVQNE(here, x)
	d.peek(isLean)

	// The copy: -offset = (^word & mask) + base.
	MOVBLZX(x.As8(), d.tag.As32())
	SHRQ(Imm(8), x)
	ANDNL(d.table(masks, d.tag, 4), x.As32(), x.As32())
	if isLean {
		ADDQ(d.table(lean, d.tag, 8), x)
	} else {
		ADDQ(d.table(bases, d.tag, 8), x)
	}
	MOVLQSX(d.table(lengths, d.tag, 4), d.length)
	CMPQ(x, d.length) // above: it overlaps, is longer than 32, or is left out of line
	JGT(LabelRef(label + "odd"))
	d.copy(isLean, false)
	Label(label + "done")
	SUBQ(d.length, out)
	d.advance(isLean)
	Label(label + "stepped")

	return func() {
		Label(label + "odd")
		if isLean {
			TESTQ(x, x)
			JGT(LabelRef("copy4"))
		}
		CMPQ(d.length, I8(-64))
		JGE(LabelRef("slow"))
		ADDQ(Imm(longCopy), d.length)
		CMPQ(x, d.length) // a literal's offset is 0
		JGT(LabelRef("slow"))
		d.copy(isLean, true)
		JMP(LabelRef(label + "done"))
		if isLean {
			d.copy4(label + "stepped")
		}
	}
}

// peek finds the tag behind the copy: the third, fourth or sixth byte from the copy's. It
// is known before the copy is done.
func (d *decoder) peek(isLean bool) {
	third, sixth, kind := GP64(), GP64(), GP64()
	MOVL(d.minus.As32(), third.As32())
	SHRL(Imm(16), third.As32())
	if !isLean {
		MOVQ(d.minus, sixth)
		SHRQ(Imm(40), sixth)
		MOVL(d.minus.As32(), kind.As32())
		ANDL(Imm(3), kind.As32())
	}
	MOVL(d.minus.As32(), d.next.As32())
	SHRL(Imm(24), d.next.As32())
	TESTB(Imm(1), d.minus.As8())
	CMOVLNE(third.As32(), d.next.As32())
	if !isLean {
		CMPL(kind.As32(), Imm(3))
		CMOVLEQ(sixth.As32(), d.next.As32())
	}
	MOVBLZX(d.next.As8(), d.next.As32())
}

// copy moves a copy's 32 or 64 bytes, which do not overlap.
func (d *decoder) copy(isLean, long bool) {
	from := Mem{Base: d.out, Index: d.minus, Scale: 1}
	if !isLean {
		s := GP64()
		LEAQ(from, s)
		CMPQ(s, d.start)
		JCS(LabelRef("stop"))
		from = behind(s, 0)
	}
	move(from, behind(d.out, 0))
	if long {
		move(from.Offset(32), behind(d.out, 32))
	}
}

// advance moves behind the copy's tag and offset.
func (d *decoder) advance(isLean bool) {
	in5 := GP64()
	if !isLean {
		LEAQ(behind(d.in, 5), in5)
	}
	ANDL(Imm(3), d.tag.As32())
	LEAQ(Mem{Base: d.in, Index: d.tag, Scale: 1, Disp: 1}, d.in)
	if !isLean {
		CMPL(d.tag.As32(), Imm(3))
		CMOVQEQ(in5, d.in)
	}
}

// copy4 emits a copy-4 that a lean step met. If there have been many, the rest of the block
// is left to wide steps, unless decodeSteps returns before.
func (d *decoder) copy4(stepped string) {
	x, s := d.minus, GP64()
	Label("copy4")
	MOVL(behind(d.in, 1), x.As32())
	NEGQ(x)
	MOVQ(d.out, s)
	SUBQ(d.start, s)
	ADDQ(x, s)
	JLT(LabelRef("stop"))
	CMPQ(d.length, I8(-64))
	JGE(LabelRef("copy4length"))
	ADDQ(Imm(longCopy), d.length)
	Label("copy4length")
	CMPQ(x, I8(-64))
	JGT(LabelRef("slow"))
	d.copy(true, true)
	SUBQ(d.length, d.out)
	MOVBLZX(behind(d.in, 5), d.next.As32())
	ADDQ(Imm(5), d.in)
	MOVQ(d.fars, s)
	ADDQ(U32(farEvery), s)
	MOVQ(s, d.fars)
	CMPQ(d.out, s)
	JCC(LabelRef(stepped))
	MOVQ(I32(-1), d.leanFrom)
	JMP(LabelRef("outer"))
}

// slow emits what the second half of a step may be besides. All ends at
// outer, where the ends are looked at again, or at stop.
func (d *decoder) slow() {
	out, x := d.out, d.minus
	s, y := GP64(), YMM()

	Label("slow")
	CMPQ(d.length, I8(-64))
	JLT(LabelRef("literal"))
	TESTQ(x, x)
	JGE(LabelRef("stop")) // offset 0
	LEAQ(Mem{Base: out, Index: x, Scale: 1}, s)
	CMPQ(s, d.start)
	JCS(LabelRef("stop"))
	CMPQ(x, I8(-16))
	JGT(LabelRef("pattern"))
	CMPQ(x, I8(-32))
	JLT(LabelRef("apart"))
	// An offset of 16 to 32: the same 32 bytes every offset bytes, each time over the surplus of the last.
	VMOVDQU(behind(s, 0), y)
	NEGQ(x)
	MOVQ(x, s)
	JMP(LabelRef("stores"))

	Label("apart")
	move(behind(s, 0), behind(out, 0))
	move(behind(s, 32), behind(out, 32))
	SUBQ(d.length, out)
	JMP(LabelRef("next"))

	Label("pattern") // An offset below 16: its bytes as often as 16 have room for.
	VMOVDQU(behind(s, 0), y.AsX())
	NEGQ(x)
	MOVBQZX(d.table(strides, x, 1), s)
	SHLQ(Imm(4), x)
	VPSHUFB(d.table(patterns, x, 1), y.AsX(), y.AsX())
	Label("stores")
	MOVQ(out, x)
	SUBQ(d.length, out)
	Label("store")
	VMOVDQU(y, behind(x, 0))
	ADDQ(s, x)
	CMPQ(x, out)
	JCS(LabelRef("store"))
	Label("next")
	d.advance(false)
	JMP(LabelRef("outer"))

	d.literal()
}

// literal emits a literal of more than 32 bytes, or a second one in a step.
func (d *decoder) literal() {
	in, out, size, tag := d.in, d.out, d.length, d.tag
	s, e := GP64(), GP64()

	Label("literal")
	SHRL(Imm(2), tag.As32())
	CMPL(tag.As32(), Imm(60))
	JCC(LabelRef("long"))
	move(behind(in, 1), behind(out, 0))
	move(behind(in, 33), behind(out, 32))
	LEAQ(Mem{Base: in, Index: tag, Scale: 1, Disp: 2}, in)
	LEAQ(Mem{Base: out, Index: tag, Scale: 1, Disp: 1}, out)
	JMP(LabelRef("outer"))

	Label("long") // With one or two bytes of length.
	MOVBQZX(behind(in, 1), size)
	LEAQ(behind(in, 2), s)
	JEQ(LabelRef("sized"))
	CMPL(tag.As32(), Imm(61))
	JNE(LabelRef("stop"))
	MOVWQZX(behind(in, 1), size)
	INCQ(s)
	Label("sized")
	INCQ(size)
	LEAQ(Mem{Base: s, Index: size, Scale: 1}, e)
	CMPQ(e, d.inEnd)
	JHI(LabelRef("stop"))
	LEAQ(Mem{Base: out, Index: size, Scale: 1}, d.minus)
	CMPQ(d.minus, d.outEnd)
	JHI(LabelRef("stop"))
	Label("move")
	move(behind(s, 0), behind(out, 0))
	ADDQ(Imm(32), s)
	ADDQ(Imm(32), out)
	CMPQ(s, e)
	JCS(LabelRef("move"))
	SUBQ(e, s)
	SUBQ(s, out)
	MOVQ(e, in)
	JMP(LabelRef("outer"))
}

// steps emits how many steps of so many bytes fit between here and there, which
// are less than 2 GiB apart, or a jump to end if none does.
func steps(here reg.GPVirtual, there Mem, each uint64) reg.GPVirtual {
	n := GP64()
	MOVQ(there, n)
	SUBQ(here, n)
	JLE(LabelRef("end"))
	IMUL3Q(U32(uint32((1<<36+each-1)/each)), n, n)
	SHRQ(Imm(36), n)
	JEQ(LabelRef("end"))
	return n
}

// Fields of the Go type state.
const (
	srcPtr, dstPtr, srcLen, dstLen, srcPos, dstPos = 0, 8, 16, 24, 32, 40
)

func decode(tab Mem) {
	TEXT("decodeSteps", NOSPLIT, "func(s *uint64) bool") // a *state, a type that avo does not know
	Pragma("noescape")
	Doc("decodeSteps decodes elements until one needs its caller. It returns true if an end",
		"of input or output is too near for a step.")
	d := &decoder{
		tab: GP64(), in: GP64(), out: GP64(), next: GP64(), tag: GP64(), minus: GP64(), length: GP64(),
		start: AllocLocal(8), inEnd: AllocLocal(8), outEnd: AllocLocal(8), leanFrom: AllocLocal(8), fars: AllocLocal(8),
	}
	LEAQ(tab, d.tab)
	p, x := Load(Param("s"), GP64()).(reg.GPVirtual), GP64()
	MOVQ(behind(p, srcPtr), d.in)
	MOVQ(d.in, x)
	ADDQ(behind(p, srcLen), x)
	SUBQ(Imm(reachIn-maxIn), x)
	MOVQ(x, d.inEnd)
	ADDQ(behind(p, srcPos), d.in)
	MOVQ(behind(p, dstPtr), d.out)
	MOVQ(d.out, d.start)
	MOVQ(d.out, d.fars)
	LEAQ(behind(d.out, window), x)
	MOVQ(x, d.leanFrom)
	MOVQ(d.out, x)
	ADDQ(behind(p, dstLen), x)
	SUBQ(Imm(reachOut-maxOut), x)
	MOVQ(x, d.outEnd)
	ADDQ(behind(p, dstPos), d.out)

	// As many steps as no end can forbid.
	Label("outer")
	count := steps(d.in, d.inEnd, maxIn)
	most := steps(d.out, d.outEnd, maxOut)
	CMPQ(most, count)
	CMOVQCS(most, count)
	MOVBQZX(behind(d.in, 0), d.next)
	CMPQ(d.out, d.leanFrom)
	JCS(LabelRef("wide"))
	Label("loop")
	late := d.step("", true)
	DECQ(count)
	JNE(LabelRef("loop"))
	JMP(LabelRef("outer"))

	// In the first 64 KiB, an offset of a copy-1 or copy-2 may lead before the output's start.
	Label("wide")
	MOVQ(U32(1024), x)
	CMPQ(count, x)
	CMOVQHI(x, count)
	Label("wideloop")
	wideLate := d.step("wide", false)
	DECQ(count)
	JNE(LabelRef("wideloop"))
	JMP(LabelRef("outer"))

	late()
	wideLate()
	d.slow()
	d.leave()
}

// leave stores the positions and returns.
func (d *decoder) leave() {
	ended := GP64()
	Label("stop")
	XORL(ended.As32(), ended.As32())
	JMP(LabelRef("leave"))
	Label("end")
	MOVQ(U32(1), ended)
	Label("leave")
	VZEROUPPER()
	p := Load(Param("s"), GP64()).(reg.GPVirtual)
	SUBQ(behind(p, srcPtr), d.in)
	MOVQ(d.in, behind(p, srcPos))
	SUBQ(behind(p, dstPtr), d.out)
	MOVQ(d.out, behind(p, dstPos))
	Store(ended.As8(), ReturnIndex(0))
	RET()
}

func main() {
	ConstraintExpr("amd64,!purego")
	decode(tables())
	Generate()
}
