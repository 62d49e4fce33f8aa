package join

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/util"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// idSide is the ID set as the join holds it: a table by key, and, where the
// answer has the IDs' columns, their rows.
type idSide struct {
	table   *table
	ints    *intSet        // instead of the table, where integers and no rows are wanted
	records []arrow.Record // rows as numbered in the table
	starts  []int          // number of each record's first row
	whole   bool           // all IDs are here
	bytes   int64
	total   int64 // ID rows with a key
}

func (s *idSide) release() {
	if s == nil {
		return
	}
	for _, r := range s.records {
		r.Release()
	}
	s.records = nil
}

// matched returns the number of ID rows whose key a log row has.
func (s *idSide) matched() int64 {
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

// addKeys puts the keys of an ID batch into the side, where no rows are wanted.
func (s *idSide) addKeys(batch *keys.Batch, opts *Options) error {
	s.total += int64(len(batch.Rows))
	if values, signed, ok := batch.Ints(); ok {
		if !s.ints.add(values, signed, opts.Memory) {
			return s.tooLarge(opts)
		}
		return s.check(s.ints.bytes(), opts)
	}
	if len(s.table.next)+len(batch.Rows) >= int(none) {
		return fmt.Errorf("%w: more than 2^32 IDs in a table", ErrMemory)
	}
	var key []byte
	for i := range batch.Rows {
		key = batch.Append(key[:0], i)
		s.table.addRow(s.table.entry(batch.HashAt(tableHash, i), key))
	}
	return s.check(s.table.bytes(), opts)
}

// check returns an error if held bytes are more than the budget allows.
func (s *idSide) check(held int64, opts *Options) error {
	if opts.Memory > 0 && held > opts.Memory {
		return s.tooLarge(opts)
	}
	return nil
}

func (s *idSide) tooLarge(opts *Options) error {
	return fmt.Errorf("%w of %d bytes: the table of IDs takes more (raise --memory)", ErrMemory, opts.Memory)
}

// add puts rows of an ID batch into the side: those at the positions in keep
// of batch.Rows, or, if keep is nil, all, with and without a key.
func (s *idSide) add(rec arrow.Record, batch *keys.Batch, keep []int, columns bool, opts *Options) error {
	if keep != nil && len(keep) == 0 {
		return nil
	}
	if len(s.table.next)+int(rec.NumRows()) >= int(none) {
		return fmt.Errorf("%w: more than 2^32 IDs in a table", ErrMemory)
	}
	start := len(s.table.next)
	var key []byte
	put := func(i int) {
		key = batch.Append(key[:0], i)
		s.table.addRow(s.table.entry(batch.HashAt(tableHash, i), key))
	}
	rows := make([]int, 0, len(keep))
	if keep != nil {
		for _, i := range keep {
			put(i)
			rows = append(rows, int(batch.Rows[i]))
		}
	} else {
		i := 0
		for row := range batch.Len {
			if i < len(batch.Rows) && int(batch.Rows[i]) == row {
				put(i)
				i++
			} else {
				s.table.addRow(none)
			}
		}
	}
	if columns {
		kept := rec
		if keep != nil {
			var err error
			if kept, err = take.Record(opts.Mem, rec, rows); err != nil {
				return err
			}
		} else {
			kept.Retain()
		}
		s.records = append(s.records, kept)
		s.starts = append(s.starts, start)
		s.bytes += util.TotalRecordSize(kept)
	}
	return s.check(s.bytes+s.table.bytes(), opts)
}
