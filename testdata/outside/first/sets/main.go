// Union, intersection and difference of filters, exact and Bloom.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/filterbuild"
)

func thirds(lo, hi int64) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for i := lo; i < hi && yield(i*3); i++ {
		}
	}
}

func main() {
	ctx := context.Background()
	for _, kind := range []codec.Kind{codec.KindExact, codec.KindBloom} {
		opts := filterbuild.Options{Key: "id::int64", Kind: kind, Room: true, Expect: 300_000, FPR: 0.01}
		a, err := bloomjoin.BuildSeq(ctx, opts, thirds(0, 100_000))
		if err != nil {
			log.Fatal(err)
		}
		b, err := bloomjoin.BuildSeq(ctx, opts, thirds(50_000, 150_000))
		if err != nil {
			log.Fatal(err)
		}
		for _, op := range []filterbuild.SetOp{filterbuild.Union, filterbuild.Intersect, filterbuild.Difference} {
			f, err := filterbuild.Combine(ctx, op, a, b)
			fmt.Println(kind, op, f.Added(), err)
		}
	}
}
