package joins_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// TestSpreadOfRepeatedKeys: the false-positive rate and its bounds count each row of a key, also
// where keys are looked up once for all of their rows, as those of a dictionary are.
func TestSpreadOfRepeatedKeys(t *testing.T) {
	const distinct = 120
	log := texts("k")
	counts := make([]int64, distinct) // rows of each key
	for k := range distinct {
		for range 1 + k%5 {
			log.values = append(log.values, fmt.Sprintf("word %03d", k))
			counts[k]++
		}
	}
	log.values = append(log.values, "NULL", "NULL", "NULL")
	member := func(k int) bool { return k%3 == 1 }
	ids := texts("k")
	var rows, squares, heaviest float64 // of keys without an ID
	for k, n := range counts {
		if member(k) {
			ids.values = append(ids.values, fmt.Sprintf("word %03d", k))
			continue
		}
		rows, squares, heaviest = rows+float64(n), squares+float64(n)*float64(n), max(heaviest, float64(n))
	}
	idFiles := files(t, 1, 1, ids, numbers("p", arrow.PrimitiveTypes.Int64, 0, len(ids.values)))
	filter := filterOf(t, idFiles, "k", codec.KindBloom, 0.3)
	for _, format := range []dataset.Format{dataset.Parquet, dataset.ArrowFile} {
		rec := table(t, log, numbers("row", arrow.PrimitiveTypes.Int64, 0, len(log.values)))
		logs := open(t, partition.OpenOptions{}, writeTable(t, rec, 1, 1, format))
		for _, typ := range types {
			for _, strategy := range []join.Strategy{join.Lookup, join.Shuffle} {
				got, err := run(t, idFiles, logs, join.Options{On: "k", Type: typ, Strategy: strategy, Filter: (*codec.Filter)(filter), Threads: 2})
				if err != nil {
					t.Fatal(err)
				}
				what, r := fmt.Sprintf("%s join of %s by %s", typ, format, strategy), got.report
				if float64(r.FPRRows) != rows {
					t.Errorf("%s: %d rows without an ID, want %v", what, r.FPRRows, rows)
				}
				if wrong := r.Candidates - r.RowsMatched; math.Abs(r.FPRMeasured.Value-float64(wrong)/rows) > 1e-12 {
					t.Errorf("%s: a rate of %v, want %d in %v", what, r.FPRMeasured.Value, wrong, rows)
				}
				// Bernstein's inequality. Few keys have counters of their own, so it is exact.
				p := r.FPRPredicted
				b := 7.6 * heaviest / 3
				off := (b + math.Sqrt(b*b+2*7.6*p*(1-p)*squares)) / rows
				low, high := max(0, p-off), min(1, p+off)
				if high == 1 || math.Abs(r.FPRMeasured.Low-low) > 1e-9 || math.Abs(r.FPRMeasured.High-high) > 1e-9 {
					t.Errorf("%s: from %v to %v, want %v to %v", what, r.FPRMeasured.Low, r.FPRMeasured.High, low, high)
				}
			}
		}
	}
}
