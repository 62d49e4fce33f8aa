package table

import (
	"bytes"
	"github.com/bloomjoin/bloomjoin/bloom"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/hugepage"
	"github.com/bloomjoin/bloomjoin/join/internal/budget"
	"github.com/bloomjoin/bloomjoin/key"
)

// tableHash is the hash of keys in tables. The filters that a join builds over
// its IDs use it too.
var Hash = bloom.Hash{ID: bloom.XXH3}

// none stands for no entry and no row.
const None = ^uint32(0)

// table is a hash table of keys: open addressing with linear probing over slots
// of eight bytes, eight tenths full at the most. A slot holds an integer itself,
// and of any other key a part of its hash and its place in the arena; keys are
// compared by their values or bytes, never by hashes alone. The number of a slot
// is the key's entry.
//
// The slots are divided into ranges by the hash's high bits, and no probe leaves
// its range. So many goroutines fill the table, each a range at a time, and its
// growth is one pass over memory in order. Once it is sealed, find and mark may
// be called from many goroutines.
type table struct {
	share  *budget.Share
	ints   bool    // the keys are integers of one sign
	chains *chains // of the rows; nil: keys only, of which it is counted how often they came

	grown  sync.RWMutex // held to write when the slots change
	secret uint64       // random, so that nobody can choose keys that collide
	slots
	have   uint64 // slots of which words has the memory
	zero   bool   // the integer zero is a member; it comes and goes with the range of its hash
	arena  arena
	ranges [maxRanges]tableRange
	marks  []uint32 // bit set by slot
}

// slots are the slots of a table, and how they are laid out.
type slots struct {
	words []uint64 // n of them, and one for the integer zero; 0: empty
	aside []uint32 // by slot: the key's last row, or how often it came again; nil: no key came again
	n     uint64   // ranges × width
	width uint64   // slots of a range
	shift uint     // of a hash, for its range
}

type tableRange struct {
	mu    sync.Mutex
	n     uint64   // members
	piece piece    // of the arena, for the next keys
	_     [64]byte // no other range in this one's cache line
}

const (
	maxRanges = 64
	fewSlots  = 1 << 14 // no range has fewer, unless it is the only one
	warmed    = 32      // keys that are looked for at once
)

// newTable returns an empty table. Those of one side have one secret.
func newTable(of *budget.Share, ints bool, rows *chains, secret uint64) *table {
	return &table{share: of, ints: ints, chains: rows, secret: secret, arena: arena{share: of}}
}

// mix spreads 64 bits, so that no pattern of keys becomes one of slots. It is
// the 64-bit hash of wyhash (Wang Yi, public domain): a single multiplication
// would put integers in a row into a few dense clusters, for some factors.
func (t *table) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x2d358dccaa6c78a5, t.secret)
	hi, lo = bits.Mul64(lo^0x8bb84b93962eacc9, hi^t.secret)
	return hi ^ lo
}

// hash returns the mixed hash of what a slot holds.
func (t *table) hash(word uint64, dir [][]byte) uint64 {
	if t.ints {
		return t.mix(word)
	}
	return t.mix(Hash.Sum(keyAt(dir, word)))
}

// start returns where the search for a mixed hash begins, and the end of its
// range, from which it goes on at the range's beginning.
func (s *slots) start(h uint64) (at, end uint64) {
	at, _ = bits.Mul64(h, s.n)
	return at, (h>>s.shift + 1) * s.width
}

// limit returns how many members a range may have.
func (s *slots) limit() uint64 { return s.width * 8 / 10 }

// arrange returns the layout of n slots, or a few more.
func arrange(n uint64) slots {
	ranges := 0
	for 1<<ranges < maxRanges && n>>ranges >= 2*fewSlots {
		ranges++
	}
	width := max((n+1<<ranges-1)>>ranges, 16)
	return slots{n: width << ranges, width: width, shift: uint(64 - ranges)}
}

// slotsFor returns how many slots n keys should have: seven tenths are full
// then, so that no range is that got more than the others.
func slotsFor(n uint64) uint64 { return n + n/7*3 + 16 }

// size returns what n slots take in memory.
func (t *table) size(n uint64, aside bool) int64 {
	if n == 0 {
		return 0
	}
	b := hugepage.Size(n + 1)
	if aside {
		b += 4 * (n + 1)
	}
	return int64(b)
}

// findInts looks up the keys at the positions in hits, a few of them, and appends
// those that are members to members, which may begin where hits does, and their
// entries to entries. Integers below zero are looked up in below, whose entries
// come behind those of t.
func (t *table) findInts(below *table, k *key.Batch, hits, members, entries []uint32) (found, of []uint32) {
	values, _ := k.Ints()
	var hashes [warmed]uint64
	for i, h := range hits {
		hashes[i] = t.mix(values[h])
	}
	t.warm(hashes[:len(hits)])
	for i, h := range hits {
		v, in, base := values[h], t, uint32(0)
		if int64(v) < 0 && k.Negative(int(h)) {
			in, base = below, uint32(len(t.words))
		}
		if in.n == 0 {
			continue
		}
		if at := in.place(v, hashes[i]); in.words[at] == v && (v != 0 || in.zero) {
			members, entries = append(members, h), append(entries, base+uint32(at))
		}
	}
	return members, entries
}

// place returns the slot of an integer, or the empty one where it would stand.
func (t *table) place(v, h uint64) uint64 {
	if v == 0 {
		return t.n
	}
	at, end := t.start(h)
	for w := t.words[at]; w != v && w != 0; w = t.words[at] {
		if at++; at == end {
			at -= t.width
		}
	}
	return at
}

// findBytes is findInts of keys in the arena. It looks for the slots whose part
// of the hash is the key's, and then at the keys, whose cache misses run side by
// side too.
func (t *table) findBytes(k *key.Batch, hits, members, entries []uint32) (found, of []uint32) {
	if t.n == 0 {
		return members, entries
	}
	var hashes, words [warmed]uint64
	for i, h := range hits {
		hashes[i] = t.mix(k.HashAt(Hash, int(h)))
	}
	t.warm(hashes[:len(hits)])
	dir := t.arena.dir()
	for i, h := range hashes[:len(hits)] {
		at, end := t.start(h)
		words[i] = t.words[t.tagged(at, end, h)]
	}
	warmKeys(dir, words[:len(hits)])
	var buf [64]byte
	for i, h := range hits {
		at := t.placeOf(dir, k.Bytes(buf[:], int(h)), hashes[i])
		if t.words[at] != 0 {
			members, entries = append(members, h), append(entries, uint32(at))
		}
	}
	return members, entries
}

// placeOf returns the slot of a key in the arena, or the empty one where it
// would stand.
func (t *table) placeOf(dir [][]byte, key []byte, h uint64) uint64 {
	at, end := t.start(h)
	at = t.tagged(at, end, h)
	for t.words[at] != 0 && !bytes.Equal(keyAt(dir, t.words[at]), key) {
		if at++; at == end {
			at -= t.width
		}
		at = t.tagged(at, end, h)
	}
	return at
}

// tagged returns the first slot from at on that is empty or has the hash's tag.
func (t *table) tagged(at, end, h uint64) uint64 {
	for w := t.words[at]; w != 0 && w>>placeBits != tag(h); w = t.words[at] {
		if at++; at == end {
			at -= t.width
		}
	}
	return at
}

// warm reads the slots that the search for each hash begins with, so that the
// cache misses of all of them run side by side. Its result means nothing.
//
//go:noinline
func (t *table) warm(hashes []uint64) (x uint64) {
	for _, h := range hashes {
		if at, _ := bits.Mul64(h, t.n); at < uint64(len(t.words)) {
			x |= t.words[at]
		}
	}
	return x
}

// seal is called between the last add and the first mark. The error wraps
// [fault.ErrMemory].
func (t *table) seal() error {
	n := (len(t.words) + 31) / 32
	if err := t.share.Take(int64(4 * n)); err != nil {
		return err
	}
	t.marks = make([]uint32, n)
	return nil
}

// mark notes that a log row has the entry's key.
func (t *table) mark(e uint32) {
	w, bit := &t.marks[e/32], uint32(1)<<(e%32)
	if atomic.LoadUint32(w)&bit == 0 { // most marks are repeats: spare the write
		atomic.OrUint32(w, bit)
	}
}

func (t *table) marked(e uint32) bool {
	return atomic.LoadUint32(&t.marks[e/32])>>(e%32)&1 != 0
}

// eachMarked calls fn with every entry that is marked.
func (t *table) eachMarked(fn func(e uint32)) {
	for w, word := range t.marks {
		for ; word != 0; word &= word - 1 {
			fn(uint32(32*w + bits.TrailingZeros32(word)))
		}
	}
}

// matched returns how often the keys that are marked were added.
func (t *table) matched() (n int64) {
	if t.aside == nil || t.chains != nil && !t.chains.open {
		for _, word := range t.marks {
			n += int64(bits.OnesCount32(word))
		}
		return n
	}
	t.eachMarked(func(e uint32) {
		if t.chains == nil {
			n += t.times(e)
			return
		}
		for row := t.first(e); row != None; row = t.next(e, row) {
			n++
		}
	})
	return n
}

// times returns how often the key of an entry was added, to a table without
// chains.
func (t *table) times(e uint32) int64 {
	if t.aside == nil {
		return 1
	}
	return 1 + int64(t.aside[e])
}

// first returns the first row of an entry, and next the one behind a row, or
// none.
func (t *table) first(e uint32) uint32 { return t.chains.after(t.aside[e]) }

func (t *table) next(e, row uint32) uint32 {
	if row == t.aside[e] {
		return None
	}
	return t.chains.after(row)
}
