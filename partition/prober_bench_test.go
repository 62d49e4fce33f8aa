package partition_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/partition"
)

// What a probe costs from a column of values to the positions found, with a
// filter that stays in the cache.
func BenchmarkProber(b *testing.B) {
	const rows = 1 << 16
	ints := array.NewInt64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range rows {
		ints.Append(int64(i) * 7919)
		texts.Append(fmt.Sprintf("user-%020d", i*7919))
	}
	for _, c := range []struct {
		class string
		col   arrow.Array
	}{{"integer", ints.NewArray()}, {"bytes", texts.NewArray()}} {
		bits, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: 4096})
		if err != nil {
			b.Fatal(err)
		}
		f := &codec.Filter{Key: []codec.KeyColumn{{Name: "k", Class: c.class}}, NormalForm: "1"}
		f.SetBloom(bits)
		schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: c.col.DataType()}}, nil)
		p, err := partition.NewProber("log", schema, partition.Match{Filter: f})
		if err != nil {
			b.Fatal(err)
		}
		rec := array.NewRecord(schema, []arrow.Array{c.col}, rows)
		b.Run(c.class, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Probe(rec); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/key")
			b.ReportAllocs()
		})
	}
}
