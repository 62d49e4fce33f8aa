package join

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/arrow/util"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// idRows are the rows of IDs, in order, in several records.
type idRows struct {
	records []arrow.Record
	starts  []int // number of each record's first row
	n       int
	bytes   int64
}

// add appends rows of rec: those at the positions in keep of batch.Rows, or all
// if keep is nil.
func (r *idRows) add(mem memory.Allocator, rec arrow.Record, batch *keys.Batch, keep []uint32) error {
	kept := rec
	if keep == nil {
		kept.Retain()
	} else {
		rows := make([]int, len(keep))
		for i, k := range keep {
			rows[i] = int(batch.Rows[k])
		}
		var err error
		if kept, err = take.Record(mem, rec, rows); err != nil {
			return err
		}
	}
	r.records = append(r.records, kept)
	r.starts = append(r.starts, r.n)
	r.n += int(kept.NumRows())
	r.bytes += util.TotalRecordSize(kept)
	return nil
}

func (r *idRows) release() {
	for _, rec := range r.records {
		rec.Release()
	}
	*r = idRows{}
}

// record returns the number of the record that holds the row.
func (r *idRows) record(row int) int {
	lo, hi := 0, len(r.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; r.starts[mid] <= row {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// column returns column col, of type t, of the given ID rows; -1 gives NULL.
// They may stand in several records: the part from each is taken, the parts are
// put one behind another, and a second take restores the order. The caller
// releases the result. The error may wrap [take.ErrTooLarge].
func (s *idSide) column(col int, rows []int, t arrow.DataType) (arrow.Array, error) {
	mem, r := s.kind.mem, &s.rows
	if len(r.records) == 1 {
		return take.Array(mem, r.records[0].Column(col), rows)
	}
	perRecord := map[int][]int{}
	order := []int{}
	at := make([][2]int, len(rows)) // record, position among the rows taken of it
	for i, row := range rows {
		if row < 0 {
			at[i] = [2]int{-1, 0}
			continue
		}
		k := r.record(row)
		if _, ok := perRecord[k]; !ok {
			order = append(order, k)
		}
		at[i] = [2]int{k, len(perRecord[k])}
		perRecord[k] = append(perRecord[k], row-r.starts[k])
	}
	if len(order) == 0 {
		return nulls(mem, t, len(rows))
	}
	parts := columns{mem: mem}
	defer parts.release()
	start, n := map[int]int{}, 0
	for _, k := range order {
		start[k] = n
		n += len(perRecord[k])
		parts.take(r.records[k].Column(col), perRecord[k])
	}
	if parts.err != nil {
		return nil, parts.err
	}
	whole, err := concatenate(parts.cols, mem)
	if err != nil {
		return nil, err
	}
	defer whole.Release()
	back := make([]int, len(rows))
	for i, a := range at {
		if back[i] = -1; a[0] >= 0 {
			back[i] = start[a[0]] + a[1]
		}
	}
	return take.Array(mem, whole, back)
}

// concatenate joins arrays, whose sizes together were not checked yet.
func concatenate(arrs []arrow.Array, mem memory.Allocator) (a arrow.Array, err error) {
	var total int
	for _, a := range arrs {
		for _, b := range a.Data().Buffers() {
			if b != nil {
				total += b.Len()
			}
		}
	}
	if total > 1<<31-1 {
		return nil, take.ErrTooLarge
	}
	return array.Concatenate(arrs, mem)
}

// nulls returns an array of n NULLs.
func nulls(mem memory.Allocator, t arrow.DataType, n int) (arrow.Array, error) {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = -1
	}
	b := array.NewBuilder(mem, t)
	defer b.Release()
	empty := b.NewArray()
	defer empty.Release()
	return take.Array(mem, empty, rows)
}
