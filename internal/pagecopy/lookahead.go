package pagecopy

import (
	"context"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// openAhead is the number of further jobs that may be open over a network, which fetches for
// some while workers have others.
const openAhead = 6

// release ends the lookahead, and drops announced ranges that were not read.
func (e *engine) release() {
	e.prefetchers.stop()
	for _, s := range slices.Concat(e.open, e.coming) {
		s.release()
	}
}

// nextJob returns the next job of the input, and passes those that follow to the
// prefetchers.
func (e *engine) nextJob() (*rangeJob, bool) {
	if !e.remote {
		return e.next()
	}
	for e.more && len(e.coming) < keyscan.JobsAhead {
		s, ok := e.next()
		if !ok {
			break
		}
		if s.source.Piece.File.Remote() {
			e.prefetchers.add(s)
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

// keeps returns the number of bytes that a chunk of a file over a network may have to
// stay in memory from its check until it is written.
func (e *engine) keeps() int64 {
	const most = 32 << 20
	if e.most == 0 {
		return most
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(min(most, e.most/2-e.held()), 0)
}

// lookahead finds the ranges that jobs read.
type lookahead struct {
	scanner *keyscan.Scanner
	jobs    chan *rangeJob
	done    sync.WaitGroup
}

// newLookahead starts the prefetchers, which end with ctx or after stop.
func newLookahead(ctx context.Context, s *keyscan.Scanner) *lookahead {
	l := &lookahead{scanner: s, jobs: make(chan *rangeJob, 2*keyscan.JobsAhead)}
	for range keyscan.Scouts {
		l.done.Go(func() { l.scout(ctx) })
	}
	return l
}

// add passes a job to the prefetchers. No more than JobsAhead may be waiting.
func (l *lookahead) add(s *rangeJob) {
	s.keys = &keyscan.Ahead{Found: make(chan struct{})}
	l.jobs <- s
}

func (l *lookahead) stop() {
	close(l.jobs)
	l.done.Wait()
}

func (l *lookahead) scout(ctx context.Context) {
	buf := new(parquet.Buffers)
	defer buf.Close()
	var k *keyscan.Finder
	for s := range l.jobs {
		if ctx.Err() == nil {
			if k == nil || k.File != s.source.Piece.File {
				k, _ = keyscan.NewFinder(l.scanner, s.source.Piece.File, buf, make([]keyscan.Check, len(l.scanner.Match))) // the task returns the error again
			}
			if k != nil {
				s.announceKeys(ctx, k)
			}
		}
		close(s.keys.Found)
	}
}

// announceKeys announces what the key task reads. A panic is ignored: the task reads the
// same, and returns it as an error.
func (s *rangeJob) announceKeys(ctx context.Context, k *keyscan.Finder) {
	var err error
	defer source.Recovered(k.File, s.Range.Group, &err)
	s.keys.Where, s.keys.Matches = k.Announce(ctx, s.Range)
	s.announceAgain(k)
}

// announceAgain announces the pages of columns that are copied, too, once more, so that
// they stay until it is known which of them are copied.
func (s *rangeJob) announceAgain(k *keyscan.Finder) {
	again := func(leaf int, a *parquet.Ahead) {
		if slices.Contains(s.source.Leaves, leaf) {
			s.keys.Again = append(s.keys.Again, s.source.file().Again(a))
		}
	}
	for leaf, a := range s.keys.Where {
		again(leaf, a)
	}
	for i, n := range s.keys.Matches {
		if l, ok := k.Matches[i].(*keyscan.LeafScan); ok && n != nil {
			again(l.Number(), n.Ahead)
		}
	}
}

// releaseAgain drops ranges that were announced a second time.
func (s *rangeJob) releaseAgain() {
	if s.keys != nil {
		for _, a := range s.keys.Again {
			a.Release()
		}
	}
}

// release drops ranges that were announced for a job and not read.
func (s *rangeJob) release() {
	s.releaseAgain()
	if s.keys != nil {
		for _, n := range s.keys.Matches {
			n.Release()
		}
		for _, a := range s.keys.Where {
			a.Release()
		}
	}
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
