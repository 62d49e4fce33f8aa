package plan

import (
	"math"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// bitsPerKey holds the bits per key of large Bloom filters at the rates 10^-6,
// 10^-5.75 and so on up to 10^0, as [bloom.Geometry.BlocksFor] and
// [bloom.GeometryFor] give them. Computing them takes milliseconds, too long for
// planning a small join; a test compares.
var bitsPerKey = [...]float64{
	51.87, 46.98, 42.57, 38.59, 34.98, 31.72, 28.76, 26.06, 23.61, 21.37, 19.32, 17.44,
	15.73, 15.07, 13.41, 11.91, 10.53, 9.26, 8.10, 7.01, 5.99, 5.01, 4.05, 3.02, 1,
}

// filterBytes returns the approximate bytes of a Bloom filter of the given number of keys at
// rate p.
func filterBytes(keys, p float64) float64 {
	at := math.Min(math.Max(4*(math.Log10(p)+6), 0), float64(len(bitsPerKey)-1))
	i := min(int(at), len(bitsPerKey)-2)
	bits := bitsPerKey[i] + (at-float64(i))*(bitsPerKey[i+1]-bitsPerKey[i])
	return math.Max(bits*keys/8, float64(bloom.GeometryFor(p).BlockBytes()))
}

// rateOf returns the approximate rate of a filter of the given size that should have
// rate p, which may need more bytes.
func rateOf(bytes, keys, p float64) float64 {
	bits := 8 * bytes / math.Max(keys, 1)
	for i := 0; i < len(bitsPerKey)-1; i++ {
		if hi, lo := bitsPerKey[i], bitsPerKey[i+1]; bits >= lo {
			at := float64(i) + math.Max(0, hi-bits)/(hi-lo)
			return math.Max(p, math.Pow(10, at/4-6))
		}
	}
	return 1
}

// ExactIsSmaller reports whether an exact set of n keys, spread over a range of
// integers, takes fewer bytes than a Bloom filter. It reckons with containers of
// 2^16 neighbours, which take two bytes for a key and up to 8 KiB in all.
func ExactIsSmaller(n, spread, fpr float64) bool {
	if fpr == 0 {
		fpr = bloom.DefaultFPR(uint64(n))
	}
	const header = 16
	containers := math.Min(n, spread/(1<<16)+1)
	return containers*header+math.Min(2*n, 8192*containers) < filterBytes(n, fpr)
}
