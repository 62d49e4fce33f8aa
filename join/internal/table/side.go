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

// idSide holds IDs by their keys: all of a join's, or those that some log row
// may have. Where the answer has columns of the IDs, it holds their rows too.
//
// It is filled with keys or with rows, then sealed. From then on find, mark,
// first and next may be called from many goroutines. What it takes in memory is
// on an account, before it is allocated. An entry stands for one key, a row for
// one ID row, numbered from 0 as they were added.
type Side struct {
	kind  Kind
	share *budget.Share

	keys    *table
	below   *table // of integers those below zero, in two's complement; nil for other keys
	rows    idRows
	links   chains
	fillers sync.Pool
}

// sideKind is what a side is made for.
type Kind struct {
	Integers bool  // the key is one column of integers
	Rows     bool  // the IDs' rows are wanted
	Held     []int // columns of the ID batches that the rows have; nil: all
	Threads  int   // that add rows, or, between the last and seal, move them; 0: GOMAXPROCS
	Mem      memory.Allocator
}

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

// Reserve makes room for the keys of n IDs in an empty side, if the account has
// it: where it has not, duplicates may make them fit all the same.
func (s *Side) Reserve(n int64) {
	_ = s.keys.reserve(uint64(n))
}

// AddKeys puts the keys of an ID batch into the side, where no rows are wanted.
// It may be called from many goroutines. The error wraps [fault.ErrMemory].
func (s *Side) AddKeys(batch *key.Batch) error {
	return s.fill(batch, nil, len(batch.Rows), 0, 1, blockKeys)
}

// addSomeKeys is addKeys of those at the positions in keep.
func (s *Side) AddKeysAt(batch *key.Batch, keep []uint32) error {
	if len(keep) == 0 {
		return nil
	}
	return s.fill(batch, keep, len(keep), 0, 1, blockKeys)
}

// fill adds n keys, in blocks, with several threads.
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

// AddRows puts the rows of an ID batch into the side, with and without a key.
// It is called by one goroutine, in the IDs' order. The error wraps
// [fault.ErrMemory], or is one of package take.
func (s *Side) AddRows(rec arrow.Record, batch *key.Batch) error {
	return s.addTo(rec, batch, nil, len(batch.Rows), batch.Len)
}

// addSomeRows is addRows of those at the ascending positions in keep of
// batch.Rows.
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

// Seal is called between the last add and the first find. The error wraps
// [fault.ErrMemory].
func (s *Side) Seal() error {
	if err := s.rows.flush(); err != nil {
		return err
	}
	if s.kind.Rows {
		if err := s.share.Take(int64(s.links.rows/64+1) * 8); err != nil { // what lone needs
			return err
		}
	}
	if err := s.keys.seal(); err != nil || s.below == nil {
		return err
	}
	return s.below.seal()
}

// Find looks up the keys at the positions in hits, and returns the positions of
// those that the side has, in members, and their entries. It writes to the
// memory of members, which may be that of hits, and of entries.
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

// entry returns the table of an entry, and what the entry is there.
func (s *Side) entry(e uint32) (*table, uint32) {
	if n := uint32(len(s.keys.words)); s.below != nil && e >= n {
		return s.below, e - n
	}
	return s.keys, e
}

// Mark notes that a log row has the entry's key.
func (s *Side) Mark(entry uint32) {
	t, e := s.entry(entry)
	t.mark(e)
}

// Marked reports whether mark was called for the entry, as far as this
// goroutine can know.
func (s *Side) Marked(entry uint32) bool {
	t, e := s.entry(entry)
	return t.marked(e)
}

// Matched returns the number of IDs that were added whose entry is marked.
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

// First returns the first row of an entry, where rows are wanted, and next the
// one behind a row, or none.
func (s *Side) First(entry uint32) uint32 {
	t, e := s.entry(entry)
	return t.first(e)
}

func (s *Side) Next(entry, row uint32) uint32 {
	t, e := s.entry(entry)
	return t.next(e, row)
}

// Times returns how many IDs have an entry's key, where rows are not wanted.
func (s *Side) Times(entry uint32) int64 {
	t, e := s.entry(entry)
	return t.times(e)
}

// lone calls fn with the ID rows that have no key, or one whose entry is not
// marked, in order: with a record and numbers of its rows, once for
// each batch that was added and has such rows, so that what is made of them does
// not depend on how they are held.
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

// Locate appends the places of ID rows to dst, for column; -1 is the place of
// none, where NULL stands.
func (s *Side) Locate(dst []take.Place, rows []int) []take.Place { return s.rows.locate(dst, rows) }

// Column returns column c, of type t, at the places of ID rows. The caller
// releases it. The error may wrap [take.ErrTooLarge].
func (s *Side) Column(c int, places []take.Place, t arrow.DataType) (arrow.Array, error) {
	return s.rows.column(c, places, t)
}

// WidestRow returns an upper bound on the bytes of any one row.
func (s *Side) WidestRow() int64 { return s.rows.widest }

// RowBytes returns about the bytes of a row; at most widestRow.
func (s *Side) RowBytes(row int) int64 {
	var one [1]take.Place
	p := s.rows.locate(one[:0], []int{row})[0]
	return RowBytes(s.rows.records[p.Chunk].Columns(), p.Row)
}

// HasRows reports whether the side holds rows, and not only keys.
func (s *Side) HasRows() bool { return s.kind.Rows }

// Bytes returns what the side takes in memory.
func (s *Side) Bytes() int64 { return s.share.Bytes() }

// Release ends the side, which may be nil, and what it has on the account.
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
