package text

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// sampled is the number of objects that are inspected to find the columns, and
// sampleBytes the largest total of their bytes.
const (
	sampled     = 1000
	sampleBytes = 32 << 20
)

// ndjson reads one JSON object per line.
type ndjson struct {
	l     *lines
	names []string
	index map[string]int  // column by name
	ahead []numbered      // lines that were read to find the columns and not returned yet
	at    fault.At        // Line is the number of the current row
	row   [][]byte        // raw JSON by column, nil if missing
	there []int           // columns that row has
	other map[string]bool // keys of the object that are not columns
	keys  []string        // the keys of other, in order
	inner []innerColumn   // of values in objects
}

// innerColumn is a column of values within the objects of a key.
type innerColumn struct {
	column int
	path   keys.Path // from the key down
}

// innerColumns adds columns for the paths of [Options].Nested that an object has had.
func (r *ndjson) innerColumns(seen []bool, paths [][]string) {
	for i, path := range paths {
		if seen[i] {
			r.inner = append(r.inner, innerColumn{len(r.names), path})
			r.names, r.row = append(r.names, keys.Path(path).Flat()), append(r.row, nil)
		}
	}
}

// descend sets the columns of values within objects.
func (r *ndjson) descend() error {
	for _, n := range r.inner {
		c, ok := r.index[n.path[0]]
		if !ok || r.row[c] == nil {
			continue
		}
		raw := r.row[c]
		for _, name := range n.path[1:] {
			if raw == nil || raw[0] == 'n' {
				raw = nil
				break
			}
			if raw[0] != '{' {
				return r.badNested(n, "a path into a value that is no object")
			}
			var once bool
			if raw, once = only(raw, name, false); !once {
				return r.badNested(n, "a key that stands twice in an object")
			}
		}
		if raw == nil {
			continue
		}
		if raw[0] == '"' {
			if _, ok := unquote(raw); !ok {
				return r.badNested(n, "half a surrogate pair in a JSON string")
			}
		}
		r.row[n.column] = raw
		r.there = append(r.there, n.column)
	}
	return nil
}

// has reports whether the object has the path's last key.
func (r *ndjson) has(path []string) bool {
	c, ok := r.index[path[0]]
	if !ok {
		return false
	}
	raw := r.row[c]
	for _, name := range path[1:] {
		if raw == nil || raw[0] != '{' {
			return false
		}
		raw, _ = only(raw, name, false)
	}
	return raw != nil
}

func (r *ndjson) badNested(n innerColumn, what string) error {
	at := r.at
	at.Column = n.path.Flat()
	return &badLine{fault: faults.Of(cause.BadLine, faults.Corrupt(at, "%s", what)), confined: true}
}

// only returns the value of a key of an object, nil if it has none. once is false if it has two.
// Keys may differ from name in case if fold is set.
func only(object []byte, name string, fold bool) (raw []byte, once bool) {
	for s := (scanner{object, 1}); s.more(); {
		key, ok := unquote(s.value())
		s.skip(':')
		value := s.value()
		if !ok || string(key) != name && !(fold && strings.EqualFold(string(key), name)) {
			continue
		}
		if raw != nil {
			return nil, false
		}
		raw = value
	}
	return raw, true
}

type numbered struct {
	text []byte
	line int
}

// newNDJSON starts a pass. The first pass reads the first objects to find the
// columns. If p.bad is not nil, lines among them without an object are added to it.
// The lines are kept only if the input cannot be opened again.
func (in *input) newNDJSON(l *lines, p *pass) (*ndjson, error) {
	r := &ndjson{l: l, index: map[string]int{}, other: map[string]bool{}, at: l.at}
	if in.columns != nil {
		r.names, r.row = in.columns, make([][]byte, len(in.columns))
		r.inner = in.inner
		for i, name := range r.names[:len(r.names)-len(r.inner)] {
			r.index[name] = i
		}
		return r, nil
	}
	seen := make([]bool, len(in.opts.Nested))
	for n, size := 0, 0; n < sampled && size < sampleBytes; n++ {
		line, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		r.at.Line = l.at.Line
		size += len(line)
		if err := r.object(line); err != nil {
			if p.bad == nil {
				p.good = int64(n) // for the hint
				return nil, err
			}
			p.bad.add(l.at.Line)
			n--
			continue
		}
		if err := checkNumber(r.at, len(r.names)+len(r.keys), "the objects up to here have"); err != nil {
			return nil, err
		}
		if len(r.keys) > 0 {
			for _, k := range r.keys {
				r.index[k] = len(r.names)
				r.names, r.row = append(r.names, k), append(r.row, nil)
			}
			if len(seen) > 0 { // the object's values were not kept
				_ = r.object(line) // it was valid
			}
		}
		for i, path := range in.opts.Nested {
			seen[i] = seen[i] || r.has(path)
		}
		if !in.opts.Once {
			continue
		}
		if most := in.opts.part(aheadShare, sampleBytes); int64(size) > most && most < sampleBytes {
			return nil, faults.Memory(r.at, "the objects that are looked at for the columns, of an input that can be read once,", int64(size), in.opts.Memory, aheadShare)
		}
		r.ahead = append(r.ahead, numbered{bytes.Clone(line), l.at.Line})
	}
	r.innerColumns(seen, in.opts.Nested)
	in.inner = r.inner
	return r, nil
}

func (r *ndjson) columns() []string { return r.names }
func (r *ndjson) line(int) int      { return r.at.Line }
func (r *ndjson) confined() bool    { return true }

func (r *ndjson) next() error {
	var line []byte
	var err error
	if len(r.ahead) > 0 {
		line, r.at.Line = r.ahead[0].text, r.ahead[0].line
		r.ahead = r.ahead[1:]
	} else {
		line, err = r.l.next()
		r.at.Line = r.l.at.Line
	}
	if err != nil {
		return err
	}
	return r.object(line)
}

// value returns the text of a key's value; see the package comment.
func (r *ndjson) value(c int) ([]byte, bool) {
	return textOf(r.row[c])
}

// textOf returns the text of a raw JSON value whose strings were checked, false if it is
// null or missing.
func textOf(raw []byte) ([]byte, bool) {
	if raw == nil || raw[0] == 'n' {
		return nil, false
	}
	switch raw[0] {
	case '"':
		s, _ := unquote(raw) // checked when the line was read
		return s, true
	case '{', '[':
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil { // it was valid when the line was read
			return raw, true
		}
		return b.Bytes(), true
	}
	return raw, true
}

// object parses a line into row and keys. Its error is a badLine.
func (r *ndjson) object(line []byte) error {
	for _, c := range r.there {
		r.row[c] = nil
	}
	r.there = r.there[:0]
	clear(r.other)
	r.keys = r.keys[:0]
	line = bytes.Trim(line, " \t\r")
	if !utf8.Valid(line) {
		return &badLine{fault: faults.Of(cause.Encoding, faults.Corrupt(r.at, "JSON that is not UTF-8")).WithHint("name its encoding, as in {Encoding latin1} or {Encoding windows-1252}"), confined: true}
	}
	if !json.Valid(line) || line[0] != '{' {
		return &badLine{fault: faults.Of(cause.BadLine, faults.Corrupt(r.at, "not one JSON object")), confined: true}
	}
	for s := (scanner{line, 1}); s.more(); {
		key, ok := unquote(s.value())
		s.skip(':')
		raw := s.value()
		if ok && raw[0] == '"' {
			_, ok = unquote(raw)
		}
		if !ok {
			return &badLine{fault: faults.Of(cause.BadLine, faults.Corrupt(r.at, "half a surrogate pair in a JSON string")), confined: true}
		}
		if !r.set(key, raw) {
			at := r.at
			at.Column = string(key)
			return &badLine{fault: faults.Of(cause.BadLine, faults.Corrupt(at, "a key that stands twice in an object")), confined: true}
		}
	}
	return r.descend()
}

// set records the value of a key. It returns false if the key already has one.
func (r *ndjson) set(key, raw []byte) bool {
	if c, ok := r.index[string(key)]; ok {
		twice := r.row[c] != nil
		r.row[c] = raw
		r.there = append(r.there, c)
		return !twice
	}
	if r.other[string(key)] {
		return false
	}
	r.other[string(key)] = true
	r.keys = append(r.keys, string(key))
	return true
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

// skip skips c, if present, and the white space around it.
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

// value returns the text of the next value.
func (s *scanner) value() []byte {
	start, depth := s.i, 0
	for {
		switch c := s.b[s.i]; {
		case c == '"':
			for s.i++; s.b[s.i] != '"'; s.i++ {
				if s.b[s.i] == '\\' {
					s.i++
				}
			}
			s.i++
		case c == '{' || c == '[':
			depth++
			s.i++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
			s.i++
		case depth > 0:
			s.i++
			continue
		default: // a number or a literal
			for !bytes.ContainsRune([]byte(",}] \t\r\n"), rune(s.b[s.i])) {
				s.i++
			}
		}
		if depth == 0 {
			return s.b[start:s.i]
		}
	}
}

// unquote returns the text of a valid JSON string. It returns false if an escape is
// half a surrogate pair, which has no text.
func unquote(raw []byte) ([]byte, bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], true
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
			return nil, false
		}
		if low := hex4(raw[i+3:]); low < 0xDC00 || low > 0xDFFF {
			return nil, false
		}
		i += 6
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil, false
	}
	return []byte(s), true
}

func hex4(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 16) // valid JSON has four digits
	return n
}
