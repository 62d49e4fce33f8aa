package table

import (
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/arrow/util"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// RecordForm is the form of rows as Arrow records.
type RecordForm struct {
	Schema  *arrow.Schema // of batches
	Held    []int         // columns of batches that [Records] holds; nil: all
	Encoder *keys.Encoder // makes keys of batches that were parsed
	Mem     memory.Allocator
}

// NewRows implements [Form].
func (f *RecordForm) NewRows(of *budget.Share) Rows { return &Records{share: of, form: f} }

// Batch returns a record as a batch. It refers to both the record and the keys.
func (f *RecordForm) Batch(rec arrow.Record, keys *keys.Batch) Batch {
	rec.Retain()
	return &recordBatch{form: f, rec: rec, keys: keys}
}

// Parse implements [Form].
func (f *RecordForm) Parse(src []byte, at int) (Batch, error) {
	rec, err := spill.Record(f.Schema, src, at)
	if err != nil {
		return nil, err
	}
	return &recordBatch{form: f, rec: rec}, nil
}

// recordBatch is a batch of RecordForm.
type recordBatch struct {
	form *RecordForm
	rec  arrow.Record
	keys *keys.Batch // nil: not yet made
}

func (b *recordBatch) Keys() (*keys.Batch, error) {
	if b.keys != nil {
		return b.keys, nil
	}
	b.keys = new(keys.Batch)
	return b.keys, b.form.Encoder.Encode(b.rec, b.keys)
}

func (b *recordBatch) Bytes() int64 { return util.TotalRecordSize(b.rec) }

func (b *recordBatch) Append(dst []byte, rows []uint32) ([]byte, error) {
	if rows == nil {
		return spill.AppendRecord(dst, b.rec)
	}
	some, err := take.Record(b.form.Mem, b.rec, ints(rows))
	if err != nil {
		return nil, err
	}
	defer some.Release()
	return spill.AppendRecord(dst, some)
}

func (b *recordBatch) Release() { b.rec.Release() }

// HeldOf returns the columns of a batch that would be held. The caller releases the
// record.
func (f *RecordForm) HeldOf(b Batch) arrow.Record { return project(b.(*recordBatch).rec, f.Held) }

func ints(rows []uint32) []int {
	out := make([]int, len(rows))
	for i, row := range rows {
		out[i] = int(row)
	}
	return out
}

// Records holds rows as records. Many small records are merged into few, because
// the cost per record would dominate.
type Records struct {
	share   *budget.Share
	form    *RecordForm
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

// Add implements [Rows]. The error may be one of package take.
func (r *Records) Add(b Batch, rows []uint32) error {
	rec, err := r.own(b.(*recordBatch).rec, rows)
	if err != nil {
		return err
	}
	bytes := recordBytes(rec)
	if err := r.share.Take(bytes); err != nil {
		rec.Release()
		return err
	}
	r.batches = append(r.batches, r.n+r.rows)
	if rec.NumRows() >= wholeRows/2 || bytes >= wholeBytes/2 {
		if err := r.Seal(); err != nil {
			rec.Release()
			return err
		}
		r.append(rec)
		return nil
	}
	r.small, r.rows, r.bytes = append(r.small, rec), r.rows+int(rec.NumRows()), r.bytes+bytes
	if r.rows >= wholeRows || r.bytes >= wholeBytes {
		return r.Seal()
	}
	return nil
}

// own returns the rows, with the columns that are held, as a record that refers to
// no other rows: columns of rec itself, or copies. The caller releases it.
func (r *Records) own(rec arrow.Record, rows []uint32) (arrow.Record, error) {
	rec = project(rec, r.form.Held)
	defer rec.Release()
	if rows != nil {
		return take.Record(r.form.Mem, rec, ints(rows))
	}
	if recordBytes(rec) <= 2*neededBytes(rec)+4096 {
		rec.Retain()
		return rec, nil
	}
	// rec is part of a larger record, all of which it would keep alive.
	return take.Record(r.form.Mem, rec, ints(UpTo(nil, int(rec.NumRows()))))
}

func (r *Records) append(rec arrow.Record) {
	r.records, r.starts = append(r.records, rec), append(r.starts, r.n)
	r.n += int(rec.NumRows())
	r.widest = max(r.widest, WidestRow(rec.Columns()))
}

// Seal implements [Rows]: it merges the small records into one.
func (r *Records) Seal() error {
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
func (r *Records) merge() (arrow.Record, error) {
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
		col, err := take.Gather(r.form.Mem, columnOf(r.small, c), places)
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

// Locate appends the places of rows to dst, for Column. Row -1 stands for NULLs.
func (r *Records) Locate(dst []take.Place, rows []int) []take.Place {
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

// Column returns column c, of type t, at the places of rows. The caller releases
// it. The error may wrap [take.ErrTooLarge].
func (r *Records) Column(c int, places []take.Place, t arrow.DataType) (arrow.Array, error) {
	if len(r.records) == 0 {
		return Nulls(r.form.Mem, t, len(places))
	}
	return take.Gather(r.form.Mem, columnOf(r.records, c), places)
}

// WidestRow returns an upper bound on the bytes of any row.
func (r *Records) WidestRow() int64 { return r.widest }

// RowBytes returns the approximate bytes of a row; at most WidestRow.
func (r *Records) RowBytes(row int) int64 {
	var one [1]take.Place
	p := r.Locate(one[:0], []int{row})[0]
	return RowBytes(r.records[p.Chunk].Columns(), p.Row)
}

// Unmatched calls fn with the rows that are not in a set, see [Side.MatchedRows], in
// order: a record and numbers of its rows, once for each batch added that has such
// rows. So the calls do not depend on how rows are held.
func (r *Records) Unmatched(matched []uint64, fn func(rec arrow.Record, rows []int) error) error {
	batches := append(r.batches, r.n)
	var rows []int
	for i, rec := range r.records {
		start := r.starts[i]
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

// Release implements [Rows].
func (r *Records) Release() {
	for _, rec := range append(r.records, r.small...) {
		r.share.Give(recordBytes(rec))
		rec.Release()
	}
	*r = Records{share: r.share, form: r.form}
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

// project returns the columns of a record at the given positions; nil: all. The
// caller releases it.
func project(rec arrow.Record, at []int) arrow.Record {
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

// FieldsAt returns the fields at the given positions.
func FieldsAt(fields []arrow.Field, at []int) []arrow.Field {
	out := make([]arrow.Field, len(at))
	for i, c := range at {
		out[i] = fields[c]
	}
	return out
}
