package join

import (
	"fmt"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// idSide holds IDs by their keys: all of a join's, or those that some log row
// may have. Where the answer has columns of the IDs, it holds their rows too.
//
// It is filled with keys or with rows, then sealed. From then on find, mark,
// first and next may be called from many goroutines. What it takes in memory is
// on an account. An entry stands for one key, a row for one ID row, numbered
// from 0 as they were added.
type idSide struct {
	kind  sideKind
	share *share
	mu    sync.Mutex // while it is filled

	table *table
	ints  *intSet // instead of the table, where integers and no rows are wanted
	rows  idRows
}

// sideKind is what a side is made for.
type sideKind struct {
	integers bool // the key is one column of integers
	columns  bool // the IDs' rows are wanted
	threads  int  // that fill it; 0: GOMAXPROCS
	mem      memory.Allocator
}

func newIDSide(kind sideKind, of *account) *idSide {
	s := &idSide{kind: kind, share: of.share("the table of IDs")}
	if kind.integers && !kind.columns {
		s.ints = new(intSet)
	} else {
		s.table = newTable()
	}
	return s
}

// reserve makes room for n IDs, if the account has it: where it has not,
// duplicates may make them fit all the same.
func (s *idSide) reserve(n int64) {
	if s.ints == nil || s.share.of.most > 0 && n > s.share.of.most/16 {
		return
	}
	if n := s.ints.natural.growth(uint64(n)); n > 0 {
		s.ints.natural.resize(n)
	}
}

// addKeys puts the keys of an ID batch into the side, where no rows are wanted.
// It may be called from many goroutines. The error wraps [ErrMemory].
func (s *idSide) addKeys(batch *keys.Batch) error { return s.add(batch, nil) }

// addSomeKeys is addKeys of those at the positions in keep.
func (s *idSide) addSomeKeys(batch *keys.Batch, keep []uint32) error {
	if len(keep) == 0 {
		return nil
	}
	return s.add(batch, keep)
}

// add adds the keys at the positions in keep, or, if it is nil, all.
func (s *idSide) add(batch *keys.Batch, keep []uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ints != nil {
		values, signed, _ := batch.Ints()
		if keep != nil {
			kept := make([]uint64, len(keep))
			for i, k := range keep {
				kept[i] = values[k]
			}
			values = kept
		}
		most := int64(0)
		if m := s.share.of.most; m > 0 {
			most = max(m-s.share.of.held.Load()+s.share.bytes(), 1)
		}
		if !s.ints.add(values, signed, most) {
			return s.share.take(most + 1) // which is too much, whatever the set holds by now
		}
		return s.count()
	}
	if len(s.table.next)+len(batch.Rows) >= int(none) {
		return fmt.Errorf("%w: more than 2^32 IDs in a table", ErrMemory)
	}
	for i := range positions(batch, keep) {
		s.put(batch, i)
	}
	return s.count()
}

// positions yields those in keep, or all if it is nil.
func positions(batch *keys.Batch, keep []uint32) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if keep == nil {
			for i := range batch.Rows {
				if !yield(i) {
					return
				}
			}
			return
		}
		for _, i := range keep {
			if !yield(int(i)) {
				return
			}
		}
	}
}

func (s *idSide) put(batch *keys.Batch, i int) {
	key := batch.Append(nil, i)
	s.table.addRow(s.table.entry(batch.HashAt(tableHash, i), key))
}

// addRows puts the rows of an ID batch into the side, with and without a key.
// It is called by one goroutine, in the IDs' order. The error wraps
// [ErrMemory], or is one of package take.
func (s *idSide) addRows(rec arrow.Record, batch *keys.Batch) error { return s.addTo(rec, batch, nil) }

// addSomeRows is addRows of those at the ascending positions in keep of
// batch.Rows.
func (s *idSide) addSomeRows(rec arrow.Record, batch *keys.Batch, keep []uint32) error {
	if len(keep) == 0 {
		return nil
	}
	return s.addTo(rec, batch, keep)
}

// addTo adds the rows at the positions in keep, or, if it is nil, all.
func (s *idSide) addTo(rec arrow.Record, batch *keys.Batch, keep []uint32) error {
	if len(s.table.next)+batch.Len >= int(none) {
		return fmt.Errorf("%w: more than 2^32 IDs in a table", ErrMemory)
	}
	at := 0
	if keep == nil {
		for row := range batch.Len {
			if at < len(batch.Rows) && int(batch.Rows[at]) == row {
				s.put(batch, at)
				at++
			} else {
				s.table.addRow(none)
			}
		}
	} else {
		for _, i := range keep {
			s.put(batch, int(i))
		}
	}
	if err := s.rows.add(s.kind.mem, rec, batch, keep); err != nil {
		return err
	}
	return s.count()
}

// count brings the account up to what the side takes.
func (s *idSide) count() error {
	held := s.rows.bytes
	if s.ints != nil {
		held += s.ints.bytes()
	} else {
		held += s.table.bytes()
	}
	if more := held - s.share.bytes(); more > 0 {
		return s.share.take(more)
	}
	s.share.give(s.share.bytes() - held)
	return nil
}

// seal is called once, between the last add and the first find. The error
// wraps [ErrMemory].
func (s *idSide) seal() error {
	if s.ints == nil {
		return nil
	}
	s.ints.natural.seal()
	s.ints.negative.seal()
	return s.count()
}

// find looks up the keys at the positions in hits, and returns the positions of
// those that the side has, in members, and their entries. It writes to the
// memory of members, which may be that of hits, and of entries.
func (s *idSide) find(k *keys.Batch, hits, members, entries []uint32) (found, of []uint32) {
	members, entries = members[:0], entries[:0]
	if s.ints != nil {
		return s.ints.find(k, hits, members, entries)
	}
	var key []byte
	for _, h := range hits {
		key = k.Append(key[:0], int(h))
		if e := s.table.find(k.HashAt(tableHash, int(h)), key); e != none {
			members, entries = append(members, h), append(entries, e)
		}
	}
	return members, entries
}

// mark notes that a log row has the entry's key.
func (s *idSide) mark(entry uint32) {
	if s.ints != nil {
		s.ints.mark(entry)
		return
	}
	s.table.mark(entry)
}

// marked reports whether mark was called for the entry, as far as this
// goroutine can know.
func (s *idSide) marked(entry uint32) bool {
	if s.ints != nil {
		return s.ints.marked(entry)
	}
	return s.table.marked(entry)
}

// matched returns the number of IDs that were added whose entry is marked.
func (s *idSide) matched() int64 {
	if s == nil {
		return 0
	}
	if s.ints != nil {
		return s.ints.matched()
	}
	var n int64
	for e := range s.table.count {
		if s.table.marked(uint32(e)) {
			n += int64(s.table.count[e])
		}
	}
	return n
}

// first returns the first row of an entry, where rows are wanted, and next the
// one behind a row, or none.
func (s *idSide) first(entry uint32) uint32 { return s.table.first[entry] }

func (s *idSide) next(_, row uint32) uint32 { return s.table.next[row] }

// lone calls fn with each record of ID rows, in order, and those of its rows
// that have no key, or one whose entry is not marked.
func (s *idSide) lone(fn func(rec arrow.Record, rows []int) error) error {
	marked := make([]bool, len(s.table.next))
	for e := range s.table.first {
		if !s.table.marked(uint32(e)) {
			continue
		}
		for r := s.table.first[e]; r != none; r = s.table.next[r] {
			marked[r] = true
		}
	}
	for i, rec := range s.rows.records {
		var rows []int
		for r := range int(rec.NumRows()) {
			if !marked[s.rows.starts[i]+r] {
				rows = append(rows, r)
			}
		}
		if len(rows) == 0 {
			continue
		}
		if err := fn(rec, rows); err != nil {
			return err
		}
	}
	return nil
}

// release ends the side, which may be nil, and what it has on the account.
func (s *idSide) release() {
	if s == nil {
		return
	}
	s.rows.release()
	s.table, s.ints = newTable(), nil
	s.share.giveAll()
}
