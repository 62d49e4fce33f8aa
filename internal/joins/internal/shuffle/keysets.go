package shuffle

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
)

// logKeys is a hash table of distinct keys of the log, each with the set of tags of
// its entries: pieces of the log. Its size is fixed; it reports when it is full.
// One goroutine uses it.
type logKeys struct {
	integers bool
	mul      uint64 // odd and random, so that keys cannot be chosen to collide
	mask     uint64 // of hashes: all bits, except in tests

	slots []keySlot // all of them
	n     uint64    // number of slots in use for this bucket
	count int       // keys
	most  int       // most keys

	nodes []setNode // of sets of more than one; bounded by cap

	// Of keys that are not integers:
	places []uint64 // by slot: of the key in arena
	arena  []byte   // lengths and keys; bounded by cap

	sink uint64 // result of warm
}

// keySlot is a key, or its hash, and its set.
type keySlot struct {
	key  uint64
	head uint32 // the only member of the set, or its first node
	info uint32
}

const (
	slotNegative = 1 << iota // the key is a negative integer; the lowest bit, as in entries
	slotUsed
	slotMany // head is a node
	slotSeen // an ID has the key
)

// setNode is a member of a set; the next one is smaller.
type setNode struct{ tag, next uint32 }

const (
	slotBytes    = 16
	probedAtOnce = 32 // keys looked up together, so that their cache misses overlap
	nodeBytes    = 8
	slotsPerKey  = 1.4
)

// newLogKeys returns a table of about size bytes. keyBytes is the average length of
// a key that is not an integer. The table has room for at least one key whose set
// has most members.
func newLogKeys(integers bool, size int64, keyBytes float64, most int) *logKeys {
	t := &logKeys{integers: integers, mul: rand.Uint64() | 1, mask: ^uint64(0)}
	perKey := slotsPerKey*slotBytes + nodeBytes
	if !integers {
		perKey += slotsPerKey*8 + keyBytes
	}
	keys := max(int64(float64(size-int64((most+1)*nodeBytes))/perKey), 1)
	t.slots = make([]keySlot, int64(slotsPerKey*float64(keys))+2)
	t.nodes = make([]setNode, 0, keys+int64(most)+1)
	if !integers {
		t.places = make([]uint64, len(t.slots))
		t.arena = make([]byte, 0, int64(float64(keys)*keyBytes)+1)
	}
	return t
}

// bytes returns the memory of the table.
func (t *logKeys) bytes() int64 {
	return int64(len(t.slots)*slotBytes + cap(t.nodes)*nodeBytes + len(t.places)*8 + cap(t.arena))
}

// reset empties the table for the given number of keys, or fewer if there is no
// room.
func (t *logKeys) reset(keys int64) {
	// No more keys than the slots hold, if their sets and bytes fit.
	keys = max(min(keys, int64(float64(len(t.slots)-2)/slotsPerKey)), 1)
	t.n = uint64(slotsPerKey*float64(keys)) + 2
	t.most, t.count = int(keys), 0
	clear(t.slots[:t.n])
	t.nodes, t.arena = t.nodes[:0], t.arena[:0]
}

// place returns the slot where the search for a key begins.
func (t *logKeys) place(key uint64) uint64 {
	at, _ := bits.Mul64(key*t.mul&t.mask, t.n)
	return at
}

// warm reads the slots where the search for each key begins, so that their cache
// misses overlap.
func (t *logKeys) warm(b *entryBatch, lo, hi int) {
	for _, p := range b.pairs[lo:hi] {
		t.sink |= t.slots[t.place(p.A)].key
	}
}

// find returns the slot of entry i's key, or the empty one where it would be
// stored. The table is never full, so there is one.
func (t *logKeys) find(b *entryBatch, i int) (*keySlot, int) {
	p := &b.pairs[i]
	want := uint32(p.B&slotNegative) | slotUsed
	slots := t.slots[:t.n]
	for at := int(t.place(p.A)); ; at++ {
		if at == len(slots) {
			at = 0
		}
		s := &slots[at]
		if s.info&slotUsed == 0 {
			return s, at
		}
		if s.key == p.A && s.info&(slotNegative|slotUsed) == want && (t.integers || bytes.Equal(t.key(at), b.keys[i])) {
			return s, at
		}
	}
}

// key returns the key in a slot, if it is not an integer.
func (t *logKeys) key(slot int) []byte {
	at := t.arena[t.places[slot]:]
	size, n := binary.Uvarint(at)
	return at[n : n+int(size)]
}

// add adds the tag of entry i to the set of its key. If there is no room, it
// changes nothing and returns false.
func (t *logKeys) add(b *entryBatch, i int) bool {
	tag := uint32(b.tag(i))
	s, at := t.find(b, i)
	if s.info&slotUsed != 0 {
		return t.extend(s, tag)
	}
	if t.count >= t.most {
		return false
	}
	if !t.integers {
		key := b.keys[i]
		if cap(t.arena)-len(t.arena) < len(key)+binary.MaxVarintLen64 {
			return false
		}
		t.places[at] = uint64(len(t.arena))
		t.arena = append(binary.AppendUvarint(t.arena, uint64(len(key))), key...)
	}
	*s = keySlot{key: b.pairs[i].A, head: tag, info: slotUsed | uint32(b.pairs[i].B&slotNegative)}
	t.count++
	return true
}

// extend adds a tag to a set.
func (t *logKeys) extend(s *keySlot, tag uint32) bool {
	if s.info&slotMany == 0 {
		if s.head == tag {
			return true
		}
		if cap(t.nodes)-len(t.nodes) < 2 {
			return false
		}
		t.nodes = append(t.nodes, setNode{s.head, table.None})
		s.head, s.info = uint32(len(t.nodes)-1), s.info|slotMany
	}
	link := &s.head // tags mostly ascend, so the search is short
	for *link != table.None && t.nodes[*link].tag > tag {
		link = &t.nodes[*link].next
	}
	if *link != table.None && t.nodes[*link].tag == tag {
		return true
	}
	if len(t.nodes) == cap(t.nodes) {
		return false
	}
	t.nodes = append(t.nodes, setNode{tag, *link})
	*link = uint32(len(t.nodes) - 1)
	return true
}

// tags calls fn with each member of the set, in descending order, and the next
// smaller one, or -1.
func (t *logKeys) tags(s *keySlot, fn func(tag, below int) error) error {
	if s.info&slotMany == 0 {
		return fn(int(s.head), -1)
	}
	for at := s.head; at != table.None; {
		n := t.nodes[at]
		below := -1
		if n.next != table.None {
			below = int(t.nodes[n.next].tag)
		}
		if err := fn(int(n.tag), below); err != nil {
			return err
		}
		at = n.next
	}
	return nil
}
