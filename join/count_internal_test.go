package join

import (
	"errors"
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/key"
)

// TestCountOverflows: more pairs than an int64 counts are an error, whether of
// one key or of several batches.
func TestCountOverflows(t *testing.T) {
	side := newIDSide(sideKind{integers: true}, &account{})
	var k key.Batch
	k.SetInts([]byte{5, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}, 2, 8, false)
	if err := side.addKeys(&k); err != nil {
		t.Fatal(err)
	}
	if err := side.seal(); err != nil {
		t.Fatal(err)
	}
	members, entries := side.find(&k, []uint32{0}, nil, nil)
	tab, e := side.entry(entries[0])
	for _, c := range []struct {
		came, rows uint32 // how often the key came again among the IDs, and rows that have it
		batches    int
		want       int64 // 0: an error
	}{
		{1, 3, 1, 6},
		{1, 3, 4, 24},
		{none - 1, 1 << 30, 1, (1<<32 - 1) << 30},
		{none - 1, 1 << 31, 1, (1<<32 - 1) << 31},
		{none - 1, 1 << 31, 2, 0},
		{none - 1, math.MaxUint32, 1, 0},
	} {
		tab.aside[e] = c.came
		j := &Join{side: side}
		v := &verifier{j: j, ids: side, entries: entries}
		var err error
		for range c.batches {
			err = errors.Join(err, v.countPairs(members, []uint32{c.rows, 0}))
		}
		if n := j.rowsOut.Load(); c.want == 0 && !errors.Is(err, errCount) || c.want > 0 && (n != c.want || err != nil) {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
	}
	j := &Join{opts: Options{Type: Full}}
	j.rowsOut.Store(math.MaxInt64 - 5)
	if n, err := j.counted(&Report{RowsIn: 9, RowsMatched: 4}); !errors.Is(err, errCount) {
		t.Errorf("%d rows, %v", n, err)
	}
}
