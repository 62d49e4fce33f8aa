package keyscan

import (
	"fmt"
	"math/bits"

	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// groupsWithRows is Groups without row groups that have no row according to
// [rowfilter.MostRows].
func groupsWithRows(pieces []source.Piece) (todo []tasks.Task) {
	most := map[int][]int64{}
	for _, t := range tasks.Groups(pieces) {
		p := pieces[t.Piece]
		if most[t.Piece] == nil {
			most[t.Piece] = rowfilter.GroupsMost(p)
		}
		if most[t.Piece][t.Group-p.Lo] > 0 {
			todo = append(todo, t)
		}
	}
	return todo
}

// firstPagesOf returns up to n row groups of Parquet files, spread evenly over the
// pieces.
func firstPagesOf(pieces []source.Piece, n int) (todo []tasks.Task) {
	var groups []tasks.Task
	for _, t := range tasks.Groups(pieces) {
		if t.File.Parquet() != nil {
			groups = append(groups, t)
		}
	}
	n = min(n, len(groups))
	for i := range n {
		t := groups[source.Nth(i, n, int64(len(groups)))]
		t.Number = i
		todo = append(todo, t)
	}
	return todo
}

// rowsOfPieces returns the sum of [rowfilter.MostRows], or -1 if it is not known until the
// pieces are read.
func rowsOfPieces(pieces []source.Piece) (total int64) {
	for _, p := range pieces {
		n := rowfilter.MostRows(p)
		if n < 0 {
			return -1
		}
		total += n
	}
	return total
}

// RunsOf returns the runs of a sample; see [ReadOptions.Runs].
//
// The rows, in order, are divided into n parts of equal size. In each part a row is
// chosen at random as the beginning of a run. Because a run continues at the
// beginning of its row group, each row of a row group is equally likely to be in a
// run, and the mean over runs of the mean over a run's rows is the mean over all
// rows. The choice depends on the number of rows alone.
func RunsOf(pieces []source.Piece, n int, rows int64) (runs []tasks.Task, err error) {
	total := rowsOfPieces(pieces)
	if total < 0 {
		return nil, fmt.Errorf("a sample of rows whose number is not known")
	}
	all := float64(n)*float64(rows) >= float64(total)
	var before int64 // rows of the groups so far
	next := 0
	for _, t := range groupsWithRows(pieces) {
		size := t.Hi
		if all && size > 0 {
			t.Number, t.Stands = len(runs), float64(size)
			runs = append(runs, t)
		}
		for ; !all && next < n; next++ {
			at := chosen(next, n, total)
			if at >= before+size {
				break
			}
			t.Number, t.Stands = next, float64(total)/float64(n)
			if t.Lo, t.Hi = at-before, at-before+rows; rows >= size {
				t.Lo, t.Hi = 0, size
			}
			runs = append(runs, t)
		}
		before += size
	}
	return runs, nil
}

// chosen returns a row of part i of n.
func chosen(i, n int, total int64) int64 {
	x := uint64(i)*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	lo, hi := source.Nth(i, n, total), source.Nth(i+1, n, total)
	off, _ := bits.Mul64(x, uint64(hi-lo))
	return lo + int64(off)
}
