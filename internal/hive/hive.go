// Package hive finds the directories of partitioned tables, whose names are
// name=value, and the columns that they stand for.
//
//	paths ── Parse ──► Parts of each file ── Infer ──► Columns of all files
package hive

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// null is the value that writers give to rows without one.
const null = "__HIVE_DEFAULT_PARTITION__"

// Cut splits a slash-separated directory path before its first name=value
// element. dir must end in a slash. ok is false if there is no such element;
// before is then the whole path.
func Cut(dir string) (before, after string, ok bool) {
	at := 0
	for _, element := range strings.SplitAfter(dir, "/") {
		if i := strings.IndexByte(element, '='); i > 0 && strings.HasSuffix(element, "/") {
			return dir[:at], dir[at:], true
		}
		at += len(element)
	}
	return dir, "", false
}

// Part is a name=value directory.
type Part struct {
	Name, Text string // without escapes
	Null       bool   // the directory of rows without a value; Text is then empty
}

// Parse returns the name=value directories of a slash-separated path to a file, in
// its order. Names and values are percent-decoded; a percent sign that two
// hexadecimal digits do not follow stands for itself.
func Parse(file string) (parts []Part, err error) {
	for {
		_, after, ok := Cut(file)
		if !ok {
			return parts, nil
		}
		element, rest, _ := strings.Cut(after, "/")
		name, text, _ := strings.Cut(element, "=")
		p := Part{Name: unescape(name), Text: unescape(text)}
		if text == null {
			p.Text, p.Null = "", true
		}
		if !utf8.ValidString(p.Name) || !utf8.ValidString(p.Text) {
			return nil, faults.Unsupported(fault.At{}, "the directory %q, which is not UTF-8", element).
				WithHint("rename it, or use {Hive off}")
		}
		for _, other := range parts {
			if other.Name == p.Name {
				return nil, faults.Unsupported(fault.At{Column: p.Name}, "two directories of that name in one path").
					WithHint("rename one, or use {Hive off}")
			}
		}
		parts, file = append(parts, p), rest
	}
}

// unescape replaces %XX by the byte.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b = append(b, v...)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// Dir returns the directory of a part, without a slash.
func Dir(p Part) string {
	text := null
	if !p.Null {
		text = escape(p.Text)
	}
	return escape(p.Name) + "=" + text
}

// escape writes bytes that mean something in paths as %XX, as Hive does.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f || strings.IndexByte(`"#%'*/:=?\{[]^`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Nulls returns the path of the directory of rows without a value in any column that
// the directories of a path stand for, with a slash at its end; "" if there are none.
func Nulls(file string) string {
	var b strings.Builder
	for {
		_, after, ok := Cut(file)
		if !ok {
			return b.String()
		}
		element, rest, _ := strings.Cut(after, "/")
		name, _, _ := strings.Cut(element, "=")
		b.WriteString(name + "=" + null + "/")
		file = rest
	}
}
