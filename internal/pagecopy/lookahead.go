package pagecopy

import (
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// openAhead is the number of further jobs that may be open if a file is over a network: pages
// of some are fetched while workers have others.
const openAhead = 6

// release ends the lookahead, and drops announced ranges that were not read.
func (e *engine) release() {
	e.scouts.Stop()
	for _, s := range slices.Concat(e.open, e.coming) {
		s.release()
	}
}

// nextJob returns the next job of the input, and passes those that follow to the
// scouts.
func (e *engine) nextJob() (*rangeJob, bool) {
	switch {
	case e.enough():
		return nil, false
	case !e.remote:
		return e.next()
	}
	for e.more && len(e.coming) < keyscan.JobsAhead {
		s, ok := e.next()
		if !ok {
			break
		}
		if s.source.Piece.File.Remote() {
			s.keys = e.scouts.Add(s)
		}
		e.coming = append(e.coming, s)
	}
	if len(e.coming) == 0 {
		return nil, false
	}
	s := e.coming[0]
	e.coming = e.coming[1:]
	return s, true
}

// keeps returns the size in bytes of the largest chunk of a file over a network that stays in
// memory from its check until it is written.
func (e *engine) keeps() int64 {
	const most = 32 << 20
	if e.most == 0 {
		return most
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(min(most, e.most/2-e.held()), 0)
}

// newScouts starts the search for what the key tasks of coming jobs will read. What leaf tasks
// will read is announced as soon as their job's rows are known.
func newScouts(ctx context.Context, s *keyscan.Scanner) *keyscan.Scouts[*rangeJob] {
	return keyscan.NewScouts(ctx, func(buf *parquet.Buffers) func(context.Context, *rangeJob, *keyscan.Ahead) {
		var k *keyscan.Finder
		return func(ctx context.Context, job *rangeJob, a *keyscan.Ahead) {
			f := job.source.Piece.File
			var err error
			defer source.Recovered(f, job.Range.Group, &err)
			if k == nil || k.File != f {
				if k, err = keyscan.NewFinder(s, f, buf, make([]keyscan.Check, len(s.Match)), k); err != nil {
					return
				}
			}
			k.Announce(ctx, job.Range, job.source.Leaves, a)
		}
	})
}

// release drops ranges that were announced for a job and not read.
func (s *rangeJob) release() {
	s.keys.Release()
	for _, a := range s.leavesAhead {
		a.Release()
	}
}

// announceLeaves announces the pages that the leaf tasks of a job will read.
func (s *rangeJob) announceLeaves(rows *rows.Selection) {
	f := s.source.Piece.File
	if !f.Remote() || rows.Len() == 0 {
		return
	}
	s.leavesAhead = make([]*parquet.Ahead, len(s.source.Leaves))
	list := rows.List(f.GroupRows(s.Range.Group))
	for _, i := range s.source.order {
		if s.source.Leaves[i] >= 0 && !s.source.ofTable(i) && !(s.source.Adapt != nil && s.source.Adapt[i] != nil && s.source.Adapt[i].Missing) {
			s.leavesAhead[i] = s.source.file().Ahead(s.Range.Group, s.source.Leaves[i], list)
		}
	}
}

// leafAhead returns the ranges that were announced for leaf i, once.
func (s *rangeJob) leafAhead(i int) (a *parquet.Ahead) {
	if s.leavesAhead != nil {
		a, s.leavesAhead[i] = s.leavesAhead[i], nil
	}
	return a
}
