package join

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/partition"
)

// Input is one side of a join of records that a program has or makes.
type Input struct {
	// Schema is that of every record.
	Schema *arrow.Schema
	// Read begins a pass over the records, see [partition.Records]: the sequence
	// keeps what it yields, and frees it when it is asked for the next record or
	// told to end. A join may begin more than one pass, unless Once, one after
	// the other or side by side, from goroutines of its own.
	Read func(context.Context) iter.Seq2[arrow.Record, error]
	// Once says that one pass is all there is. Then [Lookup] it is, so that all
	// IDs are to fit into Options.Memory: only it reads each side once.
	Once bool
	// Rows is the number of rows, 0 if it is not known; see
	// [partition.RecordsOptions].
	Rows int64
}

// Records joins a log with IDs, both given as records, and yields the rows of
// the answer as records of any number of rows, 1 or more, in the log's order; the
// IDs of right and full joins that have no row come last. All have one schema:
// the log's columns, and behind them those of the IDs, see [Join.Parts]. An error,
// of an input or of the join, ends the sequence.
//
// A record that is yielded is valid until the loop body ends: whoever keeps it
// longer retains it. So the answer of one join may be the input of another.
//
// Inputs are read while the sequence runs, and only then, by goroutines that
// have ended when it has: because there is no more, because the loop body has
// left it, or, soon, because ctx has ended, whose cause is then its error. The
// sequence can be ranged over once more where neither Input says Once.
//
// It is [New] over [partition.Records] and Run: use these for the report, for
// logs in several parts that workers share, or to write files of the answer.
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

func (in Input) file(name string) *partition.File {
	schema := in.Schema
	if schema == nil { // which has no key
		schema = arrow.NewSchema(nil, nil)
	}
	return partition.Records(name, schema, in.Read, partition.RecordsOptions{Once: in.Once, Rows: in.Rows})
}
