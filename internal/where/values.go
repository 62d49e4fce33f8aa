package where

import (
	"cmp"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
)

// value is a literal as a value to compare a column with. Numbers are exact; dates,
// times and timestamps are numbers of nanoseconds; floats and booleans are
// the integers that ordered maps them to.
type value struct {
	number *big.Rat
	bytes  string
}

// valuesOf converts the literals of a test. hasNull: one of them is NULL, which is
// no value.
func valuesOf(at fault.At, t *test, typ columnType, of arrow.DataType) (values []value, hasNull bool, err error) {
	if t.op == testBool {
		return []value{{number: big.NewRat(1, 1)}}, false, nil
	}
	for _, l := range t.args {
		if l.kind == litNull {
			hasNull = true
			continue
		}
		if typ.kind == kindNull {
			continue
		}
		v, ok := l.value(typ)
		if !ok {
			return nil, false, misfit(at, l, typ, of)
		}
		values = append(values, v)
	}
	return values, hasNull, nil
}

// misfit returns the error for a literal that is not a value of the column's type.
func misfit(at fault.At, l literal, typ columnType, of arrow.DataType) error {
	e := faults.Of(cause.Misfit, faults.Mismatch(at, "condition: the column holds "+describe(typ, of), wordsOf[typ.kind].want, l))
	_, zoned, ok := momentOf(l.text)
	_, number := numberOf(l.text)
	switch {
	case (typ.kind == kindInteger || typ.kind == kindDecimal) && l.kind == litString && number:
		return e.WithHint("write %s, without quotes, to compare numbers exactly", l.text)
	case typ.kind == kindTimestamp && l.kind == litString && ok && zoned:
		return e.WithHint("leave the offset out, or write TIMESTAMPTZ '%s' to compare with the column as UTC", l.text)
	case typ.kind == kindDate && l.kind == litString && ok:
		return e.WithHint("write TIMESTAMP '%s' to compare with midnight of the dates", l.text)
	case typ.kind == kindString && l.kind != litString:
		return e.WithHint("write '%s' to compare texts", l.text)
	}
	return e.WithHint("write %s", wordsOf[typ.kind].write)
}

// value converts a literal other than NULL to a value of the column's type.
func (l literal) value(typ columnType) (v value, ok bool) {
	switch typ.kind {
	case kindBool:
		b, ok := l.text == "TRUE", l.kind == litBool
		if l.kind == litString {
			b, ok = scalar.Bool(l.text)
		}
		if b {
			return value{number: big.NewRat(1, 1)}, ok
		}
		return value{number: new(big.Rat)}, ok
	case kindInteger, kindDecimal:
		v.number, ok = numberOf(l.text)
		if l.kind == litString && ok {
			// A text takes the column's type, and must be a value of it.
			ok = new(big.Rat).Mul(v.number, scaleOf(typ.scale)).IsInt()
		}
		return v, ok && (l.kind == litNumber || l.kind == litString)
	case kindFloat, kindDouble:
		f, ok := l.float(typ.kind)
		return value{number: new(big.Rat).SetInt64(orderedFloat(f))}, ok
	case kindString:
		return value{bytes: l.text}, l.kind == litString
	case kindBinary:
		v.bytes, ok = unescape(l.text, typ.width)
		return v, ok && l.kind == litString
	case kindTime:
		n, ok := scalar.Time(l.text)
		return value{number: new(big.Rat).SetInt64(n)}, ok && (l.kind == litTime || l.kind == litString)
	case kindDate, kindTimestamp, kindInstant:
		n, ok := l.moment(typ.kind)
		if !ok {
			return v, false
		}
		return value{number: new(big.Rat).SetInt(n)}, true
	}
	return v, false
}

// float returns the literal as a float of the column's type. A number with an
// exponent is a double, as in SQL.
func (l literal) float(k kind) (float64, bool) {
	bits := 64
	if k == kindFloat {
		bits = 32
	}
	switch l.kind {
	case litNumber:
		// A number with an exponent is a double.
		if strings.ContainsAny(l.text, "eE") {
			bits = 64
		}
		f, err := strconv.ParseFloat(l.text, bits)
		return f, err == nil || errors.Is(err, strconv.ErrRange)
	case litString:
		return parseFloat(l.text, bits)
	}
	return 0, false
}

// moment returns the literal in nanoseconds since 1970, UTC where it has no offset.
func (l literal) moment(k kind) (*big.Int, bool) {
	n, zoned, ok := momentOf(l.text)
	switch {
	case !ok:
		return nil, false
	case l.kind == litDate, l.kind == litTimestamp, l.kind == litInstant:
		return n, true
	case l.kind != litString:
		return nil, false
	case k == kindDate:
		_, ok = scalar.Date(l.text)
		return n, ok
	}
	return n, k == kindInstant || !zoned
}

// unescape returns the bytes of a string with \x00 for any byte or, for columns of
// 16 bytes, of a UUID.
func unescape(s string, width int) (string, bool) {
	if width == 16 {
		if b, ok := scalar.Fixed(s, width); ok {
			return string(b), true
		}
	}
	var out []byte
	for len(s) > 0 {
		if s[0] != '\\' {
			out, s = append(out, s[0]), s[1:]
			continue
		}
		if len(s) < 4 || s[1] != 'x' {
			return "", false
		}
		n, err := strconv.ParseUint(s[2:4], 16, 8)
		if err != nil {
			return "", false
		}
		out, s = append(out, byte(n)), s[4:]
	}
	return string(out), true
}

// scaleOf returns 10^scale, of any sign.
func scaleOf(scale int) *big.Rat {
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil))
	if scale < 0 {
		return power.Inv(power)
	}
	return power
}

// setOf returns the set of values for which a test is true (IN, =) or whose
// complement it is (IS DISTINCT FROM).
func setOf(t *test, typ columnType, of arrow.DataType, values []value) valueSet {
	switch typ.kind {
	case kindString, kindBinary:
		return textSet(t, values)
	}
	stored := make([]*big.Rat, len(values)) // in the column's unit
	for i, v := range values {
		stored[i] = new(big.Rat).Set(v.number)
		switch {
		case typ.kind == kindDecimal:
			stored[i].Mul(stored[i], scaleOf(typ.scale))
		case typ.unit > 0:
			stored[i].Quo(stored[i], new(big.Rat).SetInt64(typ.unit))
		case plain(of).ID() == arrow.UINT64:
			stored[i].Sub(stored[i], new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 63)))
		}
	}
	if typ.kind == kindDecimal || plain(of) == arrow.DataType(keys.Int96) {
		return &wides{numberSet(t.op, stored, wideMin, wideMax, wideOf, compareWide)}
	}
	return &ints{numberSet(t.op, stored, int64Min, int64Max, (*big.Int).Int64, cmp.Compare[int64])}
}

// numberSet returns the integers from least to most for which a test is true.
func numberSet[T any](op testOp, values []*big.Rat, least, most *big.Int, convert func(*big.Int) T, compare func(a, b T) int) set[T] {
	var points []T
	lo, hi := least, most
	one := big.NewInt(1)
	for _, v := range values {
		switch op {
		case testLess:
			hi = new(big.Int).Sub(ceil(v), one)
		case testLessEqual:
			hi = floor(v)
		case testGreater:
			lo = new(big.Int).Add(floor(v), one)
		case testGreaterEqual:
			lo = ceil(v)
		default:
			if n := v.Num(); v.IsInt() && n.Cmp(least) >= 0 && n.Cmp(most) <= 0 {
				points = append(points, convert(n))
			}
		}
	}
	switch op {
	case testLess, testLessEqual, testGreater, testGreaterEqual:
		if lo.Cmp(least) < 0 {
			lo = least
		}
		if hi.Cmp(most) > 0 {
			hi = most
		}
		if lo.Cmp(hi) <= 0 {
			return set[T]{cmp: compare, lo: edge[T]{at: convert(lo)}, hi: edge[T]{at: convert(hi)}}
		}
	}
	return pointsOf(points, compare)
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) } // Euclidean division by a positive divisor

func ceil(r *big.Rat) *big.Int {
	n := floor(new(big.Rat).Neg(r))
	return n.Neg(n)
}
