package joins_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/util"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// TestWideRows: a wide row that matches many rows of the other side makes many batches,
// not one as large as all of them together.
func TestWideRows(t *testing.T) {
	const n, wide = 60, 1 << 20
	numbers, texts := make([]int64, n), make([]string, n)
	for i := range numbers {
		numbers[i], texts[i] = int64(i), fmt.Sprint(i)
	}
	str, num := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	one := table(t, column{name: "k", dt: num, values: []string{"1", "2"}},
		column{name: "p", dt: str, values: []string{strings.Repeat("w", wide), "x"}})
	many := table(t, column{name: "k", dt: num, values: slices.Repeat([]string{"1"}, n)}, column{name: "v", dt: num, values: texts})
	for name, sides := range map[string][2]arrow.Record{"ids": {one, many}, "log": {many, one}} {
		for _, typ := range []join.Type{join.Inner, join.Full} {
			for _, strategy := range []join.Strategy{join.Lookup, join.Reverse, join.Shuffle} {
				t.Run(fmt.Sprint(name, "/", typ, "/", strategy), func(t *testing.T) {
					ids := open(t, partition.OpenOptions{}, writeTable(t, sides[0], 1, 1, dataset.Parquet))
					logs := open(t, partition.OpenOptions{}, writeTable(t, sides[1], 1, 1, dataset.Parquet))
					j, err := join.New(ids, logs, join.Options{On: "k", Type: typ, Strategy: strategy, TempDir: t.TempDir()})
					if err != nil {
						t.Fatal(err)
					}
					var rows []int64
					for r, err := range j.Run(context.Background()) {
						if err != nil {
							t.Fatal(err)
						}
						// 16 MiB, and at most as much again for the capacity of
						// buffers.
						if got := util.TotalRecordSize(r.Record); got > 33<<20 {
							t.Errorf("a batch of %d rows takes %d bytes", r.Record.NumRows(), got)
						}
						col := func(name string) arrow.Array { return r.Record.Column(r.Record.Schema().FieldIndices(name)[0]) }
						p, v := col("p").(*array.String), col("v").(*array.Int64)
						for i := range p.Len() {
							if len(p.Value(i)) == wide {
								rows = append(rows, v.Value(i))
							}
						}
						r.Record.Release()
					}
					if !slices.Equal(rows, numbers) {
						t.Errorf("wide rows %v, want %v", rows, numbers)
					}
				})
			}
		}
	}
}

// TestWideNulls: NULL takes as much as a value in fixed-size lists. Rows without a partner
// are in batches, too.
func TestWideNulls(t *testing.T) {
	const rows, wide = 6000, 3072 // 12 KiB each
	dt := arrow.FixedSizeListOf(wide, arrow.PrimitiveTypes.Float32)
	v := func(int) arrow.Array { return fromJSON(t, dt, "[["+strings.Repeat("1.5,", wide-1)+"1.5]]") }
	ids := writeTable(t, keyed(t, "m", []string{"5"}, v), 1, 1, dataset.ArrowFile)
	logs := writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 0, rows)), 1, 1, dataset.Parquet)
	for typ, want := range map[join.Type]int64{join.Left: rows, join.Full: rows} {
		j, err := join.New(open(t, partition.OpenOptions{}, ids), open(t, partition.OpenOptions{}, logs), join.Options{On: "k", Type: typ, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range j.Run(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			if got := util.TotalRecordSize(r.Record); got > 33<<20 {
				t.Errorf("%s: a batch of %d rows takes %d bytes", typ, r.Record.NumRows(), got)
			}
			want -= r.Record.NumRows()
			r.Record.Release()
		}
		if want != 0 {
			t.Errorf("%s: %d rows are missing", typ, want)
		}
	}
}
