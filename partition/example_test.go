package partition_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/partition"
)

const flights = "../testdata/flights/logs"

// airports returns a filter of some airports.
func airports(ctx context.Context, iata ...string) *filters.Filter {
	b, err := builds.NewBuilder(builds.Options{Key: "iata::string", FPR: 1e-6})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	w, err := b.Worker()
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Add(keys.Strings(iata)); err != nil {
		log.Fatal(err)
	}
	f, _, err := b.Finish(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return f
}

// The second of two workers reads its share of the row groups, and keeps the rows
// that pass a filter as records.
func Example() {
	ctx := context.Background()
	files, err := partition.Open(ctx, []string{flights}, partition.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer partition.Close(files)
	s, err := partition.NewScanner(partition.ScanOptions{
		Match:   []dataset.Match{{Filter: (*codec.Filter)(airports(ctx, "DFW", "IAH")), Key: "origin"}},
		Columns: []string{"date", "origin"},
	}, files...)
	if err != nil {
		log.Fatal(err)
	}
	var kept int64
	for rows, err := range s.Scan(ctx, partition.Split(files, dataset.Shard{Index: 1, Of: 2})) {
		if err != nil {
			log.Fatal(err)
		}
		kept += rows.Record.NumRows()
		rows.Record.Release()
	}
	fmt.Println(kept, "of", s.Stats().RowsIn, "flights")
	// Output:
	// 1822 of 24632 flights
}

// Rows that pass a filter are copied to a file of their own. Parquet pages are
// copied without making rows of them.
func ExampleOutput_WriteScan() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bloomjoin")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	files, err := partition.Open(ctx, []string{flights}, partition.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer partition.Close(files)
	s, err := partition.NewScanner(partition.ScanOptions{
		Match: []dataset.Match{{Filter: (*codec.Filter)(airports(ctx, "DFW", "IAH")), Key: "origin"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	out := partition.Output{Name: filepath.Join(dir, "texas.parquet")}
	w, err := out.WriteScan(ctx, s, partition.Split(files, dataset.Shard{}), files)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Rows, "flights in", len(w.Files), "file")
	// Output:
	// 3660 flights in 1 file
}

// Records that a program makes are a file to everything that reads files.
func ExampleRecords() {
	schema := arrow.NewSchema([]arrow.Field{{Name: "origin", Type: arrow.BinaryTypes.String}}, nil)
	read := func(context.Context) iter.Seq2[arrow.Record, error] {
		return func(yield func(arrow.Record, error) bool) {
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			defer b.Release()
			b.Field(0).(*array.StringBuilder).AppendValues([]string{"JFK", "DFW", "SFO"}, nil)
			rec := b.NewRecord()
			defer rec.Release()
			yield(rec, nil)
		}
	}
	file := partition.Records("queue", schema, read, partition.RecordsOptions{})
	ctx := context.Background()
	s, err := partition.NewScanner(partition.ScanOptions{
		Match: []dataset.Match{{Filter: (*codec.Filter)(airports(ctx, "DFW", "IAH")), Key: "origin"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for rows, err := range s.Scan(ctx, partition.Split([]*partition.File{file}, dataset.Shard{})) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rows.Record.Column(0))
		rows.Record.Release()
	}
	// Output:
	// ["DFW"]
}
