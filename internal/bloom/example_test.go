package bloom_test

import (
	"fmt"
	"log"
	"math"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// Two workers fill a filter each; the union contains the keys of both.
func Example() {
	hash := bloom.Hash{ID: bloom.XXH3}
	params := bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: bloom.Split256.Blocks(2000, 0.001)}
	var parts [2]*bloom.Filter
	for i := range parts {
		f, err := bloom.New(params)
		if err != nil {
			log.Fatal(err)
		}
		ids := make([]uint64, 1000)
		for j := range ids {
			ids[j] = uint64(1000*i + j)
		}
		hashes := make([]uint64, len(ids))
		hash.Sum64(hashes, ids)
		f.Add(hashes)
		parts[i] = f
	}
	if err := parts[0].Union(parts[1]); err != nil {
		log.Fatal(err)
	}
	fmt.Println("found:", parts[0].ProbeInts([]uint64{5, 1_000_000, 1999}, nil))
	fmt.Printf("about %.0f keys, below 0.1 %%: %t\n", parts[0].Count().Keys, parts[0].FPR() < 0.001)
	// Output:
	// found: [0 2]
	// about 2001 keys, below 0.1 %: true
}

// A filter built for more keys than were added folds to the size that they need.
func ExampleFilter_Shrink() {
	hash := bloom.Hash{ID: bloom.XXH3}
	f, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: bloom.Split256.Blocks(1_000_000, 0.01)})
	if err != nil {
		log.Fatal(err)
	}
	f.Add([]uint64{hash.Sum([]byte("ann")), hash.Sum([]byte("bob"))})
	small, err := f.Shrink(0.01, math.MaxUint64)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Params().Bytes(), small.Params().Bytes(), small.Contains(hash.Sum([]byte("ann"))))
	// Output:
	// 1336320 32 true
}
