// Command avo writes the AVX2 kernels of package bloom:
//
//	go run . -out ../split_amd64.s -stubs ../split_amd64.go -pkg bloom
//
// Each kernel runs over a batch of hashes. While there are `far` more to come,
// it also prefetches the block of the hash that is `ahead` positions on: the
// loads of a filter that is larger than the caches then overlap, whatever the
// number of instructions that the processor can look ahead.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ahead is the prefetch distance in hashes; kernel_amd64.go has the same.
const ahead = 32

func main() {
	ConstraintExpr("amd64,!purego")
	hashInts()
	for _, g := range []geometry{new(split256), new(split512)} {
		g.tables()
		add(g)
		probe(g)
	}
	Generate()
}

// geometry emits what differs between the block sizes.
type geometry interface {
	name() string
	shift() uint64 // log2 of the bytes in a block
	// tables puts constants beside the code.
	tables()
	// constants loads what stays in registers.
	constants()
	// mask computes the bits of the hash: one vector of 256 bits or two.
	mask(hash Mem) []VecVirtual
}

// args are the registers of both kinds of kernel.
type args struct {
	blocks, n, hashes, count, far, i GPVirtual
}

func load() args {
	a := args{
		blocks: Load(Param("blocks"), GP64()).(GPVirtual),
		n:      Load(Param("n"), GP64()).(GPVirtual),
		hashes: Load(Param("hashes"), GP64()).(GPVirtual),
		count:  Load(Param("count"), GP64()).(GPVirtual),
		far:    Load(Param("far"), GP64()).(GPVirtual),
		i:      GP64(),
	}
	XORQ(a.i, a.i)
	return a
}

// offset returns the byte offset of the block of hash: fastrange on the upper
// half, times the size of a block.
func (a args) offset(g geometry, hash Mem) GPVirtual {
	o := GP64()
	MOVL(hash.Offset(4), o.As32())
	IMULQ(a.n, o)
	SHRQ(U8(32), o)
	SHLQ(U8(g.shift()), o)
	return o
}

// loop emits body for every hash: first with a prefetch, then without.
func (a args) loop(g geometry, body func(hash Mem, offset GPVirtual)) {
	for _, end := range []struct {
		label string
		count GPVirtual
	}{{"far", a.far}, {"near", a.count}} {
		JMP(LabelRef(end.label + "_test"))
		Label(end.label)
		if end.label == "far" {
			o := a.offset(g, Mem{Base: a.hashes, Index: a.i, Scale: 8, Disp: 8 * ahead})
			at := Mem{Base: a.blocks, Index: o, Scale: 1}
			PREFETCHNTA(at)
		}
		hash := Mem{Base: a.hashes, Index: a.i, Scale: 8}
		body(hash, a.offset(g, hash))
		INCQ(a.i)
		Label(end.label + "_test")
		CMPQ(a.i, end.count)
		JB(LabelRef(end.label))
	}
}

func add(g geometry) {
	TEXT("addSplit"+g.name(), NOSPLIT, "func(blocks *uint64, n uint64, hashes *uint64, count, far uint64)")
	Doc(fmt.Sprintf("addSplit%s sets the bits of count hashes in a filter of n < 2^32 blocks.", g.name()),
		"For the first far of them it prefetches the block of a later one.")
	Pragma("noescape")
	a := load()
	g.constants()
	a.loop(g, func(hash Mem, offset GPVirtual) {
		for k, m := range g.mask(hash) {
			at := Mem{Base: a.blocks, Index: offset, Scale: 1, Disp: 32 * k}
			VPOR(at, m, m)
			VMOVDQU(m, at)
		}
	})
	VZEROUPPER()
	RET()
}

func probe(g geometry) {
	TEXT("probeSplit"+g.name(), NOSPLIT, "func(blocks *uint64, n uint64, hashes *uint64, count, far uint64, base uint32, sel *uint32) uint64")
	Doc(fmt.Sprintf("probeSplit%s writes base plus the position of every hash that is found in a filter", g.name()),
		"of n < 2^32 blocks to sel, which has room for count, and returns their number. For the",
		"first far of them it prefetches the block of a later one.")
	Pragma("noescape")
	a := load()
	base := Load(Param("base"), GP32()).(GPVirtual)
	sel := Load(Param("sel"), GP64()).(GPVirtual)
	hits := GP64()
	XORQ(hits, hits)
	g.constants()
	a.loop(g, func(hash Mem, offset GPVirtual) {
		// The position is written in any case; a miss is written over.
		position := GP32()
		LEAL(Mem{Base: base.As64(), Index: a.i, Scale: 1}, position)
		MOVL(position, Mem{Base: sel, Index: hits, Scale: 4})
		ms := g.mask(hash)
		if len(ms) == 1 {
			// VPTEST sets the carry if no bit of the mask is missing.
			block := YMM()
			VMOVDQU(Mem{Base: a.blocks, Index: offset, Scale: 1}, block)
			VPTEST(ms[0], block)
			ADCQ(U8(0), hits)
			return
		}
		for k, m := range ms {
			block := YMM()
			VMOVDQU(Mem{Base: a.blocks, Index: offset, Scale: 1, Disp: 32 * k}, block)
			VPANDN(m, block, m) // what is missing
		}
		missing := YMM()
		VPOR(ms[0], ms[1], missing)
		found := GP64()
		XORQ(found, found)
		VPTEST(missing, missing)
		SETEQ(found.As8())
		ADDQ(found, hits)
	})
	Store(hits, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// salts are the odd multipliers of the Parquet specification.
var salts = [8]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
	0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

type split256 struct {
	table       Mem
	salts, ones VecVirtual
}

func (*split256) name() string  { return "256" }
func (*split256) shift() uint64 { return 5 }

func (g *split256) tables() {
	g.table = GLOBL("salts256", RODATA|NOPTR)
	for i, s := range salts {
		DATA(4*i, U32(s))
	}
}

func (g *split256) constants() {
	g.salts, g.ones = YMM(), YMM()
	VMOVDQU(g.table, g.salts)
	VPCMPEQD(g.ones, g.ones, g.ones)
	VPSRLD(U8(31), g.ones, g.ones)
}

func (g *split256) mask(hash Mem) []VecVirtual {
	m := YMM()
	VPBROADCASTD(hash, m)
	VPMULLD(g.salts, m, m)
	VPSRLD(U8(27), m, m)
	VPSLLVD(m, g.ones, m)
	return []VecVirtual{m}
}

// spread is the multiplier of Split512, which has the bit number of lane j in
// the product from bit 58-6j on.
const spread = 0x9e3779b97f4a7c15

type split512 struct {
	table      Mem
	shifts     [2]VecVirtual
	ones, low6 VecVirtual
	spread     GPVirtual
}

func (*split512) name() string  { return "512" }
func (*split512) shift() uint64 { return 6 }

func (g *split512) tables() {
	g.table = GLOBL("shifts512", RODATA|NOPTR)
	for i := range 8 {
		DATA(8*i, U64(58-6*i))
	}
}

func (g *split512) constants() {
	for k := range g.shifts {
		g.shifts[k] = YMM()
		VMOVDQU(g.table.Offset(32*k), g.shifts[k])
	}
	g.ones, g.low6 = YMM(), YMM()
	VPCMPEQQ(g.ones, g.ones, g.ones)
	VPSRLQ(U8(58), g.ones, g.low6)
	VPSRLQ(U8(63), g.ones, g.ones)
	g.spread = GP64()
	MOVQ(U64(spread), g.spread)
}

func (g *split512) mask(hash Mem) []VecVirtual {
	product, x, all := GP64(), XMM(), YMM()
	MOVQ(hash, product)
	IMULQ(g.spread, product)
	VMOVQ(product, x)
	VPBROADCASTQ(x, all)
	var ms []VecVirtual
	for _, s := range g.shifts {
		m := YMM()
		VPSRLVQ(s, all, m)
		VPAND(g.low6, m, m)
		VPSLLVQ(m, g.ones, m)
		ms = append(ms, m)
	}
	return ms
}
