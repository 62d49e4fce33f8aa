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
		return parserBy(func(s string) ([]byte, bool) { return scalar.Fixed(s, dt.ByteWidth) }), dt.ByteWidth > 0
	case *arrow.BooleanType:
		return parserBy(scalar.Bool), true
	case *arrow.Float32Type:
		return parserBy(func(s string) (float32, bool) {
			f, ok := scalar.Float(s, 32)
			return float32(f), ok
		}), true
	case *arrow.Float64Type:
		return parserBy(func(s string) (float64, bool) { return scalar.Float(s, 64) }), true
	case *arrow.Date32Type:
		return parserBy(func(s string) (arrow.Date32, bool) {
			days, ok := scalar.Date(s)
			return arrow.Date32(days), ok
		}), true
	case *arrow.TimestampType:
		return timestampParser(dt), true
	case *arrow.Time32Type, *arrow.Time64Type:
		return timeParser(dt), true
	case *arrow.Decimal128Type:
		return decimalParser(dt, decimal.From128), true
	case *arrow.Decimal256Type:
		return decimalParser(dt, decimal.From256), true
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
	return parserBy(func(s string) (T, bool) {
		n, ok := parseInt([]byte(s), k == Signed, bits)
		return T(n), ok
	})
}

// parserBy returns the parser that appends what parse returns.
func parserBy[T any](parse func(string) (T, bool)) parser {
	return func(b array.Builder, s string) bool {
		v, ok := parse(s)
		if ok {
			b.(interface{ Append(T) }).Append(v)
		}
		return ok
	}
}

// timestampParser takes moments. Those without an offset are UTC; types without a zone have
// no others.
func timestampParser(dt *arrow.TimestampType) parser {
	unit := int64(dt.Unit.Multiplier()) // nanoseconds
	perSecond := int64(time.Second) / unit
	return parserBy(func(s string) (arrow.Timestamp, bool) {
		sec, nanos, zoned, ok := scalar.Moment(s)
		ok = ok && (!zoned || dt.TimeZone != "") && int64(nanos)%unit == 0 && sec <= math.MaxInt64/perSecond-1 && sec >= math.MinInt64/perSecond+1
		return arrow.Timestamp(sec*perSecond + int64(nanos)/unit), ok
	})
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
func decimalParser[T any](dt arrow.DecimalType, from func(*big.Int) T) parser {
	return parserBy(func(s string) (v T, ok bool) {
		n, ok := scalar.Decimal(s, int(dt.GetPrecision()), int(dt.GetScale()))
		if ok {
			v = from(n)
		}
		return v, ok
	})
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
