package lake

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Value is a value of a partition or a bound, in one of three forms: integers are those of dates, times and
// numbers; bytes those of strings, decimals and the rest.
type Value struct {
	Kind  byte // n: NULL; i, f, b; x: bytes of a fixed size
	Int   int64
	Float float64
	Bytes []byte
}

// ValueOf returns a bound of a type, which has the type that the column had when it was written: an int may be one
// of a long, and a float one of a double. It has the form of Iceberg's single values, see Stats.
func ValueOf(typ string, b []byte) (v Value, ok bool) {
	switch n := len(b); {
	case typ == "float" || typ == "double":
		switch n {
		case 4:
			return Value{Kind: 'f', Float: float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))}, true
		case 8:
			return Value{Kind: 'f', Float: math.Float64frombits(binary.LittleEndian.Uint64(b))}, true
		}
	case typ == "string" || strings.HasPrefix(typ, "decimal"):
		return Value{Kind: 'b', Bytes: b}, n > 0 || typ == "string"
	case typ == "tinyint" || strings.HasPrefix(typ, "int") || typ == "date" || strings.HasPrefix(typ, "time"):
		switch n {
		case 4:
			return Value{Kind: 'i', Int: int64(int32(binary.LittleEndian.Uint32(b)))}, true
		case 8:
			return Value{Kind: 'i', Int: int64(binary.LittleEndian.Uint64(b))}, true
		}
	}
	return v, false
}

// Text returns a value of a type as directories have it, bytes in hexadecimal; ok is false if these have
// no form for it.
func (v *Value) Text(typ string) (text string, ok bool) {
	layout := ""
	switch v.Kind {
	case 'f':
		text = strconv.FormatFloat(v.Float, 'g', -1, 64)
		if strings.Trim(text, "-0123456789") == "" {
			text += ".0"
		}
		return text, typ == "float" || typ == "double"
	case 'b', 'x':
		switch {
		case typ == "string":
			return string(v.Bytes), utf8.Valid(v.Bytes)
		case typ == "binary" || typ == "uuid" || strings.HasPrefix(typ, "fixed"):
			return hex.EncodeToString(v.Bytes), true
		case strings.HasPrefix(typ, "decimal"):
			t, err := keys.ParseType(typ)
			if d, ok := t.(arrow.DecimalType); ok && err == nil && len(v.Bytes) > 0 && len(v.Bytes) <= 32 {
				return decimalText(Signed(v.Bytes), d), true
			}
		}
		return "", false
	}
	switch typ {
	case "tinyint", "int16", "int32", "int64":
		return strconv.FormatInt(v.Int, 10), true
	case "boolean":
		return strconv.FormatBool(v.Int != 0), true
	case "date":
		t := time.Unix(int64(int32(v.Int))*86400, 0).UTC()
		return t.Format(time.DateOnly), HasText(t) && v.Int == int64(int32(v.Int))
	case "time":
		return time.UnixMicro(v.Int).UTC().Format("15:04:05.000000"), v.Int >= 0 && v.Int < 86400e6
	case "timestamp":
		layout = "2006-01-02T15:04:05.000000"
	case "timestamptz":
		layout = "2006-01-02T15:04:05.000000Z"
	}
	t := time.UnixMicro(v.Int).UTC()
	return t.Format(layout), layout != "" && HasText(t)
}

// HasText reports whether the year of a time has four digits.
func HasText(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

// decimalText returns a decimal of an unscaled number.
func decimalText(n *big.Int, t arrow.DecimalType) string {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.GetScale())), nil)
	return new(big.Rat).SetFrac(n, unit).FloatString(int(t.GetScale()))
}

// Signed returns the integer of two's complement, big-endian bytes.
func Signed(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}
