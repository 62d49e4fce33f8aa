package pagecopy

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// rangeJob is the work on one range of rows.
type rangeJob struct {
	tasks.Range
	source *Source
	mapped *mapped // its file
	within *inputGroup
	rows   *rows.Selection    // that go to the output; nil: not known yet
	group  *Group             // output row group of its rows, once decided
	bytes  int64              // of its rows, uncompressed, estimated
	number int64              // its number among the group's jobs
	taken  []bool             // leaf tasks begun, by position in source.leaves
	first  int                // in source.order: leaf tasks before it are begun
	shapes map[int]meta.Shape // of the file's leaves that were copied, by leaf number
	begun  int
	done   int

	// Of a file over a network:
	keys        *keyscan.Ahead   // what its key task reads; nil: not looked for
	leavesAhead []*parquet.Ahead // announced for its leaf tasks, by position in source.leaves
}

func newRangeJob(src *Source, in *inputGroup, r tasks.Range) *rangeJob {
	return &rangeJob{Range: r, source: src, within: in, taken: make([]bool, len(src.Leaves)), shapes: map[int]meta.Shape{}}
}

// waits reports whether the job's rows are known, but how they are copied still depends on
// other jobs of its input row group.
func (s *rangeJob) waits() bool {
	return s.rows != nil && s.group == nil && s.begun < len(s.taken) && s.within.how == undecided
}

// Group is an output row group that is being filled.
type Group struct {
	Source   int          // number of the source of its first rows
	Part     int          // of the output
	File     *source.File // nil: its rows come from no file of the log
	Layout   *parquet.Writer
	how      howCopied
	Rows     int64
	From     []PartRows // of each job, in order
	bytes    int64      // uncompressed, estimated
	jobs     int64
	ended    int64 // jobs all of whose tasks are done
	begun    bool  // some leaf task was begun
	closed   bool  // no more jobs will be added
	Leaves   []*Leaf
	added    []*Leaf // to be finished: all jobs of the closed group have had their turn
	finished int     // leaves

	held atomic.Int64 // bytes of the leaves
}

// close notes that no more jobs will be added.
func (g *Group) close() {
	g.closed = true
	for _, l := range g.Leaves {
		g.turnEnded(l)
	}
}

// turnEnded is called, with the engine's lock, after a turn of a leaf has ended.
func (g *Group) turnEnded(l *Leaf) {
	if g.closed && !l.finishing && l.turn.Load() == g.jobs {
		l.finishing, g.added = true, append(g.added, l)
	}
}

// hold notes the memory that a leaf takes.
func (g *Group) hold(l *Leaf, bytes int64) { g.held.Add(bytes - l.held.Swap(bytes)) }

// complete reports whether the row group can be written: all of its chunks are
// done, and the input files were unchanged.
func (g *Group) complete() bool {
	return g.closed && g.finished == len(g.Leaves) && g.ended == g.jobs
}

// Leaf is a leaf of a Group. Jobs add to it one after the other; pages that
// come early are parked.
type Leaf struct {
	w     *parquet.ChunkWriter
	width int  // of a value, see meta.Leaf
	keeps bool // the dictionary of the pages stays as it is

	turn atomic.Int64 // number of the job that may add now
	of   *Group
	held atomic.Int64 // bytes of memory, without encoded pages; set by Group.hold

	whole wholeChunk // guarded by the engine's lock

	mu     sync.Mutex
	parked map[int64][]parkedPage

	finishing bool                  // guarded by the engine's lock
	Chunk     *parquet.EncodedChunk // when all jobs have had their turn, or copied by the first job
}

// wholeChunk says whether the leaf is a chunk of the input, copied as it is stored.
type wholeChunk uint8

const (
	inPages      wholeChunk = iota
	perhapsWhole            // to be decided by the first job's task
	copied
)

// parkedPage is a copy of a page that waits for its turn.
type parkedPage struct {
	page *parquet.Page
	dict *parquet.Dictionary
}

// add adds the pages of job n to the leaf.
func (l *Leaf) add(n int64, next nextPage) error {
	var early []parkedPage
	var last, held *parquet.Dictionary // of early pages, and its copy
	for {
		p, dict, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if early != nil || l.turn.Load() != n {
			if dict != nil && !l.keeps {
				if few, of := dict.FewOf(p, l.width); few != nil {
					early = append(early, parkedPage{few, of})
					continue
				}
			}
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
		l.of.hold(l, l.w.Pending())
	}
	return l.end(n, early)
}

// addError is an error from adding to a leaf. It names the column, but not the
// input file.
type addError struct{ error }

func (e *addError) Unwrap() error { return e.error }

// end parks the pages of job n that have not been added yet. It then adds the parked pages of
// each job whose turn it is, and ends that turn.
func (l *Leaf) end(n int64, early []parkedPage) error {
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
			l.of.hold(l, l.w.Pending())
		}
		delete(l.parked, turn)
		l.turn.Store(turn + 1)
	}
}

// nextPage returns the next page and its dictionary, or io.EOF.
type nextPage = func() (*parquet.Page, *parquet.Dictionary, error)

// newOutGroup begins a row group with the rows of s.
func newOutGroup(s *rangeJob, how howCopied) *Group {
	src := s.source
	g := &Group{Source: src.Number, Part: src.Part, File: src.Piece.File, Layout: src.Layout, how: how}
	for i := range src.Leaves {
		l := &Leaf{of: g, w: src.Layout.Chunk(i), width: src.Layout.Leaves()[i].Width()}
		switch {
		case src.ofTable(i):
			l.w.UseDictionary()
		case how == wholeRows && src.mayCopy(s.Range.Group, i):
			l.whole = perhapsWhole
		case how == maxRows && src.mayCopy(s.Range.Group, i):
			l.w.KeepDictionary()
			l.keeps = true
		case src.leavesDictionary(s.Range.Group, i): // so the output should not, either
			l.w.NoDictionary()
		}
		g.Leaves = append(g.Leaves, l)
	}
	return g
}

// PartRows is a number of rows of one part of an output, and of the log rows in them.
type PartRows struct {
	Part       int
	Rows, Kept int64
}
