package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Sides of a join, as a column of the answer names them.
const (
	logSide = "log"
	idsSide = "ids"
)

// wanted is a column of the answer as the options name it.
type wanted struct {
	side string // logSide, idsSide, or empty: the one that has the name
	name string
	path keys.Path // below the column, of a field that is chosen alone

	star   bool // all columns of the side, or of both, but those of except
	except []wanted
}

// String returns the column as parseColumns reads it.
func (w wanted) String() string {
	text := append(keys.Path{w.name}, w.path...).String()
	if w.star {
		text = "*"
	}
	if w.side != "" {
		text = w.side + "." + text
	}
	for i, e := range w.except {
		text += []string{" except ", ","}[min(i, 1)] + e.String()
	}
	return text
}

// ofLog returns the column as a scan of the log names it.
func (w wanted) ofLog() string {
	w.side, w.except = "", slices.Clone(w.except)
	for i := range w.except {
		w.except[i].side = ""
	}
	return w.String()
}

// parseColumns parses the columns of an answer, each NAME, log.NAME, ids.NAME or a star, see
// [keys.ParseChoices]. The result is nil if columns is.
func parseColumns(columns []string, t Type) ([]wanted, error) {
	if columns == nil {
		return nil, nil
	}
	out := []wanted{}
	choices, err := keys.ParseChoices(columns)
	if err != nil {
		return nil, err
	}
	for _, c := range choices {
		w := wanted{star: c.Star != ""}
		if !w.star {
			w = parseColumn(c.Path, t)
		} else if c.Star != "*" {
			w.side = c.Star[:3]
		}
		for _, p := range c.Except {
			if len(p) == 1 && w.side != "" {
				p = keys.Path{w.side, p[0]}
			}
			w.except = append(w.except, parseColumn(p, t))
		}
		switch {
		case !t.ColumnsOfIDs && w.side == idsSide:
			return nil, fmt.Errorf("%s: the answer of type %s has no columns of the IDs (type inner or left has)", w, t)
		case slices.ContainsFunc(out, func(o wanted) bool { return o.String() == w.String() }):
			return nil, fmt.Errorf("%s is named twice (name it once)", w)
		}
		out = append(out, w)
	}
	return out, nil
}

func parseColumn(p keys.Path, t Type) wanted {
	side := ""
	if len(p) > 1 && (p[0] == logSide || p[0] == idsSide) {
		side, p = p[0], p[1:]
	}
	if side == logSide && !t.ColumnsOfIDs {
		side = ""
	}
	w := wanted{side: side, name: p[0]}
	if len(p) > 1 {
		w.path = p[1:]
	}
	return w
}

// CheckColumns returns an error if columns do not suit a type of join, whatever the inputs.
func CheckColumns(columns []string, t Type) error {
	_, err := parseColumns(columns, t)
	return err
}

// chosen is a column of the answer, found in the inputs.
type chosen struct {
	ofIDs bool
	at    int // position in the schema of its side
	key   int // of a log column that is a shared key: the ID column; else -1
}

// chooser finds the columns of an answer.
type chooser struct {
	typ    Type
	log    *arrow.Schema
	ids    *arrow.Schema
	shared []SharedKey
	suffix string
	hidden []string // log columns that the answer has only if they are named

	ignoreCase bool
}

// same reports whether two names denote one column.
func (c *chooser) same(a, b string) bool { return a == b || c.ignoreCase && strings.EqualFold(a, b) }

// has reports whether a schema has a column of the given name.
func (c *chooser) has(schema *arrow.Schema, name string) bool {
	return schema.HasField(name) || c.ignoreCase && slices.ContainsFunc(schema.Fields(), func(f arrow.Field) bool { return c.same(f.Name, name) })
}

// choose returns the columns of the answer in order. Nil selects all: the log's,
// then the IDs' except shared keys and paths into a column, which has their values.
func (c *chooser) choose(columns []wanted) ([]chosen, error) {
	if columns == nil {
		return c.all(""), nil
	}
	named := map[chosen]wanted{} // those before
	for _, w := range columns {
		if w.star {
			continue
		}
		at, err := c.find(w)
		if err != nil {
			return nil, err
		}
		if before, ok := named[at]; ok && (before.path == nil || w.path == nil) {
			return nil, fmt.Errorf("%s and %s are the same column", before, w)
		}
		named[at] = w
	}
	var out []chosen
	for _, w := range columns {
		if !w.star {
			if at, _ := c.find(w); !slices.Contains(out, at) { // else another field of it
				out = append(out, at)
			}
			continue
		}
		var except []chosen
		for _, e := range w.except {
			at, err := c.find(e)
			if err == nil && e.path != nil {
				err = fmt.Errorf("%s: want whole columns after EXCEPT, got %s (name the fields to keep)", w, e)
			}
			if err != nil {
				return nil, err
			}
			except = append(except, at)
		}
		for _, at := range c.all(w.side) {
			if _, ok := named[at]; ok || slices.Contains(except, at) {
				continue
			}
			out = append(out, at)
		}
	}
	return out, nil
}

// all returns all columns of a side, or of both.
func (c *chooser) all(side string) (out []chosen) {
	for i, f := range c.log.Fields() {
		if side != idsSide && !slices.Contains(c.hidden, f.Name) {
			out = append(out, c.ofLog(i, f.Name))
		}
	}
	for i := range c.ids.Fields() {
		shared := slices.ContainsFunc(c.shared, func(s SharedKey) bool { return s.idCol == i })
		if c.typ.ColumnsOfIDs && side != logSide && !shared && !keys.IsNested(c.ids, i) {
			out = append(out, chosen{ofIDs: true, at: i, key: -1})
		}
	}
	return out
}

// ofLog returns the log's column at a position.
func (c *chooser) ofLog(at int, name string) chosen {
	for _, s := range c.shared {
		if c.same(s.Name, name) {
			return chosen{at: at, key: s.idCol}
		}
	}
	return chosen{at: at, key: -1}
}

// find finds one column.
func (c *chooser) find(w wanted) (chosen, error) {
	inLog, inIDs := c.has(c.log, w.name), c.has(c.ids, w.name)
	isKey := slices.ContainsFunc(c.shared, func(s SharedKey) bool { return c.same(s.Name, w.name) })
	ofIDs := false
	switch {
	case isKey, !c.typ.ColumnsOfIDs && inLog:
	case !c.typ.ColumnsOfIDs && inIDs:
		return chosen{}, fmt.Errorf("%s is a column of the IDs, and the answer of type %s has none of them (type inner or left has)", w, c.typ)
	case w.side == "" && inLog && inIDs:
		return chosen{}, fmt.Errorf("both the log and the IDs have a column %s (name %s or %s)", w, wanted{side: logSide, name: w.name}, wanted{side: idsSide, name: w.name})
	case w.side == logSide && inLog, w.side == "" && inLog:
	case w.side == idsSide && inIDs, w.side == "" && inIDs:
		ofIDs = true
	default:
		return chosen{}, c.notFound(w)
	}
	schema := c.log
	if ofIDs && w.path != nil {
		return chosen{}, faults.Unsupported(fault.At{}, "%s: a field of the IDs' columns", w).WithHint("choose the whole column")
	}
	if ofIDs {
		schema = c.ids
	}
	f, err := keys.Path{w.name}.Resolve(schema, c.ignoreCase) // which rejects ambiguous names
	if err != nil {
		return chosen{}, err
	}
	if ofIDs {
		return chosen{ofIDs: true, at: f.Index[0], key: -1}, nil
	}
	return c.ofLog(f.Index[0], w.name), nil
}

// notFound returns the error for a column that neither side has. It carries the
// columns that exist, each as it would be written. Meant is the ID column that has
// the name in the answer.
func (c *chooser) notFound(w wanted) error {
	e := &keys.NotFoundError{Path: keys.Path{w.side, w.name}, Name: w.name, Err: fmt.Errorf("no column %s", w)}
	if w.side == "" {
		e.Path, e.Err = keys.Path{w.name}, fmt.Errorf("no column %q", w.name)
	}
	parts := append([]string{w.side, w.name}, w.path...)
	if dotted := strings.TrimPrefix(strings.Join(parts, "."), "."); (w.side != "" || w.path != nil) && (c.log.HasField(dotted) || c.ids.HasField(dotted)) {
		e.Err = faults.WithHint(e.Err, `the column of that very name is written '"%s"'`, dotted)
		return e
	}
	add := func(side string, schema, other *arrow.Schema) {
		for _, f := range schema.Fields() {
			path := keys.Path{f.Name}
			if isKey := slices.ContainsFunc(c.shared, func(s SharedKey) bool { return c.same(s.Name, f.Name) }); isKey && side == idsSide {
				continue
			} else if c.has(other, f.Name) && !isKey && c.typ.ColumnsOfIDs {
				path = keys.Path{side, f.Name}
			}
			e.Have = append(e.Have, path)
			if path[0] == idsSide && len(path) > 1 && w.name == f.Name+c.suffix {
				e.Meant = path
			}
		}
	}
	add(logSide, c.log, c.ids)
	if c.typ.ColumnsOfIDs {
		add(idsSide, c.ids, c.log)
	}
	return e
}
