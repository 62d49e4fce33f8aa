package keys_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

func TestOrderOf(t *testing.T) {
	for c, want := range map[keys.Class]keys.Order{
		keys.Integer: keys.ByNumber, keys.Date: keys.ByNumber, keys.Instant: keys.ByNumber, keys.Timestamp: keys.ByNumber,
		keys.Decimal: keys.ByNumber, keys.Bytes: keys.ByBytes, keys.Fixed(16): keys.ByBytes, keys.Fixed(0): keys.ByBytes,
		keys.Boolean: keys.Unordered, keys.Float: keys.Unordered, keys.Null: keys.Unordered,
		"fixed[03]": keys.Unordered, "fixed[3": keys.Unordered, "fixed[-1]": keys.Unordered, "": keys.Unordered,
	} {
		if got := keys.OrderOf(c); got != want {
			t.Errorf("%s: order %d, want %d", c, got, want)
		}
	}
}

// Number returns the value that Encode wrote.
func TestNumber(t *testing.T) {
	mem := memory.DefaultAllocator
	stamp := func(unit arrow.TimeUnit, zone string, v int64) arrow.Array {
		b := array.NewTimestampBuilder(mem, &arrow.TimestampType{Unit: unit, TimeZone: zone})
		b.Append(arrow.Timestamp(v))
		return b.NewArray()
	}
	decimal := func(v int64, scale int32) arrow.Array {
		b := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 38, Scale: scale})
		b.Append(decimal128.FromI64(v))
		return b.NewArray()
	}
	one := func(b array.Builder, s string) arrow.Array {
		if err := b.AppendValueFromString(s); err != nil {
			t.Fatal(err)
		}
		return b.NewArray()
	}
	for _, c := range []struct {
		col  arrow.Array
		want string
	}{
		{one(array.NewInt64Builder(mem), "-9223372036854775808"), "-9223372036854775808"},
		{one(array.NewInt8Builder(mem), "-1"), "-1"},
		{one(array.NewUint64Builder(mem), "18446744073709551615"), "18446744073709551615"},
		{one(array.NewDate32Builder(mem), "1969-12-31"), "-1"},
		{stamp(arrow.Millisecond, "", -1), "-1/1000"},
		{stamp(arrow.Nanosecond, "UTC", 1_500_000_001), "1500000001/1000000000"},
		{stamp(arrow.Second, "", math.MaxInt64), "9223372036854775807"},
		{decimal(0, 5), "0"},
		{decimal(-1500, 3), "-3/2"},
		{decimal(120, 0), "120"},
		{decimal(255, 2), "51/20"},
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: c.col.DataType()}, {Name: "l", Type: c.col.DataType()}}, nil)
		enc, err := keys.NewEncoder(schema, []keys.Column{{Path: keys.Path{"k"}}, {Path: keys.Path{"l"}}}, keys.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var batch keys.Batch
		if err := enc.Encode(array.NewRecord(schema, []arrow.Array{c.col, c.col}, 1), &batch); err != nil {
			t.Fatal(err)
		}
		column := batch.Append(nil, 0)
		part := column[1 : 1+column[0]]
		want, _ := new(big.Rat).SetString(c.want)
		got, ok := keys.Number(enc.Classes()[0], part)
		if !ok || got.Cmp(want) != 0 {
			t.Errorf("%s: %v, %v, want %v", enc.Classes()[0], got, ok, want)
		}
		for _, bad := range [][]byte{nil, part[:len(part)-1]} {
			if n, ok := keys.Number(enc.Classes()[0], bad); ok && (len(bad) < 5 || enc.Classes()[0] != keys.Decimal) {
				t.Errorf("%s: %x is %v", enc.Classes()[0], bad, n)
			}
		}
	}
	if _, ok := keys.Number(keys.Decimal, []byte{0, 0, 0, 0x80, 1}); ok {
		t.Error("a scale of -2^31 is expanded")
	}
	if _, ok := keys.Number(keys.Bytes, []byte("12345678")); ok {
		t.Error("bytes are no number")
	}
}
