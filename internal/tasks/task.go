// Package tasks says who reads which rows, in what order, holding how much.
//
//	Pieces ── Groups, Ranges, TextRuns ──► Tasks ── Map(flight, work) ──► results, in the order of the tasks
//
// In come pieces of files and, for each worker, a function that makes results of a task; out
// come the results with their pieces, in input order whatever the number of workers. A [Flight]
// bounds what waits between workers and consumer. A panic of a worker is an error of its file.
//
// Package pagecopy has a scheduler of its own, for pages.
package tasks

import (
	"iter"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Range is a range of rows of one row group: lo to hi, exclusive. A negative hi
// means all rows of a row group whose number of rows is unknown. A hi above the
// number of rows continues at the beginning of the row group.
type Range struct {
	Group  int
	Lo, Hi int64
}

// Set returns the rows of the range, in a row group of total rows.
func (r Range) Set(total int64) rows.Set {
	if r.Hi <= total {
		return rows.Range(r.Lo, r.Hi)
	}
	return rows.Set{{0, r.Hi - total}, {r.Lo, total}}
}

// Task is a part of the work on some pieces.
type Task struct {
	Range
	File   *source.File
	end    int     // the row group after the last one, if text is read in runs; else 0
	Piece  int     // index of its piece
	Number int     // its number among the tasks
	last   bool    // the next task is of another file
	Stands float64 // rows that a run of a sample represents
}

// After returns the row group after the last one of the task.
func (t *Task) After() int { return max(t.end, t.Group+1) }

// Groups returns a task for each row group of the pieces.
func Groups(pieces []source.Piece) (tasks []Task) {
	for i, p := range pieces {
		for g := p.Lo; g < p.Hi; g++ {
			all := Range{Group: g, Lo: 0, Hi: p.File.GroupRows(g)}
			tasks = append(tasks, Task{Range: all, File: p.File, Piece: i, Number: len(tasks)})
		}
	}
	return tasks
}

// TextRuns groups the row groups of a text file into runs, each read as one: fewer are cheaper,
// but each worker should get several. To read CSV from the middle, the quotes before must be
// counted, which is cheap unless the file is compressed.
func TextRuns(tasks []Task, workers int) (runs []Task) {
	for len(tasks) > 0 {
		t, n := tasks[0], 1
		for n < len(tasks) && tasks[n].Piece == t.Piece {
			n++
		}
		most := 1
		if source.IsText(t.File.Format()) {
			most = max(min(n/(runsOfWorker*workers), maxOfRun), 1)
			if workers == 1 || t.File.Format() == dataset.CSV && t.File.Compressed() {
				most = n
			}
		}
		for run := range slices.Chunk(tasks[:n], most) {
			t := run[0]
			t.end, t.Number = run[0].Group+len(run), len(runs)
			runs = append(runs, t)
		}
		tasks = tasks[n:]
	}
	return runs
}

// Limits of the runs of row groups of text.
const (
	runsOfWorker = 8 // at least, if there are as many row groups
	maxOfRun     = 8 // row groups
)

// Ranges is Groups with large row groups of Parquet files divided.
func Ranges(pieces []source.Piece) (tasks []Task) {
	for _, t := range Groups(pieces) {
		p := t.File.Parquet()
		if p == nil {
			t.Number = len(tasks)
			tasks = append(tasks, t)
			continue
		}
		for r := range RangesIn(p.File(), t.Group) {
			t.Range, t.Number = r, len(tasks)
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Limits of the ranges into which a large row group is divided.
const (
	RangeRows  = 1 << 20   // approximate rows
	RangeBytes = 128 << 20 // approximate bytes of all columns, decompressed
)

// RangesIn divides a row group into ranges that, according to the footer, take a
// limited amount of memory.
func RangesIn(f *parquet.File, group int) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		rows, bytes := f.RowGroups[group].Rows, int64(0)
		for _, c := range f.Metadata.RowGroups[group].Columns {
			bytes += min(c.MetaData.TotalUncompressedSize, 1<<40)
		}
		n := max(1, (rows+RangeRows/2)/RangeRows, bytes/RangeBytes)
		n = min(n, max(rows, 1))
		for i := range n {
			r := Range{Group: group, Lo: rows / n * i, Hi: rows / n * (i + 1)}
			if i == n-1 {
				r.Hi = rows
			}
			if !yield(r) {
				return
			}
		}
	}
}

// Rows returns the number of some rows of the range; nil: of all.
func (r Range) Rows(some []uint32) int64 {
	if some != nil {
		return int64(len(some))
	}
	return r.Hi - r.Lo
}
