package table

import (
	"bytes"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/hugepage"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Hash is the hash of keys in tables. The filters that a join builds over its IDs
// use it too.
var Hash = bloom.Hash{ID: bloom.XXH3}

// None stands for no entry and no row.
const None = ^uint32(0)

// table is a hash table of keys: open addressing with linear probing over slots of
// eight bytes, at most eight tenths full. A slot holds an integer itself; for any
// other key, a part of its hash and its place in the arena. Keys are compared by
// their values or bytes, never by hashes alone. The number of a slot is the key's
// entry.
//
// The slots are divided into ranges by the hash's high bits, and no probe leaves
// its range. So several goroutines fill the table, each one range at a time, and
// growing is one pass over memory in order. Once it is sealed, it is safe for
// concurrent use.
type table struct {
	share  *budget.Share
	ints   bool    // the keys are integers of one sign
	chains *chains // of the rows; nil: keys only, whose repetitions are counted

	expected uint64 // rows that will be added in all, if that is known

	grown  sync.RWMutex // held for writing when the slots change
	secret uint64       // random, so that keys cannot be chosen to collide
	slots
	have   uint64 // slots allocated in words
	zero   bool   // the integer zero is a member; guarded by the range of its hash
	arena  arena
	ranges [maxRanges]tableRange
	marks  []uint32 // bit set by slot
}

// slots are the slots of a table, and their layout.
type slots struct {
	words []uint64 // n of them, and one for the integer zero; nil: empty
	aside []uint32 // by slot: the key's last row, or its repetitions; nil: no key was repeated
	n     uint64   // ranges × width
	width uint64   // slots of a range
	shift uint     // of a hash, to get its range
}

type tableRange struct {
	mu    sync.Mutex
	n     uint64    // members
	chunk openChunk // of the arena, for the next keys
	_     [64]byte  // padding to a cache line of its own
}

const (
	maxRanges = 64
	fewSlots  = 1 << 14 // least slots of a range, unless it is the only one
	warmed    = 32      // keys looked up together, so that their cache misses overlap
)

// newTable returns an empty table. The tables of a side share a secret.
func newTable(of *budget.Share, ints bool, rows *chains, secret uint64) *table {
	return &table{share: of, ints: ints, chains: rows, secret: secret, arena: arena{share: of}}
}

// mix spreads 64 bits so that patterns of keys do not become patterns of slots. It
// is the 64-bit hash of wyhash (Wang Yi, public domain). A single multiplication
// would, for some factors, put consecutive integers into a few dense clusters.
func (t *table) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x2d358dccaa6c78a5, t.secret)
	hi, lo = bits.Mul64(lo^0x8bb84b93962eacc9, hi^t.secret)
	return hi ^ lo
}

// hash returns the mixed hash of the key in a slot.
func (t *table) hash(word uint64, dir [][]byte) uint64 {
	if t.ints {
		return t.mix(word)
	}
	return t.mix(Hash.Sum(keyAt(dir, word)))
}

// start returns where the search for a mixed hash begins, and the end of its range,
// from which it continues at the range's beginning.
func (s *slots) start(h uint64) (at, end uint64) {
	at, _ = bits.Mul64(h, s.n)
	return at, (h>>s.shift + 1) * s.width
}

// limit returns how many members a range may have.
func (s *slots) limit() uint64 { return s.width * 8 / 10 }

// arrange returns a layout of about n slots, at least n.
func arrange(n uint64) slots {
	ranges := 0
	for 1<<ranges < maxRanges && n>>ranges >= 2*fewSlots {
		ranges++
	}
	width := max((n+1<<ranges-1)>>ranges, 16)
	return slots{n: width << ranges, width: width, shift: uint(64 - ranges)}
}

// slotsFor returns how many slots n keys should have: seven tenths full, so that a
// range with more keys than others does not overflow.
func slotsFor(n uint64) uint64 { return n + n/7*3 + 16 }

// size returns the memory of n slots.
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

// findInts looks up the keys at the positions in hits, at most warmed of them. It
// appends members to members, which may begin where hits does, and their entries to
// entries. Negative integers are looked up in below, whose entries follow those of
// t.
func (t *table) findInts(below *table, k *keys.Batch, hits, members, entries []uint32) (found, of []uint32) {
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

// place returns the slot of an integer, or the empty one where it would be stored.
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

// findBytes is findInts for keys in the arena. It first finds the slots whose tag
// is the key's, and then compares keys, so that the cache misses of both steps
// overlap.
func (t *table) findBytes(k *keys.Batch, hits, members, entries []uint32) (found, of []uint32) {
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

// placeOf returns the slot of a key in the arena, or the empty one where it would
// be stored.
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

// warm reads the slots where the search for each hash begins, so that their cache
// misses overlap. The result has no meaning.
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

// seal ends filling and prepares for marks. The error wraps [fault.ErrMemory].
func (t *table) seal() error {
	n := (len(t.words) + 31) / 32
	if err := t.share.Take(int64(4 * n)); err != nil {
		return err
	}
	t.marks = make([]uint32, n)
	return nil
}

// mark records that a log row has the entry's key.
func (t *table) mark(e uint32) {
	w, bit := &t.marks[e/32], uint32(1)<<(e%32)
	if atomic.LoadUint32(w)&bit == 0 { // most marks are repetitions: avoid the write
		atomic.OrUint32(w, bit)
	}
}

func (t *table) marked(e uint32) bool {
	return atomic.LoadUint32(&t.marks[e/32])>>(e%32)&1 != 0
}

// eachMarked calls fn with every marked entry.
func (t *table) eachMarked(fn func(e uint32)) {
	for w, word := range t.marks {
		for ; word != 0; word &= word - 1 {
			fn(uint32(32*w + bits.TrailingZeros32(word)))
		}
	}
}

// matched returns how many IDs have a marked key, and how many keys are marked.
func (t *table) matched() (n, keys int64) {
	for _, word := range t.marks {
		keys += int64(bits.OnesCount32(word))
	}
	if t.aside == nil || t.chains != nil && !t.chains.open {
		return keys, keys
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
	return n, keys
}

// times returns how many IDs have the key of an entry, in a table without chains.
func (t *table) times(e uint32) int64 {
	if t.aside == nil {
		return 1
	}
	return 1 + int64(t.aside[e])
}

// first returns the first row of an entry, and next the one after a row, or None.
func (t *table) first(e uint32) uint32 { return t.chains.after(t.aside[e]) }

func (t *table) next(e, row uint32) uint32 {
	if row == t.aside[e] {
		return None
	}
	return t.chains.after(row)
}
