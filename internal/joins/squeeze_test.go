package joins_test

import (
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/join"
)

// TestFilterLargerThanMemory: if even the filter of the IDs exceeds the memory, the
// join shuffles and uses a smaller filter.
func TestFilterLargerThanMemory(t *testing.T) {
	ids := files(t, 1, 4, numbers("k", arrow.PrimitiveTypes.Int64, 0, 60_000))
	logs := files(t, 1, 40, numbers("k", arrow.PrimitiveTypes.Int64, 30_000, 90_000))
	for _, typ := range []join.Type{join.Semi, join.Inner} {
		want, err := run(t, ids, logs, join.Options{On: "k", Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		// A filter of 60,000 keys needs more than 100,000 bytes.
		got, err := run(t, ids, logs, join.Options{On: "k", Type: typ, Strategy: join.Shuffle, Memory: 200_000, TempDir: t.TempDir()})
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		if !slices.Equal(got.rows, want.rows) || len(got.rows) != 30_000 || got.report.SpilledBytes == 0 {
			t.Errorf("%s: %d rows, want %d; %d bytes spilled", typ, len(got.rows), len(want.rows), got.report.SpilledBytes)
		}
	}
}
