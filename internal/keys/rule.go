package keys

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/urlform"
)

// Rule is how strings are normalised before they become keys. It applies to key
// columns of class Bytes; the zero Rule leaves them unchanged. The order of
// application is always Trim, Lower, then UUID, URL or URLHost, of which there is at
// most one.
//
// A filter built under a rule must be probed with keys under the same rule, so the
// rule is part of the name of the normal form; see [Rule.NormalForm].
type Rule uint8

const (
	// Trim removes white space from both ends: of ASCII space, \t, \n, \v, \f, \r, and
	// under Unicode all characters of its property White_Space.
	Trim Rule = 1 << iota
	// Lower maps the ASCII letters A-Z to a-z, and under Unicode each character to its
	// lower case, by lower.txt. All other bytes stay, also where they are not UTF-8. So
	// equality depends on no language, and on no version of Go or of a library.
	Lower
	// UUID turns the text of a UUID into its 16 bytes, of class fixed[16]: 32
	// hexadecimal digits of either case, without dashes or with dashes as
	// 8-4-4-4-12, bare, in braces, or after urn:uuid: in either case. Any other
	// text is an error among IDs and matches nothing in a log. Keys of class
	// fixed[16] stay unchanged.
	UUID
	// URL turns a URL into its normal form, which may be longer; see
	// [urlform.Append]. Any other text stays.
	URL
	// URLHost turns a URL or host into the normal form of the host; see
	// [urlform.AppendHost]. A text without a host is an error among IDs and
	// matches nothing in a log. A host is a member if it or one of its parent
	// domains is an ID, so look-ups hash the parents, too; see [Batch.Asked].
	// The key is one column.
	URLHost
	// Unicode extends Trim and Lower, and needs one of them, to Unicode 15.0. Without it,
	// as in filters of earlier versions, they concern ASCII alone.
	Unicode
)

const urlRules = URL | URLHost

// ruleNames are the names of the bits. The last one means that the Unicode bit is not set, as
// users get Unicode by default.
var ruleNames = []string{"trim", "lower", "uuid", "url", "url-host", "ascii-only"}

// unicodeVersion is added to names of rules in files, where names alone mean ASCII.
const unicodeVersion = ",unicode-15.0"

// ParseRule parses comma-separated rule names in any order. The empty string is the
// zero Rule.
func ParseRule(s string) (Rule, error) {
	var r Rule
	if s == "" {
		return r, nil
	}
	for name := range strings.SplitSeq(s, ",") {
		i := slices.Index(ruleNames, name)
		if i < 0 {
			return 0, fmt.Errorf("%q: want some of %s, separated by commas", s, strings.Join(ruleNames, ", "))
		}
		if r&(1<<i) != 0 {
			return 0, fmt.Errorf("%q: %s stands there twice", s, name)
		}
		r |= 1 << i
	}
	if one := r & (UUID | urlRules); one&(one-1) != 0 {
		return 0, fmt.Errorf("%q: %s exclude each other", s, one)
	}
	if r&(Trim|Lower) != 0 {
		r ^= Unicode
	} else if r&Unicode != 0 {
		return 0, fmt.Errorf("%q: ascii-only needs trim or lower", s)
	}
	return r, nil
}

// String returns the names in order of application, in the syntax of ParseRule. The
// zero Rule gives an empty string.
func (r Rule) String() string {
	if r&(Trim|Lower) != 0 {
		r ^= Unicode
	}
	var names []string
	for i, n := range ruleNames {
		if r&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// Stored is String for files: names that meant ASCII in earlier versions still do.
func (r Rule) Stored() string {
	if r&Unicode != 0 {
		return r.String() + unicodeVersion
	}
	return strings.TrimSuffix(r.String(), ",ascii-only")
}

// Word is String for messages: it names the zero Rule "none".
func (r Rule) Word() string {
	if r == 0 {
		return "none"
	}
	return r.String()
}

// NormalForm names the rules that turn keys into bytes: this package's version and,
// if the Rule is not zero, a plus and the Rule as stored.
func (r Rule) NormalForm() string {
	if r == 0 {
		return NormalForm
	}
	return NormalForm + "+" + r.Stored()
}

// RuleOf is the inverse of [Rule.NormalForm]. A name from another version is an
// error that wraps fault.ErrMismatch.
func RuleOf(normalForm string) (Rule, error) {
	_, names, _ := strings.Cut(normalForm, "+")
	names, ofUnicode := strings.CutSuffix(names, unicodeVersion)
	r, err := ParseRule(names)
	if !ofUnicode {
		r &^= Unicode
	}
	if err == nil && r.NormalForm() == normalForm {
		return r, nil
	}
	return 0, faults.Mismatch(fault.At{}, "normal form of keys", NormalForm, normalForm).
		WithHint("build the filter again, with this version")
}

// Class returns the class that keys of class c have under the rule.
func (r Rule) Class(c Class) Class {
	if c == Bytes && r&UUID != 0 {
		return Fixed(16)
	}
	return c
}

// Concerns reports whether the rule is valid for a key of the given classes: it
// needs a string column or, with UUID, a column of UUIDs.
func (r Rule) Concerns(classes []Class) bool {
	for _, c := range classes {
		if c == Bytes || r&UUID != 0 && c == Fixed(16) {
			return true
		}
	}
	return false
}

// Check returns an error if the rule does not allow that many key columns.
func (r Rule) Check(columns int) error {
	if r&URLHost != 0 && columns != 1 {
		return faults.Unsupported(fault.At{}, "{Normalize %s} of a key of %d columns", r, columns).WithHint("name the column of URLs or hosts alone")
	}
	return nil
}

// Of returns the part of the rule that applies to a key column of class c.
func (r Rule) Of(c Class) Rule {
	if c == Bytes {
		return r
	}
	return 0
}

// Wants describes the values of class Bytes that can be IDs under the rule; empty: all.
func (r Rule) Wants() fault.Text {
	switch {
	case r&UUID != 0:
		return "a UUID, under {Normalize uuid}"
	case r&URLHost != 0:
		return "a URL or host, under {Normalize url-host}"
	}
	return ""
}

// Accepts reports whether a value of class Bytes can be an ID under the rule.
func (r Rule) Accepts(value string) bool {
	_, ok := r.apply(append(make([]byte, 0, 64), value...), nil) // most need no memory
	return ok
}

// apply normalises a value in place, or, under URL, URLHost and Unicode, in room, and returns
// the result. ok is false if the value cannot be an ID.
func (r Rule) apply(b, room []byte) ([]byte, bool) {
	if r&Unicode != 0 && r.over(b) == r { // what follows then changes nothing
		if r&Trim != 0 {
			b = bytes.Trim(b, blanks)
		}
		if r&Lower != 0 {
			b = appendLower(room[:0], b)
			room = b[len(b):]
		}
	}
	if r&Trim != 0 {
		b = trimmed(b)
	}
	if r&UUID != 0 {
		return uuid(b)
	}
	if r&Lower != 0 {
		lowerASCII(b)
	}
	switch {
	case r&URL != 0:
		return urlform.Append(room[:0], b), true
	case r&URLHost != 0:
		return urlform.AppendHost(room[:0], b)
	}
	return b, true
}

func trimmed(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isSpace(c byte) bool { return c == ' ' || c-'\t' < 5 }

const urn = "urn:uuid:"

// uuid turns the text of a UUID into its bytes, in the text's memory.
func uuid(b []byte) ([]byte, bool) {
	switch n := len(b); {
	case n > len(urn) && strings.EqualFold(string(b[:len(urn)]), urn):
		b = b[len(urn):]
	case n > 2 && b[0] == '{' && b[n-1] == '}':
		b = b[1 : n-1]
	}
	if len(b) == 36 && b[8] == '-' && b[13] == '-' && b[18] == '-' && b[23] == '-' {
		b = append(append(append(append(b[:8], b[9:13]...), b[14:18]...), b[19:23]...), b[24:]...)
	}
	if len(b) != 32 {
		return nil, false
	}
	_, err := hex.Decode(b, b) // each byte is written after its digits are read
	return b[:16], err == nil
}

// ErrNoUUID is wrapped by errors about an ID that is not a UUID, under a rule with
// UUID.
var ErrNoUUID = cause.Mark(cause.BadValue, faults.Errorf("under {Normalize uuid} each ID is one"))

// ErrNoHost is wrapped by errors about an ID without a host, under a rule with
// URLHost.
var ErrNoHost = cause.Mark(cause.BadValue, faults.Errorf("under {Normalize url-host} each ID has one"))

// IDs returns an error if a row of the batch has a value that cannot be an ID. at
// is the batch's place for the error.
func (b *Batch) IDs(at fault.At) error {
	if len(b.unfit) == 0 {
		return nil
	}
	if b.rule&URLHost != 0 {
		return &fault.Error{
			Kind: fault.ErrMismatch, At: at, What: "a value without a host", Want: "a URL or a host, as www.example.com", Err: ErrNoHost,
			Hint: "for other values, name another rule, or correct the list",
		}
	}
	return &fault.Error{
		Kind: fault.ErrMismatch, At: at, What: "a value that is no UUID", Want: "32 hexadecimal digits, as 8-4-4-4-12 or without dashes", Err: ErrNoUUID,
		Hint: "the rule applies to every column of strings in the key; to ignore white space around UUIDs, use trim,uuid",
	}
}
