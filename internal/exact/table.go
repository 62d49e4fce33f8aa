package exact

import "math/bits"

// table is a hash table of a bitmap's non-zero 64-bit words: an entry holds the
// members among 64 neighbouring integers. It takes up to 32 bytes per member if
// members are far apart, and less the closer they are.
//
// A bucket is one cache line. An entry whose bucket is full goes to the next one,
// and the full bucket is marked.
type table struct {
	buckets []bucket
}

// bucket has four entries, filled from the front. The highest bit of keys[3] marks
// a bucket that had to refuse an entry.
type bucket struct {
	keys  [bucketEntries]uint64
	words [bucketEntries]uint64
}

const (
	bucketEntries = 4
	bucketBytes   = 16 * bucketEntries
	bucketFill    = 2 // maximum average number of entries per bucket

	vacant     = 1 << 62 // not a key: keys have 59 bits
	overflowed = 1 << 63
)

// tableBuckets returns the number of buckets in a table of that many entries.
func tableBuckets(entries uint64) uint64 { return entries/bucketFill + 1 }

// tableKey returns the key of the word that contains value v.
func tableKey(v, negative uint64) uint64 { return v/64 | negative<<58 }

// tableSlot returns the bucket where the search for a key starts. The two halves of
// the product, XORed, depend on all bits of the key.
func tableSlot(key, buckets uint64) uint64 {
	high, low := bits.Mul64(key, 0x9e3779b97f4a7c15)
	slot, _ := bits.Mul64(high^low, buckets)
	return slot
}

// words yields the key and the word of each table entry.
func (s *Set) words(yield func(key, word uint64) bool) {
	key, word := uint64(vacant), uint64(0)
	for values, negative := range s.Values {
		sign := sign(negative)
		for _, v := range values {
			if k := tableKey(v, sign); k != key {
				if word != 0 && !yield(key, word) {
					return
				}
				key, word = k, 0
			}
			word |= 1 << (v % 64)
		}
	}
	if word != 0 {
		yield(key, word)
	}
}

// entries returns the number of entries in a table, or a number above most.
func (s *Set) entries(most uint64) (n uint64) {
	for range s.words {
		if n++; n > most {
			break
		}
	}
	return n
}

func newTable(s *Set, entries uint64) *table {
	t := &table{buckets: make([]bucket, tableBuckets(entries))}
	for i := range t.buckets {
		t.buckets[i].keys = [bucketEntries]uint64{vacant, vacant, vacant, vacant}
	}
	for key, word := range s.words {
		t.put(key, word)
	}
	return t
}

// put adds an entry with a new key. At least half of the table is vacant, so it
// always finds a place.
func (t *table) put(key, word uint64) {
	for at := tableSlot(key, uint64(len(t.buckets))); ; at++ {
		if at == uint64(len(t.buckets)) {
			at = 0
		}
		b := &t.buckets[at]
		for i, k := range b.keys {
			if k == vacant {
				b.keys[i], b.words[i] = key, word
				return
			}
		}
		b.keys[bucketEntries-1] |= overflowed
	}
}

// probe sets the bits in found of the values that are members. It works on groups
// of values. A first pass computes the buckets and loads from each, so that their
// cache misses overlap; a second pass compares, without a branch that depends on a
// value. The few values whose bucket has overflowed are looked up last.
func (t *table) probe(values []uint64, signed uint64, found *bitset) {
	var more bitset
	for at := 0; at*64 < len(values); at++ {
		some := values[at*64 : min(at*64+64, len(values))]
		found[at%len(found)], more[at%len(more)] = t.probeSome(some, signed)
	}
	for at := range more {
		for m := more[at] &^ found[at]; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m)
			if v := values[at*64+i]; t.word(tableKey(v, v>>63&signed))>>(v%64)&1 != 0 {
				found[at] |= 1 << i
			}
		}
	}
}

// probeSome returns bit sets of up to 64 values: which were found, and for which
// the bucket has overflowed.
func (t *table) probeSome(values []uint64, signed uint64) (found, more uint64) {
	var keys, slots, firsts [64]uint64
	buckets := t.buckets
	for i, v := range values {
		key := tableKey(v, v>>63&signed)
		slot := tableSlot(key, uint64(len(buckets)))
		keys[i&63], slots[i&63], firsts[i&63] = key, slot, buckets[slot].keys[0]
	}
	for i, v := range values {
		key, b := keys[i&63], &buckets[slots[i&63]]
		w0, w1, w2, w3 := b.words[0], b.words[1], b.words[2], b.words[3]
		word := uint64(0)
		if firsts[i&63] == key {
			word = w0
		}
		if b.keys[1] == key {
			word = w1
		}
		if b.keys[2] == key {
			word = w2
		}
		last := b.keys[3]
		if last&^overflowed == key {
			word = w3
		}
		found |= word >> (v % 64) & 1 << (i & 63)
		more |= last >> 63 << (i & 63)
	}
	return found, more
}

// word returns the word of a key, zero if there is none.
func (t *table) word(key uint64) uint64 {
	for slot := tableSlot(key, uint64(len(t.buckets))); ; slot++ {
		if slot == uint64(len(t.buckets)) {
			slot = 0
		}
		b := &t.buckets[slot]
		for i, k := range b.keys {
			if k&^overflowed == key {
				return b.words[i]
			}
		}
		if b.keys[bucketEntries-1]&overflowed == 0 {
			return 0
		}
	}
}
