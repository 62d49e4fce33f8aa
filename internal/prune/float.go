package prune

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Float bounds are used only for members that are integers or decimals. No member
// is then NaN, which statistics leave out.

// floatSize returns the size of a leaf's floats, 0 if their statistics have no order: some writers
// compare half floats as bytes.
func floatSize(l *meta.Leaf) int {
	if l.Logical.Kind != meta.None || l.Type != format.Float && l.Type != format.Double {
		return 0
	}
	return l.Width()
}

// newFloatOrder returns the order of a float leaf, with the bounds of the members
// rounded outward to floats.
func newFloatOrder(l *meta.Leaf, of keys.Class, m members) (o order, ok bool) {
	if o.size = floatSize(l); o.size == 0 {
		return o, false
	}
	lo, ok := keys.Number(of, m.lo)
	hi, fine := keys.Number(of, m.hi)
	if !ok || !fine {
		return o, false
	}
	o.number, o.float = true, true
	o.lo, o.hi = floatBytes(outward(lo, -1)), floatBytes(outward(hi, 1))
	return o, true
}

// outward returns the nearest float that is not above r if to is -1, and not below
// r if to is 1.
func outward(r *big.Rat, to int) float64 {
	f, _ := r.Float64()
	switch exact := new(big.Rat).SetFloat64(f); {
	case exact == nil && math.Signbit(f) == (to < 0): // an infinity on the wanted side
		return f
	case exact == nil:
		return math.Copysign(math.MaxFloat64, f)
	case exact.Cmp(r) == -to:
		return math.Nextafter(f, math.Inf(to))
	}
	return f
}

// floatBytes returns bytes that compare like floats. Both zeros give the same
// bytes.
func floatBytes(f float64) []byte {
	b := math.Float64bits(f)
	if f == 0 {
		b = 0
	}
	if b>>63 != 0 {
		b = ^b
	} else {
		b |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(nil, b)
}

// floatBound converts a bound from statistics to the form of floatBytes. ok is
// false for NaN, which is not a bound.
func floatBound(stored []byte) (b []byte, ok bool) {
	var f float64
	if len(stored) == 4 {
		f = float64(math.Float32frombits(binary.LittleEndian.Uint32(stored)))
	} else {
		f = math.Float64frombits(binary.LittleEndian.Uint64(stored))
	}
	return floatBytes(f), f == f
}
