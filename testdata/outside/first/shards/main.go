// Four parts of a build come to the filter that one build makes.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/filterbuild"
)

func main() {
	ctx, ids := context.Background(), []string{os.Args[1] + "/airports.csv"}
	var parts []*codec.Filter
	for i := range uint32(5) { // the last is the whole
		shard := dataset.Shard{Index: i % 4, Of: 4 - i/4*4}
		f, err := bloomjoin.BuildFiles(ctx, ids, filterbuild.Options{Key: "iata", Expect: 4000, Shard: shard})
		if err != nil {
			log.Fatal(err)
		}
		parts = append(parts, f)
	}
	f, err := bloomjoin.Merge(ctx, parts[:4]...)
	if err != nil {
		log.Fatal(err)
	}
	merged, err1 := f.Digest()
	whole, err2 := parts[4].Digest()
	fmt.Println(merged == whole, err1, err2)
	_, err = bloomjoin.Merge(ctx, parts[:2]...)
	fmt.Println(err)
	_, err = parts[0].ContainsString("DFW")
	fmt.Println(err)
}
