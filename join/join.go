package join

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Join is a join of files. It runs once, by Run, Write or Count; a second call returns an
// error. Plan, Schema and Report may be called at any time, also from other goroutines.
// The files must not be closed before the join has run; others may use them meanwhile.
type Join joins.Join

// room returns j as the type of the room, which handles nil and a zero Join.
func (j *Join) room() *joins.Join { return (*joins.Join)(j) }

// New examines the inputs: it finds the keys, compares their classes and determines
// the schema of the answer for each log file. It reads footers only.
func New(ids, logs []*partition.File, opts Options) (*Join, error) {
	j, err := joins.New(door.In(ids), door.In(logs), opts.in())
	return (*Join)(j), err
}

// Plan estimates what the join will come to and what each strategy would take. It
// reads footers, indexes, samples of the log's keys, and the IDs' keys, and writes
// nothing; the join can be run afterwards. IDs that can be read only once are not
// read. The strategy is the one that the join will take, which looks less closely;
// the advice in the plan's JSON says if another one should be faster.
func (j *Join) Plan(ctx context.Context, opts PlanOptions) (*Plan, error) {
	p, err := j.room().Plan(ctx, joins.PlanOptions{Network: opts.Network, Scan: opts.Scan, Workers: opts.Workers})
	return outPlan(p), err
}

// Schema returns the columns of the answer's rows from a piece of the log: see
// [partition.Rows].Piece. Pieces are those of Options.Pieces, else those that
// [partition.Split] makes of the log; in right and full joins the IDs without a log row
// follow as one more piece. Schema returns nil for a number that no piece has.
func (j *Join) Schema(piece int) *arrow.Schema {
	if parts := j.room().Parts(); piece >= 0 && piece < len(parts) {
		return parts[piece].Schema
	}
	return nil
}

// Run yields the rows of the answer. An error ends the sequence; requirements are
// checked when all rows have been yielded. The sequence can be used once.
func (j *Join) Run(ctx context.Context) iter.Seq2[partition.Rows, error] {
	return each.Seq(j.room().Run(ctx), func(r arraycopy.Rows) partition.Rows { return partition.Rows{Piece: r.Piece, Record: r.Record} })
}

// Write joins and writes the answer to the output. Nothing becomes visible unless
// Options.Require is met. [partition.Output.WriteScan] says what remains after an error.
//
// From Parquet to Parquet no rows are made. Write copies the log's columns from page
// to page, and the IDs, whatever they were read from, are held, kept on disk and
// written leaf by leaf, as Parquet stores them. So every column of the log, and of IDs
// in Parquet files, keeps its type, even one that Arrow does not have.
//
// Records are made in all other cases: by Run, for an Arrow output, from a log that is
// not Parquet, and if a column of the answer has no form as pages. Left and full joins
// then read every column of every row.
func (j *Join) Write(ctx context.Context, out partition.Output) (dataset.Written, error) {
	return j.room().Write(ctx, output.Destination{Output: output.Output(out), Result: source.ResultExact}, nil)
}

// Count joins and returns the number of rows of the answer without making any. It
// reads nothing but the keys of both sides. Options.Require holds.
func (j *Join) Count(ctx context.Context) (int64, error) { return j.room().Count(ctx) }

// Report returns the figures of the join. It is complete when Write or Count has
// returned, or the sequence of Run has ended.
func (j *Join) Report() Report { return out(j.room().Report()) }
