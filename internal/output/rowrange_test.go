package output

import (
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// TestRangesCoverTheRowGroup checks that each row of a row group is in one of its ranges,
// also where their number does not divide that of the rows.
func TestRangesCoverTheRowGroup(t *testing.T) {
	for _, c := range []struct {
		rows, bytes int64
		ranges      int
	}{
		{0, 0, 1}, {0, 5 * rangeBytes, 1}, {1, 5 * rangeBytes, 1}, {7, 5 * rangeBytes, 5}, {rangeRows, 0, 1},
		{2*rangeRows + 1, 0, 2}, {3*rangeRows + 2, 0, 3}, {2*rangeRows + 1, 7 * rangeBytes, 7}, {1000, 3*rangeBytes - 1, 2},
	} {
		f := &parquet.File{RowGroups: []parquet.RowGroup{{}, {Rows: c.rows}}, Metadata: &parquet.FileMetaData{RowGroups: []parquet.RowGroupMeta{
			{}, {Columns: []parquet.ColumnChunk{{MetaData: parquet.ColumnMetaData{TotalUncompressedSize: c.bytes}}}},
		}}}
		next, n := int64(0), 0
		for r := range rangesIn(f, 1) {
			if r.group != 1 || r.lo != next || r.hi < r.lo || r.hi == r.lo && c.rows > 0 {
				t.Errorf("%d rows, %d bytes: range %d is %+v, and the one before ends at %d", c.rows, c.bytes, n, r, next)
			}
			next = r.hi
			n++
		}
		if next != c.rows || n != c.ranges {
			t.Errorf("%d rows, %d bytes: %d ranges up to row %d, want %d", c.rows, c.bytes, n, next, c.ranges)
		}
	}
}
