package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// salts are the odd multipliers in the Parquet specification.
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

// mask emits the bits of the hash.
func (g *split256) mask(hash Mem) VecVirtual {
	m := YMM()
	VPBROADCASTD(hash, m)
	VPMULLD(g.salts, m, m)
	VPSRLD(U8(27), m, m)
	VPSLLVD(m, g.ones, m)
	return m
}

func (g *split256) set(hash, block Mem) {
	m := g.mask(hash)
	VPOR(block, m, m)
	VMOVDQU(m, block)
}

func (g *split256) test(hash, block Mem, hits GPVirtual) {
	m, b := g.mask(hash), YMM()
	VMOVDQU(block, b)
	VPTEST(m, b) // sets the carry if the block has every bit of the mask
	ADCQ(U8(0), hits)
}
