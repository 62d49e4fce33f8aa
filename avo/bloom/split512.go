package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// spread is the multiplier of Split512. The bit number of lane j starts at bit
// 58-6j of the product.
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

// product emits spread times the hash.
func product(hash Mem, spread GPVirtual) GPVirtual {
	x := GP64()
	MOVQ(hash, x)
	IMULQ(spread, x)
	return x
}

// masks emits the bits of the hash, half a block each.
func (g *split512) masks(hash Mem) (ms []VecVirtual) {
	x, all := XMM(), YMM()
	VMOVQ(product(hash, g.spread), x)
	VPBROADCASTQ(x, all)
	for _, s := range g.shifts {
		m := YMM()
		VPSRLVQ(s, all, m)
		VPAND(g.low6, m, m)
		VPSLLVQ(m, g.ones, m)
		ms = append(ms, m)
	}
	return ms
}

func (g *split512) set(hash, block Mem) {
	for k, m := range g.masks(hash) {
		VPOR(block.Offset(32*k), m, m)
		VMOVDQU(m, block.Offset(32*k))
	}
}

func (g *split512) test(hash, block Mem, hits GPVirtual) {
	ms := g.masks(hash)
	for k, m := range ms {
		b := YMM()
		VMOVDQU(block.Offset(32*k), b)
		VPANDN(m, b, m) // the missing bits
	}
	missing, found := YMM(), GP64()
	VPOR(ms[0], ms[1], missing)
	XORQ(found, found)
	VPTEST(missing, missing)
	SETEQ(found.As8())
	ADDQ(found, hits)
}

// split512wide is split512 in AVX-512: a block is one vector, and rotations read
// the bit number from the lower six bits of the shifted product.
type split512wide struct {
	table        Mem
	shifts, ones VecVirtual
	spread       GPVirtual
}

func (*split512wide) name() string  { return "512Wide" }
func (*split512wide) shift() uint64 { return 6 }

func (g *split512wide) tables() { g.table = NewDataAddr(Symbol{Name: "shifts512", Static: true}, 0) }

func (g *split512wide) constants() {
	g.shifts, g.ones = ZMM(), ZMM()
	VMOVDQU64(g.table, g.shifts)
	one := GP64()
	MOVQ(U32(1), one)
	VPBROADCASTQ(one, g.ones)
	g.spread = GP64()
	MOVQ(U64(spread), g.spread)
}

// bits emits the bit number of each lane in its lower six bits.
func (g *split512wide) bits(hash Mem) VecVirtual {
	n := ZMM()
	VPBROADCASTQ(product(hash, g.spread), n)
	VPSRLVQ(g.shifts, n, n)
	return n
}

func (g *split512wide) set(hash, block Mem) {
	m := g.bits(hash)
	VPROLVQ(m, g.ones, m)
	VPORQ(block, m, m)
	VMOVDQU64(m, block)
}

func (g *split512wide) test(hash, block Mem, hits GPVirtual) {
	n, b := g.bits(hash), ZMM()
	VMOVDQU64(block, b)
	VPRORVQ(n, b, b) // moves the tested bit to bit 0
	clear, lanes := K(), GP32()
	VPTESTNMQ(g.ones, b, clear)
	KMOVB(clear, lanes)
	CMPL(lanes, U8(1)) // sets the carry if every lane has its bit
	ADCQ(U8(0), hits)
}
