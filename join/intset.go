package join

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/hugepage"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// intSet is a set of integers, of which it tells which ones the log has: what
// a semi or anti join needs to know of IDs that are integers, in eleven bytes
// for each. It is filled by one goroutine; then find and mark may be called
// from many.
type intSet struct {
	natural  intTable // values from 0 on
	negative intTable // values below, in two's complement
}

// warmed is how many values are looked for at once.
const warmed = 32

// add puts in values, in two's complement if signed. It reports false, having
// changed nothing, if that would take more than most bytes, what is held while
// a table grows counted; most 0: no bound.
func (s *intSet) add(values []uint64, signed bool, most int64) bool {
	negative := uint64(0)
	for _, v := range values {
		if signed {
			negative += v >> 63
		}
	}
	for _, t := range []struct {
		*intTable
		n uint64
	}{{&s.natural, uint64(len(values)) - negative}, {&s.negative, negative}} {
		n := t.growth(t.n)
		if n == 0 {
			continue
		}
		if all := s.natural.n + s.negative.n + n; all+2*spareSlots >= uint64(none) || most > 0 && s.bytes()+int64(8*(n+spareSlots)) > most {
			return false
		}
		t.resize(n)
	}
	for len(values) > 0 {
		some := values[:min(warmed, len(values))]
		values = values[len(some):]
		s.natural.warm(some)
		for _, v := range some {
			s.table(v, signed).add(v)
		}
	}
	return true
}

// table returns the part in which v stands.
func (s *intSet) table(v uint64, signed bool) *intTable {
	if signed && int64(v) < 0 {
		return &s.negative
	}
	return &s.natural
}

// find is [idSide.find]. Entries are slots, those of the negative part behind
// the others.
func (s *intSet) find(k *keys.Batch, hits, members, entries []uint32) (found, of []uint32) {
	values, signed, _ := k.Ints()
	var ahead [warmed]uint64
	for len(hits) > 0 {
		some := hits[:min(warmed, len(hits))]
		hits = hits[len(some):]
		for i, h := range some {
			ahead[i] = values[h]
		}
		s.natural.warm(ahead[:len(some)])
		for i, h := range some {
			t, base := &s.natural, 0
			if v := ahead[i]; signed && int64(v) < 0 {
				t, base = &s.negative, len(s.natural.slots)
			}
			if slot := t.find(ahead[i]); slot >= 0 {
				members, entries = append(members, h), append(entries, uint32(base+slot))
			}
		}
	}
	return members, entries
}

func (s *intSet) mark(e uint32) {
	t, slot := s.slot(e)
	t.mark(slot)
}

func (s *intSet) marked(e uint32) bool {
	t, slot := s.slot(e)
	return t.marks[slot/32]>>(slot%32)&1 != 0
}

func (s *intSet) slot(e uint32) (*intTable, int) {
	if n := len(s.natural.slots); int(e) >= n {
		return &s.negative, int(e) - n
	}
	return &s.natural, int(e)
}

func (s *intSet) bytes() int64 { return s.natural.bytes() + s.negative.bytes() }

// matched returns how many of the values that were added were marked.
func (s *intSet) matched() int64 { return s.natural.matched() + s.negative.matched() }

// intTable is a hash table of integers: open addressing with linear probing,
// seven tenths full at the most. Zero stands for an empty slot; that it is a
// member is told by the slot behind the last one.
type intTable struct {
	mul    uint64 // odd and random, so that nobody can choose values that collide; 0: none yet
	slots  []uint64
	n      uint64   // places that a hash leads to; slots has more, to the end of which a probe may run
	len    uint64   // members
	again  []uint32 // by slot: how often it was added but for the first time; nil: all once
	marks  []uint32 // bit set by slot
	isZero bool     // zero is a member
}

const spareSlots = 64 // behind the last place, for probes to run into, and one for zero

// growth returns how many places there must be before members more ones are
// added; 0: no more than there are.
func (t *intTable) growth(members uint64) uint64 {
	if members == 0 {
		return 0
	}
	want := (t.len + members) + (t.len+members)/7*3 + 8 // seven tenths full
	if want <= t.n {
		return 0
	}
	return max(want, 2*t.n)
}

func (t *intTable) resize(n uint64) {
	old := *t
	*t = intTable{mul: old.mul, slots: hugepage.Words(n + spareSlots), n: n, len: old.len, isZero: old.isZero}
	if t.mul == 0 {
		t.mul = rand.Uint64() | 1
	}
	if old.again != nil {
		t.again = make([]uint32, len(t.slots))
	}
	for i, v := range old.slots {
		if v == 0 && !(i == len(old.slots)-1 && old.isZero) {
			continue
		}
		at := t.place(v)
		if v != 0 {
			t.slots[at] = v
		}
		if old.again != nil {
			t.again[at] = old.again[i]
		}
	}
}

// place returns the slot of v, or the empty one where it would stand.
func (t *intTable) place(v uint64) int {
	last := len(t.slots) - 1
	if v == 0 {
		return last
	}
	at, _ := bits.Mul64(v*t.mul, t.n)
	for i := int(at); ; i++ {
		if i == last {
			i = 0 // the spare slots are full
		}
		if s := t.slots[i]; s == v || s == 0 {
			return i
		}
	}
}

// add puts in v, for which there is room.
func (t *intTable) add(v uint64) {
	i := t.place(v)
	switch {
	case v == 0 && !t.isZero:
		t.isZero = true
		t.len++
	case v != 0 && t.slots[i] == 0:
		t.slots[i] = v
		t.len++
	default:
		if t.again == nil {
			t.again = make([]uint32, len(t.slots))
		}
		t.again[i]++
	}
}

// find returns the slot of v, or -1 if it is no member.
func (t *intTable) find(v uint64) int {
	if t.len == 0 {
		return -1
	}
	i := t.place(v)
	if t.slots[i] != v || v == 0 && !t.isZero {
		return -1
	}
	return i
}

// warm reads the slots that the search for each value begins with, so that the
// cache misses of all of them run side by side. Its result means nothing.
//
//go:noinline
func (t *intTable) warm(values []uint64) (x uint64) {
	if t.n == 0 {
		return 0
	}
	for _, v := range values {
		at, _ := bits.Mul64(v*t.mul, t.n)
		x |= t.slots[at]
	}
	return x
}

// seal is called once between the last add and the first mark.
func (t *intTable) seal() { t.marks = make([]uint32, (len(t.slots)+31)/32) }

// mark notes that a log row has the member in the slot.
func (t *intTable) mark(slot int) {
	w, bit := &t.marks[slot/32], uint32(1)<<(slot%32)
	if atomic.LoadUint32(w)&bit == 0 { // most marks are repeats: spare the write
		atomic.OrUint32(w, bit)
	}
}

func (t *intTable) matched() (n int64) {
	for w, word := range t.marks {
		n += int64(bits.OnesCount32(word))
		for ; word != 0 && t.again != nil; word &= word - 1 {
			n += int64(t.again[32*w+bits.TrailingZeros32(word)])
		}
	}
	return n
}

func (t *intTable) bytes() int64 {
	return int64(8*len(t.slots) + 4*len(t.again) + 4*len(t.marks))
}
