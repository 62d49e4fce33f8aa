package arrowparquet

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// This file chooses how the values of a leaf are stored: its schema element without
// name and repetition. Wherever there is an equivalent converted type, the element
// has it in addition to the logical type, for old readers.

func ofType(t format.Type) meta.Element {
	return meta.Element{Type: thrift.New(t)}
}

func logically(e meta.Element, v format.LogicalTypeValue) meta.Element {
	e.LogicalType = thrift.New(format.LogicalType{Value: v})
	return e
}

func converted(e meta.Element, c deprecated.ConvertedType) meta.Element {
	e.ConvertedType = thrift.New(c)
	return e
}

func fixedLength(n int) meta.Element {
	e := ofType(format.FixedLenByteArray)
	e.TypeLength = thrift.New(int32(n))
	return e
}

func integer(bits int, signed bool) meta.Element {
	e := ofType(format.Int32)
	if bits == 64 {
		e = ofType(format.Int64)
	}
	e.SetLogical(meta.Logical{Kind: meta.Int, BitWidth: bits, Signed: signed})
	return e
}

// leafElement returns the schema element for values of dt, with the annotation in
// the field's metadata. why is the reason if there is none.
func leafElement(f arrow.Field, dt arrow.DataType) (e meta.Element, why string) {
	name, stored, err := annotation(f.Metadata)
	if e, why = storedAs(f, name, dt); why == "" && err == nil && stored != nil {
		e.ConvertedType = thrift.Null[deprecated.ConvertedType]{}
		err = e.SetAnnotation(stored)
	}
	if err != nil {
		why = "its annotation " + name + ": " + err.Error()
	}
	return e, why
}

// storedAs returns the schema element for values of dt. annotation names an
// annotation for which Arrow has no type.
func storedAs(f arrow.Field, annotation string, dt arrow.DataType) (e meta.Element, why string) {
	switch dt := dt.(type) {
	case *arrow.NullType:
		if !f.Nullable {
			return e, "it must be nullable"
		}
		return logically(ofType(format.Int32), &format.NullType{}), ""
	case *arrow.BooleanType:
		return ofType(format.Boolean), ""
	case *arrow.Int8Type:
		return integer(8, true), ""
	case *arrow.Int16Type:
		return integer(16, true), ""
	case *arrow.Int32Type:
		return ofType(format.Int32), ""
	case *arrow.Int64Type, *arrow.DurationType:
		return ofType(format.Int64), ""
	case *arrow.Uint8Type:
		return integer(8, false), ""
	case *arrow.Uint16Type:
		return integer(16, false), ""
	case *arrow.Uint32Type:
		return integer(32, false), ""
	case *arrow.Uint64Type:
		return integer(64, false), ""
	case *arrow.Float16Type:
		return logically(fixedLength(2), &format.Float16Type{}), ""
	case *arrow.Float32Type:
		return ofType(format.Float), ""
	case *arrow.Float64Type:
		return ofType(format.Double), ""
	case *arrow.Date32Type, *arrow.Date64Type:
		return converted(logically(ofType(format.Int32), &format.DateType{}), deprecated.Date), ""
	case *arrow.Time32Type:
		return timeElement(format.Int32, meta.Time, arrow.Millisecond, annotation == timeUTC), ""
	case *arrow.Time64Type:
		return timeElement(format.Int64, meta.Time, dt.Unit, annotation == timeUTC), ""
	case *arrow.TimestampType:
		return timeElement(format.Int64, meta.Timestamp, dt.Unit, dt.TimeZone != ""), ""
	case *arrow.Decimal128Type:
		return decimalElement(dt.Precision, dt.Scale, 38)
	case *arrow.Decimal256Type:
		return decimalElement(dt.Precision, dt.Scale, 76)
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType,
		*arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return bytesElement(f, annotation, dt)
	case *arrow.FixedSizeBinaryType:
		return fixedElement(f, annotation, dt)
	}
	return e, "there is no Parquet type for it"
}

func timeElement(t format.Type, kind meta.Kind, unit arrow.TimeUnit, utc bool) meta.Element {
	e := ofType(t)
	unit = max(unit, arrow.Millisecond) // Parquet has no seconds
	e.SetLogical(meta.Logical{Kind: kind, Unit: meta.Unit(unit - arrow.Millisecond), UTC: utc})
	return e
}

func bytesElement(f arrow.Field, annotation string, dt arrow.DataType) (meta.Element, string) {
	e := ofType(format.ByteArray)
	text := dt.ID() == arrow.STRING || dt.ID() == arrow.LARGE_STRING || dt.ID() == arrow.STRING_VIEW
	switch {
	case annotation == "ENUM" && text:
		e = converted(logically(e, &format.EnumType{}), deprecated.Enum)
	case annotation == "BSON" && !text:
		e = converted(logically(e, &format.BsonType{}), deprecated.Bson)
	case annotation != "" && !withParameters[annotation]:
		return e, "its annotation " + annotation
	case text && value(f.Metadata, extensionKey) == "arrow.json":
		e = converted(logically(e, &format.JsonType{}), deprecated.Json)
	case text:
		e = converted(logically(e, &format.StringType{}), deprecated.UTF8)
	}
	return e, ""
}

func fixedElement(f arrow.Field, annotation string, dt *arrow.FixedSizeBinaryType) (meta.Element, string) {
	e := fixedLength(dt.ByteWidth)
	switch {
	case dt.ByteWidth <= 0:
		return e, "values without bytes"
	case annotation == "INTERVAL" && dt.ByteWidth == 12:
		e = converted(e, deprecated.Interval) // it has no logical type
	case annotation != "" && !withParameters[annotation]:
		return e, "its annotation " + annotation
	case dt.ByteWidth == 16 && value(f.Metadata, extensionKey) == "arrow.uuid":
		e = logically(e, &format.UUIDType{})
	}
	return e, ""
}

func decimalElement(precision, scale, most int32) (meta.Element, string) {
	if precision < 1 || precision > most || scale < 0 || scale > precision {
		return meta.Element{}, "its precision and scale"
	}
	e := fixedLength(decimalBytes(int(precision)))
	e.SetLogical(meta.Logical{Kind: meta.Decimal, Precision: int(precision), Scale: int(scale)})
	return e, ""
}

// decimalBytes returns the smallest number of bytes that can hold all numbers of
// the given number of decimal digits in two's complement.
func decimalBytes(precision int) int {
	n := 1
	for meta.DecimalDigits(n) < precision {
		n++
	}
	return n
}
