package join

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"sync/atomic"
)

// errCount says that an answer has more rows than an int64 counts.
var errCount = errors.New("the answer has more than 2^63 rows")

// Count joins and returns the number of rows of the answer, without making any:
// nothing is read but the keys of both sides. It takes the place of Run or
// Write. Options.Require holds; Report tells the rest.
func (j *Join) Count(ctx context.Context) (int64, error) {
	defer j.release()
	j.counts, j.idCols.rows = true, false
	if err := j.prepare(ctx); err != nil {
		return 0, err
	}
	s, err := j.scanner(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.Count(ctx, j.pieces); err != nil {
		return 0, err
	}
	return j.report.RowsOut, nil
}

// counted returns the number of rows of the answer of a join that counts them,
// when all else in the report is known: the pairs, and the rows of either side
// that are kept without the other.
func (j *Join) counted(r *Report) (int64, error) {
	n := j.rowsOut.Load()
	if j.opts.Type == Left || j.opts.Type == Full {
		n = sum(n, r.RowsIn-r.RowsMatched)
	}
	if j.opts.Type.keepsIDs() {
		n = sum(n, r.IDsTotal-r.IDsMatched+j.idsNull.Load())
	}
	if n == math.MaxInt64 {
		return 0, errCount
	}
	return n, nil
}

// sum adds numbers that are not negative. Beyond an int64 it is the largest.
func sum(a, b int64) int64 {
	if n := a + b; n >= 0 {
		return n
	}
	return math.MaxInt64
}

// countPairs adds the pairs that members of a batch make to the rows of the
// answer: for each member, the rows that have it times the IDs that have it.
func (v *verifier) countPairs(members, rows []uint32) error {
	n, err := pairsOf(members, rows, func(i int) int64 { return v.j.side.Times(v.entries[i]) })
	if err != nil {
		return err
	}
	return addPairs(&v.j.rowsOut, n)
}

// pairsOf returns how many pairs members of a batch make: for each, the log rows
// that have its key times the IDs that have it.
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

// addPairs adds n to a counter that several goroutines add to.
func addPairs(to *atomic.Int64, n int64) error {
	for {
		was := to.Load()
		now := sum(was, n)
		if now == math.MaxInt64 {
			return errCount
		}
		if to.CompareAndSwap(was, now) {
			return nil
		}
	}
}
