package join

import (
	"math"

	"github.com/bloomjoin/bloomjoin/bloom"
)

// bitsPerKey is what a Bloom filter of many keys takes at the rates 10^-6,
// 10^-5.75 and so on, up to 10^0: by [bloom.Geometry.BlocksFor] and
// [bloom.GeometryFor]. To ask these takes milliseconds, which a plan for a small
// join does not have; a test compares.
var bitsPerKey = [...]float64{
	51.87, 46.98, 42.57, 38.59, 34.98, 31.72, 28.76, 26.06, 23.61, 21.37, 19.32, 17.44,
	15.73, 15.07, 13.41, 11.91, 10.53, 9.26, 8.10, 7.01, 5.99, 5.01, 4.05, 3.02, 1,
}

// filterBytes is about the size of a Bloom filter of so many keys and rate p.
func filterBytes(keys, p float64) float64 {
	at := math.Min(math.Max(4*(math.Log10(p)+6), 0), float64(len(bitsPerKey)-1))
	i := min(int(at), len(bitsPerKey)-2)
	bits := bitsPerKey[i] + (at-float64(i))*(bitsPerKey[i+1]-bitsPerKey[i])
	return math.Max(bits*keys/8, float64(bloom.GeometryFor(p).BlockBytes()))
}

// rateOf is about the rate of a filter of so many keys that is to have rate p and
// has only so many bytes.
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
