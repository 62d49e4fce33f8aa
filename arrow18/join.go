package arrow18

import (
	"context"
	"iter"

	arrow18 "github.com/apache/arrow-go/v18/arrow"
	arrow15 "github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Input is a table of v18 records that a program has or makes.
type Input struct {
	// Schema is the schema of every record.
	Schema *arrow18.Schema
	// Read begins a pass over the records. The sequence owns what it yields; a
	// record must stay valid until the sequence is asked for the next one or to
	// end. Passes run in goroutines of the reader's and may overlap.
	Read func(context.Context) iter.Seq2[arrow18.RecordBatch, error]
	// Once means that only one pass is possible. A join then uses the Lookup
	// strategy, which holds all IDs in memory.
	Once bool
	// Rows is the number of rows, 0 if it is unknown. A pass that yields another
	// number is an error.
	Rows int64
}

// Of returns an Input of records in memory, which must have one schema. The
// caller keeps its references until the Input is no longer read. Without records
// the Input has no columns.
func Of(records ...arrow18.RecordBatch) Input {
	in := Input{Schema: arrow18.NewSchema(nil, nil)}
	for _, rec := range records {
		in.Rows += rec.NumRows()
	}
	if len(records) > 0 {
		in.Schema = records[0].Schema()
	}
	in.Read = func(context.Context) iter.Seq2[arrow18.RecordBatch, error] {
		return func(yield func(arrow18.RecordBatch, error) bool) {
			for _, rec := range records {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
	return in
}

// File returns the input as a file of package partition, for every function that
// reads files: see [partition.Records], also for what such a file is not. Errors
// use the name.
func (in Input) File(name string) (*partition.File, error) {
	schema, err := Schema15(in.Schema)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context) iter.Seq2[arrow15.Record, error] {
		if seq := in.Read(ctx); seq != nil {
			return Records15(seq)
		}
		return nil
	}
	return partition.Records(name, schema, read, partition.RecordsOptions{Once: in.Once, Rows: in.Rows}), nil
}

// Join joins a log with IDs, as [join.Seq] does, and yields the rows of the
// answer as v18 records. A record is valid until the loop body ends; retain it to
// keep it longer. The sequence ends after its first error. For files, convert
// what [join.Join.Run] yields with [Rows18].
func Join(ctx context.Context, ids, log Input, opts join.Options) iter.Seq2[arrow18.RecordBatch, error] {
	ids15, err := ids.File("the IDs")
	if err != nil {
		return failed(err)
	}
	log15, err := log.File("the log")
	if err != nil {
		return failed(err)
	}
	return Records18(join.Seq(ctx, ids15, log15, opts))
}

// Scan yields the rows of a log that the filters of opts let through, as v18
// records. A record is valid until the loop body ends; retain it to keep it
// longer. The sequence ends after its first error. For files, convert what
// [partition.Scanner.Scan] yields with [Rows18].
func Scan(ctx context.Context, log Input, opts partition.ScanOptions) iter.Seq2[arrow18.RecordBatch, error] {
	file, err := log.File("the log")
	if err != nil {
		return failed(err)
	}
	scanner, err := partition.NewScanner(opts, file)
	if err != nil {
		return failed(err)
	}
	return Rows18(scanner.Scan(ctx, partition.Split([]*partition.File{file}, dataset.Shard{})))
}

func failed(err error) iter.Seq2[arrow18.RecordBatch, error] {
	return func(yield func(arrow18.RecordBatch, error) bool) { yield(nil, err) }
}
