package text

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// sampled is how many objects are looked at for the columns, and sampleBytes
// how many bytes of them at most.
const (
	sampled     = 1000
	sampleBytes = 32 << 20
)

// ndjson is one JSON object a line.
type ndjson struct {
	l      *lines
	names  []string
	ahead  [][]byte // lines read for the columns, not yet handed out
	lineNo []int    // of those lines
	at     fault.At
	row    map[string][]byte // raw JSON of each key
}

func newNDJSON(l *lines) (*ndjson, error) {
	r := &ndjson{l: l, row: map[string][]byte{}, at: l.at}
	seen := map[string]bool{}
	for size := 0; len(r.ahead) < sampled && size < sampleBytes; {
		line, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		keys, err := r.object(l.at, line)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if !seen[k] {
				seen[k] = true
				r.names = append(r.names, k)
			}
		}
		size += len(line)
		r.ahead = append(r.ahead, bytes.Clone(line))
		r.lineNo = append(r.lineNo, l.at.Line)
	}
	return r, nil
}

func (r *ndjson) columns() []string { return r.names }
func (r *ndjson) line(int) int      { return r.at.Line }

func (r *ndjson) next() error {
	var line []byte
	var err error
	if len(r.ahead) > 0 {
		line, r.at.Line = r.ahead[0], r.lineNo[0]
		r.ahead, r.lineNo = r.ahead[1:], r.lineNo[1:]
	} else {
		line, err = r.l.next()
		r.at.Line = r.l.at.Line
	}
	if err != nil {
		return err
	}
	_, err = r.object(r.at, line)
	return err
}

// value is the text of a key's value; see the package comment.
func (r *ndjson) value(_ int, name string) (string, bool) {
	raw, ok := r.row[name]
	if !ok || raw[0] == 'n' {
		return "", false
	}
	switch raw[0] {
	case '"':
		s, _ := unquote(raw) // checked when the line was read
		return s, true
	case '{', '[':
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil { // it was valid when the line was read
			return string(raw), true
		}
		return b.String(), true
	}
	return string(raw), true
}

// object takes a line apart into r.row and returns its keys in order.
func (r *ndjson) object(at fault.At, line []byte) ([]string, error) {
	clear(r.row)
	line = bytes.Trim(line, " \t\r")
	if !utf8.Valid(line) {
		return nil, fault.Corrupt(at, "JSON that is not UTF-8")
	}
	if !json.Valid(line) || line[0] != '{' {
		return nil, fault.Corrupt(at, "not one JSON object")
	}
	var keys []string
	for s := (scanner{line, 1}); s.more(); {
		key, ok := unquote(s.value())
		s.skip(':')
		raw := s.value()
		if ok && raw[0] == '"' {
			_, ok = unquote(raw)
		}
		if !ok {
			return nil, fault.Corrupt(at, "half a surrogate pair in a JSON string")
		}
		if _, twice := r.row[key]; twice {
			at.Column = key
			return nil, fault.Corrupt(at, "a key that stands twice in an object")
		}
		r.row[key] = raw
		keys = append(keys, key)
	}
	return keys, nil
}

// scanner walks an object that is known to be valid JSON.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.b[s.i] == ' ' || s.b[s.i] == '\t' || s.b[s.i] == '\r' || s.b[s.i] == '\n' {
		s.i++
	}
}

// skip passes c and the space around it.
func (s *scanner) skip(c byte) {
	s.space()
	if s.b[s.i] == c {
		s.i++
	}
	s.space()
}

// more reports whether another key follows.
func (s *scanner) more() bool {
	s.skip(',')
	return s.b[s.i] != '}'
}

// value is the text of the next value.
func (s *scanner) value() []byte {
	start, depth := s.i, 0
	for {
		switch c := s.b[s.i]; {
		case c == '"':
			s.str()
		case c == '{' || c == '[':
			depth++
			s.i++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
			s.i++
		case depth > 0:
			s.i++
			continue
		default: // a number or a word
			for !bytes.ContainsRune([]byte(",}] \t\r\n"), rune(s.b[s.i])) {
				s.i++
			}
		}
		if depth == 0 {
			return s.b[start:s.i]
		}
	}
}

func (s *scanner) str() {
	for s.i++; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			s.i++
		}
	}
	s.i++
}

// unquote is the text of a valid JSON string; false when an escape is half a
// surrogate pair, which has no text.
func unquote(raw []byte) (string, bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	for i := 1; i < len(raw)-1; i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		u := hex4(raw[i+1:])
		i += 4
		if u < 0xD800 || u > 0xDFFF {
			continue
		}
		if u > 0xDBFF || raw[i+1] != '\\' || raw[i+2] != 'u' {
			return "", false
		}
		if low := hex4(raw[i+3:]); low < 0xDC00 || low > 0xDFFF {
			return "", false
		}
		i += 6
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

func hex4(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 16) // valid JSON has four digits
	return n
}
