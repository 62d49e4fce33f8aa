package output

import (
	"math"

	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/key"
)

// IntegerRange returns bounds of an integer key column of the files, according to
// the statistics that pruning trusts. ok is false if they are not known for some
// file, or if there are no values. It reads nothing.
func IntegerRange(files []*source.File, column key.Column, ignoreCase bool) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, f := range files {
		p := f.Parquet()
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
