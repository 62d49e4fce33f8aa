package keys

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/scalar"
)

const secondsPerDay = 86400

// castable reports whether there is a cast from one class to another.
func castable(from, to Class) bool {
	t := TypeOf(to)
	if t == nil {
		return false
	}
	stored := TypeOf(from)
	if from == AnyNumber || stored == nil {
		return from == Null
	}
	_, ok := caster(stored, t)
	return ok
}

// caster returns the cast from a column's type to a type returned by [ParseType]. c
// is nil if every value of from is a value of to with the same normal form. ok is
// false if there is no such cast.
func caster(from, to arrow.DataType) (c convert, ok bool) {
	from = valueType(from)
	a, err := ClassOf(from)
	b, err2 := ClassOf(to)
	switch {
	case err != nil || err2 != nil:
		return nil, false
	case a == Null:
		return nil, true
	case a.Numeric() && b.Numeric():
		return both(converter(a, b), within(a, from, to)), true
	case a == b && a != Bytes:
		return nil, true
	case a == Bytes:
		return fromText(from, to), true
	case b == Bytes:
		return toText(a, to)
	case (a == Timestamp || a == Instant) && (b == Timestamp || b == Instant):
		return nil, true // both name the same clock time in UTC
	case a == Date && (b == Timestamp || b == Instant):
		return dateToTimestamp, true
	case (a == Timestamp || a == Instant) && b == Date:
		return timestampToDate, true
	}
	return nil, false
}

// valueType returns the type inside dictionaries and extensions.
func valueType(t arrow.DataType) arrow.DataType {
	for {
		switch u := t.(type) {
		case *arrow.DictionaryType:
			t = u.ValueType
		case *Int96Type:
			return t
		case arrow.ExtensionType:
			t = u.StorageType()
		default:
			return t
		}
	}
}

// both returns the composition of two conversions, either of which may be nil.
func both(first, second convert) convert {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	var between []byte
	return func(dst, value []byte) ([]byte, bool) {
		var ok bool
		if between, ok = first(between[:0], value); !ok {
			return dst, false
		}
		return second(dst, between)
	}
}

// copied returns a conversion that leaves values that pass a test unchanged and
// refuses all others.
func copied(keep func(value []byte) bool) convert {
	return func(dst, value []byte) ([]byte, bool) {
		if !keep(value) {
			return dst, false
		}
		return append(dst, value...), true
	}
}

// within returns the check that a value, already converted to the class of to, is
// in to's range. It is nil if every value of from passes.
func within(class Class, from, to arrow.DataType) convert {
	switch t := to.(type) {
	case *arrow.Float32Type:
		if from.ID() == arrow.FLOAT32 || from.ID() == arrow.FLOAT16 {
			return nil
		}
		return copied(func(value []byte) bool {
			f := floatOf(value)
			return f != f || float64(float32(f)) == f
		})
	case *arrow.Float64Type:
		return nil
	case arrow.DecimalType:
		if d, ok := from.(arrow.DecimalType); ok && d.GetScale() <= t.GetScale() && d.GetPrecision()-d.GetScale() <= t.GetPrecision()-t.GetScale() {
			return nil
		}
		return copied(func(value []byte) bool { return fitsDecimal(value, t.GetPrecision(), t.GetScale()) })
	}
	least, most := integerRange(to)
	if class == Integer {
		lo, hi := integerRange(from)
		if lo >= least && hi <= most {
			return nil
		}
	}
	return copied(func(value []byte) bool {
		v, negative := integerOf(value)
		if negative {
			return int64(v) >= least
		}
		return v <= most
	})
}

// integerRange returns the smallest and the largest value of an integer type.
func integerRange(t arrow.DataType) (least int64, most uint64) {
	width := t.(arrow.FixedWidthDataType).BitWidth()
	if arrow.IsUnsignedInteger(t.ID()) {
		return 0, math.MaxUint64 >> (64 - width)
	}
	return math.MinInt64 >> (64 - width), math.MaxInt64 >> (64 - width)
}

// fitsDecimal reports whether a decimal has at most precision digits, scale of them
// after the point. The value has no trailing zeros.
func fitsDecimal(value []byte, precision, scale int32) bool {
	has := int32(binary.LittleEndian.Uint32(value))
	if has > scale || len(value) > maxDecimalBytes || has < -maxDecimalScale {
		return false
	}
	n := new(big.Int).SetBytes(value[4:])
	if value[4] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(value[4:]))))
	}
	n.Mul(n, Pow10(int(scale-has)))
	return n.CmpAbs(Pow10(int(precision))) < 0
}

// fromText returns the cast from strings or binaries. Binaries are read as text,
// because older writers store text without annotating it, except in casts to binary
// types.
func fromText(from, to arrow.DataType) convert {
	binaries := from.ID() == arrow.BINARY || from.ID() == arrow.LARGE_BINARY || from.ID() == arrow.BINARY_VIEW
	switch t := to.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		return nil
	case *arrow.FixedSizeBinaryType:
		if binaries {
			return copied(func(value []byte) bool { return len(value) == t.ByteWidth })
		}
		return func(dst, value []byte) ([]byte, bool) {
			v, ok := scalar.Fixed(string(value), t.ByteWidth)
			return append(dst, v...), ok
		}
	}
	switch t := to.(type) {
	case *arrow.BooleanType:
		return func(dst, value []byte) ([]byte, bool) {
			v, ok := scalar.Bool(string(value))
			return putBool(dst, v), ok
		}
	case *arrow.Float32Type, *arrow.Float64Type:
		width := to.(arrow.FixedWidthDataType).BitWidth()
		return func(dst, value []byte) ([]byte, bool) {
			v, ok := scalar.Float(string(value), width)
			return putFloat(dst, v), ok
		}
	case arrow.DecimalType:
		return func(dst, value []byte) ([]byte, bool) {
			v, ok := scalar.Decimal(string(value), int(t.GetPrecision()), int(t.GetScale()))
			if !ok {
				return dst, false
			}
			return putDecimal(dst, v, t.GetScale()), true
		}
	case *arrow.Date32Type:
		return func(dst, value []byte) ([]byte, bool) {
			days, ok := scalar.Date(string(value))
			return putDays(dst, days), ok
		}
	case *arrow.Time64Type:
		return func(dst, value []byte) ([]byte, bool) {
			nanos, ok := scalar.Time(string(value))
			return putDays(dst, nanos), ok
		}
	case *arrow.TimestampType:
		return func(dst, value []byte) ([]byte, bool) {
			sec, nanos, zoned, ok := scalar.Moment(string(value))
			return putSeconds(dst, sec, nanos), ok && (!zoned || t.TimeZone != "")
		}
	}
	return both(textToInteger, within(Null, from, to))
}

// textToInteger parses canonical integers: 0, or digits without a leading zero,
// with an optional minus sign and blanks around them. Other spellings, such as 007 or +7, are distinct
// texts of the same number, so a key of text distinguishes them.
func textToInteger(dst, value []byte) ([]byte, bool) {
	v, negative, ok := canonicalInteger(scalar.Trim(value))
	if !ok {
		return dst, false
	}
	return appendInt(dst, v, negative), true
}

func canonicalInteger(text []byte) (v uint64, negative, ok bool) {
	if len(text) > 0 && text[0] == '-' {
		negative, text = true, text[1:]
	}
	if len(text) == 0 || len(text) > 20 || text[0] == '0' && (len(text) > 1 || negative) {
		return 0, false, false
	}
	for _, c := range text[:min(len(text), 19)] { // 19 digits always fit 64 bits
		if c -= '0'; c > 9 {
			return 0, false, false
		}
		v = 10*v + uint64(c)
	}
	if len(text) == 20 {
		last := uint64(text[19] - '0')
		if last > 9 || v > (math.MaxUint64-last)/10 {
			return 0, false, false
		}
		v = 10*v + last
	}
	if negative {
		return -v, true, v <= 1<<63
	}
	return v, false, true
}

// toText returns the cast to strings or binaries. Only fixed-width binaries can be
// cast to binary; only classes whose values have one canonical spelling can be cast
// to string.
func toText(a Class, to arrow.DataType) (c convert, ok bool) {
	_, fixed := FixedWidth(a)
	if to.ID() == arrow.BINARY {
		return nil, fixed
	}
	switch {
	case a == Integer:
		return func(dst, value []byte) ([]byte, bool) {
			v, negative := integerOf(value)
			if negative {
				return strconv.AppendInt(dst, int64(v), 10), true
			}
			return strconv.AppendUint(dst, v, 10), true
		}, true
	case a == Boolean:
		return func(dst, value []byte) ([]byte, bool) { return strconv.AppendBool(dst, value[0] != 0), true }, true
	case a == Date:
		return func(dst, value []byte) ([]byte, bool) {
			days := int64(binary.LittleEndian.Uint64(value))
			if days < minTextDay || days > maxTextDay {
				return dst, false
			}
			return arrow.Date32(days).ToTime().AppendFormat(dst, "2006-01-02"), true
		}, true
	case a == Fixed(16):
		return func(dst, value []byte) ([]byte, bool) {
			for i, part := range [][]byte{value[:4], value[4:6], value[6:8], value[8:10], value[10:]} {
				if i > 0 {
					dst = append(dst, '-')
				}
				dst = hex.AppendEncode(dst, part)
			}
			return dst, true
		}, true
	}
	return nil, false
}

// The range of days that YYYY-MM-DD can express.
const (
	minTextDay = -719162 // 0001-01-01
	maxTextDay = 2932896 // 9999-12-31
)

func dateToTimestamp(dst, value []byte) ([]byte, bool) {
	days := int64(binary.LittleEndian.Uint64(value))
	if days > math.MaxInt64/secondsPerDay || days < math.MinInt64/secondsPerDay {
		return dst, false
	}
	return putSeconds(dst, days*secondsPerDay, 0), true
}

func timestampToDate(dst, value []byte) ([]byte, bool) {
	days, rest := floorDiv(int64(binary.LittleEndian.Uint64(value)), secondsPerDay)
	if rest != 0 || !bytes.Equal(value[8:], []byte{0, 0, 0, 0}) {
		return dst, false
	}
	return putDays(dst, days), true
}
