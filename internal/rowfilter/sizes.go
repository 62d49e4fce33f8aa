package rowfilter

import (
	"math"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// PlainBytes estimates the decompressed bytes of the given top-level columns in the
// row groups lo to hi, exclusive; nil means all columns. If only the size of all
// columns is known, each counts equally. Row groups without rows according to
// [MostRows] do not count. It returns -1 if nothing is known, such as for standard
// input and records. It reads nothing.
func PlainBytes(f *source.File, lo, hi int, columns []int) int64 {
	if lo, hi = max(lo, 0), min(hi, f.NumGroups()); lo >= hi || f.CheckColumns(columns) != nil {
		return -1
	}
	if p := f.Parquet(); p != nil {
		return plainBytes(p.File(), f, lo, hi, columns)
	}
	if f.Size() < 0 {
		return -1
	}
	var stored int64
	for g := lo; g < hi; g++ {
		stored += f.GroupBytes(g)
	}
	if n := len(f.Schema().Fields()); columns != nil && n > 0 {
		return int64(float64(stored) * float64(len(columns)) / float64(n))
	}
	return stored
}

func plainBytes(p *parquet.File, f *source.File, lo, hi int, columns []int) int64 {
	var names map[string]bool
	if columns != nil {
		names = map[string]bool{}
		for _, c := range columns {
			names[f.Schema().Field(c).Name] = true
		}
	}
	var sum int64
	most := GroupsMost(source.Piece{File: f, Lo: lo, Hi: hi})
	for g := lo; g < hi; g++ {
		if f.Partial() && most[g-lo] == 0 {
			continue
		}
		for i := range p.Metadata.RowGroups[g].Columns {
			if names == nil || names[p.Leaves[i].Path[0]] {
				sum += min(p.Metadata.RowGroups[g].Columns[i].MetaData.TotalUncompressedSize, math.MaxInt64/2-sum)
			}
		}
	}
	return sum
}

// EstimateRows returns Rows or, if the number is not known until the rows are read,
// an estimate from the lines at three places of the file; exact reports which. For
// compressed text it assumes a ratio of four. With a condition the estimate is
// [MostRows]. It returns -1 if nothing is known, such as for standard input and
// records.
func EstimateRows(f *source.File) (rows int64, exact bool, err error) {
	if rows = MostRows((source.Piece{File: f, Lo: 0, Hi: f.NumGroups()})); rows >= 0 {
		return rows, !f.Partial(), nil
	}
	if f.Size() < 0 {
		return -1, false, nil
	}
	if !source.IsText(f.Format()) {
		rows, err = f.CountRows()
		return rows, err == nil && !f.Partial(), err
	}
	rows, err = f.EstimateLines()
	return rows, false, err
}
