// Command zstd writes the loops of package internal/zstd, in AVX2 and BMI2:
//
//	go run ./zstd -out ../internal/zstd/steps_amd64.s -stubs ../internal/zstd/steps_amd64.go -pkg zstd
//
// The comment of package internal/zstd says what they do, and why they touch nothing outside of the slices.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The layout of literals in internal/zstd.
const (
	tableSize = 2048 * 2
	bits      = 2 * tableSize
	inputs    = bits + 8*8
	rounds    = inputs + 8*8
	outputs   = rounds + 8
	outStride = 5120 + 64
)

// The layout of sequences in internal/zstd.
const (
	lengths  = 0               // literal lengths
	matches  = lengths + 512*8 // match lengths
	offsets  = matches + 512*8 // offsets
	position = offsets + 256*8 // the bit position
	states   = position + 8    // of the three tables
	lit      = states + 3*8    // the next literal
	out      = lit + 8         // the next output
	left     = out + 8         // sequences
	litEnd   = left + 8        // the end of the literals
	outStart = litEnd + 8      // the output's start
	outSafe  = outStart + 8    // the last place where a step may begin: it writes more than its own output
	inSafe   = outSafe + 8     // the least bit position where a step may begin: it reads ahead of itself
	pending  = inSafe + 8      // a sequence that is decoded and not executed: literal length, match length, offset
	history  = pending + 3*8   // the last three offsets, as uint32
)

// The fields of an entry in a table of sequences, see entry in internal/zstd.
const (
	base  = 0
	next  = 4
	count = 6
	extra = 7
)

const (
	shuffles = 0               // of history, by what becomes of it
	patterns = shuffles + 4*16 // 16 bytes: which byte of an offset's repeats is where
	strides  = patterns + 16*16
)

func constants() Mem {
	g := GLOBL("constants", RODATA|NOPTR)
	for i, lanes := range [][4]int{{0, 1, 2, 3}, {1, 0, 2, 3}, {2, 0, 1, 3}, {3, 0, 1, 3}} {
		for k := range 16 {
			DATA(shuffles+16*i+k, U8(4*lanes[k/4]+k%4))
		}
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

func at(r Register, disp int) Mem { return Mem{Base: r, Disp: disp} }

func indexed(r, index Register, scale uint8, disp int) Mem {
	return Mem{Base: r, Index: index, Scale: scale, Disp: disp}
}

func move(src, dst Mem) {
	VMOVDQU(src, Y0)
	VMOVDQU(Y0, dst)
}

// literals emits the loop for a number of streams. Each round decodes a number of symbols of
// each stream and then loads its next bits.
func literals(streams, width, symbols int) {
	TEXT(fmt.Sprintf("literals%d_%d", streams, width), NOSPLIT, "func(l *uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("literals%d_%d decodes rounds of %d symbols of each of %d streams, with tables of %d bits.", streams, width, symbols, streams, width))
	Load(Param("l"), RDI)
	of := []GPPhysical{R8, R9, R10, R11, R12, R13, R14, R15}[:streams]
	wide, word, high := []GPPhysical{RAX, RBX, RCX, RDX}, []GPPhysical{EAX, EBX, ECX, EDX}, []GPPhysical{AH, BH, CH, DH}
	for i, r := range of {
		MOVQ(at(RDI, bits+8*i), r)
	}
	MOVQ(U32(64-width), RBP)
	MOVQ(RDI, RSI)
	Label("round")
	for k := range symbols {
		for i, r := range of {
			t := i % 4
			SHRXQ(RBP, r, wide[t])
			MOVWLZX(indexed(RDI, wide[t], 2, i/4*tableSize), word[t])
			SHLXQ(wide[t], r, r)
			MOVB(high[t], at(RSI, outputs+i*outStride+k))
		}
	}
	for i, r := range of {
		in, used := wide[i%2], wide[2+i%2]
		TZCNTQ(r, used)
		MOVQ(at(RDI, inputs+8*i), in)
		MOVQ(used, r)
		SHRQ(Imm(3), used)
		SUBQ(used, in)
		MOVQ(in, at(RDI, inputs+8*i))
		MOVQ(at(in, 0), used)
		ORQ(Imm(1), used)
		ANDQ(Imm(7), r)
		SHLXQ(r, used, r)
	}
	ADDQ(Imm(uint64(symbols)), RSI)
	DECQ(at(RDI, rounds))
	JNE(LabelRef("round"))
	for i, r := range of {
		MOVQ(r, at(RDI, bits+8*i))
	}
	RET()
}

// Registers of the loop over sequences: the tables' states, and what a sequence is.
var (
	stateOf                     = map[int]GPPhysical{lengths: R9, matches: R10, offsets: R11}
	literal, match, code        = R12, R13, R14
	literalD, matchD, codeD     = R12L, R13L, R14L
	bit, from, to, tab          = R8, RSI, RDX, R15
	word, shift, shiftD         = RAX, RCX, ECX
	source, sourceD, dist, size = RBP, EBP, RBX, EBX
)

// load loads the bits below the position.
func load() {
	MOVL(R8L, shiftD)
	ANDL(Imm(7), shiftD)
	ORL(Imm(56), shiftD)
	MOVQ(bit, word)
	SHRQ(Imm(3), word)
	MOVQ(at(word, -7), word)
	ANDQ(I8(-8), bit)
}

func used() { LEAQ(indexed(bit, shift, 1, -56), bit) }

// sequences emits the loop. With twice, bits are loaded twice, for sequences of more than 56 bits.
func sequences(name string, twice bool) {
	TEXT(name, NOSPLIT, "func(s *uint64) int")
	Pragma("noescape")
	Doc(name+" decodes and executes sequences. It returns 0 if none is left or an end is", "near, and 1 if one is pending.")
	Load(Param("s"), RDI)
	registers := func(f func(field int, r GPPhysical)) {
		f(position, bit)
		for i, t := range []int{lengths, matches, offsets} {
			f(states+8*i, stateOf[t])
		}
		f(lit, from)
		f(out, to)
	}
	registers(func(field int, r GPPhysical) { MOVQ(at(RDI, field), r) })
	LEAQ(constants_, tab)
	VMOVDQU(at(RDI, history), X1)

	Label("step")
	CMPQ(to, at(RDI, outSafe))
	JHI(LabelRef("end"))
	CMPQ(bit, at(RDI, inSafe))
	JCS(LabelRef("end"))
	load()
	for _, v := range []struct {
		table int
		r, d  GPPhysical
	}{{offsets, code, codeD}, {matches, match, matchD}, {lengths, literal, literalD}} {
		state := stateOf[v.table]
		MOVBLZX(indexed(RDI, state, 8, v.table+extra), size)
		SUBL(size, shiftD)
		SHRXQ(shift, word, v.r)
		BZHIL(size, v.d, v.d)
		ADDL(indexed(RDI, state, 8, v.table+base), v.d)
	}
	if twice {
		used()
		load()
	}
	for _, table := range []int{lengths, matches, offsets} {
		state := stateOf[table]
		MOVBLZX(indexed(RDI, state, 8, table+count), size)
		SUBL(size, shiftD)
		SHRXQ(shift, word, source)
		BZHIL(size, sourceD, sourceD)
		MOVWLZX(indexed(RDI, state, 8, table+next), state.As32().(GPPhysical))
		ADDQ(source, state)
	}
	used()

	// The literals and the offset. Codes from 4 on are new offsets; 1 to 3 are those in history,
	// counted from one later if there are no literals.
	move(at(from, 0), at(to, 0))
	LEAL(at(code, -3), size)
	VPINSRD(Imm(3), size, X1, X1)
	CMPL(literalD, Imm(1))
	ADCL(I8(-1), codeD)
	MOVL(U32(3), size)
	CMPL(codeD, Imm(3))
	CMOVLHI(size, codeD)
	SHLL(Imm(4), codeD)
	VPSHUFB(indexed(tab, code, 1, shuffles), X1, X1)
	ADDQ(literal, to)
	ADDQ(literal, from)
	VMOVD(X1, size)
	CMPQ(from, at(RDI, litEnd))
	JHI(LabelRef("pend"))
	CMPL(literalD, Imm(32))
	JHI(LabelRef("text"))
	Label("copy")
	MOVQ(to, source)
	SUBQ(dist, source)
	CMPQ(source, at(RDI, outStart))
	JCS(LabelRef("pend"))
	CMPL(size, Imm(32))
	JCS(LabelRef("near"))
	move(at(source, 0), at(to, 0))
	move(at(source, 32), at(to, 32))
	CMPL(matchD, Imm(64))
	JHI(LabelRef("long"))
	Label("next")
	ADDQ(match, to)
	DECQ(at(RDI, left))
	JNE(LabelRef("step"))
	Label("end")
	XORL(EAX, EAX)
	Label("leave")
	registers(func(field int, r GPPhysical) { MOVQ(r, at(RDI, field)) })
	VMOVDQU(X1, at(RDI, history))
	VZEROUPPER()
	Store(RAX, ReturnIndex(0))
	RET()

	Label("pend")
	SUBQ(literal, to)
	SUBQ(literal, from)
	for i, r := range []GPPhysical{literal, match, dist} {
		MOVQ(r, at(RDI, pending+8*i))
	}
	MOVL(U32(1), EAX)
	JMP(LabelRef("leave"))

	// More than 32 literals, of which 32 are copied.
	Label("text")
	CMPQ(to, at(RDI, outSafe))
	JHI(LabelRef("pend"))
	MOVQ(from, source)
	SUBQ(literal, source)
	MOVQ(to, shift)
	SUBQ(literal, shift)
	Label("textloop")
	ADDQ(Imm(32), source)
	ADDQ(Imm(32), shift)
	move(at(source, 0), at(shift, 0))
	CMPQ(source, from)
	JCS(LabelRef("textloop"))
	JMP(LabelRef("copy"))

	// A match of more than 64 bytes, of which 64 are copied.
	Label("long")
	LEAQ(indexed(to, match, 1, 0), shift)
	CMPQ(shift, at(RDI, outSafe))
	JHI(LabelRef("pend"))
	LEAQ(at(to, 64), word)
	ADDQ(Imm(64), source)
	Label("longloop")
	move(at(source, 0), at(word, 0))
	ADDQ(Imm(32), source)
	ADDQ(Imm(32), word)
	CMPQ(word, shift)
	JCS(LabelRef("longloop"))
	JMP(LabelRef("next"))

	// An offset below 32. The caller computes the one for which 0 stands.
	Label("near")
	TESTL(size, size)
	JEQ(LabelRef("pend"))
	LEAQ(indexed(to, match, 1, 0), shift)
	CMPQ(shift, at(RDI, outSafe))
	JHI(LabelRef("pend"))
	MOVQ(to, word)
	CMPL(size, Imm(16))
	JCS(LabelRef("pattern"))
	Label("nearloop")
	VMOVDQU(at(source, 0), X0)
	VMOVDQU(X0, at(word, 0))
	ADDQ(Imm(16), source)
	ADDQ(Imm(16), word)
	CMPQ(word, shift)
	JCS(LabelRef("nearloop"))
	JMP(LabelRef("next"))
	Label("pattern")
	VMOVDQU(at(source, 0), X0)
	MOVBLZX(indexed(tab, dist, 1, strides), codeD)
	SHLL(Imm(4), size)
	VPSHUFB(indexed(tab, dist, 1, patterns), X0, X0)
	Label("patternloop")
	VMOVDQU(X0, at(word, 0))
	ADDQ(code, word)
	CMPQ(word, shift)
	JCS(LabelRef("patternloop"))
	JMP(LabelRef("next"))
}

var constants_ Mem

func main() {
	ConstraintExpr("amd64,!purego")
	constants_ = constants()
	for _, streams := range []int{4, 8} {
		literals(streams, 11, 5)
		literals(streams, 8, 7)
	}
	sequences("sequencesOnce", false)
	sequences("sequencesTwice", true)
	Generate()
}
