package keys_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// bijection checks that equal values have equal keys and different values have
// different keys, over all values added.
type bijection struct {
	t     *testing.T
	keyOf map[string]string
	value map[string]string
	seen  int
}

func newBijection(t *testing.T) *bijection {
	return &bijection{t: t, keyOf: map[string]string{}, value: map[string]string{}}
}

// add adds an array with the exact value of each element, in a form that is equal
// for equal values and computed without package key.
func (b *bijection) add(a arrow.Array, values []string) {
	b.t.Helper()
	defer a.Release()
	for i, key := range forms(b.t, a) {
		v := values[i]
		if k, ok := b.keyOf[v]; ok && k != key {
			b.t.Errorf("%s: value %s is %s, and was %s before", a.DataType(), v, key, k)
		}
		if w, ok := b.value[key]; ok && w != v {
			b.t.Errorf("%s: values %s and %s are both %s", a.DataType(), v, w, key)
		}
		b.keyOf[v], b.value[key] = key, v
		b.seen++
	}
}

// edge returns 64 random bits, often small or close to an edge.
func edge(r *rand.Rand) uint64 {
	v := r.Uint64()
	switch r.IntN(4) {
	case 0:
		v = uint64(1)<<r.IntN(64) + uint64(r.IntN(5)) - 2
	case 1:
		v = uint64(r.IntN(40)) - 20
	}
	return v
}

func TestIntegersByValue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b := newBijection(t)
	types := []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	}
	for range 40 {
		for _, dt := range types {
			var texts []string
			for range 20 {
				v := edge(r)
				shift := 64 - dt.(arrow.FixedWidthDataType).BitWidth()
				if dt.ID()%2 == arrow.INT8%2 { // signed types alternate with unsigned ones
					texts = append(texts, fmt.Sprint(int64(v<<shift)>>shift))
				} else {
					texts = append(texts, fmt.Sprint(v<<shift>>shift))
				}
			}
			b.add(fromStrings(t, dt, texts...), texts)
		}
	}
	for _, v := range []string{"-1", "18446744073709551615", "5"} {
		if _, ok := b.keyOf[v]; !ok {
			t.Errorf("%s was never drawn", v)
		}
	}
}

func TestBytesByValue(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	b := newBijection(t)
	for range 20 {
		var values []string
		for range 20 {
			v := make([]byte, r.IntN(6))
			for i := range v {
				v[i] = "\x00\xffab"[r.IntN(4)]
			}
			values = append(values, string(v))
		}
		for _, dt := range []arrow.DataType{
			arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
			arrow.BinaryTypes.StringView, arrow.BinaryTypes.BinaryView,
		} {
			bl := array.NewBuilder(memory.DefaultAllocator, dt)
			for _, v := range values {
				switch bl := bl.(type) {
				case *array.StringBuilder:
					bl.Append(v)
				case *array.LargeStringBuilder:
					bl.Append(v)
				case *array.BinaryBuilder:
					bl.AppendString(v)
				case *array.StringViewBuilder:
					bl.Append(v)
				case *array.BinaryViewBuilder:
					bl.AppendString(v)
				}
			}
			b.add(bl.NewArray(), values)
			bl.Release()
		}
	}
}

// exact returns a float's value as text, the same for all NaNs and for both zeros.
func exact(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return fmt.Sprint(f)
	}
	return new(big.Rat).SetFloat64(f).RatString()
}

// TestHalves: all 65,536 of them, compared with their definition and with the same
// values in the wider types.
func TestHalves(t *testing.T) {
	bits := make([]uint16, 1<<16)
	values := make([]string, len(bits))
	var doubles []uint64
	var singles []uint32
	for i := range bits {
		bits[i] = uint16(i)
		sign, exp, frac := 1.0, i>>10&31, i&1023
		if i>>15 == 1 {
			sign = -1
		}
		var v float64
		switch exp {
		case 0:
			v = sign * float64(frac) / (1 << 24)
		case 31:
			if v = sign * math.Inf(1); frac != 0 {
				v = math.NaN()
			}
		default:
			v = sign * float64(1024+frac) * math.Pow(2, float64(exp-25))
		}
		values[i] = exact(v)
		doubles = append(doubles, math.Float64bits(v))
		singles = append(singles, math.Float32bits(float32(v)))
	}
	b := newBijection(t)
	b.add(float16s(bits...), values)
	b.add(float64s(doubles...), values)
	b.add(float32s(singles...), values)
}

func TestFloatsByValue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	b := newBijection(t)
	special32 := []uint32{0, 1 << 31, 1, 0x007fffff, 0x807fffff, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffffffff}
	special64 := []uint64{0, 1 << 63, 1, 1<<52 - 1, 0x7ff << 52, 0xfff << 52, 0x7ff<<52 + 1, 0xfff8 << 48, 1<<64 - 1, 0x7fffffffffffffff}
	for range 50 {
		singles, doubles := append([]uint32{}, special32...), append([]uint64{}, special64...)
		for range 30 {
			s := r.Uint32()
			singles = append(singles, s)
			doubles = append(doubles, r.Uint64(), math.Float64bits(float64(math.Float32frombits(s))))
		}
		var v32, v64 []string
		for _, x := range singles {
			v32 = append(v32, exact(float64(math.Float32frombits(x))))
		}
		for _, x := range doubles {
			v64 = append(v64, exact(math.Float64frombits(x)))
		}
		b.add(float32s(singles...), v32)
		b.add(float64s(doubles...), v64)
	}
}

// TestTimesByValue: an instant is compared as its nanoseconds since 1970 in a big
// integer, which no unit overflows.
func TestTimesByValue(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	units := map[arrow.TimeUnit]int64{arrow.Second: 1e9, arrow.Millisecond: 1e6, arrow.Microsecond: 1e3, arrow.Nanosecond: 1}
	for _, of := range []func(arrow.TimeUnit) arrow.DataType{zoned, unzoned} {
		b := newBijection(t)
		for range 30 {
			base := int64(edge(r)) % 9e9 // seconds that nanoseconds can hold
			for unit, nanos := range units {
				raw := []int64{math.MinInt64, math.MaxInt64, 0, -1, 1, base * (1e9 / nanos), int64(edge(r)), int64(edge(r))}
				var values []string
				for _, v := range raw {
					values = append(values, new(big.Int).Mul(big.NewInt(v), big.NewInt(nanos)).String())
				}
				b.add(timestamps(of(unit), raw...), values)
			}
		}
	}
}

func TestDatesByValue(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	b := newBijection(t)
	for range 30 {
		days := []int32{math.MinInt32, math.MaxInt32, 0, -1, 1}
		for range 10 {
			days = append(days, int32(edge(r)))
		}
		ms := []int64{math.MinInt64, math.MaxInt64}
		for _, d := range days {
			ms = append(ms, int64(d)*86_400_000, int64(d)*86_400_000+r.Int64N(86_400_000))
		}
		var v32, v64 []string
		for _, d := range days {
			v32 = append(v32, fmt.Sprint(d))
		}
		for _, m := range ms { // Euclidean division rounds down
			q := new(big.Int).Div(big.NewInt(m), big.NewInt(86_400_000))
			v64 = append(v64, q.String())
		}
		b.add(date32s(days...), v32)
		b.add(date64s(ms...), v64)
	}
}

// TestDecimalsByValue: equality is that of big.Rat, and the form decodes to its
// value without superfluous digits.
func TestDecimalsByValue(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	b := newBijection(t)
	for range 120 {
		unscaled := randomBig(r, 1+r.IntN(255))
		scale := int32(r.IntN(60) - 10)
		small := randomBig(r, 1+r.IntN(127))
		b.add(decimals256(unscaled, scale))
		b.add(decimals128(small, scale))
		// The same values with other scales.
		for _, more := range []int64{1, 2, 7} {
			pow := new(big.Int).Exp(big.NewInt(10), big.NewInt(more), nil)
			wider := new(big.Int).Mul(small, pow)
			if wider.BitLen() < 128 {
				b.add(decimals128(wider, scale+int32(more)))
			}
			b.add(decimals256(wider, scale+int32(more)))
		}
	}
	for key, value := range b.value {
		if got := decodeDecimal(t, key); got != value {
			t.Fatalf("%s decodes to %s, not %s", key, got, value)
		}
	}
}

// randomBig returns a number below 2^bits in absolute value, often with trailing
// zeros, sometimes an edge.
func randomBig(r *rand.Rand, bits int) *big.Int {
	v := new(big.Int)
	for range (bits + 63) / 64 {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(edge(r)))
	}
	v.And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(1)))
	if r.IntN(2) == 0 {
		pow := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(r.IntN(20))), nil)
		v.Div(v, pow).Mul(v, pow)
	}
	if r.IntN(2) == 0 {
		v.Neg(v)
	}
	return v
}

func rat(unscaled *big.Int, scale int32) string {
	pow := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
	if scale >= 0 {
		return new(big.Rat).SetFrac(unscaled, pow).RatString()
	}
	return new(big.Rat).SetInt(new(big.Int).Mul(unscaled, pow)).RatString()
}

func decimals128(v *big.Int, scale int32) (arrow.Array, []string) {
	b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38, Scale: scale})
	defer b.Release()
	neg := new(big.Int).Neg(v)
	b.Append(decimal.From128(v))
	b.Append(decimal.From128(neg))
	return b.NewArray(), []string{rat(v, scale), rat(neg, scale)}
}

func decimals256(v *big.Int, scale int32) (arrow.Array, []string) {
	b := array.NewDecimal256Builder(memory.DefaultAllocator, &arrow.Decimal256Type{Precision: 76, Scale: scale})
	defer b.Release()
	neg := new(big.Int).Neg(v)
	b.Append(decimal.From256(v))
	b.Append(decimal.From256(neg))
	return b.NewArray(), []string{rat(v, scale), rat(neg, scale)}
}

// decodeDecimal decodes the form as codec/FORMAT.md specifies it.
func decodeDecimal(t *testing.T, key string) string {
	b, err := hex.DecodeString(key)
	if err != nil || len(b) < 5 {
		t.Fatalf("%s is no decimal", key)
	}
	scale := int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
	v := new(big.Int).SetBytes(b[4:])
	if b[4] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b[4:]))))
	}
	if len(b) > 5 && (b[4] == 0 && b[5] < 0x80 || b[4] == 0xff && b[5] >= 0x80) {
		t.Errorf("%s has a superfluous byte", key)
	}
	if v.Sign() != 0 && new(big.Int).Rem(v, big.NewInt(10)).Sign() == 0 || v.Sign() == 0 && scale != 0 {
		t.Errorf("%s has a trailing zero", key)
	}
	return rat(v, scale)
}

// TestCompositeInjective: over an alphabet chosen to cause confusion, tuples are
// equal exactly if their keys are.
func TestCompositeInjective(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	words := []string{"", "a", "ab", "b", "c", "bc", "\x00", "\x01", "\x01a", "\x02ab", "\x00\x00", "x"}
	for _, parts := range []int{2, 3, 12} {
		b := newBijection(t)
		cols := make([][]string, parts)
		n := 2000
		tuples := make([]string, n)
		for i := range n {
			tuple := make([]string, parts)
			for p := range tuple {
				tuple[p] = words[r.IntN(len(words))]
				cols[p] = append(cols[p], tuple[p])
			}
			tuples[i] = fmt.Sprintf("%q", tuple)
		}
		var columns []column
		path := ""
		for p := range parts {
			dt := []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString}[p%2]
			columns = append(columns, column{fmt.Sprint("c", p), fromStrings(t, dt, cols[p]...)})
			path += fmt.Sprint(",c", p)
		}
		var batch keys.Batch
		for i, spec := range encode(t, record(t, columns...), path[1:], &batch) {
			if k, ok := b.keyOf[tuples[i]]; ok && k != spec {
				t.Errorf("%s is %s and %s", tuples[i], k, spec)
			}
			if v, ok := b.value[spec]; ok && v != tuples[i] {
				t.Errorf("%s and %s are both %s", v, tuples[i], spec)
			}
			b.keyOf[tuples[i]], b.value[spec] = spec, tuples[i]
		}
	}
}
