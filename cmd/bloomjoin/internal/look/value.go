package look

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// null is how NULL is shown. A text that reads the same is quoted.
const null = "NULL"

// cell returns a value as it is shown, on one line. One that takes more than most bytes is cut.
func cell(a arrow.Array, i, most int) string {
	if isNull(a, i) {
		return null
	}
	if s, ok := text(a, i); ok {
		return shown(s, most)
	}
	return clip(string(appendJSON(nil, a, i, most, false)), most, func(s string) string { return s })
}

// clip returns what how makes of a text. One of more than most bytes is cut before.
func clip(s string, most int, how func(string) string) string {
	if len(s) <= most {
		return how(s)
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return how(s[:most]) + ellipsis
}

// text returns a value of a type for texts or bytes, which dictionaries may have, too.
func text(a arrow.Array, i int) (s string, ok bool) {
	switch a := a.(type) {
	case *array.FixedSizeBinary: // shown as bytes, not as text
	case interface{ Value(int) string }:
		return a.Value(i), true
	case interface{ Value(int) []byte }:
		return string(a.Value(i)), true
	}
	if values, at := coded(a, i); values != nil {
		return text(values, at)
	}
	return "", false
}

// coded returns where a value is that an array has once for several rows; nil: it is in the array.
func coded(a arrow.Array, i int) (values arrow.Array, at int) {
	switch a := a.(type) {
	case *array.Dictionary:
		if a.IsValid(i) {
			return a.Dictionary(), a.GetValueIndex(i)
		}
	case *array.RunEndEncoded:
		return a.Values(), a.GetPhysicalIndex(i)
	}
	return nil, 0
}

// isNull reports whether a value is NULL: by itself, by its type, or where it is coded.
func isNull(a arrow.Array, i int) bool {
	if values, at := coded(a, i); values != nil {
		return isNull(values, at)
	}
	return a.DataType().ID() == arrow.NULL || a.IsNull(i)
}

// shown returns a text as it is where that is clear, or else in quotes, with escapes: one that
// is empty, that reads as NULL or as quoted, that begins or ends in a space, or that has
// characters which a terminal would obey or hide.
func shown(s string, most int) string {
	odd := func(r rune) bool { return !strconv.IsPrint(r) && r != joiner }
	return clip(s, most, func(s string) string {
		if s == "" || s == null || s[0] == '"' || strings.TrimSpace(s) != s || !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
			return strconv.Quote(s)
		}
		return s
	})
}

// appendJSON appends a value as compact JSON, unless the text has more than most bytes by then.
// Texts, times and the like are quoted inside of others. Bytes that are not text are hexadecimal.
func appendJSON(b []byte, a arrow.Array, i, most int, inside bool) []byte {
	switch {
	case len(b) > most:
		return b
	case isNull(a, i):
		return append(b, "null"...)
	}
	if values, at := coded(a, i); values != nil {
		return appendJSON(b, values, at, most, inside)
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return appendJSON(b, a.Storage(), i, most, inside)
	case *array.Struct:
		b = append(b, '{')
		for f := range a.NumField() {
			if f > 0 {
				b = append(b, ',')
			}
			b = append(quoted(b, a.DataType().(*arrow.StructType).Field(f).Name), ':')
			b = appendJSON(b, a.Field(f), i, most, true)
		}
		return append(b, '}')
	case *array.Map:
		return appendMap(b, a, i, most)
	case array.ListLike:
		b = append(b, '[')
		from, to := a.ValueOffsets(i)
		for k := from; k < to && len(b) <= most; k++ {
			if k > from {
				b = append(b, ',')
			}
			b = appendJSON(b, a.ListValues(), int(k), most, true)
		}
		return append(b, ']')
	case *array.FixedSizeBinary:
		v := a.Value(i)
		return quotedIf(inside, b, hex.EncodeToString(v[:min(len(v), most)]))
	}
	if s, ok := text(a, i); ok {
		return quoted(b, s[:min(len(s), most)])
	}
	s, number := scalar(a, i)
	if !inside && !number {
		s = shown(s, most) // a type that is not known here may have texts in it
	}
	return quotedIf(inside && !number, b, s)
}

// appendMap appends a map as an object. Its keys become texts.
func appendMap(b []byte, a *array.Map, i, most int) []byte {
	b = append(b, '{')
	from, to := a.ValueOffsets(i)
	for k := from; k < to && len(b) <= most; k++ {
		if k > from {
			b = append(b, ',')
		}
		key := string(appendJSON(nil, a.Keys(), int(k), most, false))
		if _, ok := text(a.Keys(), int(k)); ok {
			b = append(b, key...)
		} else {
			b = quoted(b, key)
		}
		b = appendJSON(append(b, ':'), a.Items(), int(k), most, true)
	}
	return append(b, '}')
}

// scalar returns a value of a type without parts, and whether JSON writes it without quotes.
func scalar(a arrow.Array, i int) (s string, number bool) {
	switch a := a.(type) {
	case *array.Float64:
		return float(a.Value(i), 64), true
	case *array.Float32:
		return float(float64(a.Value(i)), 32), true
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale), true
	case *array.Decimal256:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal256Type).Scale), true
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		s := a.Value(i).ToTime(t.Unit).UTC().Format("2006-01-02 15:04:05.999999999")
		if t.TimeZone != "" {
			s += "Z"
		}
		return s, false
	case *array.Date32:
		return a.Value(i).FormattedString(), false
	case *array.Date64:
		return a.Value(i).FormattedString(), false
	case *array.Duration:
		return strconv.FormatInt(int64(a.Value(i)), 10) + a.DataType().(*arrow.DurationType).Unit.String(), false
	}
	return a.ValueStr(i), isNumber(a.DataType()) || a.DataType().ID() == arrow.BOOL
}

// float returns a number as people write it: 1000000 rather than 1e+06.
func float(v float64, bits int) string {
	format := byte('f')
	if v != 0 && !(v > -1e16 && v < 1e16 && (v >= 1e-4 || v <= -1e-4)) { // also NaN
		format = 'g'
	}
	return strconv.FormatFloat(v, format, -1, bits)
}

func quotedIf(quotes bool, b []byte, s string) []byte {
	if quotes {
		return quoted(b, s)
	}
	return append(b, s...)
}

// quoted appends a text as a string of JSON. Characters that a terminal would obey or hide, and
// bytes that are not UTF-8, are escaped.
func quoted(b []byte, s string) []byte {
	b = append(b, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', s[0])
		case r == utf8.RuneError && n == 1:
			b = append(b, `\ufffd`...)
		case strconv.IsPrint(r) || r == joiner:
			b = append(b, s[:n]...)
		default:
			q := strconv.QuoteRuneToASCII(r) // in single quotes
			if r < utf8.RuneSelf {
				q = `'\u00` + hex.EncodeToString([]byte{byte(r)}) + `'`
			}
			b = append(b, q[1:len(q)-1]...)
		}
		s = s[n:]
	}
	return append(b, '"')
}

// isLong reports whether values of a type have any length.
func isLong(t arrow.DataType) bool {
	switch t := valueType(t).(type) {
	case arrow.NestedType, arrow.BinaryDataType:
		return true
	case *arrow.FixedSizeBinaryType:
		return t.ByteWidth > 16
	}
	return false
}

// isNumber reports whether values of a type are numbers, which stand on the right.
func isNumber(t arrow.DataType) bool {
	id := valueType(t).ID()
	return arrow.IsInteger(id) || arrow.IsFloating(id) || arrow.IsDecimal(id)
}

// valueType returns the type of the values that a type encodes or extends.
func valueType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case arrow.EncodedType:
		return valueType(t.Encoded())
	case *arrow.DictionaryType:
		return valueType(t.ValueType)
	case arrow.ExtensionType:
		return valueType(t.StorageType())
	}
	return t
}
