package text

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Objects reads NDJSON line by line, for a reader that answers each line as it comes.
// Lines follow the rules of the package, but no line is read before it is asked for, and
// so the columns are not known in advance. It must not be used concurrently.
type Objects struct {
	asked
	r          *ndjson
	paths      []objectPath
	ignoreCase bool
	known      int // names that paths have been compared with
}

// objectPath is a path to a value.
type objectPath struct {
	names   []string
	columns []int // of the first name; more than one only if case is ignored
	seen    bool  // an object had it
}

// NewObjects reads lines from rc. paths lead to the values that are wanted, from the
// outermost object down. If ignoreCase is set, names may differ in case. name is used in
// errors. memory is the memory budget of the process in bytes, which bounds the length of a
// line; 0: no bound.
func NewObjects(rc io.ReadCloser, name string, paths [][]string, ignoreCase bool, memory int64) (*Objects, error) {
	a, err := ask(rc, name, NDJSON, memory)
	if err != nil {
		return nil, err
	}
	o := &Objects{asked: a, r: &ndjson{l: a.l, index: map[string]int{}, other: map[string]bool{}, at: a.l.at}, ignoreCase: ignoreCase}
	for _, names := range paths {
		o.paths = append(o.paths, objectPath{names: names})
	}
	return o, nil
}

// Next moves to the next line and returns it with its line end. It returns io.EOF after
// the last line. The line is valid until the next call.
func (o *Objects) Next() ([]byte, error) {
	line, err := o.l.next()
	if err != nil {
		return nil, err
	}
	o.r.at.Line = o.l.at.Line
	if err = o.r.object(line); err == nil && o.learn() {
		err = o.r.object(line)
	}
	if bad := (*badLine)(nil); errors.As(err, &bad) {
		return nil, bad.fault.WithHint("write one JSON object a line")
	}
	return o.l.kept, err
}

// learn makes the new keys of the object columns, which later objects can be compared with
// without further memory, and reports whether there are any. Of very many keys it takes the
// wanted ones alone.
func (o *Objects) learn() bool {
	for _, k := range o.r.keys {
		if len(o.r.names) < maxNames || slices.ContainsFunc(o.paths, func(p objectPath) bool { return o.same(p.names[0], k) }) {
			o.r.index[k] = len(o.r.names)
			o.r.names, o.r.row = append(o.r.names, k), append(o.r.row, nil)
		}
	}
	from := o.known
	o.known = len(o.r.names)
	for i, name := range o.r.names[from:] {
		for p := range o.paths {
			if o.same(o.paths[p].names[0], name) {
				o.paths[p].columns = append(o.paths[p].columns, from+i)
			}
		}
	}
	return o.known > from
}

func (o *Objects) same(a, b string) bool {
	return a == b || o.ignoreCase && strings.EqualFold(a, b)
}

// Line returns the number of the current line, from 1.
func (o *Objects) Line() int { return o.l.at.Line }

// Seen reports whether any line so far had a value or a null at path p.
func (o *Objects) Seen(p int) bool { return o.paths[p].seen }

// Value returns the text of the value at path p of the current line, false if it is null or
// missing. It is valid until Next. A path that leads into something else than an object is
// an error.
func (o *Objects) Value(p int) (text []byte, ok bool, err error) {
	path := &o.paths[p]
	var raw []byte
	for _, c := range path.columns {
		if o.r.row[c] == nil {
			continue
		}
		if raw != nil {
			return nil, false, o.collision(path)
		}
		raw = o.r.row[c]
	}
	for _, name := range path.names[1:] {
		if raw == nil || raw[0] == 'n' {
			return nil, false, nil
		}
		if raw[0] != '{' {
			return nil, false, faults.Of(cause.NoColumn, faults.Mismatch(o.at(path), "a path into a value", "an object", "something else")).WithHint("name the value itself")
		}
		var once bool
		if raw, once = only(raw, name, o.ignoreCase); !once {
			return nil, false, o.collision(path)
		}
	}
	path.seen = path.seen || raw != nil
	if raw != nil && raw[0] == '"' {
		if _, ok := unquote(raw); !ok {
			return nil, false, faults.Of(cause.BadLine, faults.Corrupt(o.at(path), "half a surrogate pair in a JSON string"))
		}
	}
	text, ok = textOf(raw)
	return text, ok, nil
}

func (o *Objects) at(path *objectPath) fault.At {
	at := o.r.at
	at.Column = strings.Join(path.names, ".")
	return at
}

func (o *Objects) collision(path *objectPath) error {
	if o.ignoreCase {
		return faults.Of(cause.BadLine, faults.Corrupt(o.at(path), "a key that stands twice in an object if case is ignored")).
			WithHint("leave {IgnoreCase} out, and name the key as it is spelled")
	}
	return faults.Of(cause.BadLine, faults.Corrupt(o.at(path), "a key that stands twice in an object")).WithHint("write each key of an object once")
}
