//go:build !amd64 || purego

package bloom

import "testing"

// levels runs a test with the only kernels in this build.
func levels(t *testing.T, test func(t *testing.T)) { t.Run("portable", test) }
