package keys

import (
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
)

// typeNames maps the Arrow and SQL names of the types without parameters that a key
// can be cast to.
var typeNames = func() map[string]arrow.DataType {
	types := map[string]arrow.DataType{}
	for _, t := range []struct {
		of    arrow.DataType
		names string
	}{
		{arrow.PrimitiveTypes.Int16, "int16, smallint"},
		{arrow.PrimitiveTypes.Int32, "int32"},
		{arrow.PrimitiveTypes.Int64, "int64, bigint, long, int, integer"},
		{arrow.PrimitiveTypes.Uint8, "uint8, utinyint"},
		{arrow.PrimitiveTypes.Uint16, "uint16, usmallint"},
		{arrow.PrimitiveTypes.Uint32, "uint32, uinteger"},
		{arrow.PrimitiveTypes.Uint64, "uint64, ubigint"},
		{arrow.PrimitiveTypes.Int8, "tinyint"},
		{arrow.PrimitiveTypes.Float32, "float, float32, real"},
		{arrow.PrimitiveTypes.Float64, "double, float64, double precision"},
		{arrow.BinaryTypes.String, "string, utf8, large_string, large_utf8, varchar, text"},
		{arrow.BinaryTypes.Binary, "binary, large_binary, blob, bytea, varbinary"},
		{arrow.FixedWidthTypes.Boolean, "bool, boolean"},
		{arrow.FixedWidthTypes.Date32, "date, date32, date64"},
		{arrow.FixedWidthTypes.Time64ns, "time, time32, time64"},
		{&arrow.TimestampType{Unit: arrow.Nanosecond}, "timestamp, datetime"},
		{arrow.FixedWidthTypes.Timestamp_ns, "timestamptz, timestamp with time zone"},
		{&arrow.FixedSizeBinaryType{ByteWidth: 16}, "uuid"},
	} {
		for name := range strings.SplitSeq(t.names, ", ") {
			types[name] = t.of
		}
	}
	return types
}()

// ParseType returns the type that a cast names, by its Arrow name or SQL alias, in
// any case. Units and sizes that make no difference to keys are dropped. int8 is
// refused because it means 8 bits in Arrow and 64 bits in SQL.
func ParseType(s string) (arrow.DataType, error) {
	name := strings.Join(strings.Fields(strings.ToLower(s)), " ")
	if t, ok := typeNames[name]; ok {
		return t, nil
	}
	if name == "int8" {
		return nil, fmt.Errorf("type int8 is ambiguous: want tinyint for integers of 8 bits, or int64 for those of 8 bytes")
	}
	tight := strings.ReplaceAll(name, " ", "")
	var p, sc, w int
	for _, prefix := range []string{"fixed", "fixed_size_binary"} {
		if n, _ := fmt.Sscanf(tight, prefix+"[%d]", &w); n == 1 && w > 0 && w <= math.MaxInt32 && tight == fmt.Sprintf("%s[%d]", prefix, w) {
			return &arrow.FixedSizeBinaryType{ByteWidth: w}, nil
		}
	}
	for _, prefix := range []string{"decimal", "numeric", "decimal128", "decimal256"} {
		n, _ := fmt.Sscanf(tight, prefix+"(%d,%d)", &p, &sc)
		if n == 2 && tight == fmt.Sprintf("%s(%d,%d)", prefix, p, sc) && p > 0 && p <= 76 && sc >= 0 && sc <= p {
			if p <= 38 {
				return &arrow.Decimal128Type{Precision: int32(p), Scale: int32(sc)}, nil
			}
			return &arrow.Decimal256Type{Precision: int32(p), Scale: int32(sc)}, nil
		}
	}
	return nil, fmt.Errorf("type %q: want one of tinyint, int16 … int64, uint8 … uint64, float, double, decimal(P,S), string, binary, boolean, date, time, timestamp, timestamptz, uuid, fixed[N]", s)
}

// TypeName returns a name that [ParseType] parses to t, which must come from
// ParseType.
func TypeName(t arrow.DataType) string {
	switch t := t.(type) {
	case nil:
		return "no type"
	case *arrow.Int8Type:
		return "tinyint"
	case *arrow.Float32Type:
		return "float"
	case *arrow.Float64Type:
		return "double"
	case *arrow.StringType:
		return "string"
	case *arrow.BooleanType:
		return "boolean"
	case *arrow.Date32Type:
		return "date"
	case *arrow.Time64Type:
		return "time"
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return "timestamptz"
		}
		return "timestamp"
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth == 16 {
			return "uuid"
		}
		return string(Fixed(t.ByteWidth))
	case arrow.DecimalType:
		return fmt.Sprintf("decimal(%d,%d)", t.GetPrecision(), t.GetScale())
	}
	return t.Name() // integers, binary
}

// TypeOf returns a type of the class to cast to, the widest if they differ in
// width. It is nil for classes without a cast.
func TypeOf(c Class) arrow.DataType {
	switch c {
	case Integer:
		return arrow.PrimitiveTypes.Int64
	case Bytes:
		return arrow.BinaryTypes.String
	case Boolean:
		return arrow.FixedWidthTypes.Boolean
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Instant:
		return arrow.FixedWidthTypes.Timestamp_ns
	case Timestamp:
		return typeNames["timestamp"]
	case Time:
		return arrow.FixedWidthTypes.Time64ns
	case Decimal, AnyNumber:
		return &arrow.Decimal128Type{Precision: 38, Scale: 9}
	case Float:
		return arrow.PrimitiveTypes.Float64
	}
	if w, ok := FixedWidth(c); ok && w > 0 {
		return &arrow.FixedSizeBinaryType{ByteWidth: w}
	}
	return nil
}

// typeFor returns the name of a type of the class.
func typeFor(c Class) string {
	if t := TypeOf(c); t != nil {
		return TypeName(t)
	}
	return string(c)
}
