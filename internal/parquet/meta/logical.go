package meta

import (
	"math/big"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Kind is the meaning of values according to the annotation of a column or group.
type Kind uint8

// The kinds of the format specification. Unknown is an annotation that this package
// does not know.
const (
	None Kind = iota
	String
	Enum
	JSON
	BSON
	UUID
	Float16
	Interval
	Decimal
	Date
	Time
	Timestamp
	Int
	Null
	Geometry
	Geography
	List
	Map
	Variant
	Unknown
)

// Unit is the unit of a Time or Timestamp.
type Unit uint8

// Units of time.
const (
	Millis Unit = iota
	Micros
	Nanos
)

// Logical is a logical type with its parameters. A converted type, the older form
// of annotation, is read as the equivalent logical type.
type Logical struct {
	Kind      Kind
	Precision int  // Decimal: digits
	Scale     int  // Decimal: digits after the point
	Unit      Unit // Time, Timestamp
	UTC       bool // Time, Timestamp: adjusted to UTC, that is, an instant
	BitWidth  int  // Int
	Signed    bool // Int
	Converted bool // from a converted type only
}

// leafLogical reads and checks the annotation of a leaf.
func leafLogical(at fault.At, e *Element, l *Leaf) (Logical, error) {
	var lt Logical
	var err error
	if e.LogicalType.Valid {
		lt, err = fromLogicalType(at, e.LogicalType.V.Value)
	} else if c, ok := e.ConvertedType.Get(); ok {
		lt, err = fromConvertedType(at, c, e)
	}
	if err != nil {
		return Logical{}, err
	}
	return lt, checkLogical(at, lt, l)
}

func fromLogicalType(at fault.At, v format.LogicalTypeValue) (Logical, error) {
	var kind Kind
	switch t := v.(type) {
	case nil:
		kind = Unknown
	case *format.StringType:
		kind = String
	case *format.EnumType:
		kind = Enum
	case *format.JsonType:
		kind = JSON
	case *format.BsonType:
		kind = BSON
	case *format.UUIDType:
		kind = UUID
	case *format.Float16Type:
		kind = Float16
	case *format.DateType:
		kind = Date
	case *format.NullType:
		kind = Null
	case *format.GeometryType:
		kind = Geometry
	case *format.GeographyType:
		kind = Geography
	case *format.DecimalType:
		return Logical{Kind: Decimal, Precision: int(t.Precision), Scale: int(t.Scale)}, nil
	case *format.IntType:
		return Logical{Kind: Int, BitWidth: int(t.BitWidth), Signed: t.IsSigned}, nil
	case *format.TimeType:
		u, err := unitOf(at, t.Unit)
		return Logical{Kind: Time, Unit: u, UTC: t.IsAdjustedToUTC}, err
	case *format.TimestampType:
		u, err := unitOf(at, t.Unit)
		return Logical{Kind: Timestamp, Unit: u, UTC: t.IsAdjustedToUTC}, err
	default:
		return Logical{}, faults.Corrupt(at, "a column annotated %s", v.String())
	}
	return Logical{Kind: kind}, nil
}

func unitOf(at fault.At, u format.TimeUnit) (Unit, error) {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return Millis, nil
	case *format.MicroSeconds:
		return Micros, nil
	case *format.NanoSeconds:
		return Nanos, nil
	}
	return 0, faults.Unsupported(at, "an unknown unit of time")
}

// convertedNull is a converted type that the format never defined: parquet-cpp 1.3
// to 1.5 wrote it for columns without values.
const convertedNull deprecated.ConvertedType = 24

func fromConvertedType(at fault.At, c deprecated.ConvertedType, e *Element) (Logical, error) {
	lt := Logical{Converted: true}
	switch c {
	case deprecated.UTF8:
		lt.Kind = String
	case deprecated.Enum:
		lt.Kind = Enum
	case deprecated.Json:
		lt.Kind = JSON
	case deprecated.Bson:
		lt.Kind = BSON
	case deprecated.Interval:
		lt.Kind = Interval
	case deprecated.Date:
		lt.Kind = Date
	case deprecated.Decimal:
		lt.Kind, lt.Precision, lt.Scale = Decimal, int(e.Precision.V), int(e.Scale.V)
	case deprecated.TimeMillis:
		lt.Kind, lt.Unit, lt.UTC = Time, Millis, true
	case deprecated.TimeMicros:
		lt.Kind, lt.Unit, lt.UTC = Time, Micros, true
	case deprecated.TimestampMillis:
		lt.Kind, lt.Unit, lt.UTC = Timestamp, Millis, true
	case deprecated.TimestampMicros:
		lt.Kind, lt.Unit, lt.UTC = Timestamp, Micros, true
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		lt.Kind, lt.BitWidth = Int, 8<<(c-deprecated.Uint8)
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		lt.Kind, lt.BitWidth, lt.Signed = Int, 8<<(c-deprecated.Int8), true
	case convertedNull:
		lt = Logical{Kind: Null}
	case deprecated.List, deprecated.Map, deprecated.MapKeyValue:
		return lt, faults.Corrupt(at, "a column annotated as a list or map")
	default:
		return lt, faults.Unsupported(at, "unknown converted type %d", int32(c))
	}
	return lt, nil
}

// SetLogical annotates a leaf with a type that has parameters. For older readers it adds the
// equivalent converted type, if there is one: for times only if they are instants.
func (e *Element) SetLogical(l Logical) {
	var v format.LogicalTypeValue
	c, ok := deprecated.ConvertedType(l.Unit), l.UTC && l.Unit != Nanos
	switch l.Kind {
	case Int:
		v, c, ok = &format.IntType{BitWidth: int8(l.BitWidth), IsSigned: l.Signed}, deprecated.Uint8, true
		if l.Signed {
			c = deprecated.Int8
		}
		for bits := 8; bits < l.BitWidth; bits *= 2 {
			c++
		}
	case Decimal:
		v, c, ok = &format.DecimalType{Scale: int32(l.Scale), Precision: int32(l.Precision)}, deprecated.Decimal, true
		e.Scale, e.Precision = thrift.New(int32(l.Scale)), thrift.New(int32(l.Precision))
	case Time:
		v, c = &format.TimeType{IsAdjustedToUTC: l.UTC, Unit: timeUnit(l.Unit)}, c+deprecated.TimeMillis
	case Timestamp:
		v, c = &format.TimestampType{IsAdjustedToUTC: l.UTC, Unit: timeUnit(l.Unit)}, c+deprecated.TimestampMillis
	default:
		return
	}
	e.LogicalType = thrift.New(format.LogicalType{Value: v})
	if ok {
		e.ConvertedType = thrift.New(c)
	}
}

func timeUnit(u Unit) format.TimeUnit {
	switch u {
	case Millis:
		return format.TimeUnit{Value: new(format.MilliSeconds)}
	case Micros:
		return format.TimeUnit{Value: new(format.MicroSeconds)}
	}
	return format.TimeUnit{Value: new(format.NanoSeconds)}
}

// checkLogical checks that the annotation fits the physical type and that its
// parameters are valid.
func checkLogical(at fault.At, lt Logical, l *Leaf) error {
	ok := true
	switch lt.Kind {
	case String, Enum, JSON, BSON, Geometry, Geography:
		ok = l.Type == format.ByteArray
	case UUID:
		ok = l.Type == format.FixedLenByteArray && l.TypeLength == 16
	case Float16:
		ok = l.Type == format.FixedLenByteArray && l.TypeLength == 2
	case Interval:
		ok = l.Type == format.FixedLenByteArray && l.TypeLength == 12
	case Date:
		ok = l.Type == format.Int32
	case Time:
		ok = l.Type == format.Int32 && lt.Unit == Millis || l.Type == format.Int64 && lt.Unit != Millis
	case Timestamp:
		ok = l.Type == format.Int64
	case Int:
		switch lt.BitWidth {
		case 8, 16, 32:
			ok = l.Type == format.Int32
		case 64:
			ok = l.Type == format.Int64
		default:
			return faults.Corrupt(at, "integers of %d bits", lt.BitWidth)
		}
	case Decimal:
		return checkDecimal(at, lt, l)
	}
	if !ok {
		return faults.Corrupt(at, "the annotation does not fit values of type %v", l.Type)
	}
	return nil
}

func checkDecimal(at fault.At, lt Logical, l *Leaf) error {
	if lt.Precision < 1 || lt.Scale < 0 || lt.Scale > lt.Precision {
		return faults.Corrupt(at, "decimals of precision %d and scale %d", lt.Precision, lt.Scale)
	}
	most := 0
	switch l.Type {
	case format.Int32:
		most = 9
	case format.Int64:
		most = 18
	case format.FixedLenByteArray:
		most = DecimalDigits(l.TypeLength)
	case format.ByteArray:
		return nil
	default:
		return faults.Corrupt(at, "decimals stored as %v", l.Type)
	}
	if lt.Precision > most {
		return faults.Corrupt(at, "decimals of precision %d in values that hold %d digits", lt.Precision, most)
	}
	return nil
}

// DecimalDigits returns the number of decimal digits that every two's complement
// number of n bytes can represent: ⌊log10(2^(8n-1) - 1)⌋.
func DecimalDigits(n int) int {
	if n > 64 {
		return 8 * n // far more than any reader accepts
	}
	limit := new(big.Int).Lsh(big.NewInt(1), uint(8*n-1))
	digits, p := 0, big.NewInt(10)
	for p.Cmp(limit) < 0 {
		digits++
		p.Mul(p, big.NewInt(10))
	}
	return digits
}
