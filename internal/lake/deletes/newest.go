package deletes

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/hugepage"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// hash is the hash of keys, also in the filter before a table.
var hash = bloom.Hash{ID: bloom.XXH3}

// newest is a hash table of keys, each with a number of its newest deletion. It consists of parts, each
// with open addressing and linear probing. Adding is safe for concurrent use, and so is finding, once all
// keys are there.
type newest struct {
	ints   bool   // keys are integers of 64 bits
	secret uint64 // random, so that keys cannot be chosen to collide
	charge func(bytes int64) error
	parts  []part // a power of two
}

// part has the keys whose mixed hashes have the same lowest bits.
type part struct {
	mu    sync.Mutex
	count int
	slots []slot
	arena []byte // keys, each after its length
}

// slot has a word, low half first, and a number; 0: it is empty. The word is an integer, or else a part of the hash,
// and where the key begins in the arena. It takes no more than its 12 bytes, most often in one line of a cache.
type slot [3]uint32

func (s *slot) word() uint64 { return uint64(s[0]) | uint64(s[1])<<32 }

const (
	mostParts = 256
	fewKeys   = 1 << 10 // of a part, unless there is but one
	slotBytes = 12
	fewSlots  = 16
	placeBits = 40 // of a slot: where in arena
	warmed    = 32 // keys looked up together, so that their cache misses overlap
	leastGrow = 4 << 10
)

// newNewest returns a table for about n keys.
func newNewest(ints bool, n uint64, charge func(int64) error) *newest {
	parts := min(uint64(1)<<bits.Len64(n/fewKeys), mostParts)
	return &newest{ints: ints, secret: rand.Uint64() | 1, charge: charge, parts: make([]part, parts)}
}

// mix makes a hash that is not known outside; see the tables of joins.
func (t *newest) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x2d358dccaa6c78a5, t.secret)
	hi, lo = bits.Mul64(lo^0x8bb84b93962eacc9, hi^t.secret)
	return hi ^ lo
}

// entry is a key of a batch: its mixed hash, its position, and itself if it is an integer.
type entry struct {
	hash, int uint64
	at        uint32
}

// entry returns the key at a position of a batch, which has the given integers or hashes.
func (t *newest) entry(ints, hashes []uint64, at uint32) entry {
	if t.ints {
		return entry{t.mix(ints[at]), ints[at], at}
	}
	return entry{t.mix(hashes[at]), 0, at}
}

// part returns the number of the part of a key.
func (t *newest) part(e entry) int { return int(e.hash) & (len(t.parts) - 1) }

// place returns the slot of a key, or the empty one where it would be.
func (t *newest) place(p *part, e entry, b *keys.Batch) int {
	mask := len(p.slots) - 1
	for i := int(e.hash>>32) & mask; ; i = (i + 1) & mask {
		w := p.slots[i].word()
		switch {
		case p.slots[i][2] == 0:
			return i
		case t.ints && w == e.int:
			return i
		case !t.ints && w>>placeBits == e.hash>>placeBits && bytes.Equal(p.key(w), b.Bytes(nil, int(e.at))):
			return i
		}
	}
}

// key returns the key of a slot that is not an integer.
func (p *part) key(slot uint64) []byte {
	b := p.arena[slot&(1<<placeBits-1):]
	n, size := binary.Uvarint(b)
	return b[size:][:n]
}

// add adds some keys of a batch, which are in the same part.
func (t *newest) add(b *keys.Batch, some []entry, when uint32) error {
	p := &t.parts[t.part(some[0])]
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(some) > 0 {
		n := min(warmed, len(some))
		t.warm(some[:n])
		for _, e := range some[:n] {
			if err := t.put(p, b, e, when); err != nil {
				return err
			}
		}
		some = some[n:]
	}
	return nil
}

// put adds a key to its part.
func (t *newest) put(p *part, b *keys.Batch, e entry, when uint32) (err error) {
	if p.count >= len(p.slots)/4*3 {
		if err := t.grow(p); err != nil {
			return err
		}
	}
	s := &p.slots[t.place(p, e, b)]
	if s[2] != 0 {
		s[2] = max(s[2], when)
		return nil
	}
	word := e.int
	if !t.ints {
		if word, err = t.store(p, b.Bytes(nil, int(e.at))); err != nil {
			return err
		}
		word |= e.hash >> placeBits << placeBits
	}
	p.count++
	*s = slot{uint32(word), uint32(word >> 32), when}
	return nil
}

// store appends a key to the arena.
func (t *newest) store(p *part, key []byte) (place uint64, err error) {
	if need := len(p.arena) + binary.MaxVarintLen64 + len(key); need > cap(p.arena) {
		grown := max(need+need/2, leastGrow)
		if err := t.charge(int64(grown - cap(p.arena))); err != nil {
			return 0, err
		}
		p.arena = append(make([]byte, 0, grown), p.arena...)
	}
	place = uint64(len(p.arena))
	p.arena = append(binary.AppendUvarint(p.arena, uint64(len(key))), key...)
	return place, nil
}

// grow doubles the slots of a part.
func (t *newest) grow(p *part) error {
	n := max(2*len(p.slots), fewSlots)
	if err := t.charge(int64(n-len(p.slots)) * slotBytes); err != nil {
		return err
	}
	slots := p.slots
	p.slots = make([]slot, n)
	for _, s := range slots {
		if s[2] == 0 {
			continue
		}
		x := s.word()
		if !t.ints {
			x = hash.Sum(p.key(x))
		}
		at := int(t.mix(x)>>32) & (n - 1)
		for p.slots[at][2] != 0 {
			at = (at + 1) & (n - 1)
		}
		p.slots[at] = s
	}
	return nil
}

// expect makes room for a number of keys, in huge pages. They may be fewer, so it does nothing if they take more than
// the given bytes.
func (t *newest) expect(n uint64, most int64) error {
	parts := uint64(len(t.parts))
	each := uint64(1) << bits.Len64(n/parts*4/3)
	bytes := parts * each * slotBytes
	if each < fewSlots || int64(bytes) > most {
		return nil
	}
	if err := t.charge(int64(bytes)); err != nil {
		return err
	}
	words := hugepage.Words(bytes / 8)
	all := unsafe.Slice((*slot)(unsafe.Pointer(&words[0])), parts*each)
	for i := range t.parts {
		t.parts[i].slots = all[uint64(i)*each:][:each:each]
	}
	return nil
}

// later appends to dst those of some positions of a batch whose keys have a number above after.
func (t *newest) later(b *keys.Batch, hashes []uint64, some []uint32, after uint32, dst []uint32) []uint32 {
	ints, _ := b.Ints()
	var found [warmed]entry
	for len(some) > 0 {
		n := min(warmed, len(some))
		for i, at := range some[:n] {
			found[i] = t.entry(ints, hashes, at)
		}
		t.warm(found[:n])
		for _, e := range found[:n] {
			if p := &t.parts[t.part(e)]; len(p.slots) > 0 && p.slots[t.place(p, e, b)][2] > after {
				dst = append(dst, e.at)
			}
		}
		some = some[n:]
	}
	return dst
}

// warm reads the slots where the search for keys begins. The result has no meaning.
//
//go:noinline
func (t *newest) warm(some []entry) (x uint64) {
	for _, e := range some {
		if p := &t.parts[t.part(e)]; len(p.slots) > 0 {
			i := int(e.hash>>32) & (len(p.slots) - 1)
			x += uint64(p.slots[i][0])
		}
	}
	return x
}
