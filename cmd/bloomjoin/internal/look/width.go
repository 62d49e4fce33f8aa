package look

import (
	"sort"
	"unicode"
	"unicode/utf8"
)

// wide are the ranges of characters that take two columns of a terminal, first and last
// of each: East Asian Wide and Fullwidth.
var wide = []rune("\u1100\u115f\u231a\u231b\u2329\u232a\u23e9\u23ec\u23f0\u23f0\u23f3\u23f3\u25fd\u25fe\u2614\u2615\u2648\u2653\u267f\u267f" +
	"\u2693\u2693\u26a1\u26a1\u26aa\u26ab\u26bd\u26be\u26c4\u26c5\u26ce\u26ce\u26d4\u26d4\u26ea\u26ea\u26f2\u26f3\u26f5\u26f5" +
	"\u26fa\u26fa\u26fd\u26fd\u2705\u2705\u270a\u270b\u2728\u2728\u274c\u274c\u274e\u274e\u2753\u2755\u2757\u2757\u2795\u2797" +
	"\u27b0\u27b0\u27bf\u27bf\u2b1b\u2b1c\u2b50\u2b50\u2b55\u2b55\u2e80\u2e99\u2e9b\u2ef3\u2f00\u2fd5\u2ff0\u2ffb\u3000\u303e" +
	"\u3041\u3096\u3099\u30ff\u3105\u312f\u3131\u318e\u3190\u31e3\u31f0\u321e\u3220\u3247\u3250\u4dbf\u4e00\ua48c\ua490\ua4c6" +
	"\ua960\ua97c\uac00\ud7a3\uf900\ufaff\ufe10\ufe19\ufe30\ufe52\ufe54\ufe66\ufe68\ufe6b\uff01\uff60\uffe0\uffe6" +
	"\U00016fe0\U00016fe4\U00016ff0\U00016ff1\U00017000\U000187f7\U00018800\U00018cd5\U00018d00\U00018d08\U0001aff0\U0001aff3" +
	"\U0001aff5\U0001affb\U0001affd\U0001affe\U0001b000\U0001b122\U0001b132\U0001b132\U0001b150\U0001b152\U0001b155\U0001b155" +
	"\U0001b164\U0001b167\U0001b170\U0001b2fb\U0001f004\U0001f004\U0001f0cf\U0001f0cf\U0001f18e\U0001f18e\U0001f191\U0001f19a" +
	"\U0001f200\U0001f202\U0001f210\U0001f23b\U0001f240\U0001f248\U0001f250\U0001f251\U0001f260\U0001f265\U0001f300\U0001f320" +
	"\U0001f32d\U0001f335\U0001f337\U0001f37c\U0001f37e\U0001f393\U0001f3a0\U0001f3ca\U0001f3cf\U0001f3d3\U0001f3e0\U0001f3f0" +
	"\U0001f3f4\U0001f3f4\U0001f3f8\U0001f43e\U0001f440\U0001f440\U0001f442\U0001f4fc\U0001f4ff\U0001f53d\U0001f54b\U0001f54e" +
	"\U0001f550\U0001f567\U0001f57a\U0001f57a\U0001f595\U0001f596\U0001f5a4\U0001f5a4\U0001f5fb\U0001f64f\U0001f680\U0001f6c5" +
	"\U0001f6cc\U0001f6cc\U0001f6d0\U0001f6d2\U0001f6d5\U0001f6d7\U0001f6dc\U0001f6df\U0001f6eb\U0001f6ec\U0001f6f4\U0001f6fc" +
	"\U0001f7e0\U0001f7eb\U0001f7f0\U0001f7f0\U0001f90c\U0001f93a\U0001f93c\U0001f945\U0001f947\U0001f9ff\U0001fa70\U0001fa7c" +
	"\U0001fa80\U0001fa88\U0001fa90\U0001fabd\U0001fabf\U0001fac5\U0001face\U0001fadb\U0001fae0\U0001fae8\U0001faf0\U0001faf8" +
	"\U00020000\U0003ffff")

// Characters that change those beside them.
const (
	joiner    = '\u200d' // joins two emoji into one
	asEmoji   = '\ufe0f' // makes the character before it an emoji
	lightSkin = '\U0001f3fb'
	darkSkin  = '\U0001f3ff'
)

// widthOf returns how many columns a character takes by itself.
func widthOf(r rune) int {
	switch {
	case r == joiner || unicode.In(r, unicode.Mn, unicode.Me) || r >= '\u1160' && r <= '\u11ff': // Hangul vowels and finals
		return 0
	case r < wide[0]:
		return 1
	}
	if i := sort.Search(len(wide), func(i int) bool { return wide[i] >= r }); i < len(wide) && (i%2 == 1 || wide[i] == r) {
		return 2
	}
	return 1
}

// first returns the size in bytes of what a terminal shows as the first character of s, which is
// not empty, and its width: of a letter with its accents, or of an emoji of several parts.
func first(s string) (size, width int) {
	r, size := utf8.DecodeRuneInString(s)
	width = widthOf(r)
	for size < len(s) {
		next, n := utf8.DecodeRuneInString(s[size:])
		switch {
		case next == asEmoji:
			width = 2
		case r == joiner || next >= lightSkin && next <= darkSkin && width == 2:
		case widthOf(next) > 0:
			return size, width
		}
		r, size = next, size+n
	}
	return size, width
}

// columnsOf returns how many columns of a terminal a text takes.
func columnsOf(s string) (n int) {
	for len(s) > 0 {
		size, width := first(s)
		s, n = s[size:], n+width
	}
	return n
}

// cut returns a text that takes at most so many columns, 1 or more: one that takes more is cut,
// and ends in an ellipsis.
func cut(s string, most int) string {
	at, end, n := 0, 0, 0 // end: where a text with an ellipsis ends
	for at < len(s) {
		size, width := first(s[at:])
		if n += width; n > most {
			return s[:end] + ellipsis
		}
		if at += size; n < most {
			end = at
		}
	}
	return s
}

const ellipsis = "…"
