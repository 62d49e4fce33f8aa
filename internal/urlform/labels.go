package urlform

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// The library's tables follow the version of Go. A filter would silently miss hosts if it
// was built with one version and asked with another. So only characters are converted that
// Unicode 15.0 and 17.0 convert alike, alone and beside others; TestStable compares the
// tables of any other version with them.

//go:embed stable.txt
var stableText string

// stable returns the ranges of stable.txt: first and last characters, ascending.
var stable = sync.OnceValue(func() (ranges [][2]rune) {
	for line := range strings.Lines(stableText) {
		var r [2]rune
		if n, _ := fmt.Sscanf(line, "%X-%X", &r[0], &r[1]); n == 1 {
			r[1] = r[0]
		}
		ranges = append(ranges, r)
	}
	return ranges
})

// isStable reports whether a character is ASCII or in stable.txt.
func isStable(c rune) bool {
	_, ok := slices.BinarySearchFunc(stable(), c, func(r [2]rune, c rune) int {
		switch {
		case r[1] < c:
			return -1
		case r[0] > c:
			return 1
		}
		return 0
	})
	return ok || c < utf8.RuneSelf
}

// converter converts labels as AppendHost describes.
var converter = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(),
	idna.CheckHyphens(false), idna.CheckJoiners(true), idna.StrictDomainName(false), idna.VerifyDNSLength(false))

// ends are the characters that end labels.
var ends = strings.NewReplacer("。", ".", "．", ".", "｡", ".")

// maxLabel is the most bytes of a label that is not ASCII. Punycode of longer ones, which no
// name server would take, would need time that grows with the square.
const maxLabel = 253

// appendLabels appends the labels of a host, each in ASCII.
func appendLabels(dst, host []byte) ([]byte, bool) {
	if !utf8.Valid(host) {
		return dst, false
	}
	for i, label := range strings.Split(ends.Replace(string(host)), ".") {
		if i > 0 {
			dst = append(dst, '.')
		}
		ascii := strings.IndexFunc(label, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
		if ascii {
			dst = appendLower(dst, []byte(label))
			continue
		}
		converted, ok := convert(label)
		if !ok {
			return dst, false
		}
		dst = append(dst, converted...)
	}
	return dst, true
}

// convert converts a label that is not ASCII.
func convert(label string) (string, bool) {
	unstable := func(c rune) bool { return !isStable(c) }
	if len(label) > maxLabel || strings.ContainsFunc(label, unstable) {
		return "", false
	}
	out, err := converter.ToASCII(label)
	if err != nil || strings.Contains(out, ".") {
		return "", false
	}
	// The label may have been Punycode, written in other characters.
	decoded, err := idna.Punycode.ToUnicode(out)
	return out, err == nil && !strings.ContainsFunc(decoded, unstable)
}
