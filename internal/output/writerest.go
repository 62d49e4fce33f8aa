package output

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// restName is the name of the file, in a directory, of rows of a table without a log
// row.
const restName = "ids-without-rows"

// restStep is the number of rows after which the size of a row group of such rows is
// compared with its maximum. Steps are counted from the row group's first row, so how
// rows are divided into calls does not matter.
const restStep = 16 << 10

// restWriter makes row groups, or records, of rows of a table without a log row.
type restWriter struct {
	pairs   *tables.Pairs
	log     *source.File
	mem     memory.Allocator
	source  *pagecopy.Source // nil: records
	part    int              // index of the output's part
	threads int
	chunks  []*parquet.ChunkWriter // of the row group that is being filled; nil: none is
	rows    int64
}

// WriteUnmatched writes rows of a table without a log row, after all rows of the log: NULLs in
// the log's columns, unless [tables.PairColumn] says otherwise. The rows must have the columns
// of the scanner's Pairs, whose KeepTable must be set.
func (w *ScanWriter) WriteUnmatched(ctx context.Context, t *tables.Table, rows []uint32) error {
	if w.failed == nil {
		w.failed = w.restRows(ctx, t, rows)
	}
	return w.failed
}

func (w *ScanWriter) restRows(ctx context.Context, t *tables.Table, rows []uint32) error {
	r := w.rest
	if r == nil {
		return errors.New("rows without a log row for an output that keeps none")
	}
	if err := w.endFilling(ctx); err != nil {
		return err
	}
	if r.source == nil {
		return arraycopy.Unmatched(r.pairs, r.log, r.mem, t, rows, func(rec arrow.Record) error {
			return w.rows.write(outRows{Rows: arraycopy.Rows{Piece: r.part, Record: rec}})
		})
	}
	for len(rows) > 0 {
		if err := stopped.Err(ctx); err != nil {
			return err
		}
		n := min(int64(len(rows)), restStep-r.rows%restStep)
		if err := r.add(t, rows[:n]); err != nil {
			return fmt.Errorf("rows without a log row: %w", err)
		}
		rows = rows[n:]
		if r.full() {
			if err := w.endRest(); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds rows to the row group.
func (r *restWriter) add(t *tables.Table, rows []uint32) error {
	if r.chunks == nil {
		for i := range r.source.Leaves {
			c := r.source.Layout.Chunk(i)
			c.UseDictionary()
			r.chunks = append(r.chunks, c)
		}
	}
	var group errgroup.Group
	group.SetLimit(tasks.Processors(r.threads))
	for i, c := range r.chunks {
		group.Go(func() error {
			for p, err := range r.source.Pairs.Leaves[i].RestPages(t, rows) {
				if err != nil {
					return err
				}
				if err := c.Add(p, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	r.rows += int64(len(rows))
	return group.Wait()
}

// full reports whether the row group has reached its maximum size, which is known at
// the end of a step.
func (r *restWriter) full() bool {
	if r.rows%restStep != 0 {
		return false
	}
	var bytes int64
	for _, c := range r.chunks {
		bytes += c.Encoded()
	}
	return r.rows >= pagecopy.GroupRows || bytes >= pagecopy.GroupBytes
}

// endRest writes the row group of rows without a log row, if there is one.
func (w *ScanWriter) endRest() error {
	r := w.rest
	if r == nil || r.rows == 0 {
		return nil
	}
	g := &pagecopy.Group{Source: r.part, Layout: r.source.Layout, Rows: r.rows, From: []pagecopy.PartRows{{Part: r.part, Rows: r.rows, Kept: 0}}}
	for _, c := range r.chunks {
		chunk, err := c.Finish()
		if err != nil {
			return err
		}
		g.Leaves = append(g.Leaves, &pagecopy.Leaf{Chunk: chunk})
	}
	r.chunks, r.rows = nil, 0
	return w.rows.write(outRows{arraycopy.Rows{Piece: r.part}, g})
}
