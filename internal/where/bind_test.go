package where

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Errors name the file, the column, its type and the literal.
func TestBindErrors(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "i", Type: arrow.PrimitiveTypes.Int32}, {Name: "s", Type: arrow.BinaryTypes.String}, {Name: "d", Type: arrow.FixedWidthTypes.Date32},
		{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond}}, {Name: "b", Type: arrow.FixedWidthTypes.Boolean}, {Name: "f", Type: arrow.PrimitiveTypes.Float64},
		{Name: "dec", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}}, {Name: "bin", Type: arrow.BinaryTypes.Binary}, {Name: "time", Type: arrow.FixedWidthTypes.Time64us},
		{Name: "st", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8)}, arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int8})},
		{Name: "dur", Type: arrow.FixedWidthTypes.Duration_s},
		{Name: "un", Type: arrow.SparseUnionOf([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8}}, []arrow.UnionTypeCode{0})},
	}, nil)
	const mismatch = "f: column %s: mismatch: condition: the column holds %s: want %s"
	for text, want := range map[string]string{
		"x = 1":                         `f: condition: no column "x" (there are i, s, d, ts, b, f, dec, bin, time, st, dur, un)`,
		"st.x = 1":                      `f: condition: no column "x" (there are st.a, st.b)`,
		"i.x = 1":                       `f: condition: i is of type int32, not a struct (name the column itself, or a field of a struct)`,
		"st.a.element = 1":              `f: column st.a.element: unsupported: a condition on a field below a list or map (a condition can test a column, or a field of structs)`,
		"i = 'x'":                       fmt.Sprintf(mismatch, "i", "integers (int32)", "an integer, got 'x' (write it as 42)"),
		"i = '1.5'":                     fmt.Sprintf(mismatch, "i", "integers (int32)", "an integer, got '1.5' (write 1.5, without quotes, to compare numbers exactly)"),
		"i = TRUE":                      fmt.Sprintf(mismatch, "i", "integers (int32)", "an integer, got TRUE (write it as 42)"),
		"i = DATE '2024-05-01'":         fmt.Sprintf(mismatch, "i", "integers (int32)", "an integer, got DATE '2024-05-01' (write it as 42)"),
		"s = 1":                         fmt.Sprintf(mismatch, "s", "strings (utf8)", "a string, got 1 (write '1' to compare texts)"),
		"s > DATE '2024-05-01'":         fmt.Sprintf(mismatch, "s", "strings (utf8)", "a string, got DATE '2024-05-01' (write '2024-05-01' to compare texts)"),
		"d = 20240501":                  fmt.Sprintf(mismatch, "d", "dates (date32)", "a date, got 20240501 (write it as '2024-05-01')"),
		"d = '2024-13-01'":              fmt.Sprintf(mismatch, "d", "dates (date32)", "a date, got '2024-13-01' (write it as '2024-05-01')"),
		"d = '2024-05-01 10:00:00'":     fmt.Sprintf(mismatch, "d", "dates (date32)", "a date, got '2024-05-01 10:00:00' (write TIMESTAMP '2024-05-01 10:00:00' to compare with midnight of the dates)"),
		"ts = '2024-05-01 10:00:00Z'":   fmt.Sprintf(mismatch, "ts", "timestamps without a zone (timestamp[us])", "a timestamp, got '2024-05-01 10:00:00Z' (leave the offset out, or write TIMESTAMPTZ '2024-05-01 10:00:00Z' to compare with the column as UTC)"),
		"ts > 'yesterday'":              fmt.Sprintf(mismatch, "ts", "timestamps without a zone (timestamp[us])", "a timestamp, got 'yesterday' (write it as '2024-05-01 10:30:00')"),
		"b = 1":                         fmt.Sprintf(mismatch, "b", "booleans (bool)", "a boolean, got 1 (write TRUE or FALSE)"),
		"f = 'x'":                       fmt.Sprintf(mismatch, "f", "doubles (float64)", "a number, got 'x' (write it as 1.5 or 'NaN')"),
		"dec = '1.005'":                 fmt.Sprintf(mismatch, "dec", "decimals (decimal(9, 2))", "a decimal, got '1.005' (write 1.005, without quotes, to compare numbers exactly)"),
		`bin = 'a\y'`:                   fmt.Sprintf(mismatch, "bin", "bytes (binary)", `bytes, got 'a\y' (write them as 'text', with \x00 for any byte)`),
		"time = TIMESTAMP '2024-05-01'": fmt.Sprintf(mismatch, "time", "times of day (time64[us])", "a time of day, got TIMESTAMP '2024-05-01' (write it as '10:30:00')"),
		"s":                             "f: column s: mismatch: condition: the column without a comparison: want booleans, got strings (utf8) (compare it with a literal, or test IS NOT NULL)",
		"i LIKE '1%'":                   "f: column i: mismatch: condition: LIKE: want strings, got integers (int32) (compare it by =, < or >)",
		"st = 1":                        "f: column st: unsupported: a condition other than IS NULL on values of type struct<a: list<item: int8, nullable>, b: int8> (test IS NULL or IS NOT NULL)",
		"st":                            "f: column st: unsupported: a condition other than IS NULL on values of type struct<a: list<item: int8, nullable>, b: int8> (test IS NULL or IS NOT NULL)",
		"st.a IN (1, 2)":                "f: column st.a: unsupported: a condition other than IS NULL on values of type list<item: int8, nullable> (test IS NULL or IS NOT NULL)",
		"un IS NULL":                    "f: column un: unsupported: a condition on a column of type sparse_union<a: type=int8=0> (name another column)",
		"dur > 5":                       "f: column dur: unsupported: a condition other than IS NULL on values of type duration[s] (test IS NULL or IS NOT NULL)",
	} {
		c, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_, err = c.Bind(fault.At{File: "f"}, schema, false)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"st IS NULL", "st.a IS NOT NULL", "dur IS NULL", "st.b = 1", "NOT st IS NULL AND B"} {
		c, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Bind(fault.At{}, schema, true); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAlike(t *testing.T) {
	us, tz := &arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	text := arrow.BinaryTypes.String
	for _, c := range []struct {
		a, b arrow.DataType
		want bool
	}{
		{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8, true}, {arrow.PrimitiveTypes.Int64, text, false},
		{us, &arrow.TimestampType{Unit: arrow.Second}, true}, {us, keys.Int96, true}, {us, tz, false}, {us, arrow.FixedWidthTypes.Date32, false},
		{text, arrow.BinaryTypes.LargeString, true}, {text, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: text}, true}, {text, arrow.BinaryTypes.Binary, false},
		{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, false}, {arrow.PrimitiveTypes.Float32, arrow.FixedWidthTypes.Float16, false}, {arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float32, true},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, &arrow.FixedSizeBinaryType{ByteWidth: 16}, false},
	} {
		if got := Alike(c.a, c.b); got != c.want {
			t.Errorf("%v, %v: %v", c.a, c.b, got)
		}
	}
}
