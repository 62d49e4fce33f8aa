package exact_test

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/codec/exact"
)

// -1 and 2^64-1 are different members, although their bits are equal.
func Example() {
	var s, t exact.Set
	minusOne := ^uint64(0)
	s.Add([]uint64{minusOne, 7}, true)
	fmt.Println(s.Len(), s.Probe([]uint64{minusOne, 7}, true, nil), s.Probe([]uint64{minusOne, 7}, false, nil))
	t.Add([]uint64{7, 8}, false)
	s.Union(&t)
	for v, negative := range s.Members() {
		if negative {
			fmt.Println(int64(v))
		} else {
			fmt.Println(v)
		}
	}
	// Output:
	// 2 [0 1] [1]
	// -1
	// 7
	// 8
}
