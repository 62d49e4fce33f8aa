package join

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Seq joins a log with IDs, such as [partition.Records], and yields the rows of the
// answer as records of one or more rows, in the log's order. In right and full joins
// the IDs without a log row come last. All records have one schema: the log's
// columns, followed by those of the IDs, see the package text. An error, of an input or
// of the join, ends the sequence.
//
// A record is valid until the loop body ends; retain it to keep it longer. So the
// answer of one join may be the input of another.
//
// Inputs are read only while the sequence runs, by goroutines that have ended when
// it has: because there is no more, because the loop was left, or, soon, because ctx
// ended. The sequence can be ranged over again unless an input can be read only once.
//
// Seq is [New] and [Join.Run]. Use these for the report, or for sides in several parts.
func Seq(ctx context.Context, ids, log *partition.File, opts Options) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		j, err := New([]*partition.File{ids}, []*partition.File{log}, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		for r, err := range j.Run(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !each.Lend(r.Record, yield) {
				return
			}
		}
	}
}
