// Package scalar parses single values from text: CSV cells, or strings that are
// cast. Nothing is rounded (except fractions of floats) or guessed: each function returns false
// for any other text. Only blanks around numbers, dates and times do not count, as in other
// readers of CSV.
package scalar

import (
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Trim removes spaces and tabs around a value.
func Trim[T string | []byte](s T) T {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for n := len(s); n > 0 && (s[n-1] == ' ' || s[n-1] == '\t'); n-- {
		s = s[:n-1]
	}
	return s
}

// Bool parses true or false in any case.
func Bool(s string) (v, ok bool) {
	v = strings.ToLower(s) == "true"
	return v, v || strings.ToLower(s) == "false"
}

// Float parses a decimal floating-point number, NaN or an infinity as
// [strconv.ParseFloat] does, but no hexadecimal and no underscores. Fractions are
// rounded to the nearest float of the given bits. Integers that are not exactly
// representable are refused: such an integer is probably an ID, which would turn
// into another ID.
func Float(s string, bits int) (f float64, ok bool) {
	if strings.ContainsAny(s, "_xXpP") {
		return 0, false
	}
	s = Trim(s)
	f, err := strconv.ParseFloat(s, bits)
	return f, err == nil && (f < 1<<24 && f > -1<<24 || f != f || sameInteger(s, f))
}

// sameInteger reports whether f equals s, if s is an integer.
func sameInteger(s string, f float64) bool {
	digits := strings.TrimLeft(s, "+-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return true
	}
	n, _ := new(big.Int).SetString(strings.TrimPrefix(s, "+"), 10)
	exact, _ := new(big.Float).SetFloat64(f).Int(nil)
	return n.Cmp(exact) == 0
}

// Date parses YYYY-MM-DD to days since 1970-01-01.
func Date(s string) (days int64, ok bool) {
	t, err := time.Parse(time.DateOnly, Trim(s))
	return t.Unix() / 86400, err == nil // midnight, so there is no remainder
}

// Timestamp parses YYYY-MM-DD, T or a space, HH:MM:SS and up to nine fractional
// digits, followed by an offset as in RFC 3339 if zoned, else by none. sec counts
// from 1970, rounded down.
func Timestamp(s string, zoned bool) (sec int64, nanos uint32, ok bool) {
	layout := "2006-01-02T15:04:05"
	if zoned {
		layout = time.RFC3339
	}
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	t, err := time.Parse(layout, s)
	if err != nil || !exactFraction(s, 11) {
		return 0, 0, false
	}
	return t.Unix(), uint32(t.Nanosecond()), true
}

// Moment parses what [Date] parses, as midnight, or what [Timestamp] does, with or without an
// offset. Seconds may be missing, and the offset may be ±HH or ±HHMM. Without one, which zoned
// reports, it is UTC.
func Moment(s string) (sec int64, nanos uint32, zoned, ok bool) {
	const day = len("2024-05-01T")
	s = Trim(s)
	if len(s) < day {
		days, ok := Date(s)
		return days * 86400, 0, false, ok
	}
	clock, offset := s[day:], ""
	if i := strings.IndexAny(clock, "Z+-"); i >= 0 {
		clock, offset = clock[:i], clock[i:]
	}
	zoned = offset != ""
	switch len(offset) {
	case len("+02"):
		offset += ":00"
	case len("+0200"):
		offset = offset[:3] + ":" + offset[3:]
	}
	sec, nanos, ok = Timestamp(s[:day]+withSeconds(clock)+offset, zoned)
	return sec, nanos, zoned, ok
}

// withSeconds adds the seconds to HH:MM.
func withSeconds(s string) string {
	if len(s) == len("15:04") {
		return s + ":00"
	}
	return s
}

// Time parses HH:MM or HH:MM:SS, and up to nine fractional digits, to nanoseconds since
// midnight.
func Time(s string) (nanos int64, ok bool) {
	s = withSeconds(Trim(s))
	t, err := time.Parse("15:04:05", s)
	if err != nil || !exactFraction(s, 0) {
		return 0, false
	}
	return int64(t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))), true
}

// exactFraction refuses what package time accepts in the time of day at a position
// of s: an hour of one digit, a comma before the fraction, and non-zero digits
// after the ninth, which package time drops.
func exactFraction(s string, at int) bool {
	if len(s) < at+8 || s[at+2] != ':' || s[at+5] != ':' {
		return false
	}
	s = s[at+8:]
	if s == "" || s[0] != '.' {
		return s == "" || s[0] != ','
	}
	for i, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return true
		}
		if i >= 9 && c != '0' {
			return false
		}
	}
	return true
}

// Fixed parses width bytes in hexadecimal, and UUIDs with dashes if width is 16.
func Fixed(s string, width int) (v []byte, ok bool) {
	if width == 16 && len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(s) != 2*width {
		return nil, false
	}
	v, err := hex.DecodeString(s)
	return v, err == nil
}

// Decimal parses a decimal, with or without an exponent, to an unscaled number of
// the given precision and scale.
func Decimal(s string, precision, scale int) (n *big.Int, ok bool) {
	digits, exp, negative, ok := SplitDecimal(s)
	if !ok {
		return nil, false
	}
	// The value is digits · 10^exp; the unscaled number is digits · 10^(exp+scale).
	if digits == "" {
		return new(big.Int), true
	}
	zeros := exp + int64(scale)
	if zeros < 0 || int64(len(digits))+zeros > int64(precision) {
		return nil, false
	}
	n, _ = new(big.Int).SetString(digits+strings.Repeat("0", int(zeros)), 10)
	if negative {
		n.Neg(n)
	}
	return n, true
}

// SplitDecimal splits a decimal, with or without an exponent, into its digits, without zeros at either end, and
// the power of ten to multiply them by.
func SplitDecimal(s string) (digits string, exp int64, negative, ok bool) {
	if s, negative = strings.CutPrefix(Trim(s), "-"); !negative {
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
