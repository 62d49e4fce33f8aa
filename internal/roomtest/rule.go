package roomtest

import (
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/internal/urlform"
)

// uuidText has D for the digits, with all dashes or none.
var uuidText = regexp.MustCompile(strings.ReplaceAll(`\A(?:(?i:urn:uuid:)(D)|\{(D)\}|(D))\z`, "D",
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}`))

// Ruled applies a rule to a value in another way than the key encoder: the 16 bytes of a
// UUID, or text. It returns false for what should be a UUID and is not.
func Ruled(rule, value string) (string, bool) {
	rule, ascii := strings.CutSuffix(rule, ",ascii-only")
	of := func(c rune) bool { return !ascii || c < utf8.RuneSelf }
	if strings.Contains(rule, "trim") {
		value = strings.TrimFunc(value, func(c rune) bool { return of(c) && unicode.Is(unicode.White_Space, c) })
	}
	if strings.Contains(rule, "lower") {
		var lower strings.Builder
		for len(value) > 0 {
			c, n := utf8.DecodeRuneInString(value)
			if of(c) && (n > 1 || c != utf8.RuneError) {
				lower.WriteRune(unicode.ToLower(c))
			} else {
				lower.WriteString(value[:n])
			}
			value = value[n:]
		}
		value = lower.String()
	}
	switch {
	case strings.HasSuffix(rule, "url"):
		return string(urlform.Append(nil, []byte(value))), true
	case strings.HasSuffix(rule, "url-host"):
		host, ok := urlform.AppendHost(nil, []byte(value))
		return string(host), ok
	case !strings.Contains(rule, "uuid"):
		return value, true
	}
	m := uuidText.FindStringSubmatch(value)
	if m == nil {
		return "", false
	}
	b, err := hex.DecodeString(strings.ReplaceAll(m[1]+m[2]+m[3], "-", ""))
	return string(b), err == nil
}
