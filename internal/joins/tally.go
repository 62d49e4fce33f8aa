package joins

import (
	"errors"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// tally counts the rows of a pass over the log. It is safe for concurrent use.
type tally struct {
	rowsIn, rowsWhere, rowsOut, keysNull, candidates, matched, falsePositives, unasked atomic.Int64
	groupsSkipped, pages, pagesSkipped                                                 atomic.Int64

	mu      sync.Mutex
	spreads []*secondMoment // one for each worker
	inputs  map[source.Piece]*inputCounts
}

// inputCounts counts the rows of a piece of the log.
type inputCounts struct{ matched atomic.Int64 }

// of returns the counts of a piece. Overlapping pieces are counted separately.
func (t *tally) of(p source.Piece) *inputCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.inputs[p]
	if c == nil {
		if t.inputs == nil {
			t.inputs = map[source.Piece]*inputCounts{}
		}
		c = new(inputCounts)
		t.inputs[p] = c
	}
	return c
}

// describe completes the figures of an output with pairs of rows.
func (t *tally) describe(inputs []dataset.WrittenInput, pieces []source.Piece, typ Type) {
	if typ.keepsLog() {
		return
	}
	parts := map[*source.File][]source.Piece{}
	for p := range t.inputs {
		parts[p.File] = append(parts[p.File], p)
	}
	for i := range inputs {
		in := &inputs[i]
		in.RowsKept = 0
		for _, p := range parts[pieces[i].File] {
			if in.Lo <= p.Lo && p.Hi <= in.Hi {
				in.RowsKept += t.inputs[p].matched.Load()
			}
		}
	}
}

// newSpread returns a sketch for the rows without an ID that one worker finds.
func (t *tally) newSpread() *secondMoment {
	s := newSpread()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spreads = append(t.spreads, s)
	return s
}

// measured returns the false-positive rate of a filter whose bits predict p. No
// worker may be counting.
func (t *tally) measured(p float64) measuredFPR {
	all := newSpread()
	for _, s := range t.spreads {
		all.merge(s)
	}
	return measure(p, t.falsePositives.Load(), all)
}

// scanned adds what a scan counted. again says that the rows were counted before,
// answers that the rows that it kept are rows of the answer.
func (t *tally) scanned(s *keyscan.Stats, again, answers bool) {
	if answers {
		t.rowsOut.Add(s.RowsOut.Load())
	}
	if again {
		return
	}
	t.rowsIn.Add(s.RowsIn.Load())
	t.rowsWhere.Add(s.RowsWhere.Load())
	t.keysNull.Add(s.KeysNull.Load())
	t.groupsSkipped.Add(s.RowGroupsSkipped.Load())
	t.pages.Add(s.Pages.Load())
	t.pagesSkipped.Add(s.PagesSkipped.Load())
}

// errCount says that an answer has more rows than an int64 can count.
var errCount = errors.New("the answer has more than 2^63 rows")

// addPairs adds n to the rows of the answer, or returns errCount.
func (t *tally) addPairs(n int64) error {
	for {
		was := t.rowsOut.Load()
		now := sum(was, n)
		if now == math.MaxInt64 {
			return errCount
		}
		if t.rowsOut.CompareAndSwap(was, now) {
			return nil
		}
	}
}

// pairsOf returns how many pairs the members of a batch make: for each, the log
// rows that have its key times the IDs that have it.
func pairsOf(members, rows []uint32, times func(i int) int64) (n int64, err error) {
	for i, m := range members {
		hi, lo := bits.Mul64(uint64(rowsOf(rows, m)), uint64(times(i)))
		if hi > 0 || lo > math.MaxInt64 {
			return 0, errCount
		}
		n = sum(n, int64(lo))
	}
	return n, nil
}

// rowsOf returns how many rows have the key at position i.
func rowsOf(rows []uint32, i uint32) int64 {
	if rows == nil {
		return 1
	}
	return int64(rows[i])
}

// countedRows returns the number of rows of an answer whose rows are counted: the
// pairs, and the rows of either side that are kept without the other. idsNull is the
// number of IDs without a key.
func countedRows(typ Type, pairs, idsNull int64, r *Report) (int64, error) {
	n := pairs
	if typ == Left || typ == Full {
		n = sum(n, r.RowsWhere-r.RowsMatched)
	}
	if typ.keepsIDs() {
		n = sum(n, r.IDsTotal-r.IDsMatched+idsNull)
	}
	if n == math.MaxInt64 {
		return 0, errCount
	}
	return n, nil
}

// sum adds numbers that are not negative, up to the largest int64.
func sum(a, b int64) int64 {
	if n := a + b; n >= 0 {
		return n
	}
	return math.MaxInt64
}
