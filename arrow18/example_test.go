package arrow18_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/bloomjoin/bloomjoin/arrow18"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// numbered returns a record with a column of users and one of text.
func numbered(column, json string) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "user", Type: arrow.PrimitiveTypes.Int64},
		{Name: column, Type: arrow.BinaryTypes.String},
	}, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(json))
	if err != nil {
		log.Fatal(err)
	}
	return rec
}

var (
	plans  = `[{"user": 2, "plan": "basic"}, {"user": 5, "plan": "gold"}]`
	visits = `[{"user": 5, "page": "/"}, {"user": 1, "page": "/pay"}, {"user": 2, "page": "/cart"}]`
)

func ExampleJoin() {
	ids, clicks := arrow18.Of(numbered("plan", plans)), arrow18.Of(numbered("page", visits))
	for rec, err := range arrow18.Join(context.Background(), ids, clicks, join.Options{On: "user", Type: join.Inner}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rec.Column(0), rec.Column(1), rec.Column(2))
	}
	// Output:
	// [5 2] ["/" "/cart"] ["gold" "basic"]
}

// A filter of v18 records, and the rows of others that pass it.
func ExampleScan() {
	ctx := context.Background()
	ids, err := arrow18.Of(numbered("plan", plans)).File("plans")
	if err != nil {
		log.Fatal(err)
	}
	filter, _, err := filterbuild.Build(ctx, []*partition.File{ids}, filterbuild.Options{Key: "user"})
	if err != nil {
		log.Fatal(err)
	}
	opts := partition.ScanOptions{Match: []dataset.Match{{Filter: filter}}}
	for rec, err := range arrow18.Scan(ctx, arrow18.Of(numbered("page", visits)), opts) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rec.Column(0), rec.Column(1))
	}
	// Output:
	// [5 2] ["/" "/cart"]
}

// Files are joined as v15 records, and their rows converted.
func ExampleRows18() {
	ctx := context.Background()
	ids, err := partition.Open(ctx, []string{"../testdata/flights/airports-tx.csv"}, partition.OpenOptions{Text: true})
	if err != nil {
		log.Fatal(err)
	}
	defer partition.Close(ids)
	logs, err := partition.Open(ctx, []string{"../testdata/flights/logs"}, partition.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer partition.Close(logs)
	j, err := join.New(ids, logs, join.Options{On: "origin=iata"})
	if err != nil {
		log.Fatal(err)
	}
	var rows int64
	for rec, err := range arrow18.Rows18(j.Run(ctx)) {
		if err != nil {
			log.Fatal(err)
		}
		rows += rec.NumRows()
	}
	fmt.Println(rows, "flights from Texas")
	// Output:
	// 5867 flights from Texas
}

// A record crosses to v15 and back. Its values stay where they are.
func ExampleRecord15() {
	rec := numbered("plan", plans)
	defer rec.Release()
	old, err := arrow18.Record15(rec)
	if err != nil {
		log.Fatal(err)
	}
	defer old.Release()
	back, err := arrow18.Record18(old)
	if err != nil {
		log.Fatal(err)
	}
	defer back.Release()
	fmt.Println(old.Column(1), array.RecordEqual(rec, back))
	// Output:
	// ["basic" "gold"] true
}
