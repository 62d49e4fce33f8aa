package keys_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

func TestClassOf(t *testing.T) {
	dict := func(dt arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: dt}
	}
	ext := func(dt arrow.DataType) arrow.DataType { return &wrapped{arrow.ExtensionBase{Storage: dt}} }
	for want, types := range map[keys.Class][]arrow.DataType{
		keys.Integer: {arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint64, dict(arrow.PrimitiveTypes.Int16), ext(arrow.PrimitiveTypes.Int64)},
		keys.Bytes: {arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
			dict(arrow.BinaryTypes.String), ext(dict(arrow.BinaryTypes.String)), dict(ext(arrow.BinaryTypes.String)), arrow.BinaryTypes.StringView, arrow.BinaryTypes.BinaryView},
		keys.Boolean:   {arrow.FixedWidthTypes.Boolean},
		keys.Date:      {arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64},
		keys.Instant:   {zoned(arrow.Second), zoned(arrow.Nanosecond), dict(zoned(arrow.Second))},
		keys.Timestamp: {unzoned(arrow.Second), unzoned(arrow.Nanosecond)},
		keys.Decimal:   {&arrow.Decimal128Type{Precision: 3, Scale: 1}, &arrow.Decimal256Type{Precision: 60, Scale: 9}},
		keys.Float:     {arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64},
		keys.Null:      {arrow.Null},
		"fixed[16]":    {&arrow.FixedSizeBinaryType{ByteWidth: 16}, ext(&arrow.FixedSizeBinaryType{ByteWidth: 16})},
		"fixed[3]":     {&arrow.FixedSizeBinaryType{ByteWidth: 3}},
	} {
		for _, dt := range types {
			if got, err := keys.ClassOf(dt); got != want || err != nil {
				t.Errorf("%s: %q, %v, want %q", dt, got, err, want)
			}
		}
	}
	for _, dt := range []arrow.DataType{
		arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.StructOf(), arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.Time32s,
		arrow.FixedWidthTypes.MonthInterval, dict(arrow.ListOf(arrow.PrimitiveTypes.Int8)), arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String),
	} {
		if c, err := keys.ClassOf(dt); !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: class %q, %v, want it to be unsupported", dt, c, err)
		}
	}
}

func TestParseType(t *testing.T) {
	for s, want := range map[string]arrow.DataType{
		"int8": arrow.PrimitiveTypes.Int8, "int16": arrow.PrimitiveTypes.Int16, "int32": arrow.PrimitiveTypes.Int32, "int64": arrow.PrimitiveTypes.Int64,
		"uint8": arrow.PrimitiveTypes.Uint8, "uint16": arrow.PrimitiveTypes.Uint16, "uint32": arrow.PrimitiveTypes.Uint32, "uint64": arrow.PrimitiveTypes.Uint64,
		"int": arrow.PrimitiveTypes.Int64, " Integer ": arrow.PrimitiveTypes.Int64, "float": arrow.PrimitiveTypes.Float32, "DOUBLE": arrow.PrimitiveTypes.Float64,
		"string": arrow.BinaryTypes.String, "binary": arrow.BinaryTypes.Binary, "bool": arrow.FixedWidthTypes.Boolean, "date": arrow.FixedWidthTypes.Date32,
		"timestamp": unzoned(arrow.Nanosecond), "timestamptz": &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"},
		"uuid": &arrow.FixedSizeBinaryType{ByteWidth: 16}, "fixed[3]": &arrow.FixedSizeBinaryType{ByteWidth: 3},
		"decimal(10,2)": &arrow.Decimal128Type{Precision: 10, Scale: 2}, "decimal( 38 , 0 )": &arrow.Decimal128Type{Precision: 38},
		"decimal(39,9)": &arrow.Decimal256Type{Precision: 39, Scale: 9}, "Decimal(76,76)": &arrow.Decimal256Type{Precision: 76, Scale: 76},
	} {
		if got, err := keys.ParseType(s); err != nil || !arrow.TypeEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "int128", "int 64", "list", "fixed[0]", "fixed[-1]", "fixed[03]", "fixed[3]x", "fixed[3", "fixed[]", "fixed[4294967296]",
		"decimal", "decimal(0,0)", "decimal(10,11)", "decimal(77,1)", "decimal(10,-1)", "decimal(10,2)x", "decimal(10,2",
		"decimal(10,2))", "decimal(+10,2)", "xdecimal(10,2)",
	} {
		if got, err := keys.ParseType(s); err == nil {
			t.Errorf("%q: %v, want an error", s, got)
		} else if s != "" && !strings.Contains(err.Error(), s) {
			t.Errorf("%q: the error does not show it: %v", s, err)
		}
	}
}

// TestMatch: classes match with themselves and with NULL only; the error names
// both, and the hint a way out. A --key-type that it names is one.
func TestMatch(t *testing.T) {
	all := []keys.Class{
		keys.Integer, keys.Bytes, keys.Boolean, keys.Date, keys.Instant, keys.Timestamp, keys.Decimal, keys.Float, keys.Fixed(16), keys.Fixed(3), keys.Null,
	}
	at := fault.At{File: "log.parquet", Column: "k"}
	for _, a := range all {
		for _, b := range all {
			err := keys.Match(at, []keys.Class{keys.Integer, a}, []keys.Class{keys.Integer, b})
			if a == b || a == keys.Null || b == keys.Null {
				if err != nil {
					t.Errorf("%s, %s: %v", a, b, err)
				}
				continue
			}
			var f *fault.Error
			if !errors.Is(err, fault.ErrMismatch) || !errors.As(err, &f) {
				t.Errorf("%s, %s: %v, want a mismatch", a, b, err)
				continue
			}
			if f.Want != string(a) || f.Got != string(b) || f.Hint == "" || !strings.Contains(err.Error(), "log.parquet") {
				t.Errorf("%s, %s: %v", a, b, err)
			}
			if a == keys.Bytes {
				_, flag, _ := strings.Cut(f.Hint, "here --key-type ")
				dt, err := keys.ParseType(strings.Trim(flag, "'"))
				if err != nil {
					t.Errorf("%s, %s: the hint %q names no type: %v", a, b, f.Hint, err)
				} else if c, _ := keys.ClassOf(dt); c != b {
					t.Errorf("%s, %s: the hint %q leads to %s", a, b, f.Hint, c)
				}
			}
			if b == keys.Bytes && !strings.Contains(f.Hint, "--key-type string") {
				t.Errorf("%s, %s: the hint %q names no flag", a, b, f.Hint)
			}
		}
	}
	err := keys.Match(at, all[:2], all[:1])
	if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "want 2, got 1") {
		t.Errorf("two columns against one: %v", err)
	}
}
