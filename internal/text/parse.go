package text

import (
	"math"
	"math/big"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
)

// parser appends the value of s. It returns false, and appends nothing, if s does
// not parse.
type parser func(b array.Builder, s string) bool

// parserOf returns the parser for a column type, false if there is none.
func parserOf(dt arrow.DataType) (parser, bool) {
	switch dt := dt.(type) {
	case *arrow.StringType, *arrow.LargeStringType:
		return func(b array.Builder, s string) bool { b.(array.StringLikeBuilder).Append(s); return true }, true
	case *arrow.BinaryType, *arrow.LargeBinaryType:
		return func(b array.Builder, s string) bool { b.(*array.BinaryBuilder).AppendString(s); return true }, true
	case *arrow.FixedSizeBinaryType:
		return func(b array.Builder, s string) bool {
			v, ok := scalar.Fixed(s, dt.ByteWidth)
			if ok {
				b.(*array.FixedSizeBinaryBuilder).Append(v)
			}
			return ok
		}, dt.ByteWidth > 0
	case *arrow.BooleanType:
		return parseBool, true
	case *arrow.Float32Type:
		return parseFloat32, true
	case *arrow.Float64Type:
		return parseFloat64, true
	case *arrow.Date32Type:
		return parseDate, true
	case *arrow.TimestampType:
		return timestampParser(dt), true
	case *arrow.Time32Type, *arrow.Time64Type:
		return timeParser(dt), true
	case *arrow.Decimal128Type:
		return decimalParser(dt, func(b array.Builder, n *big.Int) {
			b.(*array.Decimal128Builder).Append(decimal.From128(n))
		}), true
	case *arrow.Decimal256Type:
		return decimalParser(dt, func(b array.Builder, n *big.Int) {
			b.(*array.Decimal256Builder).Append(decimal.From256(n))
		}), true
	}
	p, ok := integers[dt.ID()]
	return p, ok
}

// integers maps integer types to their parsers.
var integers = map[arrow.Type]parser{
	arrow.INT8:   integer[int8](Signed, 8),
	arrow.INT16:  integer[int16](Signed, 16),
	arrow.INT32:  integer[int32](Signed, 32),
	arrow.INT64:  integer[int64](Signed, 64),
	arrow.UINT8:  integer[uint8](Unsigned, 8),
	arrow.UINT16: integer[uint16](Unsigned, 16),
	arrow.UINT32: integer[uint32](Unsigned, 32),
	arrow.UINT64: integer[uint64](Unsigned, 64),
}

func integer[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](k Kind, bits int) parser {
	return func(b array.Builder, s string) bool {
		n, ok := parseInt([]byte(s), k == Signed, bits)
		if ok {
			b.(interface{ Append(T) }).Append(T(n))
		}
		return ok
	}
}

func parseBool(b array.Builder, s string) bool {
	v, ok := scalar.Bool(s)
	if ok {
		b.(*array.BooleanBuilder).Append(v)
	}
	return ok
}

func parseFloat32(b array.Builder, s string) bool {
	f, ok := scalar.Float(s, 32)
	if ok {
		b.(*array.Float32Builder).Append(float32(f))
	}
	return ok
}

func parseFloat64(b array.Builder, s string) bool {
	f, ok := scalar.Float(s, 64)
	if ok {
		b.(*array.Float64Builder).Append(f)
	}
	return ok
}

func parseDate(b array.Builder, s string) bool {
	days, ok := scalar.Date(s)
	if ok {
		b.(*array.Date32Builder).Append(arrow.Date32(days))
	}
	return ok
}

// timestampParser takes moments. Those without an offset are UTC; types without a zone have
// no others.
func timestampParser(dt *arrow.TimestampType) parser {
	unit := int64(dt.Unit.Multiplier()) // nanoseconds
	perSecond := int64(time.Second) / unit
	return func(b array.Builder, s string) bool {
		sec, nanos, zoned, ok := scalar.Moment(s)
		if !ok || zoned && dt.TimeZone == "" || int64(nanos)%unit != 0 || sec > math.MaxInt64/perSecond-1 || sec < math.MinInt64/perSecond+1 {
			return false
		}
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(sec*perSecond + int64(nanos)/unit))
		return true
	}
}

// timeParser parses times of day.
func timeParser(dt arrow.DataType) parser {
	unit := int64(dt.(arrow.TemporalWithUnit).TimeUnit().Multiplier()) // nanoseconds
	return func(b array.Builder, s string) bool {
		nanos, ok := scalar.Time(s)
		if !ok || nanos%unit != 0 {
			return false
		}
		switch b := b.(type) {
		case *array.Time32Builder:
			b.Append(arrow.Time32(nanos / unit))
		case *array.Time64Builder:
			b.Append(arrow.Time64(nanos / unit))
		}
		return true
	}
}

// decimalParser parses decimals without rounding.
func decimalParser(dt arrow.DecimalType, add func(array.Builder, *big.Int)) parser {
	return func(b array.Builder, s string) bool {
		n, ok := scalar.Decimal(s, int(dt.GetPrecision()), int(dt.GetScale()))
		if ok {
			add(b, n)
		}
		return ok
	}
}

// Value returns an array of type dt with one value: that of s, or NULL. ok is false if
// s does not parse or no text has the type. The caller releases the array.
func Value(s string, null bool, dt arrow.DataType) (_ arrow.Array, ok bool) {
	parse, ok := parserOf(dt)
	if !ok {
		return nil, false
	}
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	if null {
		b.AppendNull()
	} else if !parse(b, s) {
		return nil, false
	}
	return b.NewArray(), true
}
