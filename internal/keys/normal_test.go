package keys_test

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/float16"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// fromStrings builds an array from the text of its values; "NULL" is NULL.
func fromStrings(t testing.TB, dt arrow.DataType, values ...string) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	for _, v := range values {
		if v == "NULL" {
			b.AppendNull()
		} else if err := b.AppendValueFromString(v); err != nil {
			t.Fatalf("%s %q: %v", dt, v, err)
		}
	}
	return b.NewArray()
}

func float64s(bits ...uint64) arrow.Array {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	defer b.Release()
	for _, v := range bits {
		b.Append(math.Float64frombits(v))
	}
	return b.NewArray()
}

func float32s(bits ...uint32) arrow.Array {
	b := array.NewFloat32Builder(memory.DefaultAllocator)
	defer b.Release()
	for _, v := range bits {
		b.Append(math.Float32frombits(v))
	}
	return b.NewArray()
}

func float16s(bits ...uint16) arrow.Array {
	b := array.NewFloat16Builder(memory.DefaultAllocator)
	defer b.Release()
	for _, v := range bits {
		b.Append(float16.FromBits(v))
	}
	return b.NewArray()
}

func timestamps(dt arrow.DataType, values ...int64) arrow.Array {
	b := array.NewTimestampBuilder(memory.DefaultAllocator, dt.(*arrow.TimestampType))
	defer b.Release()
	for _, v := range values {
		b.Append(arrow.Timestamp(v))
	}
	return b.NewArray()
}

func date64s(ms ...int64) arrow.Array {
	b := array.NewDate64Builder(memory.DefaultAllocator)
	defer b.Release()
	for _, v := range ms {
		b.Append(arrow.Date64(v))
	}
	return b.NewArray()
}

func date32s(days ...int32) arrow.Array {
	b := array.NewDate32Builder(memory.DefaultAllocator)
	defer b.Release()
	for _, v := range days {
		b.Append(arrow.Date32(v))
	}
	return b.NewArray()
}

func zoned(u arrow.TimeUnit) arrow.DataType {
	return &arrow.TimestampType{Unit: u, TimeZone: "Asia/Kolkata"}
}

func unzoned(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u} }

// TestGolden: the forms specified in codec/FORMAT.md, worked out by hand. Existing
// filters contain these bytes, so they never change.
func TestGolden(t *testing.T) {
	dec128 := func(p, s int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: s} }
	dec256 := func(p, s int32) arrow.DataType { return &arrow.Decimal256Type{Precision: p, Scale: s} }
	str := func(dt arrow.DataType, values ...string) arrow.Array { return fromStrings(t, dt, values...) }
	for _, c := range []struct {
		name  string
		array arrow.Array
		want  string // the keys as parts, in hexadecimal
	}{
		{"int8", str(arrow.PrimitiveTypes.Int8, "0", "5", "NULL", "-1", "127", "-128"),
			"000000000000000000 050000000000000000 NULL ffffffffffffffff01 7f0000000000000000 80ffffffffffffff01"},
		{"int16", str(arrow.PrimitiveTypes.Int16, "5", "-1", "-32768"), "050000000000000000 ffffffffffffffff01 0080ffffffffffff01"},
		{"int32", str(arrow.PrimitiveTypes.Int32, "5", "-1", "-2147483648", "16909060"),
			"050000000000000000 ffffffffffffffff01 00000080ffffffff01 040302010000000000"},
		{"int64", str(arrow.PrimitiveTypes.Int64, "5", "-1", "-9223372036854775808", "9223372036854775807"),
			"050000000000000000 ffffffffffffffff01 000000000000008001 ffffffffffffff7f00"},
		{"uint8", str(arrow.PrimitiveTypes.Uint8, "5", "255"), "050000000000000000 ff0000000000000000"},
		{"uint16", str(arrow.PrimitiveTypes.Uint16, "5", "65535"), "050000000000000000 ffff00000000000000"},
		{"uint32", str(arrow.PrimitiveTypes.Uint32, "5", "4294967295"), "050000000000000000 ffffffff0000000000"},
		{"uint64", str(arrow.PrimitiveTypes.Uint64, "5", "18446744073709551615", "9223372036854775808"),
			"050000000000000000 ffffffffffffffff00 000000000000008000"},
		{"string", str(arrow.BinaryTypes.String, "", "a", "NULL", "ÿ\x00b"), " 61 NULL c3bf0062"},
		{"large string", str(arrow.BinaryTypes.LargeString, "", "a"), " 61"},
		{"bool", str(arrow.FixedWidthTypes.Boolean, "true", "false", "NULL"), "01 00 NULL"},
		{"date32", date32s(0, 1, -1, 19782, math.MinInt32),
			"0000000000000000 0100000000000000 ffffffffffffffff 464d000000000000 00000080ffffffff"},
		{"date64", date64s(0, 86_400_000, -86_400_000, -1, 86_399_999),
			"0000000000000000 0100000000000000 ffffffffffffffff ffffffffffffffff 0000000000000000"},
		{"seconds", timestamps(zoned(arrow.Second), 0, -1, 1<<62),
			"000000000000000000000000 ffffffffffffffff00000000 000000000000004000000000"},
		{"milliseconds", timestamps(unzoned(arrow.Millisecond), 1, -1, 1500),
			"000000000000000040420f00 ffffffffffffffffc0878b3b 01000000000000000065cd1d"},
		{"microseconds", timestamps(zoned(arrow.Microsecond), 1, -1), "0000000000000000e8030000 ffffffffffffffff18c69a3b"},
		{"nanoseconds", timestamps(unzoned(arrow.Nanosecond), 1, -1, math.MinInt64, math.MaxInt64),
			"000000000000000001000000 ffffffffffffffffffc99a3b fb823edafdffffff00f2a708 047dc12502000000ffd7f232"},
		{"half", float16s(0x0000, 0x8000, 0x3c00, 0xc000, 0x7c00, 0xfc00, 0x7e00, 0xfdff, 0x0001, 0x83ff),
			"0000000000000000 0000000000000000 000000000000f03f 00000000000000c0 000000000000f07f 000000000000f0ff " +
				"000000000000f87f 000000000000f87f 000000000000703e 0000000000f80fbf"},
		{"single", float32s(0, 0x80000000, 0x3f800000, 0x7f800001, 0xffc12345, 0x7f800000, 0x00000001, 0x3dcccccd),
			"0000000000000000 0000000000000000 000000000000f03f 000000000000f87f 000000000000f87f 000000000000f07f " +
				"000000000000a036 000000a09999b93f"},
		{"double", float64s(0, 1<<63, 0x3ff0000000000000, 0x7ff0000000000001, 0xfff8000000000000, 1, 0x3fb999999999999a),
			"0000000000000000 0000000000000000 000000000000f03f 000000000000f87f 000000000000f87f 0100000000000000 9a9999999999b93f"},
		{"decimal128", str(dec128(10, 2), "1.50", "-1.50", "0.00", "1.00", "100.00", "1.28", "-1.28", "-1.29", "NULL", "2.55", "-0.01"),
			"010000000f 01000000f1 0000000000 0000000001 feffffff01 020000000080 0200000080 02000000ff7f NULL 0200000000ff 02000000ff"},
		{"decimal256", str(dec256(50, 3), "1.500", "0.000", "-1.000"), "010000000f 0000000000 00000000ff"},
		{"decimal, negative scale", str(dec128(5, -2), "1200"), "020000000c"},
		{"uuid", fixed(16, strings.Repeat("\x01\xff", 8)), strings.Repeat("01ff", 8)},
		{"fixed", fixed(3, "abc", "\x00\x00\x00"), "616263 000000"},
		{"null", array.NewNull(2), "NULL NULL"},
	} {
		defer c.array.Release()
		want := strings.Split(c.want, " ")
		if c.name == "decimal, negative scale" {
			want = []string{"feffffff0c"}
		}
		for i, got := range forms(t, c.array) {
			if got != want[i] {
				t.Errorf("%s: value %d (%s) is %s, want %s", c.name, i, c.array.ValueStr(i), got, want[i])
			}
		}
	}
}

func fixed(w int, values ...string) arrow.Array {
	b := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, &arrow.FixedSizeBinaryType{ByteWidth: w})
	defer b.Release()
	for _, v := range values {
		b.Append([]byte(v))
	}
	return b.NewArray()
}

// TestGoldenHash: hashes of whole keys, which determine the bits of a key.
func TestGoldenHash(t *testing.T) {
	rec := record(t, column{"i", fromStrings(t, arrow.PrimitiveTypes.Int64, "506097522914230528")}, // bytes 00 … 07
		column{"s", fromStrings(t, arrow.BinaryTypes.String, "")})
	for path, want := range map[string]uint64{
		"i": 0x3a1c2d7c85af88f8, // both in codec/FORMAT.md
		"s": 0x2d06800538d394c2,
	} {
		var b keys.Batch
		encode(t, rec, path, &b)
		if got := b.HashAt(bloom.Hash{ID: bloom.XXH3}, 0); got != want {
			t.Errorf("%s: %#x, want %#x", path, got, want)
		}
	}
}

type column struct {
	name  string
	array arrow.Array
}

// record makes a record of the columns and takes ownership of them.
func record(t testing.TB, cols ...column) arrow.Record {
	var fields []arrow.Field
	var arrs []arrow.Array
	for _, c := range cols {
		fields = append(fields, arrow.Field{Name: c.name, Type: c.array.DataType(), Nullable: true})
		arrs = append(arrs, c.array)
	}
	rec := array.NewRecord(arrow.NewSchema(fields, nil), arrs, int64(arrs[0].Len()))
	for _, a := range arrs {
		a.Release()
	}
	t.Cleanup(rec.Release)
	return rec
}

// TestGoldenComposite: each part is preceded by its length; integers have a sign.
func TestGoldenComposite(t *testing.T) {
	rec := record(t,
		column{"i", fromStrings(t, arrow.PrimitiveTypes.Int32, "-1", "5", "NULL")},
		column{"s", fromStrings(t, arrow.BinaryTypes.String, "ab", strings.Repeat("x", 200), "z")},
		column{"d", fromStrings(t, &arrow.Decimal128Type{Precision: 5, Scale: 1}, "1.5", "0.0", "0.0")})
	want := []string{
		"09ffffffffffffffff01" + "026162" + "05010000000f",
		"09050000000000000000" + "c801" + strings.Repeat("78", 200) + "050000000000",
		"NULL",
	}
	var b keys.Batch
	for i, got := range encode(t, rec, "i,s,d", &b) {
		if got != want[i] {
			t.Errorf("row %d: %s, want %s", i, got, want[i])
		}
	}
	if _, ok := b.Ints(); ok {
		t.Error("a composite key has Ints")
	}
}

// TestSign: in one integer column, -1 and 2^64-1 have the same hash for the filter
// but are different keys for the join.
func TestSign(t *testing.T) {
	var a, b keys.Batch
	x := encode(t, record(t, column{"k", fromStrings(t, arrow.PrimitiveTypes.Int64, "-1")}), "k", &a)
	y := encode(t, record(t, column{"k", fromStrings(t, arrow.PrimitiveTypes.Uint64, "18446744073709551615")}), "k", &b)
	if x[0] == y[0] {
		t.Error("-1 equals 2^64-1")
	}
	if h := hashes[0]; a.HashAt(h, 0) != b.HashAt(h, 0) {
		t.Error("the sign is in the hash of a single integer, which FORMAT.md denies")
	}
	x = encode(t, record(t, column{"k", fromStrings(t, arrow.PrimitiveTypes.Int64, "-1")}), "k,k", &a)
	y = encode(t, record(t, column{"k", fromStrings(t, arrow.PrimitiveTypes.Uint64, "18446744073709551615")}), "k,k", &b)
	if x[0] == y[0] || a.HashAt(hashes[0], 0) == b.HashAt(hashes[0], 0) {
		t.Error("the sign is not in a composite key")
	}
}
