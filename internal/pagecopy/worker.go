package pagecopy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// worker is one goroutine of the engine, with the memory that it reuses.
type worker struct {
	engine *engine
	buf    *parquet.Buffers
	keys   *keyscan.Finder
	file   *source.File // that keys belongs to
	checks []keyscan.Check
	held   int64 // bytes held after the last task, or expected for this one; guarded by the engine's lock
}

// holds returns the bytes that the worker keeps for its next task.
func (w *worker) holds() int64 {
	n := w.buf.Size()
	if w.keys != nil {
		n += w.keys.Size()
	}
	return n
}

// releaseBuffers releases what an idle worker keeps.
func (w *worker) releaseBuffers() {
	w.buf.Close()
	*w.buf = parquet.Buffers{} // keys holds the pointer
	if w.keys != nil {
		w.keys.Shed()
	}
	w.held = 0
}

// selectRows is the key task of a job.
func (w *worker) selectRows(ctx context.Context, s *rangeJob) (settle func(), err error) {
	e, f := w.engine, s.source.Piece.File
	defer source.Recovered(f, s.Range.Group, &err)
	s.mapped.once.Do(func() { s.mapped.unmap = f.LoadPages() })
	if w.file != f {
		if w.checks == nil {
			w.checks = e.scanner.Checks()
		}
		if w.keys, err = keyscan.NewFinder(e.scanner, f, w.buf, w.checks, w.keys); err != nil {
			return nil, err
		}
		w.file = f
	}
	if err := w.keys.Expect(ctx, s.keys); err != nil {
		return nil, err
	}
	rows, err := w.rows(ctx, s)
	if err != nil {
		return nil, f.Unless(err)
	}
	parts := rows.Divided(e.maxOf(rows))
	if len(parts) == 1 && e.left == nil {
		s.announceLeaves(rows)
	}
	s.keys.ReleaseAgain()
	return func() {
		e.known(s, rows, parts)
		e.decide()
		if s.begun == len(s.taken) { // nothing to copy
			e.close(s)
			e.decide()
		}
	}, nil
}

// rows returns the rows of a job that go to the output.
func (w *worker) rows(ctx context.Context, s *rangeJob) (*rows.Selection, error) {
	p := w.engine.pairs
	if p == nil {
		chosen, err := w.keys.Scan(ctx, s.Range, nil)
		if err != nil {
			return nil, err
		}
		return rows.Of(s.Lo, s.Hi, chosen), nil
	}
	m, err := w.keys.Pairs(ctx, s.Range)
	if err != nil {
		return nil, err
	}
	return p.Select(s.Lo, s.Hi, m)
}

// known records the rows of a job. If they are in several parts, a job for each part replaces it.
func (e *engine) known(s *rangeJob, chosen *rows.Selection, parts []*rows.Selection) {
	s.rows = chosen
	if p := e.pairs; p != nil {
		e.scanner.Stats.RowsOut.Add(chosen.Count)
		p.Join(chosen)
		parts[0].Kept = chosen.Kept // those of all parts
	}
	if chosen.Count == 0 {
		s.begun = len(s.taken)
	}
	if len(parts) == 1 {
		return
	}
	s.within.how = someRows // see maxOf
	s.rows = nil            // the parts have them
	var jobs []*rangeJob
	for _, part := range parts {
		job := newRangeJob(s.source, s.within, s.Range)
		job.rows = part
		jobs = append(jobs, job)
	}
	at := slices.Index(e.open, s)
	e.open = slices.Replace(e.open, at, at+1, jobs...)
}

// copyLeaves is the task of some leaves of a job.
func (w *worker) copyLeaves(ctx context.Context, s *rangeJob, leaves []int) (settle func(), err error) {
	if len(leaves) > 1 {
		if err := w.dictionaries(s, leaves); err != nil {
			return nil, err
		}
	}
	var all []func()
	for _, i := range leaves {
		one, err := w.copyLeaf(ctx, s, i)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return func() {
		for _, one := range all {
			one()
		}
	}, nil
}

// dictionaries decompresses the dictionaries of leaves together, as far as these are copied
// in pages.
func (w *worker) dictionaries(s *rangeJob, leaves []int) (err error) {
	f := s.source.Piece.File
	defer source.Recovered(f, s.Range.Group, &err)
	var read []int
	for _, i := range leaves {
		if n := s.source.Leaves[i]; n >= 0 && s.group.Leaves[i].whole == inPages && !s.source.ofTable(i) {
			read = append(read, n)
		}
	}
	w.buf.Dictionaries(s.source.file(), s.Range.Group, read)
	return nil
}

// smallGroup is the size of a row group, compressed, below which one task copies all leaves.
const smallGroup = 1 << 20

func (s *rangeJob) small() bool {
	return s.source.file().RowGroups[s.Range.Group].CompressedBytes < smallGroup
}

// copyLeaf copies one leaf of a job.
func (w *worker) copyLeaf(ctx context.Context, s *rangeJob, i int) (settle func(), err error) {
	e, f := w.engine, s.source.Piece.File
	defer source.Recovered(f, s.Range.Group, &err)
	defer w.buf.Rest()
	l := s.group.Leaves[i]
	var shape meta.Shape
	whole, err := w.decideWhole(ctx, s, i, l)
	if err != nil {
		return nil, f.Unless(err)
	}
	switch {
	case whole == copied:
		err = l.end(s.number, nil)
	case s.source.ofTable(i):
		next, stop := s.source.partners(e.pairs, i, s.rows)
		err = l.add(s.number, next)
		stop()
	default:
		pages := s.source.pages(w.buf, s.Range.Group, i, s.rows, s.group.how)
		if a := s.leafAhead(i); a != nil {
			pages.expect(a)
		}
		if err = l.add(s.number, func() (*parquet.Page, *parquet.Dictionary, error) { return pages.next(ctx) }); err == nil {
			seen, skipped := pages.count()
			e.scanner.Stats.Pages.Add(int64(seen))
			e.scanner.Stats.PagesSkipped.Add(int64(skipped))
			if pages.chunk != nil {
				shape = pages.chunk.Shape()
			}
		}
	}
	if err != nil {
		if add := (*addError)(nil); errors.As(err, &add) {
			err = fmt.Errorf("%s: %w", fault.At{File: f.Name(), RowGroup: s.Range.Group + 1}, add.error)
		}
		return nil, f.Unless(err)
	}
	return func() {
		if shape != nil {
			s.shapes[s.source.Leaves[i]] = shape
		}
		s.group.turnEnded(l)
		if s.done++; s.done == len(s.taken) {
			if err := s.source.file().CheckShapes(s.Range.Group, s.shapes); err != nil && e.err == nil {
				e.err = f.Unless(err)
				e.cancel()
			}
			s.rows = nil
			e.close(s)
		}
	}, nil
}

// decideWhole returns whether the chunk of a leaf is copied as it is stored. The first
// job decides it before its turn ends, since others continue then.
func (w *worker) decideWhole(ctx context.Context, s *rangeJob, i int, l *Leaf) (whole wholeChunk, err error) {
	mu := &w.engine.mu
	mu.Lock()
	whole = l.whole
	mu.Unlock()
	if whole != perhapsWhole {
		return whole, nil
	}
	if whole, err = w.copyChunk(ctx, s, i, l); err != nil {
		return whole, err
	}
	mu.Lock()
	defer mu.Unlock()
	l.whole = whole
	return whole, nil
}

// copyChunk prepares to copy the chunk of a leaf as it is stored. It returns inPages
// if the chunk cannot be copied so.
func (w *worker) copyChunk(ctx context.Context, s *rangeJob, i int, l *Leaf) (wholeChunk, error) {
	src := s.source
	o := parquet.CopyOptions{Ahead: s.leafAhead(i)}
	if src.Piece.File.Remote() {
		o.Keep = w.engine.keeps()
	}
	chunk, why, err := src.Layout.CopyChunk(ctx, src.file(), s.Range.Group, src.Leaves[i], i, o)
	if err != nil {
		return inPages, err
	}
	if why != "" {
		if src.leavesDictionary(s.Range.Group, i) {
			l.w.NoDictionary()
		}
		return inPages, nil
	}
	l.Chunk = chunk
	s.group.hold(l, chunk.Size())
	pages := chunk.Pages()
	w.engine.scanner.Stats.Pages.Add(pages)
	w.engine.scanner.Stats.PagesSkipped.Add(pages)
	return copied, nil
}

// finish completes a leaf to which all jobs have added their pages.
func (w *worker) finish(g *Group, l *Leaf) (settle func(), err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
		}
	}()
	chunk, err := l.w.Finish()
	if err != nil {
		return nil, err
	}
	kept := int64(0)
	if l.Chunk != nil {
		kept = l.Chunk.Size()
	}
	return func() {
		if l.Chunk == nil { // not copied as it was stored
			l.Chunk = chunk
		}
		l.w = nil
		g.hold(l, kept)
		g.finished++
	}, nil
}

// maxOf returns the maximum number of output rows of one job. Jobs are divided if their rows
// multiply or have large partners, since the output may be any number of times larger than
// the input. A row group with a divided job is copied as someRows.
func (e *engine) maxOf(s *rows.Selection) int64 {
	most := s.Count
	if s.Times != nil {
		most = GroupRows
	}
	if bytes := e.perRow * s.Pairs(); bytes > tableBytes {
		most = min(most, max(int64(float64(s.Count)*GroupBytes/float64(bytes)), 1))
	}
	return most
}
