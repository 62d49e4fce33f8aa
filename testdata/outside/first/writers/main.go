// One answer as CSV, as an Arrow stream and as Parquet, each to an io.Writer.
package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

var opts = join.Options{On: "origin=iata", Type: join.Inner}

func main() {
	ctx, names, logs := context.Background(), []string{os.Args[1] + "/airports-tx.csv"}, []string{os.Args[1] + "/logs"}
	lines := csv.NewWriter(io.Discard)
	rows := 0
	for rec, err := range bloomjoin.Join(ctx, names, logs, opts) {
		if err != nil {
			log.Fatal(err)
		}
		line := make([]string, rec.NumCols())
		for row := range int(rec.NumRows()) {
			for c := range line {
				line[c] = rec.Column(c).ValueStr(row)
			}
			_ = lines.Write(line) // Error has it
			rows++
		}
	}
	fmt.Println("csv", rows, lines.Error())
	ids, err := partition.Open(ctx, names, partition.OpenOptions{Text: true})
	if err != nil {
		log.Fatal(err)
	}
	files, err := partition.Open(ctx, logs, partition.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	write := func(w io.Writer, f dataset.Format) (dataset.Written, error) {
		j, err := join.New(ids, files, opts)
		if err != nil {
			log.Fatal(err)
		}
		return j.Write(ctx, partition.Output{Name: "-", Stdout: w, Format: f})
	}
	var arrow, parquet bytes.Buffer
	w, err := write(&arrow, dataset.ArrowStream)
	fmt.Println("arrow", w.Rows, arrow.Len() > 0, err)
	w, err = write(&parquet, dataset.Parquet)
	fmt.Printf("parquet %d %.4s %v\n", w.Rows, parquet.Bytes(), err)
	_, err = write(bad{}, dataset.Parquet)
	fmt.Println("a writer that fails:", errors.Is(err, os.ErrClosed))
	_, err = write(nil, "")
	fmt.Println(err)
}

type bad struct{}

func (bad) Write([]byte) (int, error) { return 0, os.ErrClosed }
