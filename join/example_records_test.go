package join_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

var (
	userSchema = arrow.NewSchema([]arrow.Field{
		{Name: "user", Type: arrow.PrimitiveTypes.Int64},
		{Name: "plan", Type: arrow.BinaryTypes.String},
	}, nil)
	clickSchema = arrow.NewSchema([]arrow.Field{
		{Name: "user", Type: arrow.PrimitiveTypes.Int64},
		{Name: "page", Type: arrow.BinaryTypes.String},
	}, nil)
)

// twoColumns makes a record of numbers and words.
func twoColumns(schema *arrow.Schema, numbers []int64, words []string) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues(numbers, nil)
	b.Field(1).(*array.StringBuilder).AppendValues(words, nil)
	return b.NewRecord()
}

// users starts a pass over records. It owns what it yields, and releases each record
// when the loop body has ended.
func users(context.Context) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		rec := twoColumns(userSchema, []int64{2, 5}, []string{"basic", "gold"})
		defer rec.Release()
		yield(rec, nil)
	}
}

// clicks yields a record per page, as a queue would.
func clicks(ctx context.Context) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		for i, page := range []string{"/home", "/search", "/cart", "/pay"} {
			n := int64(i)
			rec := twoColumns(clickSchema, []int64{n, n + 1, n + 2}, []string{page, page, page})
			ok := yield(rec, nil)
			rec.Release()
			if !ok {
				return
			}
		}
	}
}

// Join records that a program has in memory; neither side is a file.
func Example_records() {
	ids := partition.Records("users", userSchema, users, partition.RecordsOptions{Rows: 2})
	log := partition.Records("clicks", clickSchema, clicks, partition.RecordsOptions{})
	for rec, err := range join.Seq(context.Background(), ids, log, join.Options{On: "user", Type: join.Inner}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		// rec is valid until the loop body ends; rec.Retain keeps it longer.
		for i := range int(rec.NumRows()) {
			fmt.Println(rec.Column(0).ValueStr(i), rec.Column(1).ValueStr(i), rec.Column(2).ValueStr(i))
		}
	}
	// Output:
	// 2 /home basic
	// 2 /search basic
	// 2 /cart basic
	// 5 /pay gold
}

// Workers share a log in partitions and join it into a directory, with one file for
// each partition. A requirement keeps an implausible answer from being published.
func Example_partitions() {
	dir, err := os.MkdirTemp("", "bloomjoin")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := intoFiles(context.Background(), dir+"/"); err != nil {
		fmt.Println(err)
	}
	if err := intoFiles(context.Background(), dir+"/", 10_000); errors.Is(err, partition.ErrRequire) {
		fmt.Println(err)
	}
	// Output:
	// 2001-04.parquet: 999 rows
	// 2001-05.parquet: 1010 rows
	// 2001-06.parquet: 952 rows
	// 2001-q1.parquet: 2906 rows
	// a requirement is not met: rows of the answer: want 10000 or more, got 5867
}

func intoFiles(ctx context.Context, dir string, atLeast ...int64) error {
	ids, err := partition.Open(ctx, []string{flights + "airports-tx.csv"}, partition.OpenOptions{Text: true})
	if err != nil {
		return err
	}
	defer partition.Close(ids)
	logs, err := partition.Open(ctx, []string{flights + "logs"}, partition.OpenOptions{})
	if err != nil {
		return err
	}
	defer partition.Close(logs)
	opts := join.Options{On: "origin=iata", Memory: 256 << 20}
	if atLeast != nil {
		opts.Require.Rows = atLeast[0]
	}
	j, err := join.New(ids, logs, opts)
	if err != nil {
		return err
	}
	written, err := j.Write(ctx, partition.Output{Name: dir, Force: true})
	if err != nil {
		return err
	}
	for _, f := range written.Files {
		fmt.Printf("%s: %d rows\n", filepath.Base(f.Name), f.Rows)
	}
	for _, w := range j.Report().Warnings {
		fmt.Println("warning:", w.Text)
	}
	return nil
}

// A join ends when its context does, or when the loop is left. All of its goroutines
// have then ended, and so have the passes over its inputs.
func Example_cancellation() {
	enough, ended := errors.New("that is enough"), false
	endless := func(context.Context) iter.Seq2[arrow.Record, error] {
		return func(yield func(arrow.Record, error) bool) {
			rec := twoColumns(clickSchema, []int64{5}, []string{"/again"})
			defer rec.Release()
			for yield(rec, nil) {
			}
			ended = true
		}
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 100*time.Millisecond, enough)
	defer cancel()
	ids := partition.Records("users", userSchema, users, partition.RecordsOptions{})
	log := partition.Records("clicks", clickSchema, endless, partition.RecordsOptions{Once: true})
	var last error
	for _, err := range join.Seq(ctx, ids, log, join.Options{On: "user"}) {
		last = err
	}
	fmt.Println("ended by the context:", errors.Is(last, enough))
	fmt.Println("the pass over the log has ended:", ended)
	// Output:
	// ended by the context: true
	// the pass over the log has ended: true
}
