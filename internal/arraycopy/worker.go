package arraycopy

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Worker makes records of the rows that pass, in one goroutine.
type Worker struct {
	Scanner *keyscan.Scanner
	Way     tasks.Flight
	Checks  []keyscan.Check
	further keyscan.Work // transforms the records; nil: leaves them unchanged

	keys     *keyscan.Finder // for a Parquet file
	keysFile *source.File
	Buf      *parquet.Buffers
	selected []uint32

	file    *source.File          // that matches belong to
	matches []*keyscan.RecordKeys // one per match
	counts  keyscan.MatchCounts
	found   []uint32
	rows    []int
}

// group scans a row group. In Parquet files it reads the keys first and then the
// rows that pass, in others all rows.
func (w *Worker) group(ctx context.Context, p source.Piece, group int, emit func(arrow.Record) error) error {
	s := w.Scanner
	emit = w.transformed(p, group, emit)
	if p.File.Parquet() == nil {
		work := func(p source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
			return w.work(p, group, rec, emit)
		}
		return readGroup(ctx, p, group, s.ReadColumns, w.Way, work, w.over, emit)
	}
	if w.keysFile != p.File {
		k, err := keyscan.NewFinder(s, p.File, w.Buf, w.Checks)
		if err != nil {
			return err
		}
		w.keys, w.keysFile = k, p.File
	}
	columns, err := s.Options.ColumnsOf(p.File)
	if err != nil {
		return err
	}
	for r := range tasks.RangesIn(p.File.Parquet().File(), group) {
		rows, err := w.keys.Scan(ctx, r, w.selected[:0])
		if err != nil {
			return err
		}
		w.selected = rows
		for rec, err := range w.Way.Table(p.File).(*arrowparquet.Parquet).ReadRows(ctx, group, columns, rows) {
			if err != nil {
				return err
			}
			rec.Retain()
			if err := emit(rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// transformed returns a function that transforms records before it emits them.
func (w *Worker) transformed(p source.Piece, group int, emit func(arrow.Record) error) func(arrow.Record) error {
	if w.further == nil {
		return emit
	}
	return func(rec arrow.Record) error {
		defer rec.Release()
		return source.InGroup(w.further(p, rec, emit), p.File, group)
	}
}

// over counts stored rows that were read over.
func (w *Worker) over(rows int64) {
	w.Scanner.Stats.RowsIn.Add(rows)
	if w.Scanner.Options.Progress != nil {
		w.Scanner.Options.Progress(rows)
	}
}

func (w *Worker) work(p source.Piece, group int, rec arrow.Record, emit func(arrow.Record) error) error {
	if err := w.Enter(p.File); err != nil {
		return err
	}
	rows, err := w.Pass(rec, group)
	if err != nil {
		return err
	}
	st := w.Scanner.Stats
	st.RowsWhere.Add(rec.NumRows())
	st.RowsOut.Add(int64(len(rows)))
	if len(rows) == 0 || w.Scanner.Counted {
		return nil
	}
	columns, err := w.Scanner.Options.ColumnsOf(p.File)
	if err != nil {
		return err
	}
	if n := len(columns); columns != nil {
		rec = array.NewRecord(w.Scanner.Options.SchemaWith(p.File, columns), rec.Columns()[:n], rec.NumRows())
		defer rec.Release()
	}
	kept, err := take.Record(w.Scanner.Options.Mem, rec, rows)
	if err != nil {
		return fmt.Errorf("%s: %w", p.File.Name(), err)
	}
	return emit(kept)
}

// Enter prepares for the batches of a file.
func (w *Worker) Enter(f *source.File) error {
	if w.file == f {
		return nil
	}
	w.file, w.matches = f, w.matches[:0]
	for i, m := range w.Scanner.Match {
		columns, o, err := m.Encoding()
		if err != nil {
			return err
		}
		if w.Checks[i] == nil {
			w.Checks[i] = (*keyscan.Keys).Probe
		}
		keys := &keyscan.Keys{Batch: new(keys.Batch), Filter: m.Members()}
		w.matches = append(w.matches, &keyscan.RecordKeys{File: f, Columns: columns, Options: o, Filtered: true, Keys: keys})
	}
	return nil
}

// Pass returns the rows to keep, ascending.
func (w *Worker) Pass(rec arrow.Record, group int) ([]int, error) {
	w.counts.Begin(int(rec.NumRows()))
	for i, m := range w.matches {
		m.Keys.Piece = source.Piece{File: w.file, Lo: group, Hi: group + 1}
		err := m.Step(rec, keyscan.Position{}, func() error {
			members, err := w.Checks[i](m.Keys)
			if err != nil {
				return err
			}
			if i == 0 {
				w.Scanner.Stats.AddNulls(w.file, group, int64(m.Keys.Batch.Nulls()))
			}
			w.found = w.found[:0]
			for _, h := range members {
				w.found = append(w.found, m.Keys.Batch.Rows[h])
			}
			w.counts.Add(w.found, 0, w.Scanner.Match[i].NoMatch)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	w.rows = keyscan.Passed(&w.counts, w.rows[:0], 0, w.Scanner.Options.Any)
	return w.rows, nil
}
