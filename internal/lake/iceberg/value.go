package iceberg

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/lake/avro"
)

// value is a value of a partition or a bound, in one of three forms: integers are those of dates, times and
// numbers; bytes those of strings, decimals and the rest.
type value struct {
	kind  byte // n: NULL; i, f, b; x: bytes of a fixed size
	int   int64
	float float64
	bytes []byte
}

// ofAvro returns a value of a manifest, with its own memory.
func ofAvro(v *avro.Value) value {
	switch {
	case v == nil || v.Kind == avro.Null:
		return value{kind: 'n'}
	case v.Kind == avro.Boolean || v.Kind == avro.Int || v.Kind == avro.Long:
		return value{kind: 'i', int: v.Int}
	case v.Kind == avro.Float || v.Kind == avro.Double:
		return value{kind: 'f', float: v.Float}
	case v.Kind == avro.Fixed:
		return value{kind: 'x', bytes: slices.Clone(v.Bytes)}
	}
	return value{kind: 'b', bytes: slices.Clone(v.Bytes)}
}

// ofBytes returns a bound, which has the type that the column had when it was written: an int may be one
// of a long, and a float one of a double. See "Appendix D: Single-value serialization".
func ofBytes(typ string, b []byte) (v value, ok bool) {
	switch n := len(b); {
	case typ == "float" || typ == "double":
		switch n {
		case 4:
			return value{kind: 'f', float: float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))}, true
		case 8:
			return value{kind: 'f', float: math.Float64frombits(binary.LittleEndian.Uint64(b))}, true
		}
	case typ == "string" || strings.HasPrefix(typ, "decimal"):
		return value{kind: 'b', bytes: b}, n > 0 || typ == "string"
	case typ == "int32" || typ == "int64" || typ == "date" || strings.HasPrefix(typ, "time"):
		switch n {
		case 4:
			return value{kind: 'i', int: int64(int32(binary.LittleEndian.Uint32(b)))}, true
		case 8:
			return value{kind: 'i', int: int64(binary.LittleEndian.Uint64(b))}, true
		}
	}
	return v, false
}

// key tells values of a field of partitions apart. Files that were written before a column got a wider
// type have values of the narrower one.
func (v *value) key() string {
	switch b := v.bytes; v.kind {
	case 'i':
		return "i" + strconv.FormatInt(v.int, 10)
	case 'f':
		return "f" + strconv.FormatUint(math.Float64bits(v.float), 16)
	case 'b':
		return "b" + hex.EncodeToString(b)
	case 'x':
		for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
			b = b[1:] // decimals of a narrower type have fewer bytes
		}
		return "x" + hex.EncodeToString(b)
	}
	return "n"
}

// text returns a value of a type as directories have it, bytes in hexadecimal; ok is false if these have
// no form for it.
func (v *value) text(typ string) (text string, ok bool) {
	layout := ""
	switch v.kind {
	case 'f':
		text = strconv.FormatFloat(v.float, 'g', -1, 64)
		if strings.Trim(text, "-0123456789") == "" {
			text += ".0"
		}
		return text, typ == "float" || typ == "double"
	case 'b', 'x':
		switch {
		case typ == "string":
			return string(v.bytes), utf8.Valid(v.bytes)
		case typ == "binary" || typ == "uuid" || strings.HasPrefix(typ, "fixed"):
			return hex.EncodeToString(v.bytes), true
		case strings.HasPrefix(typ, "decimal"):
			t, err := keys.ParseType(typ)
			if d, ok := t.(arrow.DecimalType); ok && err == nil && len(v.bytes) > 0 && len(v.bytes) <= 32 {
				return decimalText(v.bytes, d), true
			}
		}
		return "", false
	}
	switch typ {
	case "int32", "int64":
		return strconv.FormatInt(v.int, 10), true
	case "boolean":
		return strconv.FormatBool(v.int != 0), true
	case "date":
		t := time.Unix(int64(int32(v.int))*86400, 0).UTC()
		return t.Format(time.DateOnly), hasText(t) && v.int == int64(int32(v.int))
	case "time":
		return time.UnixMicro(v.int).UTC().Format("15:04:05.000000"), v.int >= 0 && v.int < 86400e6
	case "timestamp":
		layout = "2006-01-02T15:04:05.000000"
	case "timestamptz":
		layout = "2006-01-02T15:04:05.000000Z"
	}
	t := time.UnixMicro(v.int).UTC()
	return t.Format(layout), layout != "" && hasText(t)
}

// hasText reports whether the year of a time has four digits.
func hasText(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

// decimalText returns a decimal of big-endian bytes.
func decimalText(b []byte, t arrow.DecimalType) string {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.GetScale())), nil)
	return new(big.Rat).SetFrac(signed(b), unit).FloatString(int(t.GetScale()))
}

// signed returns the integer of two's complement, big-endian bytes.
func signed(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// ordered reports whether the bounds of a type are in order. Of others, which writers have made, none is true.
func ordered(typ string, least, most *value) bool {
	switch {
	case least.kind != most.kind:
		return false
	case least.kind == 'i':
		return least.int <= most.int
	case least.kind == 'f':
		return least.float <= most.float
	case typ == "string":
		return bytes.Compare(least.bytes, most.bytes) <= 0
	}
	return signed(least.bytes).Cmp(signed(most.bytes)) <= 0
}

// texts returns the ends of a range of a type as texts; empty: they have none.
func texts(typ string, least, most *value) (lo, hi string) {
	lo, ok := least.text(typ)
	hi, too := most.text(typ)
	if !ok || !too || typ == "binary" || !ordered(typ, least, most) {
		return "", ""
	}
	return lo, hi
}

// result returns the type of a field's values.
func (f *specField) result() string {
	if f.Transform == "identity" || strings.HasPrefix(f.Transform, "truncate[") {
		return f.typ
	}
	return "int32"
}

// texts returns the range of the source of a field whose values are in a range.
func (f *specField) texts(least, most *value) (lo, hi string) {
	from, to, ok := source(f.Transform, f.typ, *least, *most)
	if !ok || !ordered(f.typ, least, most) {
		return "", ""
	}
	return texts(f.typ, &from, &to)
}

// source returns the range of values of a column that a transform takes to a range.
func source(transform, typ string, least, most value) (lo, hi value, ok bool) {
	if transform == "identity" {
		return least, most, true
	}
	if least.kind != 'i' || most.kind != 'i' {
		return lo, hi, false
	}
	if w, ok := strings.CutPrefix(transform, "truncate["); ok {
		width, err := strconv.ParseInt(strings.TrimSuffix(w, "]"), 10, 32)
		end := most.int + width - 1
		overflows := end < most.int || most.int <= math.MaxInt32 && end > math.MaxInt32 // also of an int that is a long now
		return least, value{kind: 'i', int: end}, err == nil && width > 0 && (typ == "int32" || typ == "int64") && !overflows
	}
	from := least.int
	if from <= 0 { // old writers cut times before 1970 towards it
		from--
	}
	first, ok := start(transform, from)
	after, too := start(transform, most.int+1)
	switch {
	case !ok || !too:
	case typ == "date":
		return value{kind: 'i', int: first.Unix() / 86400}, value{kind: 'i', int: after.Unix()/86400 - 1}, true
	case typ == "timestamp" || typ == "timestamptz":
		return value{kind: 'i', int: first.UnixMicro()}, value{kind: 'i', int: after.UnixMicro() - 1}, true
	}
	return lo, hi, false
}

// start returns the first time that a transform takes to a value.
func start(transform string, v int64) (t time.Time, ok bool) {
	perYear := map[string]int64{"year": 1, "month": 12, "day": 366, "hour": 366 * 24}[transform]
	if perYear == 0 || v/perYear < -2000 || v/perYear > 9000 {
		return t, false
	}
	switch transform {
	case "year":
		t = time.Date(1970+int(v), 1, 1, 0, 0, 0, 0, time.UTC)
	case "month":
		t = time.Date(1970, time.Month(1+v), 1, 0, 0, 0, 0, time.UTC)
	case "day":
		t = time.Unix(v*86400, 0).UTC()
	default:
		t = time.Unix(v*3600, 0).UTC()
	}
	return t, hasText(t)
}
