package joins_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// An ID column without a type, with only NULLs, is an empty set. It fits any log key,
// alone or beside files that have IDs.
func TestNullIDs(t *testing.T) {
	i64, f64 := arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64
	for _, format := range []dataset.Format{dataset.Parquet, dataset.ArrowFile} {
		null := writeTable(t, table(t, column{"k", arrow.Null, []string{"NULL", "NULL"}, "", nil}), 1, 1, format)
		some := writeTable(t, table(t, column{"k", i64, []string{"1", "7"}, "", nil}), 1, 1, format)
		for _, dt := range []arrow.DataType{i64, f64, arrow.BinaryTypes.String, &arrow.Decimal128Type{Precision: 9}} {
			log := writeTable(t, table(t, column{"k", dt, []string{"1", "2", "NULL"}, "", nil}), 1, 2, format)
			for _, c := range []struct {
				ids  []string
				want map[join.Type]int
			}{
				{[]string{null}, map[join.Type]int{join.Semi: 0, join.Anti: 3, join.Inner: 0, join.Left: 3, join.Full: 5}},
				{[]string{null, some}, map[join.Type]int{join.Semi: 1, join.Anti: 2}},
				{[]string{some, null}, map[join.Type]int{join.Semi: 1, join.Anti: 2}},
			} {
				if len(c.ids) > 1 && dt == arrow.BinaryTypes.String {
					continue // text cannot be compared with integers
				}
				for typ, want := range c.want {
					if typ == join.Full && dt != i64 {
						continue
					}
					for _, s := range []join.Strategy{join.Auto, join.Exact, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
						if s == join.Exact && (typ != join.Semi && typ != join.Anti || dt != i64) {
							continue
						}
						ids, logs := open(t, partition.OpenOptions{}, c.ids...), open(t, partition.OpenOptions{}, log)
						got, err := run(t, ids, logs, join.Options{On: "k", Type: typ, Strategy: s})
						if err != nil || len(got.rows) != want {
							t.Errorf("%s log, IDs of %d files, %s by %s: %d rows, want %d: %v", dt, len(c.ids), typ, s, len(got.rows), want, err)
						}
					}
				}
			}
		}
	}
}
