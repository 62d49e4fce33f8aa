package text

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/bloomjoin/bloomjoin/internal/decimal"
)

// parser appends the value that s stands for; false, and nothing appended,
// when s stands for none.
type parser func(b array.Builder, s string) bool

// parserOf is the parser for a column type; false when there is none.
func parserOf(dt arrow.DataType) (parser, bool) {
	switch dt := dt.(type) {
	case *arrow.StringType, *arrow.LargeStringType:
		return func(b array.Builder, s string) bool { b.(array.StringLikeBuilder).Append(s); return true }, true
	case *arrow.BinaryType, *arrow.LargeBinaryType:
		return func(b array.Builder, s string) bool { b.(*array.BinaryBuilder).AppendString(s); return true }, true
	case *arrow.FixedSizeBinaryType:
		return fixedParser(dt.ByteWidth), dt.ByteWidth > 0
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

// integers are the parsers of the integer types.
var integers = map[arrow.Type]parser{
	arrow.INT8:   signed[int8](8),
	arrow.INT16:  signed[int16](16),
	arrow.INT32:  signed[int32](32),
	arrow.INT64:  signed[int64](64),
	arrow.UINT8:  unsigned[uint8](8),
	arrow.UINT16: unsigned[uint16](16),
	arrow.UINT32: unsigned[uint32](32),
	arrow.UINT64: unsigned[uint64](64),
}

// appender is what builders of numbers have in common.
type appender[T any] interface{ Append(T) }

func signed[T int8 | int16 | int32 | int64](bits int) parser {
	return func(b array.Builder, s string) bool {
		n, err := strconv.ParseInt(s, 10, bits)
		if err != nil {
			return false
		}
		b.(appender[T]).Append(T(n))
		return true
	}
}

func unsigned[T uint8 | uint16 | uint32 | uint64](bits int) parser {
	return func(b array.Builder, s string) bool {
		digits, negative := strings.CutPrefix(s, "-")
		if !negative {
			digits = strings.TrimPrefix(s, "+")
		}
		n, err := strconv.ParseUint(digits, 10, bits)
		if err != nil || negative && n != 0 {
			return false
		}
		b.(appender[T]).Append(T(n))
		return true
	}
}

func parseBool(b array.Builder, s string) bool {
	v := strings.EqualFold(s, "true")
	if !v && !strings.EqualFold(s, "false") {
		return false
	}
	b.(*array.BooleanBuilder).Append(v)
	return true
}

// float is strconv.ParseFloat without hexadecimal and underscores.
func float(s string, bits int) (float64, bool) {
	if strings.ContainsAny(s, "_xXpP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, bits)
	return f, err == nil
}

func parseFloat32(b array.Builder, s string) bool {
	f, ok := float(s, 32)
	if ok {
		b.(*array.Float32Builder).Append(float32(f))
	}
	return ok
}

func parseFloat64(b array.Builder, s string) bool {
	f, ok := float(s, 64)
	if ok {
		b.(*array.Float64Builder).Append(f)
	}
	return ok
}

func parseDate(b array.Builder, s string) bool {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return false
	}
	b.(*array.Date32Builder).Append(arrow.Date32(t.Unix() / 86400)) // midnight: no remainder
	return true
}

// timestampParser wants an offset if the type has a zone, and none if not.
func timestampParser(dt *arrow.TimestampType) parser {
	layout := "2006-01-02T15:04:05"
	if dt.TimeZone != "" {
		layout = time.RFC3339
	}
	unit := int64(dt.Unit.Multiplier()) // nanoseconds
	perSecond := int64(time.Second) / unit
	return func(b array.Builder, s string) bool {
		if len(s) > 10 && s[10] == ' ' {
			s = s[:10] + "T" + s[11:]
		}
		t, err := time.Parse(layout, s)
		if err != nil || !exactFraction(s) || int64(t.Nanosecond())%unit != 0 {
			return false
		}
		sec, rest := t.Unix(), int64(t.Nanosecond())/unit
		if sec > math.MaxInt64/perSecond-1 || sec < math.MinInt64/perSecond+1 {
			return false
		}
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(sec*perSecond + rest))
		return true
	}
}

// exactFraction refuses what package time lets pass: an hour of one digit, a
// comma before the fraction, and digits after the ninth, which it drops.
func exactFraction(s string) bool {
	if len(s) < 19 || s[13] != ':' || s[16] != ':' {
		return false
	}
	if len(s) == 19 || s[19] != '.' {
		return len(s) == 19 || s[19] != ','
	}
	for i, c := range []byte(s[20:]) {
		if c < '0' || c > '9' {
			return true
		}
		if i >= 9 && c != '0' {
			return false
		}
	}
	return true
}

// fixedParser reads hexadecimal of width bytes, and UUIDs.
func fixedParser(width int) parser {
	return func(b array.Builder, s string) bool {
		if width == 16 && len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
			s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
		}
		if len(s) != 2*width {
			return false
		}
		v, err := hex.DecodeString(s)
		if err != nil {
			return false
		}
		b.(*array.FixedSizeBinaryBuilder).Append(v)
		return true
	}
}

// decimalParser reads decimals without rounding.
func decimalParser(dt arrow.DecimalType, add func(array.Builder, *big.Int)) parser {
	precision, scale := int(dt.GetPrecision()), int(dt.GetScale())
	return func(b array.Builder, s string) bool {
		digits, exp, negative, ok := splitDecimal(s)
		if !ok {
			return false
		}
		// The value is digits · 10^exp; stored is digits · 10^(exp+scale).
		if digits == "" {
			add(b, new(big.Int))
			return true
		}
		zeros := exp + int64(scale)
		if zeros < 0 || int64(len(digits))+zeros > int64(precision) {
			return false
		}
		n, _ := new(big.Int).SetString(digits+strings.Repeat("0", int(zeros)), 10)
		if negative {
			n.Neg(n)
		}
		add(b, n)
		return true
	}
}

// splitDecimal takes a decimal apart: its digits without zeros at either end,
// and the power of ten that they are to be multiplied with.
func splitDecimal(s string) (digits string, exp int64, negative, ok bool) {
	if s, negative = strings.CutPrefix(s, "-"); !negative {
		s = strings.TrimPrefix(s, "+")
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exp, err = strconv.ParseInt(s[i+1:], 10, 32); err != nil {
			return "", 0, false, false
		}
		s = s[:i]
	}
	whole, part, _ := strings.Cut(s, ".")
	if whole+part == "" {
		return "", 0, false, false
	}
	exp -= int64(len(part))
	digits = strings.TrimLeft(whole+part, "0")
	trimmed := strings.TrimRight(digits, "0")
	exp += int64(len(digits) - len(trimmed))
	for _, c := range []byte(trimmed) {
		if c < '0' || c > '9' {
			return "", 0, false, false
		}
	}
	return trimmed, exp, negative, true
}
