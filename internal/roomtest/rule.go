package roomtest

import (
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/urlform"
)

// uuidText has D for the digits, with all dashes or none.
var uuidText = regexp.MustCompile(strings.ReplaceAll(`\A(?:(?i:urn:uuid:)(D)|\{(D)\}|(D))\z`, "D",
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}`))

// Ruled applies a rule to a value in another way than the key encoder: the 16 bytes of a
// UUID, or text. It returns false for what should be a UUID and is not.
func Ruled(rule, value string) (string, bool) {
	if strings.Contains(rule, "trim") {
		value = strings.Trim(value, "\t\n\v\f\r ")
	}
	if strings.Contains(rule, "lower") {
		for c := 'A'; c <= 'Z'; c++ {
			value = strings.ReplaceAll(value, string(c), string(c+'a'-'A'))
		}
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
