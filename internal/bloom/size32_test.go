package bloom

import (
	"errors"
	"math/bits"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

// A filter that exceeds the address space of a 32-bit machine is an error, as for
// one that a file claims to hold.
func TestTooManyAddresses(t *testing.T) {
	if bits.UintSize > 32 {
		t.Skip("there are enough addresses for every filter")
	}
	for _, blocks := range []uint64{1 << 26, 1 << 27, MaxBlocks} {
		if f, err := New(Params{Geometry: Split256, Blocks: blocks, Hash: Hash{ID: XXH3}}); !errors.Is(err, fault.ErrUnsupported) || f != nil {
			t.Errorf("%d blocks: %v", blocks, err)
		}
	}
}
