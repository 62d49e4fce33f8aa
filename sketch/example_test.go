package sketch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/sketch"
	"github.com/bloomjoin/bloomjoin/storage"
)

// sketchOf returns the sketch of some of the flights in testdata.
func sketchOf(opts sketch.Options, names ...string) *sketch.Sketch {
	ctx := context.Background()
	files, err := partition.Open(ctx, names, partition.OpenOptions{Text: true})
	if err != nil {
		log.Fatal(err)
	}
	defer partition.Close(files)
	s, err := sketch.Build(ctx, files, opts)
	if err != nil {
		log.Fatal(err)
	}
	return s
}

// How many flights start at two airports, from a sketch of 1 MiB.
func Example() {
	s := sketchOf(sketch.Options{Key: "origin"}, "../testdata/flights/logs")
	most, bound, err := s.Estimate(key.Strings([]string{"ATL", "no such airport"}))
	fmt.Println(most, "at most", bound, "too high", err)
	// Output:
	// [2107 0] at most 4 too high <nil>
}

// Two sketches, one of them saved and loaded, are added up.
func ExampleMerge() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, name := context.Background(), filepath.Join(dir, "flights.bjs")
	flights := sketchOf(sketch.Options{Key: "origin"}, "../testdata/flights/logs")
	if _, err := flights.Save(ctx, storage.Local(), name, false); err != nil {
		log.Fatal(err)
	}
	loaded, err := sketch.Load(ctx, storage.Local(), name)
	if err != nil {
		log.Fatal(err)
	}
	twice, err := sketch.Merge(flights, loaded)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(twice.Estimate(key.Strings([]string{"ATL"})))
	// Output:
	// [4214] 9 <nil>
}

// The rows of a join, before it is run.
func ExampleSketch_Product() {
	flights := sketchOf(sketch.Options{Key: "origin"}, "../testdata/flights/logs")
	airports := sketchOf(sketch.Options{Key: "iata"}, "../testdata/flights/airports-tx.csv")
	fmt.Println(flights.Product(airports))
	// Output:
	// 5877 1044 <nil>
}

// Long flights, and the most frequent distances.
func ExampleSketch_Within() {
	s := sketchOf(sketch.Options{Key: "distance", Epsilon: 0.001, Range: true}, "../testdata/flights/logs")
	fmt.Println(s.Within(key.Int64s([]int64{2000, 5000})))
	fmt.Println(s.Heavy(0.006))
	// Output:
	// 2329 399 <nil>
	// [337 109 370 334] [415 327 319 311] <nil>
}
