// IDs come from a channel that four goroutines read; their filter is saved, loaded and asked.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
)

func main() {
	ctx, name, ids := context.Background(), os.Args[2]+"/ids.bjf", make(chan int64, 1024)
	go func() {
		defer close(ids)
		for i := range int64(500_000) {
			ids <- i * 1_000_003
		}
	}()
	some := func(yield func(int64) bool) {
		for id := range ids {
			if !yield(id) {
				return
			}
		}
	}
	f, err := bloomjoin.BuildSeq(ctx, filterbuild.Options{Key: "user_id::int64", FPR: 0.001}, some, some, some, some)
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
	in, err := f.Contains(key.Int64s([]int64{0, 1_000_003, 2_000_006}), nil)
	fmt.Println(in, err, f.Kind(), f.Added())
}
