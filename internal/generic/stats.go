package generic

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// maxBoundSize is the length in bytes of the longest bound in statistics.
// Longer ones are left out rather than cut: some readers take bounds for
// values.
const maxBoundSize = 64

// statistics are those of one column chunk. v15's own are not used: they leave
// out empty byte arrays, and are silent about NaNs. The number of NULLs is
// that of the entries without a value, as in a data page's header. Bounds are
// there when bounded is set and they are surely right.
func (v *leafValues) statistics(bounded bool) parquet.Statistics {
	values := len(v.bools) + len(v.int32s) + len(v.int64s) + len(v.floats) + len(v.doubles) + len(v.bytes) + len(v.fixed)
	s := parquet.Statistics{NullCount: thrift.New(int64(v.entries - values))}
	if !bounded || values == 0 {
		return s
	}
	lo, hi, ok := v.bounds()
	if ok && len(lo) <= maxBoundSize && len(hi) <= maxBoundSize {
		s.MinValue, s.MaxValue = thrift.New(lo), thrift.New(hi)
	}
	return s
}

// bounds are the least and the greatest value as statistics hold them: plain,
// byte arrays without their length. There must be values. ok is false when
// they have no order that all readers agree on.
func (v *leafValues) bounds() (lo, hi []byte, ok bool) {
	le := binary.LittleEndian
	switch {
	case v.bools != nil:
		lo, hi = []byte{1}, []byte{0}
		if slices.Contains(v.bools, false) {
			lo[0] = 0
		}
		if slices.Contains(v.bools, true) {
			hi[0] = 1
		}
	case v.int32s != nil:
		a, b := slices.Min(v.int32s), slices.Max(v.int32s)
		lo, hi = le.AppendUint32(nil, uint32(a)), le.AppendUint32(nil, uint32(b))
	case v.int64s != nil:
		a, b := slices.Min(v.int64s), slices.Max(v.int64s)
		lo, hi = le.AppendUint64(nil, uint64(a)), le.AppendUint64(nil, uint64(b))
	case v.floats != nil:
		a, b, ordered := floatBounds(v.floats)
		if !ordered {
			return nil, nil, false
		}
		lo, hi = le.AppendUint32(nil, math.Float32bits(a)), le.AppendUint32(nil, math.Float32bits(b))
	case v.doubles != nil:
		a, b, ordered := floatBounds(v.doubles)
		if !ordered {
			return nil, nil, false
		}
		lo, hi = le.AppendUint64(nil, math.Float64bits(a)), le.AppendUint64(nil, math.Float64bits(b))
	case v.bytes != nil:
		lo, hi = byteBounds(v.bytes)
	case v.fixed != nil:
		lo, hi = byteBounds(v.fixed)
	}
	return lo, hi, true
}

// floatBounds widens zeros to -0 and +0, as parquet.thrift asks of writers. A
// NaN anywhere means no bounds: readers differ on whether it is above all
// numbers.
func floatBounds[T float32 | float64](values []T) (lo, hi T, ok bool) {
	lo, hi = values[0], values[0]
	for _, f := range values {
		if f != f {
			return 0, 0, false
		}
		lo, hi = min(lo, f), max(hi, f)
	}
	if lo == 0 {
		lo = T(math.Copysign(0, -1))
	}
	if hi == 0 {
		hi = 0 // which -0 is equal to
	}
	return lo, hi, true
}

// byteBounds goes by unsigned bytes, the shorter first, and returns copies.
func byteBounds[T ~[]byte](values []T) (lo, hi []byte) {
	least, most := values[0], values[0]
	for _, b := range values {
		if bytes.Compare(b, least) < 0 {
			least = b
		}
		if bytes.Compare(b, most) > 0 {
			most = b
		}
	}
	return append([]byte{}, least...), append([]byte{}, most...)
}
