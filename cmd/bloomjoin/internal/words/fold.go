package words

import (
	"strings"
	"unicode/utf8"
)

// Fold breaks text at its blanks into lines of at most width characters, as far as its
// words permit. The first line starts with first, the others with indent.
func Fold(first, indent, text string, width int) string {
	var b strings.Builder
	b.WriteString(first)
	at, start := utf8.RuneCountInString(first), true
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case start:
		case at+1+n > width:
			b.WriteString("\n" + indent)
			at = utf8.RuneCountInString(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at, start = at+n, false
	}
	return b.String() + "\n"
}
