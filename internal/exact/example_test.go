package exact_test

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/internal/exact"
)

// -1 and 2^64-1 are different members, although their bits are equal.
func Example() {
	s := exact.New()
	minusOne := ^uint64(0)
	s.Add([]uint64{minusOne, 7}, true)
	fmt.Println(s.Len(), s.Probe([]uint64{minusOne, 7}, true, nil), s.Probe([]uint64{minusOne, 7}, false, nil))
	t := exact.New()
	t.Add([]uint64{7, 8}, false)
	s.Union(t)
	fmt.Println(s.Len(), s.Any(8, 100, false), s.Any(9, 100, false))
	// Output:
	// 2 [0 1] [1]
	// 3 true false
}
