package output

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// rowRange is a range of rows of one row group: lo to hi, exclusive. A negative hi
// means all rows of a row group whose number of rows is unknown. A hi above the
// number of rows continues at the beginning of the row group.
type rowRange struct {
	group  int
	lo, hi int64
}

// spans returns the range as one or two ascending ranges that do not wrap around.
// total is the number of rows of the row group.
func (r rowRange) spans(total int64) [][2]int64 {
	if r.hi <= total {
		return [][2]int64{{r.lo, r.hi}}
	}
	return [][2]int64{{0, r.hi - total}, {r.lo, total}}
}

// task is a part of the work on some pieces.
type task struct {
	rowRange
	file   *source.File
	end    int     // the row group after the last one, if text is read in runs; else 0
	piece  int     // index of its piece
	number int     // its number among the tasks
	last   bool    // the next task is of another file
	stands float64 // rows that a run of a sample represents
}

// after returns the row group after the last one of the task.
func (t *task) after() int { return max(t.end, t.group+1) }

// groupsOf returns a task for each row group of the pieces.
func groupsOf(pieces []source.Piece) (tasks []task) {
	for i, p := range pieces {
		for g := p.Lo; g < p.Hi; g++ {
			all := rowRange{group: g, lo: 0, hi: p.File.GroupRows(g)}
			tasks = append(tasks, task{rowRange: all, file: p.File, piece: i, number: len(tasks)})
		}
	}
	return tasks
}

// textRuns makes runs of the row groups of a text file, which are read as one: the fewer
// the cheaper, but each worker should get several. Reading CSV anywhere but at the start
// takes counting the quotes before. That is cheap unless they are compressed.
func textRuns(tasks []task, workers int) (runs []task) {
	for len(tasks) > 0 {
		t, n := tasks[0], 1
		for n < len(tasks) && tasks[n].piece == t.piece {
			n++
		}
		most := 1
		if t.file.Format().IsText() {
			most = max(min(n/(runsOfWorker*workers), mostOfRun), 1)
			if workers == 1 || t.file.Format() == dataset.CSV && t.file.Compressed() {
				most = n
			}
		}
		for run := range slices.Chunk(tasks[:n], most) {
			t := run[0]
			t.end, t.number = run[0].group+len(run), len(runs)
			runs = append(runs, t)
		}
		tasks = tasks[n:]
	}
	return runs
}

// Limits of the runs of row groups of text.
const (
	runsOfWorker = 8 // at least, if there are as many row groups
	mostOfRun    = 8 // row groups
)

// groupsWithRows is groupsOf without row groups that have no row according to
// [MostRows].
func groupsWithRows(pieces []source.Piece) (tasks []task) {
	most := map[int][]int64{}
	for _, t := range groupsOf(pieces) {
		p := pieces[t.piece]
		if most[t.piece] == nil {
			most[t.piece] = groupsMost(p)
		}
		if most[t.piece][t.group-p.Lo] > 0 {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// rowRangesOf is groupsOf with large row groups of Parquet files divided.
func rowRangesOf(pieces []source.Piece) (tasks []task) {
	for _, t := range groupsOf(pieces) {
		p := t.file.Parquet()
		if p == nil {
			t.number = len(tasks)
			tasks = append(tasks, t)
			continue
		}
		for r := range rangesIn(p.File(), t.group) {
			t.rowRange, t.number = r, len(tasks)
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Limits of the ranges into which a large row group is divided.
const (
	rangeRows  = 1 << 20   // approximate rows
	rangeBytes = 128 << 20 // approximate bytes of all columns, decompressed
)

// rangesIn divides a row group into ranges that, according to the footer, take a
// limited amount of memory.
func rangesIn(f *parquet.File, group int) iter.Seq[rowRange] {
	return func(yield func(rowRange) bool) {
		rows, bytes := f.RowGroups[group].Rows, int64(0)
		for _, c := range f.Metadata.RowGroups[group].Columns {
			bytes += min(c.MetaData.TotalUncompressedSize, 1<<40)
		}
		n := max(1, (rows+rangeRows/2)/rangeRows, bytes/rangeBytes)
		n = min(n, max(rows, 1))
		for i := range n {
			r := rowRange{group: group, lo: rows / n * i, hi: rows / n * (i + 1)}
			if i == n-1 {
				r.hi = rows
			}
			if !yield(r) {
				return
			}
		}
	}
}

// firstPagesOf returns up to n row groups of Parquet files, spread evenly over the
// pieces.
func firstPagesOf(pieces []source.Piece, n int) (tasks []task) {
	var groups []task
	for _, t := range groupsOf(pieces) {
		if t.file.Parquet() != nil {
			groups = append(groups, t)
		}
	}
	n = min(n, len(groups))
	for i := range n {
		t := groups[source.Nth(i, n, int64(len(groups)))]
		t.number = i
		tasks = append(tasks, t)
	}
	return tasks
}

// rowsOfPieces returns the sum of [MostRows], or -1 if it is not known until the
// pieces are read.
func rowsOfPieces(pieces []source.Piece) (total int64) {
	for _, p := range pieces {
		n := MostRows(p)
		if n < 0 {
			return -1
		}
		total += n
	}
	return total
}

// runsOf returns the runs of a sample; see [KeyOptions.Runs].
//
// The rows, in order, are divided into n parts of equal size. In each part a row is
// chosen at random as the beginning of a run. Because a run continues at the
// beginning of its row group, each row of a row group is equally likely to be in a
// run, and the mean over runs of the mean over a run's rows is the mean over all
// rows. The choice depends on the number of rows alone.
func runsOf(pieces []source.Piece, n int, rows int64) (runs []task, err error) {
	total := rowsOfPieces(pieces)
	if total < 0 {
		return nil, fmt.Errorf("a sample of rows whose number is not known")
	}
	all := float64(n)*float64(rows) >= float64(total)
	var before int64 // rows of the groups so far
	next := 0
	for _, t := range groupsWithRows(pieces) {
		size := t.hi
		if all && size > 0 {
			t.number, t.stands = len(runs), float64(size)
			runs = append(runs, t)
		}
		for ; !all && next < n; next++ {
			at := chosen(next, n, total)
			if at >= before+size {
				break
			}
			t.number, t.stands = next, float64(total)/float64(n)
			if t.lo, t.hi = at-before, at-before+rows; rows >= size {
				t.lo, t.hi = 0, size
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
