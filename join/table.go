package join

import (
	"bytes"
	"math/bits"
	"sync/atomic"
)

// none stands for no entry and no row.
const none = ^uint32(0)

// table is a hash table from keys to the rows that have them: open addressing
// over entries, one for each distinct key; the rows of a key are a chain in
// ascending order. Keys are compared by their bytes, never by their hashes
// alone.
//
// It is filled by one goroutine; then find and mark may be called from many.
type table struct {
	slots []uint32 // entry, or none; a power of two of them

	// By entry:
	hashes []uint64
	ends   []int // of the key in arena; it begins where the last one ends
	arena  []byte
	first  []uint32 // row
	last   []uint32
	count  []uint32 // rows
	seen   []uint32 // bit set of entries that mark was called for

	next []uint32 // by row: the next row with the same key
}

// newTable returns an empty table.
func newTable() *table {
	t := &table{}
	t.resize(1 << 10)
	return t
}

// bytes returns what the table takes in memory, about.
func (t *table) bytes() int64 {
	return int64(4*cap(t.slots) + 8*cap(t.hashes) + 8*cap(t.ends) + cap(t.arena) +
		4*(cap(t.first)+cap(t.last)+cap(t.count)+cap(t.seen)+cap(t.next)))
}

func (t *table) resize(n int) {
	t.slots = make([]uint32, n)
	for i := range t.slots {
		t.slots[i] = none
	}
	for e, h := range t.hashes {
		i := t.slot(h)
		for t.slots[i] != none {
			i = (i + 1) & uint64(len(t.slots)-1)
		}
		t.slots[i] = uint32(e)
	}
}

// slot returns where the search for hash h begins. The filter has used the
// high bits; these are others, mixed.
func (t *table) slot(h uint64) uint64 {
	return (h * 0x9e3779b97f4a7c15) >> (64 - uint(bits.TrailingZeros(uint(len(t.slots)))))
}

func (t *table) key(e uint32) []byte {
	start := 0
	if e > 0 {
		start = t.ends[e-1]
	}
	return t.arena[start:t.ends[e]]
}

// find returns the entry of the key with hash h, or none.
func (t *table) find(h uint64, key []byte) uint32 {
	for i := t.slot(h); ; i = (i + 1) & uint64(len(t.slots)-1) {
		e := t.slots[i]
		if e == none || t.hashes[e] == h && bytes.Equal(t.key(e), key) {
			return e
		}
	}
}

// entry returns the entry of the key, which it makes if there is none.
func (t *table) entry(h uint64, key []byte) uint32 {
	if e := t.find(h, key); e != none {
		return e
	}
	if 2*(len(t.hashes)+1) > len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	e := uint32(len(t.hashes))
	t.hashes = append(t.hashes, h)
	t.arena = append(t.arena, key...)
	t.ends = append(t.ends, len(t.arena))
	t.first, t.last, t.count = append(t.first, none), append(t.last, none), append(t.count, 0)
	if int(e)%32 == 0 {
		t.seen = append(t.seen, 0)
	}
	i := t.slot(h)
	for t.slots[i] != none {
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	t.slots[i] = e
	return e
}

// addRow appends a row to an entry's chain. Rows are numbered from 0 and added
// in order; those without a key are added to none.
func (t *table) addRow(e uint32) {
	row := uint32(len(t.next))
	t.next = append(t.next, none)
	if e == none {
		return
	}
	if t.first[e] == none {
		t.first[e] = row
	} else {
		t.next[t.last[e]] = row
	}
	t.last[e] = row
	t.count[e]++
}

// mark notes that a log row has the entry's key.
func (t *table) mark(e uint32) {
	w, bit := &t.seen[e/32], uint32(1)<<(e%32)
	if atomic.LoadUint32(w)&bit == 0 { // most marks are repeats: spare the write
		atomic.OrUint32(w, bit)
	}
}

// marked reports whether mark was called for the entry.
func (t *table) marked(e uint32) bool { return t.seen[e/32]>>(e%32)&1 != 0 }
