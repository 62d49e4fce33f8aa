package partition

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// outGroup is a row group of the output that is being filled.
type outGroup struct {
	source   int // number of the source of its first rows
	layout   *parquet.Writer
	rows     int64
	bytes    int64 // uncompressed, as expected
	segments int64
	ended    int64 // segments all of whose tasks are done
	closed   bool  // no segment will come
	lanes    []*lane
	finished int // lanes
}

// complete reports whether the row group can be written: all of its chunks are
// there, and their files were still as they were opened.
func (g *outGroup) complete() bool {
	return g.closed && g.finished == len(g.lanes) && g.ended == g.segments
}

// lane is a leaf of an outGroup. Segments add to it one after the other; what
// comes early is parked.
type lane struct {
	w    *parquet.ChunkWriter
	turn atomic.Int64 // number of the segment that may add
	held atomic.Int64 // bytes of memory, but for encoded pages

	mu     sync.Mutex
	parked map[int64][]parkedPage

	finishing bool // guarded by the engine's lock, as is chunk
	chunk     *parquet.EncodedChunk
}

// parkedPage is a copy of a page that has to wait.
type parkedPage struct {
	page *parquet.Page
	dict *parquet.Dictionary
}

// add adds the pages to the lane, in the place of segment n.
func (l *lane) add(ctx context.Context, n int64, pages *leafPages) error {
	var early []parkedPage
	var last, held *parquet.Dictionary // of early pages, and its copy
	for {
		p, dict, err := pages.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if early != nil || l.turn.Load() != n {
			if dict != last {
				last, held = dict, nil
				if dict != nil {
					held = dict.Clone()
				}
			}
			early = append(early, parkedPage{p.Clone(), held})
			continue
		}
		if err := l.w.Add(p, dict); err != nil {
			return &addError{err}
		}
		l.held.Store(l.w.Pending())
	}
	return l.end(n, early)
}

// addError is an error of adding to a lane, which knows the column and not
// whose rows they were.
type addError struct{ error }

func (e *addError) Unwrap() error { return e.error }

// end ends the turn of segment n, whose early pages were not added yet, and
// adds what was waiting for that.
func (l *lane) end(n int64, early []parkedPage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parked == nil {
		l.parked = map[int64][]parkedPage{}
	}
	l.parked[n] = early
	for {
		turn := l.turn.Load()
		pages, ok := l.parked[turn]
		if !ok {
			return nil
		}
		for _, p := range pages {
			if err := l.w.Add(p.page, p.dict); err != nil {
				return &addError{err}
			}
			l.held.Store(l.w.Pending())
		}
		delete(l.parked, turn)
		l.turn.Store(turn + 1)
	}
}

// newOutGroup begins the row group that the rows of s are the first of.
func newOutGroup(s *segment) *outGroup {
	src := s.source
	g := &outGroup{source: src.number, layout: src.layout}
	for i := range src.leaves {
		w := src.layout.Chunk(i)
		if src.leavesDictionary(s.rowRange.group, i) { // so would this one
			w.NoDictionary()
		}
		g.lanes = append(g.lanes, &lane{w: w})
	}
	return g
}
