package bloom_test

import (
	"errors"
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/fault"
)

// No number of a caller makes a filter of more bytes than its keys need.
func TestNew(t *testing.T) {
	for _, rate := range []float64{math.NaN(), math.Inf(1), -1, 0, 1, 2} {
		if f, err := bloom.New(bloom.Split256, 1000, rate); err == nil {
			t.Errorf("rate %g: a filter of %d blocks", rate, f.Blocks())
		}
	}
	if _, err := bloom.New(9, 1000, 0.01); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("geometry 9: %v", err)
	}
	if _, err := bloom.New(bloom.Split512, math.MaxUint64, 0.01); err == nil {
		t.Error("a filter of 2^64-1 keys")
	}
	for _, g := range []bloom.Geometry{0, bloom.Split256, bloom.Split512} {
		f, err := bloom.New(g, 0, 0.01)
		if err != nil || f.Blocks() == 0 || f.Contains(1) {
			t.Errorf("%s without keys: %v", g, err)
		}
		if f, err = bloom.New(g, 1_000_000, 0.01); err != nil || f.Blocks() > 1_000_000 {
			t.Errorf("%s: %v", g, err)
		}
	}
}
