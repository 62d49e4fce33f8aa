package arrowparquet

import (
	"math/big"
	"testing"
)

// The smallest number of bytes for all decimals of a precision, computed with big
// integers. With a 32-bit product, as int has on some machines, the search would
// never end.
func TestDecimalBytes(t *testing.T) {
	largest := big.NewInt(0)
	for precision := 1; precision <= 76; precision++ {
		largest.Add(largest.Mul(largest, big.NewInt(10)), big.NewInt(9))
		if got, want := decimalBytes(precision), largest.BitLen()/8+1; got != want {
			t.Errorf("precision %d: got %d bytes, want %d", precision, got, want)
		}
	}
}
