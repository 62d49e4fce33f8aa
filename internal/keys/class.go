// Package keys turns key columns into keys that can be compared: whatever the
// width, unit or encoding of a column, equal values give equal bytes, and
// different values different ones.
//
// The way is
//
//	"user.id" ── ParsePaths ──► Path ── NewEncoder(schema) ──► Encoder
//	record batch ── Encoder.Encode ──► Batch of normal forms ── Batch.Hash ──► 64-bit hashes
//
// A [Class] says which columns can be compared at all. The normal forms of
// each class are specified in codec/FORMAT.md; [NormalForm] is their version,
// recorded in every filter.
//
// Columns of strings, of class [Bytes], may be made alike before that by a
// [Rule]: trim takes ASCII white space off both ends, lower makes ASCII letters
// lower case, uuid makes the text of a UUID its 16 bytes, so that it meets
// columns of UUIDs. They are applied in this order, to every part of the key
// that is of class Bytes. The rule is a property of both sides of a comparison,
// recorded in the filter, and no rule for any other class. Statistics and Bloom
// filters of a column are about its values as they are stored, and say nothing
// of what a rule makes of them.
package keys

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// NormalForm is the version of the rules by which this package turns keys into
// bytes.
const NormalForm = "1"

// Class names a kind of key. Keys of one class compare by value, whatever
// their columns' types; keys of two classes do not compare at all.
type Class string

// The classes. A fixed-width binary has the class "fixed[w]", a UUID is
// fixed[16]; see [Fixed].
const (
	Integer   Class = "integer"   // every width and sign
	Bytes     Class = "bytes"     // strings and binary, large or not
	Boolean   Class = "boolean"   //
	Date      Class = "date"      //
	Instant   Class = "instant"   // timestamps with a zone, any unit
	Timestamp Class = "timestamp" // timestamps without a zone, any unit; INT96
	Decimal   Class = "decimal"   // any precision and scale
	Float     Class = "float"     // half, single and double
	// Null is the class of a column that has no type and only NULLs. It can
	// stand for any other.
	Null Class = "null"
)

// Fixed returns the class of binary values of w bytes each.
func Fixed(w int) Class { return Class("fixed[" + strconv.Itoa(w) + "]") }

// ClassOf returns the class of a column type. Dictionary and extension types
// have that of their values.
func ClassOf(t arrow.DataType) (Class, error) {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return ClassOf(t.ValueType)
	case *Int96Type:
		return Timestamp, nil
	case arrow.ExtensionType:
		return ClassOf(t.StorageType())
	case *arrow.FixedSizeBinaryType:
		return Fixed(t.ByteWidth), nil
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return Timestamp, nil
		}
		return Instant, nil
	}
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64,
		arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return Integer, nil
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return Bytes, nil
	case arrow.BOOL:
		return Boolean, nil
	case arrow.DATE32, arrow.DATE64:
		return Date, nil
	case arrow.DECIMAL128, arrow.DECIMAL256:
		return Decimal, nil
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return Float, nil
	case arrow.NULL:
		return Null, nil
	}
	return "", fault.Unsupported(fault.At{}, "a key of type %s", t)
}

// Match returns nil if keys of the classes can be compared part by part, else
// an error that names both, with the flag that would help where there is one.
func Match(at fault.At, want, got []Class) error {
	if len(want) != len(got) {
		return fault.Mismatch(at, "number of key columns", fmt.Sprint(len(want)), fmt.Sprint(len(got))).
			WithHint("name as many columns as the key has, in its order")
	}
	for i := range want {
		if want[i] == got[i] || want[i] == Null || got[i] == Null {
			continue
		}
		e := fault.Mismatch(at, "key class", string(want[i]), string(got[i]))
		return e.WithHint("%s", hint(want[i], got[i]))
	}
	return nil
}

// hint says what helps when IDs of class a meet a log of class b.
func hint(a, b Class) string {
	switch {
	case a == Bytes && b == Fixed(16):
		return "text that spells UUIDs meets them where all sides say --normalize uuid; IDs from text files can be built as UUIDs, here --key-type uuid"
	case a == Fixed(16) && b == Bytes:
		return "the log's column is text; if it spells UUIDs, build and scan with --normalize uuid; else build the filter from a text column, or with --key-type string from a text file"
	case a == Bytes:
		return fmt.Sprintf("IDs that were read as text can be built as numbers, dates or UUIDs with --key-type, here --key-type %s", typeFor(b))
	case a == Timestamp && b == Instant, a == Instant && b == Timestamp:
		return "a timestamp without a zone is no instant; cast one side, so that both have a zone or neither"
	case b == Bytes:
		return "the log's column is text; build the filter from a text column, or with --key-type string from a text file"
	}
	return "cast one side, so that both are of one class"
}

// typeFor names a --key-type of the class.
func typeFor(c Class) string {
	switch {
	case c == Integer:
		return "int64"
	case c == Float:
		return "double"
	case c == Instant:
		return "timestamptz"
	case c == Decimal:
		return "'decimal(38,9)'"
	case c == Fixed(16):
		return "uuid"
	case c == Bytes:
		return "string"
	}
	return string(c)
}

// ParseType returns the Arrow type that a --key-type names.
func ParseType(s string) (arrow.DataType, error) {
	name := strings.ToLower(strings.TrimSpace(s))
	switch name {
	case "int8":
		return arrow.PrimitiveTypes.Int8, nil
	case "int16":
		return arrow.PrimitiveTypes.Int16, nil
	case "int32":
		return arrow.PrimitiveTypes.Int32, nil
	case "int64", "int", "integer":
		return arrow.PrimitiveTypes.Int64, nil
	case "uint8":
		return arrow.PrimitiveTypes.Uint8, nil
	case "uint16":
		return arrow.PrimitiveTypes.Uint16, nil
	case "uint32":
		return arrow.PrimitiveTypes.Uint32, nil
	case "uint64":
		return arrow.PrimitiveTypes.Uint64, nil
	case "float":
		return arrow.PrimitiveTypes.Float32, nil
	case "double":
		return arrow.PrimitiveTypes.Float64, nil
	case "string":
		return arrow.BinaryTypes.String, nil
	case "binary":
		return arrow.BinaryTypes.Binary, nil
	case "boolean", "bool":
		return arrow.FixedWidthTypes.Boolean, nil
	case "date":
		return arrow.FixedWidthTypes.Date32, nil
	case "timestamp":
		return &arrow.TimestampType{Unit: arrow.Nanosecond}, nil
	case "timestamptz":
		return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, nil
	case "uuid":
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}, nil
	}
	var p, sc, w int
	if n, _ := fmt.Sscanf(name, "fixed[%d]", &w); n == 1 && w > 0 && w <= math.MaxInt32 && name == string(Fixed(w)) {
		return &arrow.FixedSizeBinaryType{ByteWidth: w}, nil
	}
	tight := strings.ReplaceAll(name, " ", "")
	n, _ := fmt.Sscanf(tight, "decimal(%d,%d)", &p, &sc)
	if n == 2 && tight == fmt.Sprintf("decimal(%d,%d)", p, sc) && p > 0 && p <= 76 && sc >= 0 && sc <= p {
		if p <= 38 {
			return &arrow.Decimal128Type{Precision: int32(p), Scale: int32(sc)}, nil
		}
		return &arrow.Decimal256Type{Precision: int32(p), Scale: int32(sc)}, nil
	}
	return nil, fmt.Errorf("key type %q: want one of int8 … int64, uint8 … uint64, float, double, string, binary, boolean, date, timestamp, timestamptz, uuid, fixed[N], decimal(P,S)", s)
}
