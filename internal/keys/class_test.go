package keys_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

func TestClassOf(t *testing.T) {
	dict := func(dt arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: dt}
	}
	ext := func(dt arrow.DataType) arrow.DataType { return arrowtest.ExtensionOf(dt) }
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
		keys.Time:      {arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64ns},
		keys.Duration:  {arrow.FixedWidthTypes.Duration_s, dict(arrow.FixedWidthTypes.Duration_ns)},
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
		arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.StructOf(), arrow.FixedWidthTypes.MonthInterval, dict(arrow.ListOf(arrow.PrimitiveTypes.Int8)), arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String),
	} {
		if c, err := keys.ClassOf(dt); !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: class %q, %v, want it to be unsupported", dt, c, err)
		}
	}
}

func TestParseType(t *testing.T) {
	for s, want := range map[string]arrow.DataType{
		"tinyint": arrow.PrimitiveTypes.Int8, "int16": arrow.PrimitiveTypes.Int16, "int32": arrow.PrimitiveTypes.Int32, "int64": arrow.PrimitiveTypes.Int64,
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
		"", "int8", "int128", "int 64", "list", "fixed[0]", "fixed[-1]", "fixed[03]", "fixed[3]x", "fixed[3", "fixed[]", "fixed[4294967296]",
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

// TestTypeName: ParseType reads a type's name as that type.
func TestTypeName(t *testing.T) {
	for _, s := range []string{
		"tinyint", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double", "string", "binary", "boolean",
		"date", "time", "timestamp", "timestamptz", "uuid", "fixed[3]", "decimal(10,2)", "decimal(76,0)",
	} {
		dt, err := keys.ParseType(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
		} else if got := keys.TypeName(dt); got != s {
			t.Errorf("%s is named %s", s, got)
		}
	}
	_, err := keys.ParseType("INT8")
	if err == nil || !strings.Contains(err.Error(), "tinyint") || !strings.Contains(err.Error(), "int64") {
		t.Errorf("int8: %v", err)
	}
}

var allClasses = []keys.Class{
	keys.Integer, keys.Bytes, keys.Boolean, keys.Date, keys.Instant, keys.Timestamp, keys.Decimal, keys.Float, keys.Time, keys.Duration,
	keys.Fixed(16), keys.Fixed(3), keys.Null,
}

// typesOf has a column type for each class.
var typesOf = map[keys.Class]arrow.DataType{
	keys.Integer: arrow.PrimitiveTypes.Int64, keys.Bytes: arrow.BinaryTypes.String, keys.Boolean: arrow.FixedWidthTypes.Boolean,
	keys.Date: arrow.FixedWidthTypes.Date32, keys.Instant: zoned(arrow.Second), keys.Timestamp: unzoned(arrow.Second),
	keys.Decimal: &arrow.Decimal128Type{Precision: 38, Scale: 2}, keys.Float: arrow.PrimitiveTypes.Float64,
	keys.Time: arrow.FixedWidthTypes.Time32s, keys.Duration: arrow.FixedWidthTypes.Duration_s,
	keys.Fixed(16): &arrow.FixedSizeBinaryType{ByteWidth: 16}, keys.Fixed(3): &arrow.FixedSizeBinaryType{ByteWidth: 3}, keys.Null: arrow.Null,
}

// word returns the name of a class in messages.
func word(c keys.Class) string { return strings.Replace(string(c), "bytes", "text", 1) }

// TestMatch: a class matches itself and NULL, and numbers match each other.
// Otherwise the error names both classes, and the cast that it suggests makes them
// match.
func TestMatch(t *testing.T) {
	at := fault.At{File: "log.parquet", Column: "k"}
	cast := regexp.MustCompile(`(ids|log)::(\S+\(.*?\)|[^ ,=]+)`)
	for _, a := range allClasses {
		for _, b := range allClasses {
			for _, filter := range []bool{false, true} {
				ids := keys.Side{Columns: []keys.Column{{Path: keys.Path{"x"}}, {Path: keys.Path{"ids"}}}, Classes: []keys.Class{keys.Integer, a}}
				log := keys.Side{Columns: []keys.Column{{Path: keys.Path{"y"}}, {Path: keys.Path{"log"}}}, Classes: []keys.Class{keys.Integer, b}}
				if filter {
					ids.Columns = nil
				}
				err := keys.Match(at, ids, log)
				if a == b || a == keys.Null || b == keys.Null || a.Numeric() && b.Numeric() {
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
				if !strings.Contains(f.Want.String(), word(a)) || !strings.Contains(f.Got, word(b)) || f.Hint == "" || !strings.Contains(err.Error(), "log.parquet") {
					t.Errorf("%s, %s: %v", a, b, err)
				}
				if !filter && strings.Contains(f.Hint.String(), "filter") {
					t.Errorf("%s, %s: no filter is there: %s", a, b, f.Hint.String())
				}
				advised := cast.FindStringSubmatch(f.Hint.String())
				if advised == nil {
					if (a == keys.Bytes) != (b == keys.Bytes) && a != keys.Fixed(3) && b != keys.Fixed(3) && !filter && a != keys.Duration && b != keys.Duration {
						t.Errorf("%s, %s: no cast is advised: %s", a, b, f.Hint.String())
					}
					continue
				}
				of, to := a, b
				if advised[1] == "log" {
					of, to = b, a
				}
				columns, err := keys.ParseColumns(advised[0])
				if err != nil {
					t.Errorf("%s, %s: the hint %q: %v", a, b, f.Hint.String(), err)
					continue
				}
				types := []arrow.DataType{typesOf[of]}
				if of == keys.Bytes { // the hint is the same for binaries
					types = append(types, arrow.BinaryTypes.Binary)
				}
				for _, dt := range types {
					schema := arrow.NewSchema([]arrow.Field{{Name: advised[1], Type: dt}}, nil)
					enc, err := keys.NewEncoder(schema, columns, keys.Options{})
					if err != nil || enc.Classes()[0] != to {
						t.Errorf("%s, %s of type %s: the hint %q: %v", a, b, dt, f.Hint.String(), err)
					}
				}
			}
		}
	}
	err := keys.Match(at, keys.Side{Classes: allClasses[:2]}, keys.Side{Classes: allClasses[:1]})
	if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "want 2, got 1") {
		t.Errorf("two columns against one: %v", err)
	}
}

// TestMeet: in the class where two sides meet, each value of one side has an equal,
// or it has none on the other side.
func TestMeet(t *testing.T) {
	i, d, f, n, s := keys.Integer, keys.Decimal, keys.Float, keys.AnyNumber, keys.Bytes
	for _, c := range []struct {
		ids, log []keys.Class
		want     keys.Class
	}{
		{[]keys.Class{i}, []keys.Class{i}, i}, {[]keys.Class{f}, []keys.Class{f}, f}, {[]keys.Class{s, s}, []keys.Class{s}, s},
		{[]keys.Class{i}, []keys.Class{f}, i}, {[]keys.Class{f}, []keys.Class{i}, i}, {[]keys.Class{d}, []keys.Class{i}, i}, {[]keys.Class{i}, []keys.Class{d}, i},
		{[]keys.Class{d}, []keys.Class{f}, f}, {[]keys.Class{f}, []keys.Class{d}, d},
		{[]keys.Class{i}, []keys.Class{i, f, d}, i}, {[]keys.Class{f, i}, []keys.Class{d, d}, d}, {[]keys.Class{d, i}, []keys.Class{i, f}, n},
		{[]keys.Class{keys.Null}, []keys.Class{keys.Date}, keys.Date}, {[]keys.Class{keys.Null, f}, []keys.Class{keys.Null}, f},
		{[]keys.Class{i, s}, []keys.Class{i}, ""}, {[]keys.Class{s}, []keys.Class{i}, ""}, {[]keys.Class{i}, []keys.Class{i, keys.Date}, ""},
		{[]keys.Class{keys.Null, i, s}, []keys.Class{keys.Null}, ""},
	} {
		got, ok := keys.Meet(c.ids, c.log)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%v and %v: %q, %v, want %q", c.ids, c.log, got, ok, c.want)
		}
	}
}
