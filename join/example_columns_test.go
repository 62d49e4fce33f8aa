package join_test

import (
	"context"
	"fmt"

	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// The answer has columns of both sides, in the given order. Besides the key, no other
// column is read.
func ExampleOptions_columns() {
	err := flightsAndAirports(context.Background(), func(ctx context.Context, ids, logs []*partition.File) error {
		j, err := join.New(ids, logs, join.Options{
			On: "origin=iata", Type: join.Left, Columns: []string{"log.date", "ids.name"}, Suffix: "_airport",
		})
		if err != nil {
			return err
		}
		for rows, err := range j.Run(ctx) {
			if err != nil {
				return err
			}
			rows.Record.Release()
		}
		fmt.Println(j.Schema(0).Field(1).Name, j.Report().RowsOut)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// name 50000
}

// Count returns the number of rows without making any.
func ExampleJoin_Count() {
	err := flightsAndAirports(context.Background(), func(ctx context.Context, ids, logs []*partition.File) error {
		j, err := join.New(ids, logs, join.Options{On: "origin=iata", Type: join.Full, Columns: []string{}})
		if err != nil {
			return err
		}
		n, err := j.Count(ctx)
		fmt.Println(n)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 50185
}

func flightsAndAirports(ctx context.Context, fn func(ctx context.Context, ids, logs []*partition.File) error) error {
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
	return fn(ctx, ids, logs)
}
