package join

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/partition"
)

// Input is one side of a join of records that a program has or produces.
type Input struct {
	// Schema is that of every record.
	Schema *arrow.Schema
	// Read starts a pass over the records, see [partition.Records]. The sequence
	// owns what it yields, and releases it when it is asked for the next record or
	// to stop. A join may start several passes, one after the other or at the same
	// time, from its own goroutines, unless Once is set.
	Read func(context.Context) iter.Seq2[arrow.Record, error]
	// Once says that Read can be called only once. The strategy is then [Lookup],
	// the only one that reads each side once, so all IDs must fit in
	// Options.Memory.
	Once bool
	// Rows is the number of rows; 0: unknown. See [partition.RecordsOptions].
	Rows int64
}

// Records joins a log with IDs, both given as records, and yields the rows of the
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
// ended. The sequence can be ranged over again unless an Input has Once set.
//
// Records is [New] over [partition.Records], and [Join.Run]. Use these for the
// report, for logs in several parts that workers share, or to write files.
func Records(ctx context.Context, ids, log Input, opts Options) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		j, err := New([]*partition.File{ids.file("the IDs")}, []*partition.File{log.file("the log")}, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		for r, err := range j.Run(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !lend(r.Record, yield) {
				return
			}
		}
	}
}

// lend yields a record and releases it, also when yield panics.
func lend(rec arrow.Record, yield func(arrow.Record, error) bool) bool {
	defer rec.Release()
	return yield(rec, nil)
}

// file returns the input as a file.
func (in Input) file(name string) *partition.File {
	schema := in.Schema
	if schema == nil { // without a key, which New reports
		schema = arrow.NewSchema(nil, nil)
	}
	return partition.Records(name, schema, in.Read, partition.RecordsOptions{Once: in.Once, Rows: in.Rows})
}
