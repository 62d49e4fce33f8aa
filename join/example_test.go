package join_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

const flights = "../testdata/flights/"

// A join in one call, which builds its own filter.
func Example() {
	if err := flightsFromTexas(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 5867 rows of 50000, 24 of 209 airports
}

func flightsFromTexas(ctx context.Context) error {
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

	j, err := join.New(ids, logs, join.Options{On: "origin=iata", Type: join.Inner})
	if err != nil {
		return err
	}
	for rows, err := range j.Run(ctx) {
		if err != nil {
			return err
		}
		// rows.Record is an Arrow record batch of the answer.
		rows.Record.Release()
	}
	r := j.Report()
	fmt.Printf("%d rows of %d, %d of %d airports\n", r.RowsOut, r.RowsIn, r.IDsMatched, r.IDsTotal)
	return nil
}

// The steps of a pipeline on several machines: partial filters, the merged filter, a
// scan of one partition, files of candidates.
func Example_pipeline() {
	dir, err := os.MkdirTemp("", "bloomjoin")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := pipeline(context.Background(), dir); err != nil {
		fmt.Println(err)
	}
	// Output:
	// filter: bloom over 3376 keys
	// candidates: 24632 of 24632 rows
}

func pipeline(ctx context.Context, dir string) error {
	const workers = 2
	var parts []string
	for i := range uint32(workers) { // each on a machine of its own
		name := filepath.Join(dir, fmt.Sprintf("part-%d.bjf", i))
		if err := buildPart(ctx, dataset.Shard{Index: i, Of: workers}, name); err != nil {
			return err
		}
		parts = append(parts, name)
	}
	filter, err := builds.MergeFiles(ctx, storage.Local(), parts, false, filters.Limits{})
	if err != nil {
		return err
	}
	fmt.Printf("filter: %s over %d keys\n", filter.Kind(), filter.Facts().Keys)

	logs, err := partition.Open(ctx, []string{flights + "logs/2001-q1.parquet"}, partition.OpenOptions{})
	if err != nil {
		return err
	}
	defer partition.Close(logs)
	scanner, err := partition.NewScanner(partition.ScanOptions{
		Match: []dataset.Match{{Filter: (*codec.Filter)(filter), Key: "origin"}},
	})
	if err != nil {
		return err
	}
	pieces := partition.Split(logs, dataset.Shard{})
	out := partition.Output{Name: filepath.Join(dir, "candidates.parquet")}
	written, err := out.WriteScan(ctx, scanner, pieces, logs)
	if err != nil {
		return err
	}
	fmt.Printf("candidates: %d of %d rows\n", written.Rows, scanner.Stats().RowsIn)
	return nil
}

func buildPart(ctx context.Context, shard dataset.Shard, name string) error {
	ids, err := partition.Open(ctx, []string{flights + "airports.csv"}, partition.OpenOptions{Text: true})
	if err != nil {
		return err
	}
	defer partition.Close(ids)
	plan, err := builds.NewPlan(door.In(ids), builds.Options{Key: "iata", Expect: 4000, Shard: shard})
	if err != nil {
		return err
	}
	f, _, err := plan.Build(ctx)
	if err != nil {
		return err
	}
	_, err = filters.Save(ctx, storage.Local(), name, f, filters.Options{})
	return err
}
