package joins

import (
	"errors"
	"math"
	"testing"
)

// TestCountOverflows: more pairs than an int64 can count are an error, in one batch or
// in several.
func TestCountOverflows(t *testing.T) {
	for _, c := range []struct {
		times   int64 // how many IDs have the key
		rows    uint32
		batches int
		want    int64 // 0: an error
	}{
		{2, 3, 1, 6},
		{2, 3, 4, 24},
		{1<<32 - 1, 1 << 30, 1, (1<<32 - 1) << 30},
		{1<<32 - 1, 1 << 31, 1, (1<<32 - 1) << 31},
		{1<<32 - 1, 1 << 31, 2, 0},
		{1<<32 - 1, math.MaxUint32, 1, 0},
	} {
		var total tally
		var err error
		for range c.batches {
			n, one := pairsOf([]uint32{0}, []uint32{c.rows, 0}, func(int) int64 { return c.times })
			if one == nil {
				one = total.addPairs(n)
			}
			err = errors.Join(err, one)
		}
		if n := total.rowsOut.Load(); c.want == 0 && !errors.Is(err, errCount) || c.want > 0 && (n != c.want || err != nil) {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
	}
	if n, err := countedRows(Full, math.MaxInt64-5, 0, &Report{RowsIn: 9, RowsWhere: 9, RowsMatched: 4}); !errors.Is(err, errCount) {
		t.Errorf("%d rows, %v", n, err)
	}
}
