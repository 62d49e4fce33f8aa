package output

import (
	"bytes"
	"context"
	"errors"
	"math"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/key"
)

// PlainBytes estimates the decompressed bytes of the given top-level columns in the
// row groups lo to hi, exclusive; nil means all columns. If only the size of all
// columns is known, each counts equally. Row groups without rows according to
// [MostRows] do not count. It returns -1 if nothing is known, such as for standard
// input and records. It reads nothing.
func PlainBytes(f *File, lo, hi int, columns []int) int64 {
	if lo, hi = max(lo, 0), min(hi, f.NumGroups()); lo >= hi || f.checkColumns(columns) != nil {
		return -1
	}
	if p := f.parquet(); p != nil {
		return plainBytes(p.File(), f, lo, hi, columns)
	}
	if f.size < 0 {
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

func plainBytes(p *parquet.File, f *File, lo, hi int, columns []int) int64 {
	var names map[string]bool
	if columns != nil {
		names = map[string]bool{}
		for _, c := range columns {
			names[f.Schema().Field(c).Name] = true
		}
	}
	var sum int64
	most := groupsMost(Piece{f, lo, hi})
	for g := lo; g < hi; g++ {
		if f.where != nil && most[g-lo] == 0 {
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
func EstimateRows(f *File) (rows int64, exact bool, err error) {
	if rows = MostRows((Piece{f, 0, f.NumGroups()})); rows >= 0 {
		return rows, f.where == nil, nil
	}
	if f.size < 0 {
		return -1, false, nil
	}
	if !f.format.IsText() {
		rows, err = f.CountRows()
		return rows, err == nil && f.where == nil, err
	}
	_, release, err := f.keepOpen(context.Background())
	if err != nil {
		return -1, false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	const piece = 64 << 10
	var seen, lines int64
	buf := make([]byte, piece)
	for i := range int64(3) {
		at := max(f.size-piece, 0) * i / 2
		n := min(piece, f.size-at)
		if m, err := f.src.ReadAt(buf[:n], at); int64(m) < n {
			return -1, false, err
		}
		if i == 0 && compressed(buf[:n]) {
			return f.size * 4 / guessedLine, false, f.rest()
		}
		seen, lines = seen+n, lines+int64(bytes.Count(buf[:n], []byte("\n")))
		if f.size <= piece {
			if n > 0 && buf[n-1] != '\n' {
				lines++
			}
			break
		}
	}
	rows = int64(float64(f.size) * float64(lines) / float64(max(seen, 1)))
	if f.format == dataset.CSV || f.format == dataset.TSV { // the header
		rows = max(rows-1, 0)
	}
	return rows, false, f.rest()
}

// guessedLine is the assumed length of a line in compressed text, in bytes.
const guessedLine = 12

// compressed reports whether the bytes begin like those of a compressed file.
func compressed(b []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zXZ", "\x04\x22\x4d\x18"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			return true
		}
	}
	return false
}

// IntegerRange returns bounds of an integer key column of the files, according to
// the statistics that pruning trusts. ok is false if they are not known for some
// file, or if there are no values. It reads nothing.
func IntegerRange(files []*File, column key.Column, ignoreCase bool) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, f := range files {
		p := f.parquet()
		field, err := column.Resolve(f.Schema(), ignoreCase)
		if p == nil || err != nil || column.Cast != nil {
			return 0, 0, false
		}
		least, most, known := prune.IntegerRange(p.File(), field.Names)
		if !known {
			return 0, 0, false
		}
		lo, hi = math.Min(lo, least), math.Max(hi, most)
	}
	return lo, hi, lo <= hi
}
