package partition

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Stage is a run of row groups with filters of its own. Only one set of filters
// is in use at a time, so that what they take in memory is that of the largest.
type Stage struct {
	// Pieces are what the stage reads, in order. Each is within one of the
	// scan's pieces, and each row of these is in one stage.
	Pieces []Piece
	// Rows, if not zero, limits a stage that has one row group of a Parquet
	// file to the rows [Rows[0], Rows[1]) of it.
	Rows  [2]int64
	Match []Match
	// Again says that the stage reads the rows of the one before once more. They
	// are not counted another time, but for those that pass.
	Again bool
}

// stage is a Stage on its way.
type stage struct {
	scanner *Scanner // with the stage's filters
	pieces  []Piece
	of      []int // for each of pieces, the scan's piece that it belongs to
	within  [2]int64
}

// stages yields the stages of a scan of the pieces: one, unless the options say
// otherwise.
func (s *Scanner) stages(ctx context.Context, pieces []Piece) iter.Seq2[stage, error] {
	all := [2]int64{0, math.MaxInt64}
	return func(yield func(stage, error) bool) {
		if s.opts.Stages == nil {
			st := stage{scanner: s, pieces: pieces, within: all}
			for i := range pieces {
				st.of = append(st.of, i)
			}
			yield(st, nil)
			return
		}
		for next, err := range s.opts.Stages(ctx, pieces) {
			if err != nil {
				yield(stage{}, err)
				return
			}
			st := stage{scanner: s.with(next.Match), pieces: next.Pieces, within: next.Rows}
			if next.Again {
				st.scanner.Stats = new(ScanStats)
			}
			if st.within == [2]int64{} {
				st.within = all
			}
			for _, p := range next.Pieces {
				of, err := PieceOf(pieces, p)
				if err != nil {
					yield(stage{}, err)
					return
				}
				st.of = append(st.of, of)
			}
			more := yield(st, nil)
			if next.Again {
				s.Stats.RowsOut.Add(st.scanner.Stats.RowsOut.Load())
			}
			if !more {
				return
			}
		}
	}
}

// with returns the scanner with other filters. Both count into the same Stats.
func (s *Scanner) with(m []Match) *Scanner {
	t := *s
	t.opts.Match, t.opts.Stages = m, nil
	return &t
}

// PieceOf returns which of the pieces p is within.
func PieceOf(pieces []Piece, p Piece) (int, error) {
	for i, q := range pieces {
		if q.File == p.File && q.Lo <= p.Lo && p.Hi <= q.Hi {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s: row groups %d to %d of a stage are none of the scan's", p.File.Name, p.Lo+1, p.Hi)
}

// scan yields the rows of the stage that pass, as records.
func (st *stage) scan(ctx context.Context) iter.Seq2[Rows, error] {
	s := st.scanner
	return func(yield func(Rows, error) bool) {
		ended := false // nobody listens any more
		if s.opts.Schema == Union {
			yield(Rows{}, fault.Unsupported(fault.At{}, "the union of schemas in Arrow records").WithHint("write Parquet"))
			return
		}
		st.countGroups()
		unmap := mapFew(st.pieces)
		defer func() {
			if err := unmap(); err != nil && !ended {
				yield(Rows{}, err)
			}
		}()
		way := flightOf(InFlight(st.pieces)/forRecords, s.opts.Threads, func() int64 { return need(st.pieces, s.opts.columns) + st.keyNeed() })
		newWorker := func() (taskWork, error) { return st.newWorker(way) }
		for r, err := range mapTasks(ctx, groupsOf(st.pieces), way, newWorker) {
			if err == nil {
				r.Piece = st.of[r.Piece]
			}
			if !yield(r, err) || err != nil {
				ended = true
				return
			}
		}
	}
}

// keyNeed returns what finding the rows that pass takes, at the most: their
// numbers, and those of the rows to look at.
func (st *stage) keyNeed() (most int64) {
	for _, p := range st.pieces {
		if f := p.File.parquet(); f != nil {
			for g := p.Lo; g < p.Hi; g++ {
				most = max(most, f.GroupRows(g))
			}
		}
	}
	return 3 * 4 * min(most, rangeRows)
}

func (st *stage) newWorker(way flight) (taskWork, error) {
	s := st.scanner
	w := &scanWorker{scanner: s, way: way, within: st.within, checks: s.checks(), buf: new(parquet.Buffers)}
	var err error
	if s.opts.Work != nil {
		w.further, err = s.opts.Work()
	}
	return func(ctx context.Context, t task, emit func(arrow.Record) error) error {
		return w.group(ctx, st.pieces[t.piece], t.group, emit)
	}, err
}

// countGroups counts the row groups of the stage, each where it begins.
func (st *stage) countGroups() {
	for _, p := range st.pieces {
		if st.within[0] == 0 {
			st.scanner.Stats.RowGroups.Add(int64(p.Hi - p.Lo))
		}
	}
}

// parts returns those of the output's parts that the stage has rows of, narrowed
// to these, and for each its number among them.
func (st *stage) parts(parts []Part) []Part {
	narrowed := make([]Part, len(st.pieces))
	for i, p := range st.pieces {
		narrowed[i] = parts[st.of[i]]
		narrowed[i].Piece = p
		if src := narrowed[i].pages; src != nil {
			own := *src
			own.piece, own.within = p, st.within
			narrowed[i].pages = &own
		}
	}
	return narrowed
}

// clip returns the part of a range that is within bounds. ok is false if there is
// none, though the range itself is not empty.
func (r rowRange) clip(within [2]int64) (_ rowRange, ok bool) {
	t := r
	t.lo, t.hi = max(r.lo, within[0]), min(r.hi, within[1])
	return t, t.lo < t.hi || r.lo == r.hi
}
