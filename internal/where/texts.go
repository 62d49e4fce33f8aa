package where

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/scalar"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// parseFloat parses a text as SQL casts it to a float: a number, NaN or an infinity.
func parseFloat(s string, bits int) (float64, bool) {
	if strings.ContainsAny(s, "_xXpP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(scalar.Trim(s), bits)
	return f, err == nil
}

// texts is a set of strings, compared by bytes.
type texts struct {
	set[string]
	pattern *pattern // further condition on the members; nil: none
}

// textSet returns the strings for which a test is true.
func textSet(t *test, values []value) *texts {
	s := &texts{set: set[string]{cmp: strings.Compare, lo: edge[string]{none: true}, hi: edge[string]{none: true}}}
	for _, v := range values {
		switch t.op {
		case testLess:
			s.hi = edge[string]{at: v.bytes, open: true}
		case testLessEqual:
			s.hi = edge[string]{at: v.bytes}
		case testGreater:
			s.lo = edge[string]{at: v.bytes, open: true}
		case testGreaterEqual:
			s.lo = edge[string]{at: v.bytes}
		case testLike:
			return likeSet(v.bytes)
		}
	}
	switch t.op {
	case testEqual, testIn, testDistinct:
		points := make([]string, len(values))
		for i, v := range values {
			points[i] = v.bytes
		}
		s.set = pointsOf(points, strings.Compare)
	}
	return s
}

func (s *texts) eval(dst []Truth, a arrow.Array, in, out Truth) bool {
	value := take.Text(a)
	if value == nil {
		return false
	}
	has := s.has
	switch {
	case s.pattern != nil:
		has = func(x string) bool { return s.set.has(x) && s.pattern.matches(x) }
	case len(s.points) == 1:
		point := s.points[0]
		has = func(x string) bool { return x == point }
	}
	for i := range dst {
		dst[i] = out
		if has(value(i)) {
			dst[i] = in
		}
	}
	return true
}

func (s *texts) possible(bounds arrow.Array, _ bool) (in, out bool) {
	value := take.Text(bounds)
	if value == nil {
		return true, true
	}
	in, out = s.between(value(0), value(1))
	return in, out || s.pattern != nil
}

// pattern is a pattern of LIKE, in which % stands for any text and _ for any
// character. It is split at %.
type pattern []string

// likeSet returns the strings that match a pattern.
func likeSet(text string) *texts {
	prefix := text
	if i := strings.IndexAny(text, "%_"); i >= 0 {
		prefix = text[:i]
	}
	if prefix == text {
		return &texts{set: pointsOf([]string{text}, strings.Compare)}
	}
	s := &texts{set: set[string]{cmp: strings.Compare, lo: edge[string]{at: prefix}, hi: edge[string]{none: true}}}
	if end, ok := successor(prefix); ok {
		s.hi = edge[string]{at: end, open: true}
	}
	if strings.Trim(text[len(prefix):], "%") != "" {
		p := pattern(strings.Split(text, "%"))
		s.pattern = &p
	}
	return s
}

// successor returns the least string above all that begin with a prefix.
func successor(prefix string) (string, bool) {
	for i := len(prefix); i > 0; i-- {
		if c := prefix[i-1]; c < 0xff {
			return prefix[:i-1] + string([]byte{c + 1}), true
		}
	}
	return "", false
}

// matches reports whether a string matches the pattern. Each part is matched at the
// first place where it fits, except that the last part is matched at the end.
func (p pattern) matches(s string) bool {
	first, last := p[0], p[len(p)-1]
	n, ok := matchPart(first, s)
	if !ok {
		return false
	}
	s = s[n:]
	if len(p) == 1 {
		return s == ""
	}
	for _, part := range p[1 : len(p)-1] {
		if s, ok = cutPart(part, s); !ok {
			return false
		}
	}
	if !strings.Contains(last, "_") {
		return strings.HasSuffix(s, last)
	}
	for {
		if n, ok = matchPart(last, s); ok && n == len(s) {
			return true
		}
		if s == "" {
			return false
		}
		s = s[charLen(s):]
	}
}

// cutPart returns what follows the first place in s that a part of a pattern
// matches.
func cutPart(part, s string) (after string, ok bool) {
	if !strings.Contains(part, "_") {
		_, after, ok = strings.Cut(s, part)
		return after, ok
	}
	for {
		if n, ok := matchPart(part, s); ok {
			return s[n:], true
		}
		if s == "" {
			return "", false
		}
		s = s[charLen(s):]
	}
}

// matchPart matches a part of a pattern with the beginning of s, and returns the
// number of bytes that it takes.
func matchPart(part, s string) (n int, ok bool) {
	for part != "" {
		if n == len(s) {
			return 0, false
		}
		size := charLen(s[n:])
		if part[0] != '_' {
			size = 1
			if part[0] != s[n] {
				return 0, false
			}
		}
		part = part[1:]
		n += size
	}
	return n, true
}

// charLen returns the number of bytes of the first character. A byte that is not
// UTF-8 is a character.
func charLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
