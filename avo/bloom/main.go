// Command bloom writes the kernels of package bloom, in AVX2 and AVX-512:
//
//	go run ./bloom -out ../internal/bloom/split_amd64.s -stubs ../internal/bloom/split_amd64.go -pkg bloom
//
// Each kernel runs over a batch of hashes. For the first `far` of them it also
// prefetches the block of the hash `ahead` positions later: the loads of a filter
// larger than the caches then overlap, no matter how many instructions the
// processor can look ahead.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ahead is the prefetch distance in hashes; kernel_amd64.go has the same constant.
const ahead = 32

func main() {
	ConstraintExpr("amd64,!purego")
	hashInts()
	hashInts512()
	for _, g := range []geometry{new(split256), new(split512)} {
		g.tables()
		add(g)
		probe(g)
	}
	wide := new(split512wide)
	wide.tables()
	add(wide)
	probe(wide)
	Generate()
}

// geometry emits the code that differs between block sizes.
type geometry interface {
	name() string
	shift() uint64 // log2 of the bytes in a block
	// tables emits constants in the data section.
	tables()
	// constants emits the loads of registers that keep their value throughout.
	constants()
	// set emits code that sets the bits of the hash in the block.
	set(hash, block Mem)
	// test emits code that adds one to hits if all bits of the hash are set in the
	// block.
	test(hash, block Mem, hits GPVirtual)
}

// args are the registers that both kinds of kernel use.
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

// offset emits the byte offset of the hash's block: fastrange on the upper half of
// the hash, times the block size.
func (a args) offset(g geometry, hash Mem) GPVirtual {
	o := GP64()
	MOVL(hash.Offset(4), o.As32())
	IMULQ(a.n, o)
	SHRQ(U8(32), o)
	SHLQ(U8(g.shift()), o)
	return o
}

// loop emits body for every hash: a loop with prefetching, then one without.
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
			PREFETCHT0(at)
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
		g.set(hash, Mem{Base: a.blocks, Index: offset, Scale: 1})
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
		// Always write the position; a miss is overwritten by the next one.
		position := GP32()
		LEAL(Mem{Base: base.As64(), Index: a.i, Scale: 1}, position)
		MOVL(position, Mem{Base: sel, Index: hits, Scale: 4})
		g.test(hash, Mem{Base: a.blocks, Index: offset, Scale: 1}, hits)
	})
	Store(hits, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
