package arrowparquet

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

var units = [...]arrow.TimeUnit{meta.Millis: arrow.Millisecond, meta.Micros: arrow.Microsecond, meta.Nanos: arrow.Nanosecond}

// leafType returns the Arrow type of a leaf's values and the sink for them.
func leafType(l *meta.Leaf, o origin, int96 int96Form) (arrow.DataType, sinkFunc, error) {
	kind, typ := o.Type()
	switch l.Logical.Kind {
	case meta.Null:
		return arrow.Null, nullSink, nil
	case meta.Decimal:
		return decimalType(l, o)
	case meta.Float16:
		return arrow.FixedWidthTypes.Float16, copySink(2), nil
	case meta.Date:
		return arrow.FixedWidthTypes.Date32, copySink(4), nil
	case meta.Time:
		if l.Type == format.Int32 {
			return arrow.FixedWidthTypes.Time32ms, copySink(4), nil
		}
		return &arrow.Time64Type{Unit: units[l.Logical.Unit]}, copySink(8), nil
	case meta.Timestamp:
		return timestampType(l, o), copySink(8), nil
	case meta.Int:
		return intType(l)
	case meta.String, meta.Enum, meta.JSON:
		if kind == fbLargeUtf8 {
			return arrow.BinaryTypes.LargeString, bytesSink[int64], nil
		}
		return arrow.BinaryTypes.String, bytesSink[int32], nil
	}
	switch l.Type {
	case format.Boolean:
		return arrow.FixedWidthTypes.Boolean, boolSink, nil
	case format.Int32:
		return arrow.PrimitiveTypes.Int32, copySink(4), nil
	case format.Int64:
		if kind == fbDuration {
			if unit := arrow.TimeUnit(typ.Int16(4, int16(arrow.Millisecond))); unit >= arrow.Second && unit <= arrow.Nanosecond {
				return &arrow.DurationType{Unit: unit}, copySink(8), nil
			}
		}
		return arrow.PrimitiveTypes.Int64, copySink(8), nil
	case format.Int96:
		dt, sink := int96.values()
		return dt, sink, nil
	case format.Float:
		return arrow.PrimitiveTypes.Float32, copySink(4), nil
	case format.Double:
		return arrow.PrimitiveTypes.Float64, copySink(8), nil
	case format.ByteArray:
		if kind == fbLargeBin {
			return arrow.BinaryTypes.LargeBinary, bytesSink[int64], nil
		}
		return arrow.BinaryTypes.Binary, bytesSink[int32], nil
	case format.FixedLenByteArray:
		return &arrow.FixedSizeBinaryType{ByteWidth: l.TypeLength}, copySink(l.TypeLength), nil
	}
	return nil, nil, fmt.Errorf("values of type %v", l.Type)
}

// timestampType returns the type of timestamps: instants have the zone they were
// written with, or UTC if it is unknown; local times have none. A converted type
// alone means an instant, according to the specification (LogicalTypes.md,
// "Deprecated timestamp convertedType"), unless the writer's stored Arrow schema
// has no zone.
func timestampType(l *meta.Leaf, o origin) arrow.DataType {
	t := &arrow.TimestampType{Unit: units[l.Logical.Unit]}
	if !l.Logical.UTC {
		return t
	}
	t.TimeZone = "UTC"
	if of, ok := o.is(fbTimestamp); ok {
		if zone := string(of.Bytes(6)); zone != "" || l.Logical.Converted {
			t.TimeZone = zone
		}
	}
	return t
}

func intType(l *meta.Leaf) (arrow.DataType, sinkFunc, error) {
	signed := l.Logical.Signed
	switch l.Logical.BitWidth {
	case 8:
		if signed {
			return arrow.PrimitiveTypes.Int8, convertSink(4, 1, narrow(1, true)), nil
		}
		return arrow.PrimitiveTypes.Uint8, convertSink(4, 1, narrow(1, false)), nil
	case 16:
		if signed {
			return arrow.PrimitiveTypes.Int16, convertSink(4, 2, narrow(2, true)), nil
		}
		return arrow.PrimitiveTypes.Uint16, convertSink(4, 2, narrow(2, false)), nil
	case 32:
		if signed {
			return arrow.PrimitiveTypes.Int32, copySink(4), nil
		}
		return arrow.PrimitiveTypes.Uint32, copySink(4), nil
	}
	if signed {
		return arrow.PrimitiveTypes.Int64, copySink(8), nil
	}
	return arrow.PrimitiveTypes.Uint64, copySink(8), nil
}

// decimalType returns the narrowest decimal type of arrow/go v15, or a wider one if
// the writer's stored Arrow schema has it.
func decimalType(l *meta.Leaf, o origin) (arrow.DataType, sinkFunc, error) {
	p, s := int32(l.Logical.Precision), int32(l.Logical.Scale)
	var dt arrow.DataType
	of, wide := o.is(fbDecimal)
	width := 16
	switch {
	case p > 76:
		return nil, nil, errors.New("decimals of more than 76 digits")
	case p > 38 || wide && of.Int32(8, 128) == 256:
		dt, width = &arrow.Decimal256Type{Precision: p, Scale: s}, 32
	default:
		dt = &arrow.Decimal128Type{Precision: p, Scale: s}
	}
	switch l.Type {
	case format.Int32:
		return dt, convertSink(4, width, widenLittle(width)), nil
	case format.Int64:
		return dt, convertSink(8, width, widenLittle(width)), nil
	case format.FixedLenByteArray:
		return dt, convertSink(l.TypeLength, width, widenBig(width)), nil
	}
	return dt, convertSink(0, width, widenBig(width)), nil
}
