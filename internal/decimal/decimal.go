// Package decimal converts between Arrow's decimals and big integers.
//
// The conversions of arrow/go v15 assume that a word of a big.Int has 64 bits.
// Where it has 32, they give wrong results or panic.
package decimal

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/decimal256"
)

// Big128 returns the unscaled value of n.
func Big128(n decimal128.Num) *big.Int {
	return fromWords(uint64(n.HighBits()), n.LowBits())
}

// Big256 returns the unscaled value of n.
func Big256(n decimal256.Num) *big.Int {
	w := n.Array()
	return fromWords(w[3], w[2], w[1], w[0])
}

// From128 returns v as an unscaled value. It panics if v does not fit in 128 bits
// of two's complement.
func From128(v *big.Int) decimal128.Num {
	var w [2]uint64
	toWords(v, w[:])
	return decimal128.New(int64(w[0]), w[1])
}

// From256 returns v as an unscaled value. It panics if v does not fit in 256 bits
// of two's complement.
func From256(v *big.Int) decimal256.Num {
	var w [4]uint64
	toWords(v, w[:])
	return decimal256.New(w[0], w[1], w[2], w[3])
}

// fromWords converts from two's complement, highest word first.
func fromWords(words ...uint64) *big.Int {
	b := make([]byte, 0, 32)
	for _, w := range words {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	v := new(big.Int).SetBytes(b)
	if int64(words[0]) < 0 {
		v.Sub(v, power(len(words)))
	}
	return v
}

// toWords converts to two's complement, highest word first.
func toWords(v *big.Int, words []uint64) {
	bits := v.BitLen()
	if v.Sign() < 0 {
		bits = new(big.Int).Not(v).BitLen()
		v = new(big.Int).Add(v, power(len(words)))
	}
	if bits >= 64*len(words) {
		panic(fmt.Sprintf("a decimal of %d bits in %d", bits+1, 64*len(words)))
	}
	var b [32]byte
	v.FillBytes(b[:8*len(words)])
	for i := range words {
		words[i] = binary.BigEndian.Uint64(b[8*i:])
	}
}

// power returns 2^(64·words).
func power(words int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(64*words)) }

// AppendSigned appends a big-endian two's complement number in n bytes. It returns
// false if the number needs more.
func AppendSigned(dst, v []byte, n int) ([]byte, bool) {
	if len(v) == 0 {
		return dst, false
	}
	sign := byte(int8(v[0]) >> 7)
	for ; len(v) > n; v = v[1:] {
		if v[0] != sign || (v[1]^sign)&0x80 != 0 {
			return dst, false
		}
	}
	for range n - len(v) {
		dst = append(dst, sign)
	}
	return append(dst, v...), true
}
