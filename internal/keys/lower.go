package keys

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// Package unicode follows the version of Go. A filter that was built with one version and
// asked with another would silently miss keys. So the rules have tables of their own, of
// Unicode 15.0: TestLower compares them with that version.

//go:embed lower.txt
var lowerText string

// toLower returns the distance from each character to its lower case, up to the last character
// that has one.
//
// A line of lower.txt has the first and the last of some characters, the step from each to the
// next, and the lower case of the first: that of the others is as far away.
var toLower = sync.OnceValue(func() *[0x1e922]rune {
	var shifts [0x1e922]rune
	for line := range strings.Lines(lowerText) {
		var first, last, step, lower rune
		_, _ = fmt.Sscanf(line, "%X %X %X %X", &first, &last, &step, &lower) // the test has read all lines
		for c := first; c <= last; c += step {
			shifts[c] = lower - first
		}
	}
	return &shifts
})

// appendLower appends a text in lower case. Bytes that are not UTF-8 stay.
func appendLower(dst, text []byte) []byte {
	shifts := toLower()
	for len(text) > 0 {
		c, n := utf8.DecodeRune(text)
		if c == utf8.RuneError || int(c) >= len(shifts) {
			dst = append(dst, text[:n]...)
		} else {
			dst = utf8.AppendRune(dst, c+shifts[c])
		}
		text = text[n:]
	}
	return dst
}

// lowerASCII maps A-Z to a-z, eight bytes at a time.
func lowerASCII(b []byte) {
	const each = 0x0101010101010101
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		low := x & (0x7f * each)
		fromA, aboveZ := low+(0x80-'A')*each, low+(0x7f-'Z')*each // the top bit of each byte says so
		upper := fromA &^ aboveZ &^ x & (0x80 * each)
		binary.LittleEndian.PutUint64(b, x|upper>>2)
	}
	for i, c := range b {
		if c-'A' < 26 {
			b[i] = c | 0x20
		}
	}
}

// blanks are the characters of the property White_Space.
const blanks = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// over returns the rule for a text: that of ASCII, where it has nothing else, is faster.
func (r Rule) over(text []byte) Rule {
	var high uint64
	for le := binary.LittleEndian; len(text) >= 32; text = text[32:] {
		high |= le.Uint64(text) | le.Uint64(text[8:]) | le.Uint64(text[16:]) | le.Uint64(text[24:])
	}
	for _, c := range text {
		high |= uint64(c)
	}
	if high&0x8080808080808080 == 0 {
		return r &^ Unicode
	}
	return r
}
