package decimal

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/decimal256"
)

// values returns numbers of up to size bits and a sign, and all edges.
func values(size int) []*big.Int {
	var out []*big.Int
	r := rand.New(rand.NewPCG(3, 4))
	one := big.NewInt(1)
	for n := range size {
		edge := new(big.Int).Lsh(one, uint(n))
		v := new(big.Int)
		for range size / 32 {
			v.Or(v.Lsh(v, 32), big.NewInt(int64(r.Uint32())))
		}
		out = append(out, edge, new(big.Int).Sub(edge, one), v.Rem(v, edge))
	}
	for _, v := range out {
		out = append(out, new(big.Int).Neg(v), new(big.Int).Not(v))
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	for _, v := range values(127) {
		if got := Big128(From128(v)); got.Cmp(v) != 0 {
			t.Errorf("128 bits: got %d, want %d", got, v)
		}
	}
	for _, v := range values(255) {
		if got := Big256(From256(v)); got.Cmp(v) != 0 {
			t.Errorf("256 bits: got %d, want %d", got, v)
		}
	}
}

// Literal words, so that both directions cannot have the same error.
func TestWords(t *testing.T) {
	v, _ := new(big.Int).SetString("99999999999999999999999999999999999999", 10)
	if got, want := From128(v), decimal128.New(0x4b3b4ca85a86c47a, 0x098a223fffffffff); got != want {
		t.Errorf("got %x, want %x", got, want)
	}
	if got, want := From128(v.Neg(v)), decimal128.New(-0x4b3b4ca85a86c47b, 0xf675ddc000000001); got != want {
		t.Errorf("got %x, want %x", got, want)
	}
	if got, want := From256(big.NewInt(-2)), decimal256.New(1<<64-1, 1<<64-1, 1<<64-1, 1<<64-2); got != want {
		t.Errorf("got %x, want %x", got, want)
	}
	if got := Big256(decimal256.New(0, 0, 1, 5)); got.String() != "18446744073709551621" {
		t.Errorf("got %d, want 2^64+5", got)
	}
}

// On 64-bit machines arrow/go is right.
func TestArrow(t *testing.T) {
	if bits.UintSize < 64 {
		return
	}
	for _, v := range values(127) {
		if n := decimal128.FromBigInt(v); n != From128(v) || n.BigInt().Cmp(Big128(n)) != 0 {
			t.Errorf("%d differs in 128 bits", v)
		}
	}
	for _, v := range values(255) {
		if n := decimal256.FromBigInt(v); n != From256(v) || n.BigInt().Cmp(Big256(n)) != 0 {
			t.Errorf("%d differs in 256 bits", v)
		}
	}
}

func TestTooLarge(t *testing.T) {
	for _, v := range []*big.Int{power(2), new(big.Int).Rsh(power(2), 1), new(big.Int).Not(new(big.Int).Rsh(power(2), 1))} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d fits in 128 bits", v)
				}
			}()
			From128(v)
		}()
	}
}
