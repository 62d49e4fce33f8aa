package prune

import (
	"math"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// IntegerRange returns bounds of the integers in the column at path, according to
// the statistics of the row groups. ok is false if the statistics of some row group
// are missing or not trusted. Without values, lo is +Inf and hi -Inf. It reads
// nothing from the file.
func IntegerRange(f *parquet.File, path keys.Path) (lo, hi float64, ok bool) {
	leaf, found := leafAt(f, path)
	if !found || !f.BoundsBelieved(leaf) {
		return 0, 0, false
	}
	var o order
	if perOne, fine := o.numbers(leaf, keys.Integer); !fine || !perOne.IsInt64() || leaf.Type == format.FixedLenByteArray {
		return 0, 0, false
	}
	lo, hi = math.Inf(1), math.Inf(-1)
	for g := range f.RowGroups {
		st := &f.Metadata.RowGroups[g].Columns[leaf.Index].MetaData.Statistics
		least, most := boundOf(st.MinValue), boundOf(st.MaxValue)
		if least == nil && most == nil && f.Nulls(g, leaf.Index) == f.RowGroups[g].Rows {
			continue
		}
		a, fine := o.bound(least)
		b, known := o.bound(most)
		if least == nil || most == nil || !fine || !known {
			return 0, 0, false
		}
		lo, hi = math.Min(lo, o.about(a)), math.Max(hi, o.about(b))
	}
	return lo, hi, true
}

// about returns the approximate integer that b represents.
func (o *order) about(b []byte) float64 {
	v := o.integer(b)
	if o.signed {
		return float64(int64(v))
	}
	return float64(v)
}
