// Package table holds IDs by their keys, in memory: [Side] is a hash table of keys,
// with the rows that have them if they are needed; [Marks] marks members of an exact
// set. It knows nothing of joins or files.
package table

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join/internal/budget"
	"github.com/bloomjoin/bloomjoin/key"
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

	keys    *table
	below   *table // negative integers, in two's complement; nil for other keys
	rows    idRows
	links   chains
	fillers sync.Pool
}

// Kind describes what a side holds.
type Kind struct {
	Integers bool  // the key is one column of integers
	Rows     bool  // rows are held
	Held     []int // columns of the ID batches to hold; nil: all
	Threads  int   // workers that add rows or seal; 0: GOMAXPROCS
	Mem      memory.Allocator
}

// New returns an empty side whose memory is on an account.
func New(kind Kind, of *budget.Account) *Side {
	s := &Side{kind: kind, share: of.Share("the table of IDs")}
	s.links.share, s.rows.share, s.rows.mem, s.rows.held = s.share, s.share, kind.Mem, kind.Held
	var links *chains
	if kind.Rows {
		links = &s.links
	}
	secret := rand.Uint64() | 1
	s.keys = newTable(s.share, kind.Integers, links, secret)
	if kind.Integers {
		s.below = newTable(s.share, true, links, secret)
	}
	return s
}

// Reserve makes room for the keys of n IDs in an empty side if the account has it.
// Otherwise it does nothing: with duplicates the keys may fit all the same.
func (s *Side) Reserve(n int64) {
	_ = s.keys.reserve(uint64(n))
}

// AddKeys adds the keys of an ID batch to a side without rows. It is safe for
// concurrent use. The error wraps [fault.ErrMemory].
func (s *Side) AddKeys(batch *key.Batch) error {
	return s.fill(batch, nil, len(batch.Rows), 0, 1, blockKeys)
}

// AddKeysAt is AddKeys for the keys at the positions in keep.
func (s *Side) AddKeysAt(batch *key.Batch, keep []uint32) error {
	if len(keep) == 0 {
		return nil
	}
	return s.fill(batch, keep, len(keep), 0, 1, blockKeys)
}

// fill adds n keys, in blocks of the given size.
func (s *Side) fill(batch *key.Batch, keep []uint32, n int, row uint32, threads, block int) error {
	f, _ := s.fillers.Get().(*filler)
	if f == nil {
		f = new(filler)
	}
	defer s.fillers.Put(f)
	f.batch, f.threads = batch, threads
	f.values, _ = batch.Ints()
	for lo := 0; lo < n; lo += block {
		f.load(s.keys, s.below, keep, lo, min(lo+block, n), row)
		if err := f.fill(s.keys, f.items); err != nil {
			return err
		}
		if err := f.fill(s.below, f.negative); err != nil {
			return err
		}
	}
	return nil
}

// AddRows adds the rows of an ID batch, with and without a key. One goroutine calls
// it, in the IDs' order. The error wraps [fault.ErrMemory], or is one of package
// take.
func (s *Side) AddRows(rec arrow.Record, batch *key.Batch) error {
	return s.addTo(rec, batch, nil, len(batch.Rows), batch.Len)
}

// AddRowsAt is AddRows for the rows whose keys are at the ascending positions in
// keep.
func (s *Side) AddRowsAt(rec arrow.Record, batch *key.Batch, keep []uint32) error {
	if len(keep) == 0 {
		return nil
	}
	return s.addTo(rec, batch, keep, len(keep), len(keep))
}

func (s *Side) addTo(rec arrow.Record, batch *key.Batch, keep []uint32, n, rows int) error {
	first := s.links.rows
	if s.links.rows += uint64(rows); s.links.rows >= uint64(None) {
		return fmt.Errorf("%w: more than 2^32 IDs in a table", fault.ErrMemory)
	}
	if err := s.links.cover(); err != nil {
		return err
	}
	if err := s.fill(batch, keep, n, uint32(first), s.kind.Threads, 4*blockKeys); err != nil {
		return err
	}
	return s.rows.add(rec, batch, keep)
}

// Seal ends filling. The error wraps [fault.ErrMemory].
func (s *Side) Seal() error {
	if err := s.rows.flush(); err != nil {
		return err
	}
	if s.kind.Rows {
		if err := s.share.Take(int64(s.links.rows/64+1) * 8); err != nil { // for Unmatched
			return err
		}
	}
	if err := s.keys.seal(); err != nil || s.below == nil {
		return err
	}
	return s.below.seal()
}

// Find returns the positions in hits of keys that the side has, and their entries.
// It writes to the memory of members, which may be that of hits, and of entries.
func (s *Side) Find(k *key.Batch, hits, members, entries []uint32) (found, of []uint32) {
	members, entries = members[:0], entries[:0]
	for len(hits) > 0 {
		some := hits[:min(warmed, len(hits))]
		hits = hits[len(some):]
		if s.below != nil {
			members, entries = s.keys.findInts(s.below, k, some, members, entries)
		} else {
			members, entries = s.keys.findBytes(k, some, members, entries)
		}
	}
	return members, entries
}

// entry returns the table of an entry, and its number there.
func (s *Side) entry(e uint32) (*table, uint32) {
	if n := uint32(len(s.keys.words)); s.below != nil && e >= n {
		return s.below, e - n
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

// Matched returns the number of IDs added whose entry is marked. s may be nil.
func (s *Side) Matched() int64 {
	if s == nil {
		return 0
	}
	n := s.keys.matched()
	if s.below != nil {
		n += s.below.matched()
	}
	return n
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

// Times returns how many IDs have an entry's key. The side must not have rows.
func (s *Side) Times(entry uint32) int64 {
	t, e := s.entry(entry)
	return t.times(e)
}

// Unmatched calls fn with the ID rows that have no key, or one whose entry is not
// marked, in order: a record and numbers of its rows, once for each batch added
// that has such rows. So the calls do not depend on how rows are held.
func (s *Side) Unmatched(fn func(rec arrow.Record, rows []int) error) error {
	matched := make([]uint64, s.links.rows/64+1)
	for _, t := range []*table{s.keys, s.below} {
		if t == nil {
			continue
		}
		t.eachMarked(func(e uint32) {
			for r := t.first(e); r != None; r = t.next(e, r) {
				matched[r/64] |= 1 << (r % 64)
			}
		})
	}
	batches := append(s.rows.batches, s.rows.n)
	var rows []int
	for i, rec := range s.rows.records {
		start := s.rows.starts[i]
		for end := start + int(rec.NumRows()); batches[0] < end; batches = batches[1:] {
			rows = rows[:0]
			for n := batches[0]; n < batches[1]; n++ {
				if matched[n/64]>>(n%64)&1 == 0 {
					rows = append(rows, n-start)
				}
			}
			if len(rows) == 0 {
				continue
			}
			if err := fn(rec, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// Locate appends the places of ID rows to dst, for Column. Row -1 stands for NULLs.
func (s *Side) Locate(dst []take.Place, rows []int) []take.Place { return s.rows.locate(dst, rows) }

// Column returns column c, of type t, at the places of ID rows. The caller releases
// it. The error may wrap [take.ErrTooLarge].
func (s *Side) Column(c int, places []take.Place, t arrow.DataType) (arrow.Array, error) {
	return s.rows.column(c, places, t)
}

// WidestRow returns an upper bound on the bytes of any row.
func (s *Side) WidestRow() int64 { return s.rows.widest }

// RowBytes returns the approximate bytes of a row; at most WidestRow.
func (s *Side) RowBytes(row int) int64 {
	var one [1]take.Place
	p := s.rows.locate(one[:0], []int{row})[0]
	return RowBytes(s.rows.records[p.Chunk].Columns(), p.Row)
}

// HasRows reports whether the side holds rows, not only keys.
func (s *Side) HasRows() bool { return s.kind.Rows }

// Bytes returns the memory that the side takes.
func (s *Side) Bytes() int64 { return s.share.Bytes() }

// Release ends the use of the side, which may be nil, and of its memory.
func (s *Side) Release() {
	if s == nil {
		return
	}
	s.rows.release()
	s.keys, s.below, s.links = newTable(s.share, s.kind.Integers, nil, 1), nil, chains{}
	s.share.GiveAll()
}

// UpTo returns the positions below n, in dst's memory if that suffices.
func UpTo(dst []uint32, n int) []uint32 {
	for len(dst) < n {
		dst = append(dst, uint32(len(dst)))
	}
	return dst[:n]
}
