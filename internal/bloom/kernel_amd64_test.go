//go:build amd64 && !purego

package bloom

import "testing"

// levels runs a test with each set of kernels that the processor supports.
func levels(t *testing.T, test func(t *testing.T)) {
	a, w := accelerated, wide
	defer func() { accelerated, wide = a, w }()
	for _, level := range []struct {
		name              string
		accelerated, wide bool
	}{{"avx512", true, true}, {"avx2", true, false}, {"portable", false, false}} {
		t.Run(level.name, func(t *testing.T) {
			if level.accelerated && !a || level.wide && !w {
				t.Skip("not on this processor")
			}
			accelerated, wide = level.accelerated, level.wide
			test(t)
		})
	}
}
