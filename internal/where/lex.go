package where

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenName             // a bare name or a keyword
	tokenQuoted           // a name in double quotes
	tokenNumber
	tokenString
	tokenSymbol
)

// token is a part of the text.
type token struct {
	kind tokenKind
	text string // names and strings without quotes
	at   int    // where it begins, in bytes
}

// reserved has the words that name a column only in double quotes.
var reserved = strings.Fields(`AND OR NOT IN IS NULL TRUE FALSE LIKE BETWEEN ILIKE SIMILAR GLOB ESCAPE DISTINCT FROM UNKNOWN
	ISNULL NOTNULL CASE CAST EXISTS ANY ALL COLLATE SELECT WHERE`)

// isReserved reports whether a word is reserved, in any case.
func isReserved(word string) bool { return slices.Contains(reserved, strings.ToUpper(word)) }

// isBare reports whether a name is read as a column without quotes.
func isBare(name string) bool {
	return name != "" && nameLen(name) == len(name) && !isReserved(name)
}

// nameLen returns the length of the bare name that s begins with.
func nameLen(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] >= 0x80 || isLetter(s[n]) || n > 0 && (isDigit(s[n]) || s[n] == '$')) {
		n++
	}
	return n
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// symbols are the tokens of punctuation, longer ones first. Some are in no valid condition,
// so that errors can name them.
var symbols = strings.Fields("<= >= <> != == :: || -> = < > ( ) , . + - * / % [ ] { } ; ^ & | ~ ? $ @ # : !")

// tokens splits the text. The last token is tokenEnd.
func tokens(text string) ([]token, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the condition is not valid UTF-8")
	}
	var out []token
	for at := 0; ; {
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\r\n"))
		if at == len(text) {
			return append(out, token{tokenEnd, "", at}), nil
		}
		t, size, err := first(text, at)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		at += size
	}
}

// first returns the token that begins at a byte of the text, and its length there.
func first(text string, at int) (token, int, error) {
	rest := text[at:]
	if n := nameLen(rest); n > 0 {
		return token{tokenName, rest[:n], at}, n, nil
	}
	if rest[0] == '\'' || rest[0] == '"' {
		inside, size, ok := unquote(rest)
		switch {
		case !ok && rest[0] == '"':
			return token{}, 0, errorAt(text, at, "a double quote is not closed (a quote inside a name is doubled)")
		case !ok:
			return token{}, 0, errorAt(text, at, "a string is not closed (a quote inside a string is doubled)")
		case rest[0] == '\'':
			return token{tokenString, inside, at}, size, nil
		case inside == "":
			return token{}, 0, errorAt(text, at, "a column name is empty")
		}
		return token{tokenQuoted, inside, at}, size, nil
	}
	if isDigit(rest[0]) || rest[0] == '.' && len(rest) > 1 && isDigit(rest[1]) {
		n := numberLen(rest)
		if n < len(rest) && nameLen(rest[n:]) > 0 {
			return token{}, 0, errorAt(text, at, "want a number as 1, -2.5 or 1e6, got %q", rest[:n+nameLen(rest[n:])])
		}
		return token{tokenNumber, rest[:n], at}, n, nil
	}
	if strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*") {
		return token{}, 0, unsupportedAt(text, at, "a comment")
	}
	for _, s := range symbols {
		if strings.HasPrefix(rest, s) {
			return token{tokenSymbol, s, at}, len(s), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return token{}, 0, errorAt(text, at, "%q has no meaning here", r)
}

// unquote returns the text between the quote that s begins with and its match, and the
// length with both quotes. A doubled quote inside stands for one.
func unquote(s string) (inside string, size int, ok bool) {
	quote := s[:1]
	for size = 1; ; size += 2 {
		n := strings.Index(s[size:], quote)
		if n < 0 {
			return "", 0, false
		}
		size += n
		if !strings.HasPrefix(s[size+1:], quote) {
			return strings.ReplaceAll(s[1:size], quote+quote, quote), size + 1, true
		}
	}
}

// numberLen returns the length of the number without a sign that s begins with.
func numberLen(s string) int {
	digits := func(n int) int {
		for n < len(s) && isDigit(s[n]) {
			n++
		}
		return n
	}
	n := digits(0)
	if n < len(s) && s[n] == '.' {
		n = digits(n + 1)
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		sign := n + 1
		if sign < len(s) && (s[sign] == '+' || s[sign] == '-') {
			sign++
		}
		if end := digits(sign); end > sign {
			return end
		}
	}
	return n
}

// errorAt returns an error about the character at a byte of the text.
func errorAt(text string, at int, format string, args ...any) error {
	return fmt.Errorf("character %d: "+format, append([]any{utf8.RuneCountInString(text[:at]) + 1}, args...)...)
}

// unsupportedAt is like errorAt, for what SQL allows and this package does not.
func unsupportedAt(text string, at int, format string, args ...any) error {
	return errorAt(text, at, "%w", faults.Unsupported(fault.At{}, format, args...))
}
