package tasks

import (
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// TestRangesCoverTheRowGroup checks that each row of a row group is in one of its ranges,
// also where their number does not divide that of the rows.
func TestRangesCoverTheRowGroup(t *testing.T) {
	for _, c := range []struct {
		rows, bytes int64
		ranges      int
	}{
		{0, 0, 1}, {0, 5 * RangeBytes, 1}, {1, 5 * RangeBytes, 1}, {7, 5 * RangeBytes, 5}, {RangeRows, 0, 1},
		{2*RangeRows + 1, 0, 2}, {3*RangeRows + 2, 0, 3}, {2*RangeRows + 1, 7 * RangeBytes, 7}, {1000, 3*RangeBytes - 1, 2},
	} {
		f := &parquet.File{RowGroups: []parquet.RowGroup{{}, {Rows: c.rows}}, Metadata: &meta.Footer{RowGroups: []meta.RowGroup{
			{}, {Columns: []meta.ColumnChunk{{MetaData: meta.ColumnMetaData{TotalUncompressedSize: c.bytes}}}},
		}}}
		next, n := int64(0), 0
		for r := range RangesIn(f, 1) {
			if r.Group != 1 || r.Lo != next || r.Hi < r.Lo || r.Hi == r.Lo && c.rows > 0 {
				t.Errorf("%d rows, %d bytes: range %d is %+v, and the one before ends at %d", c.rows, c.bytes, n, r, next)
			}
			next = r.Hi
			n++
		}
		if next != c.rows || n != c.ranges {
			t.Errorf("%d rows, %d bytes: %d ranges up to row %d, want %d", c.rows, c.bytes, n, next, c.ranges)
		}
	}
}
