package keys_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/float16"

	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// numeric is a column of numbers with the exact value of each: a rational, or
// "inf", "-inf" or "nan".
type numeric struct {
	col    arrow.Array
	values []string
}

// interesting returns numbers on which types differ.
func interesting(rng *rand.Rand) (all []*big.Rat) {
	add := func(s string) {
		r, ok := new(big.Rat).SetString(s)
		if !ok {
			panic(s)
		}
		all = append(all, r, new(big.Rat).Neg(r))
	}
	for _, s := range []string{"0", "1", "7", "1/2", "3/2", "1/10", "1/5", "1/1024", "100", "12.30", "1e18", "1e19", "1e22", "1e23", "1e37", "1e-9", "0.333333333"} {
		add(s)
	}
	for _, e := range []uint{7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 65, 100, 1000} {
		p := new(big.Int).Lsh(big.NewInt(1), e)
		for d := range 3 {
			add(new(big.Int).Add(p, big.NewInt(int64(d-1))).String())
		}
	}
	for range 60 {
		add(fmt.Sprintf("%d/%d", rng.Int64(), int64(1)<<rng.IntN(60)))
		add(fmt.Sprintf("%de%d", rng.Int64N(1e6), rng.IntN(30)-15))
	}
	return all
}

// columnsOf returns a column of each numeric type with those of the numbers that
// the type can represent.
func columnsOf(t *testing.T, numbers []*big.Rat) []numeric {
	mem := checked(t)
	var out []numeric
	types := []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	}
	for _, p := range []int32{3, 9, 18, 19, 38, 39, 76} {
		for _, s := range []int32{0, 1, 2, p / 2, p} {
			types = append(types, decimalType(p, s))
		}
	}
	for _, dt := range types {
		b := array.NewBuilder(mem, dt)
		n := numeric{}
		for _, r := range numbers {
			if appendNumber(b, r) {
				n.values = append(n.values, r.RatString())
			}
		}
		if arrow.IsFloating(dt.ID()) {
			for _, f := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1)} {
				appendFloat(b, f)
			}
			n.values = append(n.values, "inf", "-inf", "nan", "0")
		}
		n.col = b.NewArray()
		b.Release()
		t.Cleanup(n.col.Release)
		out = append(out, n)
	}
	return out
}

func decimalType(p, s int32) arrow.DataType {
	if p <= 38 {
		return &arrow.Decimal128Type{Precision: p, Scale: s}
	}
	return &arrow.Decimal256Type{Precision: p, Scale: s}
}

func appendFloat(b array.Builder, f float64) {
	switch b := b.(type) {
	case *array.Float16Builder:
		b.Append(float16.New(float32(f)))
	case *array.Float32Builder:
		b.Append(float32(f))
	case *array.Float64Builder:
		b.Append(f)
	}
}

// appendNumber appends a number if the type represents it exactly.
func appendNumber(b array.Builder, r *big.Rat) bool {
	switch dt := b.Type().(type) {
	case *arrow.Float16Type:
		f, exact := r.Float32()
		if h := float16.New(f); !exact || math.Abs(float64(f)) > 2048 || math.Abs(float64(f)) < 0.01 && f != 0 || h.Float32() != f {
			return false
		}
		appendFloat(b, float64(f))
		return true
	case *arrow.Float32Type:
		f, exact := r.Float32()
		if exact {
			appendFloat(b, float64(f))
		}
		return exact
	case *arrow.Float64Type:
		f, exact := r.Float64()
		if exact {
			appendFloat(b, f)
		}
		return exact
	case arrow.DecimalType:
		unscaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(keys.Pow10(int(dt.GetScale()))))
		if !unscaled.IsInt() || unscaled.Num().CmpAbs(keys.Pow10(int(dt.GetPrecision()))) >= 0 {
			return false
		}
		if b, ok := b.(*array.Decimal128Builder); ok {
			b.Append(decimal.From128(unscaled.Num()))
			return true
		}
		b.(*array.Decimal256Builder).Append(decimal.From256(unscaled.Num()))
		return true
	}
	width := uint(b.Type().(arrow.FixedWidthDataType).BitWidth())
	least, most := new(big.Int), new(big.Int).Lsh(big.NewInt(1), width)
	if arrow.IsSignedInteger(b.Type().ID()) {
		most.Rsh(most, 1)
		least.Neg(most)
	}
	if !r.IsInt() || r.Num().Cmp(least) < 0 || r.Num().Cmp(most) >= 0 {
		return false
	}
	return b.AppendValueFromString(r.Num().String()) == nil
}

// holds reports whether a class represents a value exactly.
func holds(c keys.Class, value string) bool {
	special := strings.HasSuffix(value, "inf") || value == "nan"
	if special {
		return c == keys.Float || c == keys.AnyNumber
	}
	r, _ := new(big.Rat).SetString(value)
	switch c {
	case keys.Integer:
		return r.IsInt() && (r.Num().IsInt64() || r.Num().IsUint64())
	case keys.Float:
		f, exact := r.Float64()
		return exact && !math.IsInf(f, 0)
	}
	return true // decimals of any length
}

// TestConvert: whatever the columns' types, two numbers have the same key in a
// class if and only if they are the same number. A number that the class cannot
// represent has no key and is not NULL.
func TestConvert(t *testing.T) {
	columns := columnsOf(t, interesting(rand.New(rand.NewPCG(5, 6))))
	for _, class := range []keys.Class{keys.Integer, keys.Decimal, keys.Float, keys.AnyNumber} {
		keyOf, valueOf := map[string]string{}, map[string]string{}
		for _, c := range columns {
			for _, variant := range variants(t, checked(t), c.col) {
				checkConverted(t, class, c, variant.rec, variant.path, keyOf, valueOf)
			}
		}
		if len(keyOf) < 100 {
			t.Errorf("%s: only %d numbers", class, len(keyOf))
		}
	}
}

func checkConverted(t *testing.T, class keys.Class, c numeric, rec arrow.Record, path string, keyOf, valueOf map[string]string) {
	t.Helper()
	columns, err := keys.ParseColumns(path)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(rec.Schema(), columns, keys.Options{Classes: []keys.Class{class}})
	if err != nil {
		t.Fatal(err)
	}
	var b keys.Batch
	if err := enc.Encode(rec, &b); err != nil {
		t.Fatal(err)
	}
	if b.Nulls() != 0 || len(b.Rows)+len(b.Void()) != len(c.values) {
		t.Fatalf("%s as %s: %d keys, %d void, %d NULLs of %d", c.col.DataType(), class, len(b.Rows), len(b.Void()), b.Nulls(), len(c.values))
	}
	for _, row := range b.Void() {
		if holds(class, c.values[row]) {
			t.Errorf("%s as %s: %s has no key", c.col.DataType(), class, c.values[row])
		}
	}
	for i, row := range b.Rows {
		value, column := c.values[row], string(b.Append(nil, i))
		if !holds(class, value) {
			t.Errorf("%s as %s: %s has a key", c.col.DataType(), class, value)
		}
		if k, ok := keyOf[value]; ok && k != column {
			t.Errorf("%s as %s: %s is %x, elsewhere %x", c.col.DataType(), class, value, column, k)
		}
		if v, ok := valueOf[column]; ok && v != value {
			t.Errorf("%s as %s: %s and %s are both %x", c.col.DataType(), class, value, v, column)
		}
		keyOf[value], valueOf[column] = column, value
	}
	_, ints := b.Ints()
	if ints != (class == keys.Integer) {
		t.Errorf("%s as %s: integers: %v", c.col.DataType(), class, ints)
	}
	if ints {
		checkSigns(t, &b)
	}
}

// checkSigns checks that BySign passes every key once, with its sign.
func checkSigns(t *testing.T, b *keys.Batch) {
	t.Helper()
	seen := make([]bool, len(b.Rows))
	_ = b.BySign(func(values []uint64, signed bool, positions []uint32) error {
		for i, v := range values {
			p := i
			if positions != nil {
				p = int(positions[i])
			}
			if all, _ := b.Ints(); seen[p] || v != all[p] || (signed && int64(v) < 0) != b.Negative(p) {
				t.Errorf("position %d: %d, signed %v", p, v, signed)
			}
			seen[p] = true
		}
		return nil
	})
	if slices.Contains(seen, false) {
		t.Error("BySign leaves out keys")
	}
	var picked keys.Batch
	var some []uint32
	for i := range b.Rows {
		if i%3 != 1 {
			some = append(some, uint32(i))
		}
	}
	b.Select(&picked, some)
	for i, p := range some {
		if string(picked.Append(nil, i)) != string(b.Append(nil, int(p))) {
			t.Errorf("selected: %x, was %x", picked.Append(nil, i), b.Append(nil, int(p)))
		}
	}
}
