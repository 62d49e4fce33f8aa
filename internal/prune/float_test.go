package prune

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// TestFloatBytes checks that the bytes compare like the floats.
func TestFloatBytes(t *testing.T) {
	floats := []float64{math.Inf(-1), -math.MaxFloat64, -1.5, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 0.1, 1, 1 << 53, math.MaxFloat64, math.Inf(1)}
	for i, a := range floats {
		for k, b := range floats {
			if got, want := bytes.Compare(floatBytes(a), floatBytes(b)), i-k; got < 0 != (want < 0) || got > 0 != (want > 0) {
				t.Errorf("%v and %v compare as %d", a, b, got)
			}
		}
	}
	if !slices.Equal(floatBytes(0), floatBytes(math.Copysign(0, -1))) {
		t.Error("the zeros differ")
	}
	for _, size := range []int{4, 8} {
		nan := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))
		if size == 4 {
			nan = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
		}
		if _, ok := floatBound(nan); ok {
			t.Errorf("NaN of %d bytes is a bound", size)
		}
	}
}

// TestOutward checks that no float lies between the result and the number.
func TestOutward(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		r := new(big.Rat).SetFrac(big.NewInt(rng.Int64()-1<<62), new(big.Int).Lsh(big.NewInt(1), uint(rng.IntN(80))))
		if rng.IntN(2) == 0 {
			r.Mul(r, new(big.Rat).SetInt(keys.Pow10(rng.IntN(320))))
		}
		for _, to := range []int{-1, 1} {
			f := outward(r, to)
			exact := new(big.Rat).SetFloat64(f)
			if exact == nil {
				if math.Signbit(f) != (to < 0) {
					t.Fatalf("%s goes to %v", r, f)
				}
				continue
			}
			if exact.Cmp(r) == -to {
				t.Fatalf("%s goes to %v, inward", r, f)
			}
			if in := new(big.Rat).SetFloat64(math.Nextafter(f, math.Inf(-to))); exact.Cmp(r) != 0 && in != nil && in.Cmp(r) != -to {
				t.Fatalf("%s goes to %v, too far", r, f)
			}
		}
	}
}

// TestPrunedNumbers checks that bounds of one class of numbers exclude members of
// another only if no number is within both.
func TestPrunedNumbers(t *testing.T) {
	double := &meta.Leaf{Type: format.Double}
	single := &meta.Leaf{Type: format.Float}
	cents := &meta.Leaf{Type: format.Int64, Logical: meta.Logical{Kind: meta.Decimal, Precision: 18, Scale: 2}}
	f64 := func(f float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)) }
	f32 := func(f float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)) }
	i64 := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	from3to5 := members{lo: keys.IntegerPart(3, false), hi: keys.IntegerPart(5, false)}
	big := members{lo: keys.IntegerPart(1<<53+1, false), hi: keys.IntegerPart(1<<53+1, false)}
	for _, c := range []struct {
		name        string
		leaf        *meta.Leaf
		class       keys.Class
		m           members
		least, most []byte
		apart       bool
	}{
		{"floats below", double, keys.Float, from3to5, f64(-1), f64(2.99), true},
		{"floats up to", double, keys.Float, from3to5, f64(-1), f64(3), false},
		{"floats above", double, keys.Float, from3to5, f64(5.01), f64(9), true},
		{"floats around", double, keys.Float, from3to5, f64(-9), f64(9), false},
		{"floats with a NaN for a bound", double, keys.Float, from3to5, f64(math.NaN()), f64(2), false},
		{"floats up to infinity", double, keys.Float, from3to5, f64(4), f64(math.Inf(1)), false},
		{"floats without an equal", double, keys.Float, big, f64(1 << 53), f64(1 << 53), false}, // rounded outward
		{"single floats", single, keys.Float, from3to5, f32(5.5), f32(6), true},
		{"single floats within", single, keys.Float, from3to5, f32(4.5), f32(6), false},
		{"cents below", cents, keys.Decimal, from3to5, i64(0), i64(299), true},
		{"cents up to", cents, keys.Decimal, from3to5, i64(0), i64(300), false},
		{"cents above", cents, keys.Decimal, from3to5, i64(501), i64(900), true},
	} {
		o, ok := newOrder(c.leaf, c.class, keys.Integer, c.m)
		if !ok {
			t.Errorf("%s: no order", c.name)
			continue
		}
		if got := o.apart(c.least, c.most, (*exact.Set)(nil)); got != c.apart {
			t.Errorf("%s: apart %v, want %v", c.name, got, c.apart)
		}
	}
	if _, ok := newOrder(double, keys.Float, keys.Float, members{lo: f64(1), hi: f64(2)}); ok {
		t.Error("floats are pruned by floats, among which NaN may be")
	}
}
