package main

import (
	"math/bits"

	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
)

// randomLines is no filter: it reads or changes a word of a random line of 64 bytes
// for each key and does nothing else. No filter of one line a key is faster on
// this machine, unless it visits the lines in another order.
type randomLines struct{ words []uint64 }

const memoryName = "memory"

func newMemory(n uint64, bits float64) (filter, error) {
	m := randomLines{make([]uint64, int(bits*float64(n))/64/8*8)}
	return m, measure.AdviseHuge(m.words)
}

// line returns where the key's line begins. Keys are random numbers.
func (m randomLines) line(key uint64) uint64 {
	line, _ := bits.Mul64(key, uint64(len(m.words)/8))
	return line * 8
}

func (m randomLines) add(keys []uint64) {
	for _, k := range keys {
		m.words[m.line(k)] |= k
	}
}

// probe answers that all keys are there.
func (m randomLines) probe(keys []uint64, sel []uint32) int {
	var sum uint64
	for _, k := range keys {
		sum += m.words[m.line(k)]
	}
	sel[0] = uint32(sum)
	return len(keys)
}

func (m randomLines) bytes() uint64 { return uint64(len(m.words)) * 8 }
