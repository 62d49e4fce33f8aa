package bloom_test

import (
	"fmt"
	"hash/maphash"
	"log"

	"github.com/bloomjoin/bloomjoin/codec/bloom"
)

// Two workers fill a filter each; the union contains the keys of both.
func Example() {
	seed := maphash.MakeSeed()
	var parts [2]*bloom.Filter
	for i := range parts {
		f, err := bloom.New(bloom.Split256, 2000, 0.001)
		if err != nil {
			log.Fatal(err)
		}
		for j := range 1000 {
			f.Add([]uint64{maphash.Comparable(seed, 1000*i+j)})
		}
		parts[i] = f
	}
	if err := parts[0].Union(parts[1]); err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts[0].Contains(maphash.Comparable(seed, 1999)), parts[0].FPR() < 0.002)
	// Output:
	// true true
}
