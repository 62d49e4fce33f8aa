package partition

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// pageWorker is one goroutine of the engine, with the memory that it reuses.
type pageWorker struct {
	engine *pageEngine
	buf    *parquet.Buffers
	keys   *keyScan
	file   *File // that keys belongs to
	checks []check
	held   int64 // bytes held after the last task, or expected for this one; guarded by the engine's lock
}

// holds returns the bytes that the worker keeps for its next task.
func (w *pageWorker) holds() int64 {
	n := w.buf.Size()
	if w.keys != nil {
		n += w.keys.size()
	}
	return n
}

// shed releases what an idle worker keeps.
func (w *pageWorker) shed() {
	w.buf.Close()
	*w.buf = parquet.Buffers{} // keys holds the pointer
	if w.keys != nil {
		w.keys.shed()
	}
	w.held = 0
}

// selectRows is the key task of a job.
func (w *pageWorker) selectRows(ctx context.Context, s *rangeJob) (settle func(), err error) {
	e, f := w.engine, s.source.piece.File
	defer recovered(f, s.rowRange.group, &err)
	if w.file != f {
		if w.checks == nil {
			w.checks = e.scanner.checks()
		}
		if w.keys, err = newKeyScan(e.scanner, f, w.buf, w.checks); err != nil {
			return nil, err
		}
		w.file = f
	}
	rows, err := w.keys.scan(ctx, s.rowRange, nil)
	if err != nil {
		return nil, f.unless(err)
	}
	return func() {
		s.rows, s.known = rows, true
		if len(rows) == 0 {
			s.begun = len(s.taken)
		}
		e.decide()
		if s.begun == len(s.taken) { // nothing to copy
			e.close(s)
			e.decide()
		}
	}, nil
}

// copyLeaf is the task of one leaf of a job.
func (w *pageWorker) copyLeaf(ctx context.Context, s *rangeJob, i int) (settle func(), err error) {
	e, f := w.engine, s.source.piece.File
	defer recovered(f, s.rowRange.group, &err)
	defer w.buf.Rest()
	pages := s.source.pages(w.buf, s.rowRange.group, i, s.rows)
	if err := s.group.leaves[i].add(ctx, s.number, pages); err != nil {
		if add := (*addError)(nil); errors.As(err, &add) {
			err = fmt.Errorf("%s: %w", fault.At{File: f.Name, RowGroup: s.rowRange.group + 1}, add.error)
		}
		return nil, f.unless(err)
	}
	seen, skipped := pages.count()
	e.scanner.Stats.Pages.Add(int64(seen))
	e.scanner.Stats.PagesSkipped.Add(int64(skipped))
	return func() {
		if pages.chunk != nil {
			s.shapes[s.source.leaves[i]] = pages.chunk.Shape()
		}
		if s.done++; s.done == len(s.taken) {
			if err := s.source.file().CheckShapes(s.rowRange.group, s.shapes); err != nil && e.err == nil {
				e.err = f.unless(err)
				e.cancel()
			}
			s.rows = nil
			e.close(s)
		}
	}, nil
}

// finish completes a leaf to which all jobs have added their pages.
func (w *pageWorker) finish(g *outGroup, l *outLeaf) (settle func(), err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
		}
	}()
	chunk, err := l.w.Finish()
	if err != nil {
		return nil, err
	}
	return func() {
		l.chunk, l.w = chunk, nil
		l.held.Store(0)
		g.finished++
	}, nil
}
