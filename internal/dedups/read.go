package dedups

import (
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Read reads the key and time columns of the pieces with several workers, and calls each with
// their rows, in the order of the input. Rows are valid until each returns.
func Read(ctx context.Context, pieces []source.Piece, of Columns, threads int, each func(source.Piece, *Rows) error) (err error) {
	ctx, release, err := source.MapPieces(ctx, pieces)
	if err != nil {
		return err
	}
	defer faults.Join(&err, release)
	if err := source.FindDeleted(ctx, pieces); err != nil {
		return err
	}
	columns := func(f *source.File) ([]int, error) {
		e, err := of.NewEncoder(f.Name(), f.Schema())
		if err != nil {
			return nil, err
		}
		return e.columns(), nil
	}
	way := tasks.NewFlight(tasks.InFlight(pieces), tasks.Workers(pieces, threads), func() int64 { return stepBytes + tasks.Need(pieces, columns) })
	newWork := func() (tasks.Work[grouped], error) {
		w := &reader{of: of, way: way, columns: columns}
		return w.read, nil
	}
	for r, err := range tasks.Map(ctx, tasks.Groups(pieces), way, newWork) {
		if err != nil {
			return err
		}
		p := source.Piece{File: pieces[r.Piece].File, Lo: r.Value.group, Hi: r.Value.group + 1}
		err := each(p, r.Value.Rows)
		r.Value.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// stepBytes estimates what Rows of one step take, and those that wait.
const stepBytes = 4 * source.StepRows * (4 + 8 + 8 + 8 + 24)

// grouped are rows of a row group.
type grouped struct {
	*Rows
	group int
}

// reader reads rows in one goroutine.
type reader struct {
	of      Columns
	way     tasks.Flight
	columns func(*source.File) ([]int, error)

	file *source.File // that enc belongs to
	cols []int
	enc  *Encoder // of the records' schema
}

func (w *reader) read(ctx context.Context, t tasks.Task, emit func(grouped) error) error {
	if w.file != t.File {
		var err error
		if w.cols, err = w.columns(t.File); err != nil {
			return err
		}
		w.file, w.enc = t.File, nil
	}
	var some []uint32
	if live, all := t.File.Live(t.Group); !all {
		some = live.List([]uint32{})
	}
	for rec, err := range source.ReadKeysOf(ctx, w.way.Table(t.File), t.Group, w.cols, some) {
		if err != nil {
			return err
		}
		if w.enc == nil {
			if w.enc, err = w.of.NewEncoder(t.File.Name(), rec.Schema()); err != nil {
				return err
			}
		}
		for lo := int64(0); lo < rec.NumRows(); lo += source.StepRows {
			rows := pool.Get().(*Rows)
			some := rec.NewSlice(lo, min(lo+source.StepRows, rec.NumRows()))
			err := w.enc.Encode(some, rows)
			some.Release()
			if err != nil {
				return source.InGroup(err, t.File, t.Group)
			}
			if err := emit(grouped{rows, t.Group}); err != nil {
				return err
			}
		}
	}
	return nil
}

// columns returns the top-level columns to read, ascending.
func (e *Encoder) columns() []int {
	cols := slices.Clone(e.keys.Columns())
	if e.times != nil {
		cols = append(cols, e.times.Columns()...)
	}
	slices.Sort(cols)
	return slices.Compact(cols)
}

// Selection has a bit for each row of some files that is not deleted: whether it is dropped. Adding is for one
// goroutine; afterwards it may be used concurrently.
type Selection struct {
	bits   []uint64
	rows   int64
	starts map[source.Piece]int64 // of row groups: the number of their first row
}

// NewSelection returns an empty selection, with room for a number of rows.
func NewSelection(rows int64) *Selection {
	return &Selection{bits: make([]uint64, 0, rows/64+1), starts: map[source.Piece]int64{}}
}

// Next makes room for rows of a row group that follow those before, and returns the number of
// the first.
func (s *Selection) Next(group source.Piece, rows int) (first int64) {
	if _, ok := s.starts[group]; !ok {
		s.starts[group] = s.rows
	}
	first = s.rows
	s.rows += int64(rows)
	for int64(len(s.bits))*64 < s.rows {
		s.bits = append(s.bits, 0)
	}
	return first
}

// Drop drops rows, which are counted from a first one.
func (s *Selection) Drop(first int64, rows ...int) {
	for _, row := range rows {
		at := first + int64(row)
		s.bits[at/64] |= 1 << (at % 64)
	}
}

// Dropped reports whether a row is dropped.
func (s *Selection) Dropped(row int64) bool { return s.bits[row/64]>>(row%64)&1 == 1 }

// Rows appends the rows lo to hi, exclusive, of a row group that are not dropped. See
// keyscan.Options.Rows.
func (s *Selection) Rows(f *source.File, group int, lo, hi int64, dst []uint32) []uint32 {
	at := s.starts[source.Piece{File: f, Lo: group, Hi: group + 1}]
	live, all := f.Live(group)
	if all {
		live = rows.Range(0, hi)
	}
	for _, r := range live.And(rows.Range(0, lo)) {
		at += r[1] - r[0]
	}
	dst = slices.Grow(dst, int(hi-lo))
	for _, r := range live.And(rows.Range(lo, hi)) {
		for row := r[0]; row < r[1]; row++ {
			if !s.Dropped(at) {
				dst = append(dst, uint32(row))
			}
			at++
		}
	}
	return dst
}
