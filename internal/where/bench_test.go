package where

import (
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
)

func BenchmarkEval(b *testing.B) {
	const rows = 1 << 16
	ints, texts := array.NewInt64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	floats := array.NewFloat64Builder(memory.DefaultAllocator)
	for i := range rows {
		ints.Append(int64(i) * 7919 % rows)
		floats.Append(float64(i * 7919 % rows))
		texts.Append("user " + strconv.Itoa(i*7919%rows))
	}
	columns := []arrow.Array{ints.NewArray(), floats.NewArray(), texts.NewArray()}
	schema := arrow.NewSchema([]arrow.Field{{Name: "i", Type: columns[0].DataType()}, {Name: "f", Type: columns[1].DataType()}, {Name: "s", Type: columns[2].DataType()}}, nil)
	for _, text := range []string{"i < 30000", "i BETWEEN 10000 AND 20000", "i IN (1, 5, 100, 1000)", "f >= 30000.5", "s = 'user 77'", "s LIKE 'user 1%'", "s LIKE '%77'"} {
		b.Run(text, func(b *testing.B) {
			c, err := Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			bound, err := c.Bind(fault.At{}, schema, false)
			if err != nil {
				b.Fatal(err)
			}
			var truths []Truth
			of := columns[bound.Columns()[0].Index[0]]
			for b.Loop() {
				preds := make([][]Truth, len(bound.Preds()))
				for i, p := range bound.Preds() {
					preds[i] = p.Eval(nil, of)
				}
				truths = bound.Combine(truths[:0], preds)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
