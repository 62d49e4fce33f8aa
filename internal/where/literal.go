package where

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/scalar"
)

// litKind is the kind of a literal.
type litKind uint8

const (
	litNull litKind = iota
	litBool
	litNumber
	litString
	litDate
	litTime
	litTimestamp // without a zone
	litInstant   // with a zone
)

// typeWord has the names that typed literals begin with.
var typeWord = map[litKind]string{litDate: "DATE", litTime: "TIME", litTimestamp: "TIMESTAMP", litInstant: "TIMESTAMPTZ"}

// literal is a constant as the text has it.
type literal struct {
	kind litKind
	text string // without quotes and type
}

// String returns the literal as SQL spells it.
func (l literal) String() string {
	switch quoted := "'" + strings.ReplaceAll(l.text, "'", "''") + "'"; l.kind {
	case litNull, litBool, litNumber:
		return l.text
	case litString:
		return quoted
	default:
		return typeWord[l.kind] + " " + quoted
	}
}

// truth returns the literal as a truth value, if it is one.
func (l literal) truth() (t Truth, ok bool) {
	switch {
	case l.kind == litNull:
		return Null, true
	case l.kind != litBool:
		return False, false
	case l.text == "TRUE":
		return True, true
	}
	return False, true
}

// check returns an error if the text of the literal is not a value of its kind.
func (l literal) check() error {
	ok, want := true, ""
	switch l.kind {
	case litNumber:
		if _, ok := numberOf(l.text); !ok {
			return fmt.Errorf("want a number with an exponent of at most 9 digits, got %s", l.text)
		}
	case litDate:
		_, ok = scalar.Date(l.text)
		want = "a date as '2024-05-01'"
	case litTime:
		_, ok = scalar.Time(l.text)
		want = "a time as '10:30:00'"
	case litTimestamp:
		var zoned bool
		_, zoned, ok = momentOf(l.text)
		ok = ok && !zoned
		want = "a timestamp without an offset as '2024-05-01 10:30:00' (with an offset: TIMESTAMPTZ '2024-05-01 10:30:00+02:00')"
	case litInstant:
		_, _, ok = momentOf(l.text)
		want = "a timestamp as '2024-05-01 10:30:00+02:00'"
	}
	if !ok {
		return fmt.Errorf("want %s, got '%s'", want, l.text)
	}
	return nil
}

const nanosPerDay = 24 * 60 * 60 * 1_000_000_000

// momentOf is [scalar.Moment] in nanoseconds since 1970.
func momentOf(s string) (nanos *big.Int, zoned, ok bool) {
	sec, rest, zoned, ok := scalar.Moment(s)
	n := big.NewInt(sec)
	n.Mul(n, big.NewInt(1_000_000_000))
	return n.Add(n, big.NewInt(int64(rest))), zoned, ok
}

// maxExponent is greater than the exponent of every number that a column can hold.
const maxExponent = 2000

// numberOf parses a number. Numbers that are so large or so close to zero that no
// column holds them stay so, but lose their digits.
func numberOf(s string) (*big.Rat, bool) {
	digits, exp, negative, ok := scalar.SplitDecimal(s)
	if !ok {
		return nil, false
	}
	if digits == "" {
		return new(big.Rat), true
	}
	if top := int64(len(digits)) + exp; top > maxExponent || top < -maxExponent {
		digits, exp = "1", min(max(top, -maxExponent), maxExponent)
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return nil, false
	}
	r := new(big.Rat).SetInt(n)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(exp, -exp)), nil)
	if exp < 0 {
		r.Quo(r, new(big.Rat).SetInt(power))
	} else {
		r.Mul(r, new(big.Rat).SetInt(power))
	}
	if negative {
		r.Neg(r)
	}
	return r, true
}
