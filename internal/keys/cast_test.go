package keys_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// castTo encodes a column of values, cast to a type, and returns the key of each
// row, or "NULL" or "misfit".
func castTo(t *testing.T, col arrow.Array, to string, o keys.Options) []string {
	t.Helper()
	col.Retain()
	rec := record(t, column{"k", col})
	columns, err := keys.ParseColumns("k::" + to)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(rec.Schema(), columns, o)
	if err != nil {
		t.Fatalf("%s to %s: %v", col.DataType(), to, err)
	}
	var b keys.Batch
	if err := enc.Encode(rec, &b); err != nil {
		t.Fatal(err)
	}
	out := slices.Repeat([]string{"NULL"}, b.Len)
	for i, row := range b.Rows {
		out[row] = string(b.Append(nil, i))
	}
	if o.NullMisfits {
		if err := b.Fit(fault.At{}, columns); err != nil || b.Nulls() != b.Len-len(b.Rows) {
			t.Errorf("%d NULLs of %d rows, %d keys: %v", b.Nulls(), b.Len, len(b.Rows), err)
		}
		return out
	}
	for _, row := range b.Misfits() {
		out[row] = "misfit"
	}
	return out
}

// TestCast: a cast value has the same key as that value in a column of the type.
func TestCast(t *testing.T) {
	decimal := func(p, s int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: s} }
	const uuid = "00112233-4455-6677-8899-aabbccddeeff"
	prim, fixed := arrow.PrimitiveTypes, arrow.FixedWidthTypes
	for _, c := range []struct {
		from   arrow.DataType
		values []string
		to     string
		as     arrow.DataType // type to compare the keys with
		want   []string       // values of as
	}{
		{arrow.BinaryTypes.String, []string{"0", "-1", "9223372036854775807", "-9223372036854775808", "NULL"}, "int64", prim.Int64, []string{"0", "-1", "9223372036854775807", "-9223372036854775808", "NULL"}},
		{arrow.BinaryTypes.String, []string{" 7", "7 ", "\t-7 "}, "int64", prim.Int64, []string{"7", "7", "-7"}},
		{arrow.BinaryTypes.String, []string{"007", "+7", "-0", "- 7", "7 7", " ", "", "7.0", "7e0", "0x7", "٣", "--7", "9223372036854775808", "-9223372036854775809", "99999999999999999999", "100000000000000000000"}, "int64", nil, nil},
		{arrow.BinaryTypes.LargeString, []string{"18446744073709551615", "0"}, "uint64", prim.Uint64, []string{"18446744073709551615", "0"}},
		{arrow.BinaryTypes.Binary, []string{"MA==", "LTc=", "NULL"}, "int64", prim.Int64, []string{"0", "-7", "NULL"}}, // base64 of the stored bytes
		{arrow.BinaryTypes.Binary, []string{"/w==", ""}, "int64", nil, nil},
		{arrow.BinaryTypes.String, []string{"18446744073709551616", "-1", "18446744073709551620"}, "uint64", nil, nil},
		{arrow.BinaryTypes.String, []string{"127", "-128"}, "tinyint", prim.Int8, []string{"127", "-128"}},
		{arrow.BinaryTypes.String, []string{"128", "-129"}, "tinyint", nil, nil},
		{arrow.BinaryTypes.String, []string{"1.50", "-3e2", "0.10"}, "decimal(10,2)", decimal(5, 2), []string{"1.50", "-300.00", "0.10"}},
		{arrow.BinaryTypes.String, []string{"1.234", "1e9", "x"}, "decimal(10,2)", nil, nil},
		{arrow.BinaryTypes.String, []string{"1.5", "NaN", "-0"}, "double", prim.Float64, []string{"1.5", "NaN", "0"}},
		{arrow.BinaryTypes.String, []string{"9007199254740993", "1_0", ""}, "double", nil, nil},
		{arrow.BinaryTypes.String, []string{"true", "FALSE"}, "boolean", fixed.Boolean, []string{"true", "false"}},
		{arrow.BinaryTypes.String, []string{"1", "t"}, "boolean", nil, nil},
		{arrow.BinaryTypes.String, []string{"2024-02-29"}, "date", fixed.Date32, []string{"2024-02-29"}},
		{arrow.BinaryTypes.String, []string{"2023-02-29", "2024-02-29T00:00:00"}, "date", nil, nil},
		{arrow.BinaryTypes.String, []string{"12:34:56.5"}, "time", fixed.Time32ms, []string{"12:34:56.500"}},
		{arrow.BinaryTypes.String, []string{"2024-01-01T01:00:00+01:00"}, "timestamptz", zoned(arrow.Second), []string{"2024-01-01T00:00:00Z"}},
		{arrow.BinaryTypes.String, []string{"2024-01-01 00:00:00.25"}, "timestamp", unzoned(arrow.Millisecond), []string{"2024-01-01 00:00:00.25"}},
		{arrow.BinaryTypes.String, []string{"2024-01-01 00:00:00Z"}, "timestamp", nil, nil},
		{arrow.BinaryTypes.String, []string{uuid, strings.ToUpper(strings.ReplaceAll(uuid, "-", ""))}, "uuid", arrow.BinaryTypes.String, []string{"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"}},
		{arrow.BinaryTypes.String, []string{"00"}, "uuid", nil, nil},
		{prim.Int64, []string{"-5", "127"}, "tinyint", prim.Int64, []string{"-5", "127"}},
		{prim.Int64, []string{"-129", "128"}, "tinyint", nil, nil},
		{prim.Int64, []string{"-1"}, "uint64", nil, nil},
		{prim.Uint64, []string{"9223372036854775808"}, "int64", nil, nil},
		{prim.Int64, []string{"12", "-7"}, "string", arrow.BinaryTypes.String, []string{"12", "-7"}},
		{prim.Uint64, []string{"18446744073709551615"}, "varchar", arrow.BinaryTypes.String, []string{"18446744073709551615"}},
		{prim.Float64, []string{"3", "-0", "NULL"}, "int64", prim.Int32, []string{"3", "0", "NULL"}},
		{prim.Float64, []string{"1.5", "NaN", "+Inf", "9223372036854775808"}, "int64", nil, nil},
		{prim.Float64, []string{"0.5"}, "float", prim.Float32, []string{"0.5"}},
		{prim.Float64, []string{"0.1"}, "float", nil, nil},
		{prim.Float64, []string{"0.1"}, "decimal(10,2)", nil, nil}, // the float is not a tenth
		{decimal(10, 2), []string{"3.00"}, "int64", prim.Int64, []string{"3"}},
		{decimal(10, 2), []string{"3.01"}, "int64", nil, nil},
		{decimal(10, 2), []string{"123.45"}, "decimal(5,2)", decimal(10, 2), []string{"123.45"}},
		{decimal(10, 2), []string{"1234.00"}, "decimal(5,2)", nil, nil},
		{decimal(10, 2), []string{"1.50", "1.00"}, "decimal(5,1)", decimal(10, 2), []string{"1.50", "1.00"}},
		{decimal(10, 2), []string{"1.51"}, "decimal(5,1)", nil, nil},
		{fixed.Boolean, []string{"true"}, "string", arrow.BinaryTypes.String, []string{"true"}},
		{fixed.Date32, []string{"2024-02-29"}, "string", arrow.BinaryTypes.String, []string{"2024-02-29"}},
		{fixed.Date32, []string{"2024-02-29"}, "timestamp", unzoned(arrow.Second), []string{"2024-02-29 00:00:00"}},
		{unzoned(arrow.Second), []string{"2024-02-29 00:00:00"}, "date", fixed.Date32, []string{"2024-02-29"}},
		{unzoned(arrow.Second), []string{"2024-02-29 00:00:01"}, "date", nil, nil},
		{unzoned(arrow.Millisecond), []string{"2024-02-29 00:00:00.001"}, "date", nil, nil},
		{zoned(arrow.Nanosecond), []string{"1969-12-31T00:00:00.5Z"}, "date", nil, nil},
		{unzoned(arrow.Second), []string{"2024-02-29 00:00:01"}, "timestamptz", zoned(arrow.Nanosecond), []string{"2024-02-29T00:00:01Z"}},
		{arrow.Null, []string{"NULL"}, "int64", prim.Int64, []string{"NULL"}},
	} {
		col := fromStrings(t, c.from, c.values...)
		defer col.Release()
		want := slices.Repeat([]string{"misfit"}, len(c.values))
		if c.as != nil {
			plain := record(t, column{"k", fromStrings(t, c.as, c.want...)})
			columns, _ := keys.ParseColumns("k")
			enc, err := keys.NewEncoder(plain.Schema(), columns, keys.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var b keys.Batch
			if err := enc.Encode(plain, &b); err != nil {
				t.Fatal(err)
			}
			want = slices.Repeat([]string{"NULL"}, b.Len)
			for i, row := range b.Rows {
				want[row] = string(b.Append(nil, i))
			}
		}
		if got := castTo(t, col, c.to, keys.Options{}); !slices.Equal(got, want) {
			t.Errorf("%s %q to %s: %q, want %q", c.from, c.values, c.to, got, want)
		}
		for i := range want {
			if want[i] == "misfit" {
				want[i] = "NULL"
			}
		}
		if got := castTo(t, col, c.to, keys.Options{NullMisfits: true}); !slices.Equal(got, want) {
			t.Errorf("%s %q to %s, misfits NULL: %q, want %q", c.from, c.values, c.to, got, want)
		}
	}
	for _, c := range [][2]any{
		{prim.Float64, "string"}, {unzoned(arrow.Second), "string"}, {prim.Int64, "date"}, {fixed.Date32, "int64"},
		{fixed.Boolean, "int64"}, {fixed.Time32s, "timestamp"}, {fixed.Duration_s, "int64"}, {&arrow.FixedSizeBinaryType{ByteWidth: 3}, "string"},
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: c[0].(arrow.DataType)}}, nil)
		columns, _ := keys.ParseColumns("k::" + c[1].(string))
		if _, err := keys.NewEncoder(schema, columns, keys.Options{}); !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s to %s: %v", c[0], c[1], err)
		}
	}
}

// TestCastComposite: a misfit in one part makes the key a misfit, unless another
// part is NULL. A misfit in a dictionary entry counts only if a row uses the entry.
func TestCastComposite(t *testing.T) {
	mem := checked(t)
	a := fromStrings(t, arrow.BinaryTypes.String, "1", "x", "x", "4", "x")
	b := fromStrings(t, arrow.PrimitiveTypes.Float64, "1", "2", "NULL", "0.5", "0.5")
	rec := record(t, column{"a", a}, column{"b", b})
	columns, _ := keys.ParseColumns("a::int64,b")
	enc, err := keys.NewEncoder(rec.Schema(), columns, keys.Options{Classes: []keys.Class{keys.Integer, keys.Integer}})
	if err != nil {
		t.Fatal(err)
	}
	var batch keys.Batch
	if err := enc.Encode(rec, &batch); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(batch.Rows, []uint32{0}) || !slices.Equal(batch.Misfits(), []uint32{1, 4}) || !slices.Equal(batch.Void(), []uint32{3}) || batch.Nulls() != 1 {
		t.Errorf("rows %d, misfits %d, void %d, %d NULLs", batch.Rows, batch.Misfits(), batch.Void(), batch.Nulls())
	}
	err = batch.Fit(fault.At{File: "f"}, columns)
	if !errors.Is(err, fault.ErrMismatch) || !errors.Is(err, keys.ErrMisfit) || !strings.Contains(err.Error(), "f: column a") {
		t.Errorf("%v", err)
	}
	values := fromStrings(t, arrow.BinaryTypes.String, "1", "x")
	defer values.Release()
	for _, used := range [][]int{{0, 0}, {0, 1}} {
		idx := integers(mem, arrow.PrimitiveTypes.Int8, used)
		d := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: idx.DataType(), ValueType: values.DataType()}, idx, values)
		got := castTo(t, d, "int64", keys.Options{})
		idx.Release()
		d.Release()
		if bad := slices.Contains(got, "misfit"); bad != slices.Contains(used, 1) {
			t.Errorf("entries %d: %q", used, got)
		}
	}
}
