package table

import (
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join/internal/budget"
	"github.com/bloomjoin/bloomjoin/key"
)

// idRows holds rows of IDs, in order, as records. Many small records are merged
// into few, because the cost per record would dominate.
type idRows struct {
	share   *budget.Share
	mem     memory.Allocator
	held    []int // columns of the input that are kept; nil: all
	records []arrow.Record
	starts  []int // number of each record's first row
	n       int
	batches []int // number of the first row of each batch added
	widest  int64 // bound on the bytes of a row in records

	small []arrow.Record // the rows that follow those in records
	rows  int            // in small
	bytes int64          // of small
}

const (
	wholeRows  = 1 << 16 // of a merged record, or up to half as many more
	wholeBytes = 8 << 20 // of a merged record, likewise, so that no offset overflows
)

// add appends rows of rec: those at the positions in keep of batch.Rows, or all if
// keep is nil. The error wraps [fault.ErrMemory], or is one of package take.
func (r *idRows) add(rec arrow.Record, batch *key.Batch, keep []uint32) (err error) {
	if rec, err = r.own(rec, batch, keep); err != nil {
		return err
	}
	bytes := recordBytes(rec)
	if err := r.share.Take(bytes); err != nil {
		rec.Release()
		return err
	}
	r.batches = append(r.batches, r.n+r.rows)
	if rec.NumRows() >= wholeRows/2 || bytes >= wholeBytes/2 {
		if err := r.flush(); err != nil {
			rec.Release()
			return err
		}
		r.append(rec)
		return nil
	}
	r.small, r.rows, r.bytes = append(r.small, rec), r.rows+int(rec.NumRows()), r.bytes+bytes
	if r.rows >= wholeRows || r.bytes >= wholeBytes {
		return r.flush()
	}
	return nil
}

// own returns the rows, with the columns that are kept, as a record that refers to
// no other rows: columns of rec itself, or copies. The caller releases it.
func (r *idRows) own(rec arrow.Record, batch *key.Batch, keep []uint32) (arrow.Record, error) {
	rec = Project(rec, r.held)
	defer rec.Release()
	if keep == nil && recordBytes(rec) <= 2*neededBytes(rec)+4096 {
		rec.Retain()
		return rec, nil
	}
	rows := make([]int, 0, batch.Len)
	if keep == nil { // part of a larger record, all of which it would keep alive
		for i := range batch.Len {
			rows = append(rows, i)
		}
	}
	for _, k := range keep {
		rows = append(rows, int(batch.Rows[k]))
	}
	return take.Record(r.mem, rec, rows)
}

func (r *idRows) append(rec arrow.Record) {
	r.records, r.starts = append(r.records, rec), append(r.starts, r.n)
	r.n += int(rec.NumRows())
	r.widest = max(r.widest, WidestRow(rec.Columns()))
}

// flush merges the small records into one.
func (r *idRows) flush() error {
	if len(r.small) < 2 || r.share.Take(r.bytes) != nil { // no room for both: keep them as they are
		for _, rec := range r.small {
			r.append(rec)
		}
	} else {
		rec, err := r.merge()
		if err != nil {
			return err
		}
		for _, rec := range r.small {
			rec.Release()
		}
		// The small records, counted twice so far, are replaced by the merged one.
		r.share.Give(2*r.bytes - recordBytes(rec))
		r.append(rec)
	}
	clear(r.small)
	r.small, r.rows, r.bytes = r.small[:0], 0, 0
	return nil
}

// merge returns the rows of the small records as one, which the caller releases.
func (r *idRows) merge() (arrow.Record, error) {
	places := make([]take.Place, 0, r.rows)
	for i, rec := range r.small {
		for row := range int(rec.NumRows()) {
			places = append(places, take.Place{Chunk: int32(i), Row: row})
		}
	}
	var cols []arrow.Array
	defer func() {
		for _, col := range cols {
			col.Release()
		}
	}()
	for c := range int(r.small[0].NumCols()) {
		col, err := take.Gather(r.mem, columnOf(r.small, c), places)
		if err != nil {
			return nil, err
		}
		cols = append(cols, col)
	}
	return array.NewRecord(r.small[0].Schema(), cols, int64(len(places))), nil
}

// columnOf returns column c of each record.
func columnOf(records []arrow.Record, c int) []arrow.Array {
	chunks := make([]arrow.Array, len(records))
	for i, rec := range records {
		chunks[i] = rec.Column(c)
	}
	return chunks
}

// locate appends the places of ID rows to dst; the place of row -1 is nowhere.
func (r *idRows) locate(dst []take.Place, rows []int) []take.Place {
	for _, row := range rows {
		if row < 0 {
			dst = append(dst, take.Place{Chunk: -1})
			continue
		}
		k := row * len(r.records) / r.n // records are of about one size
		if row < r.starts[k] || k+1 < len(r.starts) && row >= r.starts[k+1] {
			k = sort.SearchInts(r.starts, row+1) - 1
		}
		dst = append(dst, take.Place{Chunk: int32(k), Row: row - r.starts[k]})
	}
	return dst
}

// column returns column c, of type t, at the places of rows. The caller releases
// it. The error may wrap [take.ErrTooLarge].
func (r *idRows) column(c int, places []take.Place, t arrow.DataType) (arrow.Array, error) {
	if len(r.records) == 0 {
		return Nulls(r.mem, t, len(places))
	}
	return take.Gather(r.mem, columnOf(r.records, c), places)
}

// release releases all rows.
func (r *idRows) release() {
	for _, rec := range append(r.records, r.small...) {
		r.share.Give(recordBytes(rec))
		rec.Release()
	}
	*r = idRows{share: r.share, mem: r.mem, held: r.held}
}

// Nulls returns an array of n NULLs of type t. The caller releases it.
func Nulls(mem memory.Allocator, t arrow.DataType, n int) (arrow.Array, error) {
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

// Project returns the columns of a record at the given positions; nil: all. The
// caller releases it.
func Project(rec arrow.Record, at []int) arrow.Record {
	if at == nil {
		rec.Retain()
		return rec
	}
	cols := make([]arrow.Array, len(at))
	for i, c := range at {
		cols[i] = rec.Column(c)
	}
	return array.NewRecord(arrow.NewSchema(FieldsAt(rec.Schema().Fields(), at), nil), cols, rec.NumRows())
}

func FieldsAt(fields []arrow.Field, at []int) []arrow.Field {
	out := make([]arrow.Field, len(at))
	for i, c := range at {
		out[i] = fields[c]
	}
	return out
}
