package show

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text safe for a terminal: names of files and columns may have
// any bytes. Control characters and invalid UTF-8 become \x1b, \u202e and the
// like; the characters in keep stay unchanged.
func Printable(s, keep string) string {
	bad := func(r rune) bool {
		return (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) && !strings.ContainsRune(keep, r)
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, bad) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1, bad(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case bad(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
