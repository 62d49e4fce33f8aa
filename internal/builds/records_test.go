package builds

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// TestRecords: a filter of records equals, byte for byte, that of a file with the
// same rows, except for the identity of the build, which records lack. So they have
// no shards.
func TestRecords(t *testing.T) {
	const n = 40_000
	mine := make([]int64, n)
	texts := make([]string, n)
	for i := range mine {
		mine[i] = int64(i) * int64(i)
		texts[i] = fmt.Sprint("user-", i)
	}
	whole := record(t, column{"k", mine}, column{"s", texts})
	defer whole.Release()
	s := newStore()
	putParquet(t, s, "ids.parquet", 1000, whole)
	passes := 0
	read := func(context.Context) iter.Seq2[arrow.Record, error] {
		passes++
		return func(yield func(arrow.Record, error) bool) {
			for lo := int64(0); lo < n; lo += 3000 {
				part := whole.NewSlice(lo, min(lo+3000, n))
				ok := yield(part, nil)
				part.Release()
				if !ok {
					return
				}
			}
		}
	}
	for _, opts := range []Options{{Key: "k"}, {Key: "k", Kind: codec.KindBloom}, {Key: "s"}, {Key: "k,s"}, {Key: "s", Normalize: "lower"}} {
		want, _ := build(t, s, []string{"ids.parquet"}, opts)
		for _, hint := range []source.RecordsOptions{{}, {Rows: n}, {Once: true, Rows: n}} {
			passes = 0
			p, err := NewPlan([]*source.File{source.Records("mine", whole.Schema(), read, hint)}, opts)
			if err != nil {
				t.Fatal(err)
			}
			if p.BuildID != [32]byte{} {
				t.Error("records have an identity")
			}
			got, rep, err := p.Build(t.Context())
			if err != nil {
				t.Fatalf("%+v, %+v: %v", opts, hint, err)
			}
			if got.Facts().BuildID != [32]byte{} {
				t.Error("a filter of records has the identity of a build")
			}
			got.Facts().BuildID = want.Facts().BuildID
			if string(encoded(t, got)) != string(encoded(t, want)) || rep.Rows != n {
				t.Errorf("%+v, %+v: another filter, of %d rows", opts, hint, rep.Rows)
			}
			if hint.Rows > 0 && passes != 1 {
				t.Errorf("%+v: %d passes", opts, passes)
			}
		}
	}
	_, err := NewPlan([]*source.File{source.Records("mine", whole.Schema(), read, source.RecordsOptions{Rows: n})},
		Options{Key: "k", Shard: dataset.Shard{Index: 0, Of: 2}})
	refused(t, "a shard of records", err, ErrUncounted, "mine")
}
