package joins_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// drawSample draws a share of the keys, or none. Joins that keep no row of the log without an ID need
// none of the log's.
func (c *recipe) drawSample(r *rand.Rand, typ join.Type) {
	if c.rule != "" || r.IntN(3) > 0 {
		return
	}
	c.sample = choose(r, 0.2, 0.5, 0.9)
	c.sampleLog = slices.Contains([]join.Type{join.Anti, join.Left, join.Full}, typ) || r.IntN(2) == 0
}

// inSample returns the rows of a table whose key is in the sample: a row of the key is read from the
// files. It is in the sample with all of its rows, and on the other side, too. members has the keys
// that were looked up, as they are rendered.
func (c *recipe) inSample(t testing.TB, rec arrow.Record, paths [][]string, files []*partition.File, members map[string]bool) arrow.Record {
	read := map[string]int{}
	for _, f := range files {
		in := (*source.File)(f)
		for g := range in.NumGroups() {
			for got, err := range rowfilter.Read(t.Context(), in, g, nil) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range int(got.NumRows()) {
					k, null, _ := keyOf(t, got, paths, i, "")
					if read[k]++; null {
						t.Fatal("a row without a key is in the sample")
					}
				}
			}
		}
	}
	var rows []int
	stored := map[string]int{}
	for i := range int(rec.NumRows()) {
		k, null, _ := keyOf(t, rec, paths, i, "")
		if !null {
			stored[k]++
		}
		if !null && read[k] > 0 {
			rows = append(rows, i)
		}
	}
	for k, n := range stored {
		if read[k] != 0 && read[k] != n {
			t.Fatalf("key %q: %d of %d rows are in the sample", k, read[k], n)
		}
		if was, known := members[k]; known && was != (read[k] > 0) {
			t.Fatalf("key %q is in the sample of one side: %t, %t", k, was, !was)
		}
		members[k] = read[k] > 0
	}
	defer rec.Release()
	some, err := take.Record(memory.DefaultAllocator, rec, rows)
	if err != nil {
		t.Fatal(err)
	}
	return some
}
