package textout

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/float16"
)

// Rules of single values. Their text needs no quotes of CSV: it has none of the characters that
// are special there.

// plain returns the text of an array's elements. number says that JSON needs no quotes around it.
func plain(f arrow.Field, a arrow.Array) (p put, number bool) {
	switch a := a.(type) {
	case *array.Boolean:
		return func(dst []byte, i int) ([]byte, error) { return strconv.AppendBool(dst, a.Value(i)), nil }, true
	case *array.Int8:
		return signed(a.Int8Values()), true
	case *array.Int16:
		return signed(a.Int16Values()), true
	case *array.Int32:
		return signed(a.Int32Values()), true
	case *array.Int64:
		return signed(a.Int64Values()), true
	case *array.Uint8:
		return unsigned(a.Uint8Values()), true
	case *array.Uint16:
		return unsigned(a.Uint16Values()), true
	case *array.Uint32:
		return unsigned(a.Uint32Values()), true
	case *array.Uint64:
		return unsigned(a.Uint64Values()), true
	case *array.Duration:
		return signed(a.DurationValues()), true
	case *array.Decimal128:
		return decimals(a.DataType(), func(i int) [4]uint64 {
			n := a.Value(i)
			more := uint64(n.HighBits() >> 63)
			return [4]uint64{n.LowBits(), uint64(n.HighBits()), more, more}
		})
	case *array.Decimal256:
		return decimals(a.DataType(), func(i int) [4]uint64 { return a.Value(i).Array() })
	case *array.Date32:
		return func(dst []byte, i int) ([]byte, error) { return appendDate(dst, int64(a.Value(i))) }, false
	case *array.Date64:
		return func(dst []byte, i int) ([]byte, error) {
			day := int64(24 * time.Hour / time.Millisecond)
			if int64(a.Value(i))%day != 0 {
				return dst, trouble{"has a date with a time of day", otherwise}
			}
			return appendDate(dst, int64(a.Value(i))/day)
		}, false
	case *array.Time32:
		return times(a.DataType(), a.Time32Values()), false
	case *array.Time64:
		return times(a.DataType(), a.Time64Values()), false
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		return func(dst []byte, i int) ([]byte, error) { return appendTimestamp(dst, int64(a.Value(i)), t) }, false
	case interface{ Value(int) []byte }:
		if isUUID(f) {
			return func(dst []byte, i int) ([]byte, error) { return appendUUID(dst, a.Value(i)), nil }, false
		}
		return func(dst []byte, i int) ([]byte, error) { return hex.AppendEncode(dst, a.Value(i)), nil }, false
	}
	return nil, false
}

func signed[T ~int8 | ~int16 | ~int32 | ~int64](v []T) put {
	return func(dst []byte, i int) ([]byte, error) { return strconv.AppendInt(dst, int64(v[i]), 10), nil }
}

func unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](v []T) put {
	return func(dst []byte, i int) ([]byte, error) { return strconv.AppendUint(dst, uint64(v[i]), 10), nil }
}

func times[T ~int32 | ~int64](dt arrow.DataType, v []T) put {
	unit := dt.(arrow.TemporalWithUnit).TimeUnit()
	return func(dst []byte, i int) ([]byte, error) { return appendTime(dst, int64(v[i]), unit) }
}

// floatOf returns the elements of an array of floats, nil if it is none, and their bits.
func floatOf(a arrow.Array) (value func(int) float64, bits int) {
	switch a := a.(type) {
	case *array.Float16:
		return func(i int) float64 { return float64(float16.Num.Float32(a.Value(i))) }, 32
	case *array.Float32:
		return func(i int) float64 { return float64(a.Value(i)) }, 32
	case *array.Float64:
		return a.Value, 64
	}
	return nil, 0
}

// special returns the name of a float that is no number, "" of others.
func special(f float64) string {
	switch {
	case f != f:
		return "NaN"
	case f > math.MaxFloat64:
		return "Infinity"
	case f < -math.MaxFloat64:
		return "-Infinity"
	}
	return ""
}

// appendFloat appends the fewest digits that give the same float, and a point or an exponent,
// by which readers know that it is one. Integers are written without an exponent where all of
// their digits are those of the value.
func appendFloat(dst []byte, f float64, bits int) []byte {
	whole := float64(1 << 53)
	if bits == 32 {
		whole = 1 << 24
	}
	form := byte('f')
	if abs := math.Abs(f); abs >= whole || abs < 1e-6 && abs != 0 {
		form = 'e'
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, f, form, -1, bits)
	if form == 'f' && bytes.IndexByte(dst[n:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// floatDigits is the number of decimal digits that every float64 keeps.
const floatDigits = 15

// decimals returns the text of decimals, given their words, the lowest first, in two's
// complement. Wide ones are strings in JSON, whose readers make floats of numbers.
func decimals(dt arrow.DataType, words func(i int) [4]uint64) (p put, number bool) {
	t := dt.(arrow.DecimalType)
	scale := int(t.GetScale())
	return func(dst []byte, i int) ([]byte, error) { return appendDecimal(dst, words(i), scale), nil }, t.GetPrecision() <= floatDigits
}

func appendDecimal(dst []byte, w [4]uint64, scale int) []byte {
	if int64(w[3]) < 0 {
		dst = append(dst, '-')
		carry := uint64(1)
		for i := range w {
			w[i], carry = bits.Add64(^w[i], 0, carry)
		}
	}
	var buf [80]byte // of 256 bits there are at most 78 digits
	at := len(buf)
	const chunk, digits = 1e19, 19
	for w != [4]uint64{} {
		var rest uint64
		for i := len(w) - 1; i >= 0; i-- {
			w[i], rest = bits.Div64(rest, w[i], chunk)
		}
		for n := 0; n < digits && (rest > 0 || w != [4]uint64{}); n++ {
			at--
			buf[at] = '0' + byte(rest%10)
			rest /= 10
		}
	}
	text := buf[at:]
	if scale <= 0 {
		if len(text) == 0 {
			return append(dst, '0')
		}
		return appendZeros(append(dst, text...), -scale)
	}
	if whole := len(text) - scale; whole > 0 {
		dst, text = append(dst, text[:whole]...), text[whole:]
	} else {
		dst = append(dst, '0')
	}
	dst = appendZeros(append(dst, '.'), scale-len(text))
	return append(dst, text...)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// Seconds since 1970 at the start of the year 0 and at the end of 9999. Other years have more
// than four digits, or a sign.
const (
	firstSecond = -62167219200
	lastSecond  = 253402300799
)

var errYear = trouble{"has a year beyond 0000 to 9999", otherwise}

func appendDate(dst []byte, days int64) ([]byte, error) {
	if days < firstSecond/86400 || days > lastSecond/86400 {
		return dst, errYear
	}
	return time.Unix(days*86400, 0).UTC().AppendFormat(dst, time.DateOnly), nil
}

func appendTimestamp(dst []byte, n int64, t *arrow.TimestampType) ([]byte, error) {
	perSecond := int64(time.Second / t.Unit.Multiplier())
	sec, part := n/perSecond, n%perSecond
	if part < 0 {
		sec, part = sec-1, part+perSecond
	}
	if sec < firstSecond || sec > lastSecond {
		return dst, errYear
	}
	dst = time.Unix(sec, 0).UTC().AppendFormat(dst, "2006-01-02T15:04:05")
	if dst = appendFraction(dst, part, perSecond); t.TimeZone != "" {
		dst = append(dst, 'Z')
	}
	return dst, nil
}

func appendTime(dst []byte, n int64, unit arrow.TimeUnit) ([]byte, error) {
	perSecond := int64(time.Second / unit.Multiplier())
	if n < 0 || n >= 86400*perSecond {
		return dst, trouble{"has a time beyond one day", otherwise}
	}
	dst = time.Unix(n/perSecond, 0).UTC().AppendFormat(dst, time.TimeOnly)
	return appendFraction(dst, n%perSecond, perSecond), nil
}

// appendFraction appends a part of a second with the digits of its unit.
func appendFraction(dst []byte, part, perSecond int64) []byte {
	if perSecond == 1 {
		return dst
	}
	dst = append(dst, '.')
	for perSecond /= 10; perSecond > 0; perSecond /= 10 {
		dst = append(dst, '0'+byte(part/perSecond%10))
	}
	return dst
}

// isUUID reports whether a field holds UUIDs: its type or its metadata says so.
func isUUID(f arrow.Field) bool {
	fixed, ok := f.Type.(*arrow.FixedSizeBinaryType)
	name, _ := f.Metadata.GetValue(extensionKey)
	return ok && fixed.ByteWidth == 16 && name == "arrow.uuid"
}

func appendUUID(dst, v []byte) []byte {
	from := 0
	for _, end := range [...]int{4, 6, 8, 10} {
		dst = append(hex.AppendEncode(dst, v[from:end]), '-')
		from = end
	}
	return hex.AppendEncode(dst, v[from:])
}

// Rules of strings, which are UTF-8.

var (
	errUTF8 = trouble{"has text that is not UTF-8", leaveOut}
	errNUL  = trouble{"has text with a NUL character, which readers of CSV and TSV refuse", "write NDJSON, Parquet or Arrow, or leave the column out: {Columns} names those to keep"}
)

// appendCSV appends a field, in quotes if it needs them.
func appendCSV(dst []byte, s string) ([]byte, error) {
	quote := len(s) == 0
	ascii := true
	for i := range len(s) {
		switch c := s[i]; {
		case c == ',' || c == '"' || c == '\n' || c == '\r':
			quote = true
		case c == 0:
			return dst, errNUL
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	if !ascii && !utf8.ValidString(s) {
		return dst, errUTF8
	}
	if !quote {
		return append(dst, s...), nil
	}
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		if s[i] == '"' {
			dst, from = append(append(dst, s[from:i+1]...), '"'), i+1
		}
	}
	return append(append(dst, s[from:]...), '"'), nil
}

// appendTSV appends a field.
func appendTSV(dst []byte, s string) ([]byte, error) {
	if len(s) == 0 {
		return dst, trouble{"has an empty string, which TSV cannot tell from NULL", otherText}
	}
	for i := range len(s) {
		switch s[i] {
		case '\t', '\n', '\r':
			return dst, trouble{"has text with a tab or a line end, which TSV cannot have", otherText}
		case 0:
			return dst, errNUL
		}
	}
	if !utf8.ValidString(s) {
		return dst, errUTF8
	}
	return append(dst, s...), nil
}

// appendJSON appends a JSON string.
func appendJSON(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, errUTF8
	}
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(append(dst, s[from:i]...), '\\')
		from = i + 1
		if short := slices.Index([]byte("\"\\\n\r\t"), c); short >= 0 {
			dst = append(dst, `"\nrt`[short])
		} else {
			dst = append(dst, 'u', '0', '0', '0'+c>>4, "0123456789abcdef"[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"'), nil
}
