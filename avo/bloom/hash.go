package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// xxh3Mul is the multiplier in XXH3's path for inputs of 4 to 8 bytes.
const xxh3Mul = 0x9fb21c651e98df25

// hashInts emits XXH3 of eight-byte inputs, four at a time. The Go version is in
// hash.go.
func hashInts() {
	shuffle := GLOBL("rotate24", RODATA|NOPTR)
	for i := range 32 {
		DATA(i, U8(i/8%2*8+(i+5)%8))
	}
	multiplier := GLOBL("xxh3Mul", RODATA|NOPTR)
	DATA(0, U64(xxh3Mul))

	TEXT("hashInts", NOSPLIT, "func(dst, values *uint64, count, flip uint64)")
	Doc("hashInts writes the XXH3 of count values, a multiple of four, to dst. flip is what the",
		"seed and the secret come to at a length of eight bytes.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("values"), GP64())
	count := Load(Param("count"), GP64())
	flip, rotate, eight := YMM(), YMM(), YMM()
	mul, swapped, high := YMM(), YMM(), YMM()
	VPBROADCASTQ(NewParamAddr("flip", 24), flip)
	VMOVDQU(shuffle, rotate)
	VPBROADCASTQ(multiplier, mul)
	VPSHUFD(U8(0xb1), mul, swapped)
	VPCMPEQQ(high, high, high)
	VPSRLQ(U8(63), high, eight)
	VPSLLQ(U8(3), eight, eight)
	VPSLLQ(U8(32), high, high)

	// times multiplies the 64-bit lanes of x by mul.
	times := func(x VecVirtual) {
		cross, upper := YMM(), YMM()
		VPMULLD(swapped, x, cross) // low·high | high·low
		VPMULUDQ(mul, x, x)
		VPSLLQ(U8(32), cross, upper)
		VPAND(high, cross, cross)
		VPADDQ(upper, x, x)
		VPADDQ(cross, x, x)
	}
	i := GP64()
	XORQ(i, i)
	JMP(LabelRef("test"))
	Label("loop")
	x, t, u := YMM(), YMM(), YMM()
	VPSHUFD(U8(0xb1), Mem{Base: src, Index: i, Scale: 8}, x)
	VPXOR(flip, x, x)
	VPSLLQ(U8(49), x, t)
	VPSRLQ(U8(15), x, u)
	VPXOR(u, t, t)
	VPSHUFB(rotate, x, u)
	VPXOR(u, x, x)
	VPXOR(t, x, x)
	times(x)
	VPSRLQ(U8(35), x, t)
	VPADDQ(eight, t, t)
	VPXOR(t, x, x)
	times(x)
	VPSRLQ(U8(28), x, t)
	VPXOR(t, x, x)
	VMOVDQU(x, Mem{Base: dst, Index: i, Scale: 8})
	ADDQ(U8(4), i)
	Label("test")
	CMPQ(i, count)
	JB(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// hashInts512 emits hashInts with AVX-512's 64-bit products and rotations, eight
// inputs at a time.
func hashInts512() {
	TEXT("hashInts512", NOSPLIT, "func(dst, values *uint64, count, flip uint64)")
	Doc("hashInts512 is hashInts in AVX-512, for a multiple of eight values.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("values"), GP64())
	count := Load(Param("count"), GP64())
	flip, mul, eight := ZMM(), ZMM(), ZMM()
	VPBROADCASTQ(NewParamAddr("flip", 24), flip)
	c := GP64()
	MOVQ(U64(xxh3Mul), c)
	VPBROADCASTQ(c, mul)
	MOVQ(U32(8), c)
	VPBROADCASTQ(c, eight)
	const xor3 = 0x96 // truth table of a ^ b ^ c
	i := GP64()
	XORQ(i, i)
	JMP(LabelRef("test"))
	Label("loop")
	x, t, u := ZMM(), ZMM(), ZMM()
	VPROLQ(U8(32), Mem{Base: src, Index: i, Scale: 8}, x)
	VPXORQ(flip, x, x)
	VPROLQ(U8(49), x, t)
	VPROLQ(U8(24), x, u)
	VPTERNLOGQ(U8(xor3), t, u, x)
	VPMULLQ(mul, x, x)
	VPSRLQ(U8(35), x, t)
	VPADDQ(eight, t, t)
	VPXORQ(t, x, x)
	VPMULLQ(mul, x, x)
	VPSRLQ(U8(28), x, t)
	VPXORQ(t, x, x)
	VMOVDQU64(x, Mem{Base: dst, Index: i, Scale: 8})
	ADDQ(U8(8), i)
	Label("test")
	CMPQ(i, count)
	JB(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
