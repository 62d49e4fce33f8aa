package bloomjoin_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// The files of the examples: 50,000 flights in four Parquet files, and the
// airports of Texas.
var (
	flights  = []string{"testdata/flights/logs"}
	airports = []string{"testdata/flights/airports-tx.csv"}
)

// temporary returns the name of a file in a directory that remove deletes.
func temporary(name string) (path string, remove func()) {
	dir, err := os.MkdirTemp("", "bloomjoin")
	if err != nil {
		log.Fatal(err)
	}
	return filepath.Join(dir, name), func() { os.RemoveAll(dir) }
}

// A filter of integers is asked about integers of any type.
func ExampleBuild() {
	ctx := context.Background()
	opts := filterbuild.Options{Key: "user_id::int64"}
	f, err := bloomjoin.Build(ctx, opts, key.Int64s([]int64{3, 5, 8}), key.Int64s([]int64{13, 21}))
	if err != nil {
		log.Fatal(err)
	}
	members, err := f.Contains(key.Uint64s([]uint64{3, 4, 5}), nil)
	fmt.Println(members, err)
	// Output:
	// [true false true] <nil>
}

// Keys come one by one, from as many sequences as there are.
func ExampleBuildSeq() {
	odd := func(yield func(int64) bool) {
		for i := int64(1); i < 10_000 && yield(i); i += 2 {
		}
	}
	f, err := bloomjoin.BuildSeq(context.Background(), filterbuild.Options{Key: "user_id::int64"}, odd, slices.Values([]int64{2, 4}))
	if err != nil {
		log.Fatal(err)
	}
	in, err := f.ContainsInt64(4)
	fmt.Println(f.Added(), in, err)
	// Output:
	// 5002 true <nil>
}

// A condition on the log, and what the join did.
func ExampleJoin_options() {
	var report join.Report
	rows := bloomjoin.Join(context.Background(), airports, flights, join.Options{On: "origin=iata"},
		bloomjoin.OpenLog(partition.OpenOptions{Where: "delay > 100"}), bloomjoin.JoinReport(&report))
	n := int64(0)
	for rec, err := range rows {
		if err != nil {
			log.Fatal(err)
		}
		n += rec.NumRows()
	}
	fmt.Println(n == report.RowsOut, report)
	// Output:
	// true 109 rows from 50000; 109 log rows have an ID; 11 of 209 IDs matched; strategy lookup
}

func ExampleBuildFiles() {
	f, err := bloomjoin.BuildFiles(context.Background(), airports, filterbuild.Options{Key: "iata"})
	if err != nil {
		log.Fatal(err)
	}
	members, err := f.Contains(key.Strings([]string{"DFW", "JFK"}), nil)
	fmt.Println(f.Added(), "airports:", members, err)
	// Output:
	// 209 airports: [true false] <nil>
}

// Each of two jobs has half of the IDs. Their filters are built with equal
// options, apart from the shard.
func ExampleMerge() {
	ctx := context.Background()
	var partials []*codec.Filter
	for i, ids := range [][]int64{{2, 4, 6}, {1, 3, 5}} {
		f, err := bloomjoin.Build(ctx, filterbuild.Options{
			Key:      "user_id::int64",
			Expect:   6, // of both
			Identity: []byte("users of 2024-05-01"),
			Shard:    dataset.Shard{Index: uint32(i), Of: 2},
		}, key.Int64s(ids))
		if err != nil {
			log.Fatal(err)
		}
		partials = append(partials, f)
	}
	f, err := bloomjoin.Merge(ctx, partials...)
	if err != nil {
		log.Fatal(err)
	}
	rows, err := f.Probe(key.Int64s([]int64{0, 1, 2, 7}), nil)
	fmt.Println(f.Added(), "keys; rows that match:", rows, err)
	// Output:
	// 6 keys; rows that match: [1 2] <nil>
}

func ExampleSave() {
	ctx := context.Background()
	name, remove := temporary("users.bjf")
	defer remove()
	f, err := bloomjoin.Build(ctx, filterbuild.Options{Key: "user_id::int64"}, key.Int64s([]int64{3, 5, 8}))
	if err != nil {
		log.Fatal(err)
	}
	if err := bloomjoin.Save(ctx, name, f); err != nil {
		log.Fatal(err)
	}
	info, err := os.Stat(name)
	fmt.Println(info.Mode(), err)
	// Output:
	// -rw------- <nil>
}

func ExampleLoad() {
	ctx := context.Background()
	name, remove := temporary("airports.bjf")
	defer remove()
	f, err := bloomjoin.BuildFiles(ctx, airports, filterbuild.Options{Key: "iata"})
	if err != nil {
		log.Fatal(err)
	}
	if err := bloomjoin.Save(ctx, name, f); err != nil {
		log.Fatal(err)
	}

	f, err = bloomjoin.Load(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Println(f.Kind(), f.KeyNames(), f.KeyClasses(), f.Added())
	// Output:
	// bloom [iata] [bytes] 209
}

// The flights from Texas, as records. A Bloom filter may let a few others through.
func ExampleScan() {
	ctx := context.Background()
	f, err := bloomjoin.BuildFiles(ctx, airports, filterbuild.Options{Key: "iata", FPR: 1e-6})
	if err != nil {
		log.Fatal(err)
	}
	opts := partition.ScanOptions{
		Match:   []dataset.Match{{Filter: f, Key: "origin"}},
		Columns: []string{"origin", "destination"},
	}
	var rows int64
	for rec, err := range bloomjoin.Scan(ctx, flights, opts) {
		if err != nil {
			log.Fatal(err)
		}
		rows += rec.NumRows()
	}
	fmt.Println(rows, "flights")
	// Output:
	// 5867 flights
}

// The same flights, in one Parquet file.
func ExampleScanFiles() {
	ctx := context.Background()
	name, remove := temporary("candidates.parquet")
	defer remove()
	f, err := bloomjoin.BuildFiles(ctx, airports, filterbuild.Options{Key: "iata", FPR: 1e-6})
	if err != nil {
		log.Fatal(err)
	}
	opts := partition.ScanOptions{Match: []dataset.Match{{Filter: f, Key: "origin"}}}
	w, err := bloomjoin.ScanFiles(ctx, flights, name, opts)
	fmt.Println(w.Rows, "flights", err)
	// Output:
	// 5867 flights <nil>
}

// Each flight from Texas with its airport, as records.
func ExampleJoin() {
	opts := join.Options{On: "origin=iata", Type: join.Inner, Columns: []string{"origin", "city"}}
	seen := map[string]int{}
	for rec, err := range bloomjoin.Join(context.Background(), airports, flights, opts) {
		if err != nil {
			log.Fatal(err)
		}
		for i := range int(rec.NumRows()) {
			seen[rec.Column(1).ValueStr(i)]++
		}
	}
	fmt.Println(seen["Houston"], "flights from Houston")
	// Output:
	// 1533 flights from Houston
}

// The flights from Texas, exactly, in a directory with a file for each log file.
func ExampleJoinFiles() {
	dir, remove := temporary("texas/")
	defer remove()
	report, err := bloomjoin.JoinFiles(context.Background(), airports, flights, dir+"/", join.Options{On: "origin=iata"})
	fmt.Println(report.RowsOut, "of", report.RowsIn, "flights", err)
	// Output:
	// 5867 of 50000 flights <nil>
}

func ExamplePlan() {
	p, err := bloomjoin.Plan(context.Background(), airports, flights, join.Options{On: "origin=iata"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", p.Strategy, p.Why)
	// Output:
	// lookup: a table of 209 IDs takes about 6.73 KiB, and each side is read once
}
