// Package columns describes the columns of Parquet files for manifests, in JSON.
package columns

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

// Of returns what a manifest says of the columns of a file. Columns with names that
// are not UTF-8 are left out.
func Of(leaves []parquet.LeafSummary) (publish.Columns, error) {
	var out []publish.Column
	for i := range leaves {
		s := &leaves[i]
		if slices.ContainsFunc(s.Leaf.Path, func(name string) bool { return !utf8.ValidString(name) }) {
			continue
		}
		c := publish.Column{Path: s.Leaf.Path, Type: typeOf(s.Leaf)}
		if s.FieldID >= 0 {
			c.ID = &s.FieldID
		}
		if s.Nulls >= 0 {
			c.Nulls = &s.Nulls
		}
		c.Lower, c.Upper = bound(s.Leaf, c.Type, s.Lower), bound(s.Leaf, c.Type, s.Upper)
		c.LowerInexact = c.Lower != nil && !s.ExactLower
		c.UpperInexact = c.Upper != nil && !s.ExactUpper
		out = append(out, c)
	}
	return publish.NewColumns(out)
}

// typeOf returns the type of a leaf as in [publish.Column]: empty for one that never
// has bounds.
func typeOf(l *parquet.Leaf) string {
	switch l.Logical.Kind {
	case parquet.Decimal:
		return "decimal"
	case parquet.String, parquet.Enum, parquet.JSON:
		return "string"
	case parquet.Date:
		return "date"
	case parquet.Time:
		return "time"
	case parquet.Timestamp:
		return "timestamp"
	case parquet.UUID:
		return "uuid"
	case parquet.Float16:
		return "float"
	case parquet.None, parquet.Int, parquet.BSON:
	default:
		return ""
	}
	switch l.Type {
	case format.Boolean:
		return "bool"
	case format.Int32, format.Int64:
		return "int"
	case format.Float, format.Double:
		return "float"
	case format.ByteArray, format.FixedLenByteArray:
		return "binary"
	}
	return ""
}

// The largest bounds that are written; larger ones would only take space.
const (
	maxBinary = 32 // bytes
	maxDigits = 38 // of decimals: Delta and Iceberg have no more
)

// bound returns a bound in JSON, or nil if it is unknown or has no such form. v is
// PLAIN encoded, a byte array without its length.
func bound(l *parquet.Leaf, typ string, v []byte) json.RawMessage {
	if v == nil {
		return nil
	}
	switch typ {
	case "bool":
		return json.RawMessage(strconv.FormatBool(v[0] != 0))
	case "int":
		return integer(number(l, v))
	case "float":
		return float(v)
	case "decimal":
		return decimal(l, v)
	case "string":
		if !utf8.Valid(v) {
			return nil
		}
		return text(string(v))
	case "date":
		return moment(time.Unix(number(l, v).Int64()*86400, 0), time.DateOnly)
	case "time":
		return clock(l, number(l, v).Int64())
	case "timestamp":
		zone := ""
		if l.Logical.UTC {
			zone = "Z"
		}
		return moment(instant(l.Logical.Unit, number(l, v).Int64()), "2006-01-02T15:04:05"+fraction(l.Logical.Unit)+zone)
	case "uuid":
		h := hex.EncodeToString(v)
		return text(strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-"))
	case "binary":
		if len(v) > maxBinary {
			return nil
		}
		return text(base64.StdEncoding.EncodeToString(v))
	}
	return nil
}

// text returns a string in JSON.
func text(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return b
}

// number returns an integer of 4 or 8 bytes.
func number(l *parquet.Leaf, v []byte) *big.Int {
	unsigned := l.Logical.Kind == parquet.Int && !l.Logical.Signed
	switch {
	case len(v) == 4 && unsigned:
		return big.NewInt(int64(binary.LittleEndian.Uint32(v)))
	case len(v) == 4:
		return big.NewInt(int64(int32(binary.LittleEndian.Uint32(v))))
	case unsigned:
		return new(big.Int).SetUint64(binary.LittleEndian.Uint64(v))
	}
	return big.NewInt(int64(binary.LittleEndian.Uint64(v)))
}

func integer(n *big.Int) json.RawMessage {
	if n.IsInt64() && max(n.Int64(), -n.Int64()) <= 1<<53 && n.Int64() != math.MinInt64 {
		return json.RawMessage(n.String())
	}
	return text(n.String())
}

// float returns a float of 2, 4 or 8 bytes. A float32 gets the digits of the float64
// that equals it: in fewer digits, a bound might be smaller or larger.
func float(v []byte) json.RawMessage {
	var x float64
	switch len(v) {
	case 2:
		x = half(binary.LittleEndian.Uint16(v))
	case 4:
		x = float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))
	default:
		x = math.Float64frombits(binary.LittleEndian.Uint64(v))
	}
	switch {
	case math.IsNaN(x):
		return nil
	case math.IsInf(x, 1):
		return text("inf")
	case math.IsInf(x, -1):
		return text("-inf")
	}
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0" // not an integer: -0 has a sign
	}
	return json.RawMessage(s)
}

// half returns a float of 16 bits.
func half(bits uint16) float64 {
	mantissa, exponent := float64(bits&0x3ff), int(bits>>10&0x1f)
	x := math.Ldexp(mantissa, -24)
	switch {
	case exponent == 0x1f && mantissa != 0:
		return math.NaN()
	case exponent == 0x1f:
		x = math.Inf(1)
	case exponent > 0:
		x = math.Ldexp(mantissa+1024, exponent-25)
	}
	return math.Copysign(x, -float64(bits>>15)+0.5)
}

func decimal(l *parquet.Leaf, v []byte) json.RawMessage {
	if l.Logical.Precision > maxDigits {
		return nil
	}
	n := new(big.Int)
	if l.Type == format.Int32 || l.Type == format.Int64 {
		n = number(l, v)
	} else if n.SetBytes(v); len(v) > 0 && v[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
	}
	digits := new(big.Int).Abs(n).String()
	scale := l.Logical.Scale
	if len(digits) > maxDigits {
		return nil // more than its precision
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if scale > 0 {
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		digits = "-" + digits
	}
	return text(digits)
}

// moment returns nil for years that the layout cannot hold.
func moment(t time.Time, layout string) json.RawMessage {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return nil
	}
	return text(t.Format(layout))
}

func instant(u parquet.Unit, n int64) time.Time {
	switch u {
	case parquet.Millis:
		return time.UnixMilli(n)
	case parquet.Micros:
		return time.UnixMicro(n)
	}
	return time.Unix(0, n)
}

// fraction is the layout of a second's fraction.
func fraction(u parquet.Unit) string {
	switch u {
	case parquet.Millis:
		return ".000"
	case parquet.Micros:
		return ".000000"
	}
	return ".000000000"
}

func clock(l *parquet.Leaf, n int64) json.RawMessage {
	t := instant(l.Logical.Unit, n)
	if n < 0 || t.Unix() >= 86400 {
		return nil
	}
	return text(t.UTC().Format("15:04:05" + fraction(l.Logical.Unit)))
}
