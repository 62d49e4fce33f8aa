package main

import (
	"math/bits"

	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
)

// randomLines is not a filter: for each key it reads or changes a word in a random
// 64-byte line and does nothing else. No filter with one line per key is faster on
// the machine, unless it visits lines in another order.
type randomLines struct{ words []uint64 }

const memoryName = "memory"

func newMemory(n uint64, bits float64) (filter, error) {
	m := randomLines{make([]uint64, int(bits*float64(n))/64/8*8)}
	return m, measure.AdviseHuge(m.words)
}

// line returns the start of a key's line. Keys are random numbers.
func (m randomLines) line(key uint64) uint64 {
	line, _ := bits.Mul64(key, uint64(len(m.words)/8))
	return line * 8
}

func (m randomLines) add(keys []uint64) {
	for _, k := range keys {
		m.words[m.line(k)] |= k
	}
}

// probe returns all keys as found.
func (m randomLines) probe(keys []uint64, sel []uint32) int {
	var sum uint64
	for _, k := range keys {
		sum += m.words[m.line(k)]
	}
	sel[0] = uint32(sum)
	return len(keys)
}

func (m randomLines) bytes() uint64 { return uint64(len(m.words)) * 8 }
