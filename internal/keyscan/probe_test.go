package keyscan_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
)

func classOf(text bool) keys.Class {
	if text {
		return keys.Bytes
	}
	return keys.Integer
}

// keyRecord has one column k of integers, or of strings of 25 bytes.
func keyRecord(rows int, text bool) arrow.Record {
	ints := array.NewInt64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range rows {
		ints.Append(int64(i) * 7919)
		texts.Append(fmt.Sprintf("user-%020d", i*7919))
	}
	col := ints.NewArray()
	if text {
		col = texts.NewArray()
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: col.DataType()}}, nil)
	return array.NewRecord(schema, []arrow.Array{col}, int64(rows))
}

// BenchmarkProbe measures a probe from a column of values to the positions of members,
// with a filter that stays in the cache.
func BenchmarkProbe(b *testing.B) {
	const rows = 1 << 16
	for _, text := range []bool{false, true} {
		bits, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: 4096})
		if err != nil {
			b.Fatal(err)
		}
		f := roomtest.FilterOver([]string{"k"}, classOf(text))
		f.SetBloom(bits)
		rec := keyRecord(rows, text)
		m := keyscan.Predicate{Match: dataset.Match{Filter: (*codec.Filter)(f)}}
		enc, err := m.Encoder("log", rec.Schema())
		if err != nil {
			b.Fatal(err)
		}
		k := keyscan.Keys{Batch: new(keys.Batch), Filter: f}
		b.Run("class="+string(classOf(text)), func(b *testing.B) {
			for b.Loop() {
				if err := enc.EncodeKeys("log", rec, k.Batch); err != nil {
					b.Fatal(err)
				}
				if _, err := k.Probe(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/key")
			b.ReportAllocs()
		})
	}
}
