// Package table holds IDs by their keys, in memory: [Side] is a hash table of keys,
// with the rows that have them if they are needed; [Marks] marks members of an exact
// set. It knows nothing of joins or files.
package table

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// Side holds IDs by their keys: all IDs of a join, or those that some log row may
// have. If the answer has columns of the IDs, it holds their rows too.
//
// It is filled with keys or with rows, and then sealed. After that Find, Mark,
// First and Next are safe for concurrent use. Memory is put on the account before
// it is allocated. An entry stands for a key, a row for an ID row; rows are
// numbered from 0 as they are added.
type Side struct {
	kind  Kind
	share *budget.Share

	keys      *table
	negatives *table        // negative integers, in two's complement; nil for other keys
	rows      *tables.Table // nil: only keys are held
	links     chains
	fillers   sync.Pool
	picked    []uint32 // of addTo
}

// Kind describes what a side holds.
type Kind struct {
	Integers bool            // the key is one column of integers
	Columns  *tables.Columns // of the rows that are held; nil: only keys are
	Threads  int             // workers that add rows or seal; 0: GOMAXPROCS
}

// New returns an empty side whose memory is on an account.
func New(kind Kind, of *budget.Account) *Side {
	s := &Side{kind: kind, share: of.Share("the table of IDs")}
	s.links.share = s.share
	var links *chains
	if kind.Columns != nil {
		s.rows, links = kind.Columns.NewTable(s.share.Take), &s.links
	}
	secret := rand.Uint64() | 1
	s.keys = newTable(s.share, kind.Integers, links, secret)
	if kind.Integers {
		s.negatives = newTable(s.share, true, links, secret)
	}
	return s
}

// Reserve makes room for the keys of n IDs in an empty side if the account has it.
// Otherwise it does nothing: with duplicates the keys may fit all the same.
func (s *Side) Reserve(n int64) {
	_ = s.keys.reserve(uint64(n))
}

// Expect says that n rows will be added, so that the table grows at once to what they need.
func (s *Side) Expect(n int64) { s.keys.expected = uint64(n) }

// AddKeys adds the keys of an ID batch to a side without rows. It is safe for
// concurrent use. The error wraps [fault.ErrMemory].
func (s *Side) AddKeys(batch *keys.Batch) error {
	return s.fill(batch, nil, len(batch.Rows), 0, 1, blockKeys)
}

// AddKeysAt is AddKeys for the keys at the positions in keep.
func (s *Side) AddKeysAt(batch *keys.Batch, keep []uint32) error {
	if len(keep) == 0 {
		return nil
	}
	return s.fill(batch, keep, len(keep), 0, 1, blockKeys)
}

// fill adds n keys, in blocks of the given size.
func (s *Side) fill(batch *keys.Batch, keep []uint32, n int, row uint32, threads, block int) error {
	f, _ := s.fillers.Get().(*filler)
	if f == nil {
		f = new(filler)
	}
	defer s.fillers.Put(f)
	f.batch, f.threads = batch, threads
	f.values, _ = batch.Ints()
	for lo := 0; lo < n; lo += block {
		f.load(s.keys, s.negatives, keep, lo, min(lo+block, n), row)
		if err := f.fill(s.keys, f.items); err != nil {
			return err
		}
		if err := f.fill(s.negatives, f.negative); err != nil {
			return err
		}
	}
	return nil
}

// AddRows adds the rows of a batch of IDs, with and without a key. One goroutine calls
// it, in the IDs' order. The error wraps [fault.ErrMemory], or is one of [tables.Table.Append].
func (s *Side) AddRows(b *tables.Batch) error {
	return s.addTo(b, nil, len(b.Keys.Rows), b.Keys.Len)
}

// AddRowsAt is AddRows for the rows whose keys are at the ascending positions in
// keep.
func (s *Side) AddRowsAt(b *tables.Batch, keep []uint32) error {
	if len(keep) == 0 {
		return nil
	}
	return s.addTo(b, keep, len(keep), len(keep))
}

func (s *Side) addTo(b *tables.Batch, keep []uint32, n, rows int) error {
	first := s.links.rows
	if s.links.rows += uint64(rows); s.links.rows >= uint64(None) {
		return fmt.Errorf("%w: more than 2^32 IDs in a table", fault.ErrMemory)
	}
	if err := s.links.cover(); err != nil {
		return err
	}
	if err := s.fill(b.Keys, keep, n, uint32(first), s.kind.Threads, 4*blockKeys); err != nil {
		return err
	}
	if keep == nil {
		return s.rows.Append(b, nil)
	}
	s.picked = s.picked[:0]
	for _, at := range keep {
		s.picked = append(s.picked, b.Keys.Rows[at])
	}
	return s.rows.Append(b, s.picked)
}

// Seal ends filling. The error wraps [fault.ErrMemory].
func (s *Side) Seal() error {
	if s.rows != nil {
		if err := s.share.Take(int64(s.links.rows/64+1) * 8); err != nil { // for MatchedRows
			return err
		}
	}
	if err := s.keys.seal(); err != nil || s.negatives == nil {
		return err
	}
	return s.negatives.seal()
}

// Find returns the positions in hits of keys that the side has, and their entries.
// It writes to the memory of members, which may be that of hits, and of entries.
func (s *Side) Find(k *keys.Batch, hits, members, entries []uint32) (found, of []uint32) {
	members, entries = members[:0], entries[:0]
	for len(hits) > 0 {
		some := hits[:min(warmed, len(hits))]
		hits = hits[len(some):]
		if s.negatives != nil {
			members, entries = s.keys.findInts(s.negatives, k, some, members, entries)
		} else {
			members, entries = s.keys.findBytes(k, some, members, entries)
		}
	}
	return members, entries
}

// entry returns the table of an entry, and its number there.
func (s *Side) entry(e uint32) (*table, uint32) {
	if n := uint32(len(s.keys.words)); s.negatives != nil && e >= n {
		return s.negatives, e - n
	}
	return s.keys, e
}

// Mark records that a log row has the entry's key.
func (s *Side) Mark(entry uint32) {
	t, e := s.entry(entry)
	t.mark(e)
}

// Marked reports whether Mark was called for the entry, as far as this goroutine
// can know.
func (s *Side) Marked(entry uint32) bool {
	t, e := s.entry(entry)
	return t.marked(e)
}

// Matched returns the number of IDs added whose entry is marked, and of these entries. s may
// be nil.
func (s *Side) Matched() (n, keys int64) {
	if s == nil {
		return 0, 0
	}
	n, keys = s.keys.matched()
	if s.negatives != nil {
		m, more := s.negatives.matched()
		return n + m, keys + more
	}
	return n, keys
}

// First returns the first row of an entry, and Next the one after a row, or [None].
// The side must have rows.
func (s *Side) First(entry uint32) uint32 {
	t, e := s.entry(entry)
	return t.first(e)
}

// Next returns the row after a row of an entry; see First.
func (s *Side) Next(entry, row uint32) uint32 {
	t, e := s.entry(entry)
	return t.next(e, row)
}

// Unique reports whether no two IDs of the sealed side have one key.
func (s *Side) Unique() bool {
	if s.rows != nil {
		return !s.links.open
	}
	return s.keys.aside == nil && (s.negatives == nil || s.negatives.aside == nil)
}

// Times returns how many IDs have an entry's key. The side must not have rows.
func (s *Side) Times(entry uint32) int64 {
	t, e := s.entry(entry)
	return t.times(e)
}

// MatchedRows returns the set of the rows whose entry is marked, as bits by number.
// The others have no key, or one that is not marked.
func (s *Side) MatchedRows() []uint64 {
	matched := make([]uint64, s.links.rows/64+1)
	for _, t := range []*table{s.keys, s.negatives} {
		if t == nil {
			continue
		}
		t.eachMarked(func(e uint32) {
			for r := t.first(e); r != None; r = t.next(e, r) {
				matched[r/64] |= 1 << (r % 64)
			}
		})
	}
	return matched
}

// NumRows returns the number of rows.
func (s *Side) NumRows() int { return int(s.links.rows) }

// Rows returns the rows; nil if only keys are held.
func (s *Side) Rows() *tables.Table { return s.rows }

// Bytes returns the memory that the side takes.
func (s *Side) Bytes() int64 { return s.share.Bytes() }

// Release ends the use of the side, which may be nil, and of its memory.
func (s *Side) Release() {
	if s == nil {
		return
	}
	s.rows = nil
	s.keys, s.negatives, s.links = newTable(s.share, s.kind.Integers, nil, 1), nil, chains{}
	s.share.GiveAll()
}

// UpTo returns the positions below n, in dst's memory if that suffices.
func UpTo(dst []uint32, n int) []uint32 {
	for len(dst) < n {
		dst = append(dst, uint32(len(dst)))
	}
	return dst[:n]
}
