package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

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
}

// String returns the column as parseColumns reads it.
func (w wanted) String() string {
	if w.side == "" {
		return keys.Path{w.name}.String()
	}
	return keys.Path{w.side, w.name}.String()
}

// parseColumns parses the columns of an answer, each NAME, log.NAME or ids.NAME,
// with names quoted as in a key. The result is nil if columns is.
func parseColumns(columns []string, t Type) ([]wanted, error) {
	if columns == nil {
		return nil, nil
	}
	out := []wanted{}
	for _, c := range columns {
		paths, err := keys.ParsePaths(c)
		if err != nil {
			return nil, err
		}
		p := paths[0]
		w := wanted{name: p.Name()}
		switch {
		case len(paths) > 1:
			return nil, fmt.Errorf("%s: want one column, got %d", c, len(paths))
		case len(p) == 2 && (p[0] == logSide || p[0] == idsSide):
			w.side = p[0]
		case len(p) > 1:
			return nil, fmt.Errorf(`%s is a path, and only whole columns can be chosen (a column of that very name is written '"%s"'; log.NAME and ids.NAME name a side)`, p, strings.Join(p, "."))
		}
		if !t.ColumnsOfIDs {
			if w.side == idsSide {
				return nil, fmt.Errorf("%s: the answer of type %s has no columns of the IDs (type inner or left has)", w, t)
			}
			w.side = ""
		}
		if slices.Contains(out, w) {
			return nil, fmt.Errorf("%s is named twice (name it once)", w)
		}
		out = append(out, w)
	}
	return out, nil
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
	var out []chosen
	if columns == nil {
		for i, f := range c.log.Fields() {
			out = append(out, c.ofLog(i, f.Name))
		}
		for i := range c.ids.Fields() {
			if c.typ.ColumnsOfIDs && !slices.ContainsFunc(c.shared, func(s SharedKey) bool { return s.idCol == i }) && !keys.IsNested(c.ids, i) {
				out = append(out, chosen{ofIDs: true, at: i, key: -1})
			}
		}
		return out, nil
	}
	for i, w := range columns {
		at, err := c.find(w)
		if err != nil {
			return nil, err
		}
		if before := slices.Index(out, at); before >= 0 {
			return nil, fmt.Errorf("%s and %s are the same column", columns[before], columns[i])
		}
		out = append(out, at)
	}
	return out, nil
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
		return chosen{}, fmt.Errorf("both the log and the IDs have a column %s (name %s or %s)", w, wanted{logSide, w.name}, wanted{idsSide, w.name})
	case w.side == logSide && inLog, w.side == "" && inLog:
	case w.side == idsSide && inIDs, w.side == "" && inIDs:
		ofIDs = true
	default:
		return chosen{}, c.notFound(w)
	}
	schema := c.log
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
	if dotted := w.side + "." + w.name; w.side != "" && (c.log.HasField(dotted) || c.ids.HasField(dotted)) {
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
