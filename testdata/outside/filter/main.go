// Filter builds a filter of integers on four goroutines, as four jobs would on
// their machines, and asks it about integers and strings.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
)

func main() {
	ctx := context.Background()
	var partials [4]*codec.Filter
	var jobs sync.WaitGroup
	for i, ids := range [][]int64{{3, 6}, {9, 12}, {15}, {18}} {
		jobs.Go(func() {
			opts := filterbuild.Options{Key: "user_id::int64", Expect: 6, Identity: []byte("users"), Shard: dataset.Shard{Index: uint32(i), Of: 4}}
			partials[i] = must(bloomjoin.Build(ctx, opts, key.Int64s(ids)))
		})
	}
	jobs.Wait()
	f := must(bloomjoin.Merge(ctx, partials[:]...))
	must(f, bloomjoin.Save(ctx, "users.bjf", f))
	f = must(bloomjoin.Load(ctx, "users.bjf"))
	fmt.Println(f.Contains(key.Int64s([]int64{3, 4, 18}), nil))
	fmt.Println(f.Contains(key.Strings([]string{"3"}), nil)) // another class of keys
	f = must(bloomjoin.Build(ctx, filterbuild.Options{Key: "name::string"}, key.Strings([]string{"ann", "bob"})))
	fmt.Println(f.Contains(key.Strings([]string{"ann", "zoe"}), nil))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
