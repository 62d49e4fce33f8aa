package table

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// benchIDs returns n IDs in batches, in random order, as integers or strings.
func benchIDs(b *testing.B, n int, text bool) (recs []arrow.Record, batches []*keys.Batch) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var dt arrow.DataType = arrow.PrimitiveTypes.Int64
	if text {
		dt = arrow.BinaryTypes.String
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: dt}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	enc, err := keys.NewEncoder(schema, []keys.Column{{Path: keys.Path{"k"}}}, keys.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for lo := 0; lo < n; lo += 1 << 16 {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := lo; i < min(lo+1<<16, n); i++ {
			v := int64(r.Uint64() >> 8)
			if text {
				rb.Field(0).(*array.StringBuilder).Append("user-" + strconv.FormatInt(v, 36))
			} else {
				rb.Field(0).(*array.Int64Builder).Append(v)
			}
			rb.Field(1).(*array.Int64Builder).Append(v)
		}
		rec, batch := rb.NewRecord(), &keys.Batch{}
		if err := enc.Encode(rec, batch); err != nil {
			b.Fatal(err)
		}
		recs, batches = append(recs, rec), append(batches, batch)
	}
	return recs, batches
}

// BenchmarkSide adds IDs in one goroutine and looks up all of them and as many keys
// that are not IDs.
func BenchmarkSide(b *testing.B) {
	for _, n := range []int{100_000, 5_000_000} {
		for _, text := range []bool{false, true} {
			recs, batches := benchIDs(b, n, text)
			_, others := benchIDs(b, n+1, text)
			for _, columns := range []bool{false, true} {
				for _, reserved := range []bool{false, true} {
					name := fmt.Sprintf("n=%d/text=%v/columns=%v/reserved=%v/", n, text, columns, reserved)
					fill := func(b *testing.B) *Side {
						var held *tables.Columns
						if columns {
							held = roomtest.Held(b, recs[0].Schema())
						}
						s := New(Kind{Integers: !text, Columns: held, Threads: 1}, budget.New(0))
						if reserved {
							s.Reserve(int64(n))
						}
						for i, batch := range batches {
							var err error
							if columns {
								err = addRows(b, s, recs[i], batch, nil)
							} else {
								err = s.AddKeys(batch)
							}
							if err != nil {
								b.Fatal(err)
							}
						}
						if err := s.Seal(); err != nil {
							b.Fatal(err)
						}
						return s
					}
					perKey := func(b *testing.B) {
						b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
						b.ReportMetric(0, "ns/op")
					}
					b.Run(name+"add", func(b *testing.B) {
						for b.Loop() {
							fill(b).Release()
						}
						perKey(b)
					})
					if !reserved {
						continue
					}
					s := fill(b)
					for what, of := range map[string][]*keys.Batch{"hits": batches, "misses": others} {
						b.Run(name+what, func(b *testing.B) {
							var hits, members, entries []uint32
							for i := range uint32(1 << 16) {
								hits = append(hits, i)
							}
							for b.Loop() {
								for _, batch := range of {
									members, entries = s.Find(batch, hits[:len(batch.Rows)], members, entries)
								}
							}
							perKey(b)
						})
					}
					s.Release()
				}
			}
		}
	}
}
