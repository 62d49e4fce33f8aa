// The rows of a log that a filter lets through, with some of their columns.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/partition"
)

func main() {
	ctx, dir := context.Background(), os.Args[1]
	f, err := bloomjoin.BuildFiles(ctx, []string{dir + "/airports-tx.csv"}, filterbuild.Options{Key: "iata"})
	if err != nil {
		log.Fatal(err)
	}
	opts := partition.ScanOptions{Match: []dataset.Match{{Filter: f, Key: "origin"}}, Columns: []string{"origin", "delay"}}
	rows := int64(0)
	for rec, err := range bloomjoin.Scan(ctx, []string{dir + "/logs"}, opts) {
		if err != nil {
			log.Fatal(err)
		}
		rows += rec.NumRows()
	}
	fmt.Println(rows)
}
