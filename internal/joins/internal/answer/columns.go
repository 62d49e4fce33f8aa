package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// parseColumns parses the columns of an answer, see [keys.ParseChoices]. The result is nil if columns is.
func parseColumns(columns []string, t Type) ([]keys.Choice, error) {
	choices, err := keys.ParseChoices(columns, true)
	if err != nil || t.ColumnsOfIDs {
		return choices, err
	}
	for _, c := range choices {
		if c.Side == keys.IDsSide {
			return nil, fmt.Errorf("%s: the answer of type %s has no columns of the IDs (type inner or left has)", c, t)
		}
	}
	return keys.ParseChoices(ofLog(choices), false)
}

// ofLog returns choices as a scan of the log names them.
func ofLog(choices []keys.Choice) []string {
	return each.Slice(choices, func(c keys.Choice) string { return c.OfLog().String() })
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

// all returns all columns of a side, or of both: the log's, then the IDs' except shared keys and paths
// into a column, which has their values.
func (c *chooser) all(side string) (out []chosen) {
	for i, f := range c.log.Fields() {
		if side != keys.IDsSide && !slices.Contains(c.hidden, f.Name) {
			out = append(out, c.ofLog(i, f.Name))
		}
	}
	for i := range c.ids.Fields() {
		shared := slices.ContainsFunc(c.shared, func(s SharedKey) bool { return s.idCol == i })
		if c.typ.ColumnsOfIDs && side != keys.LogSide && !shared && !keys.IsNested(c.ids, i) {
			out = append(out, chosen{ofIDs: true, at: i, key: -1})
		}
	}
	return out
}

// key returns which shared key has a name; -1: none.
func (c *chooser) key(name string) int {
	return slices.IndexFunc(c.shared, func(s SharedKey) bool { return c.same(s.Name, name) })
}

// ofLog returns the log's column at a position.
func (c *chooser) ofLog(at int, name string) chosen {
	if i := c.key(name); i >= 0 {
		return chosen{at: at, key: c.shared[i].idCol}
	}
	return chosen{at: at, key: -1}
}

// find finds one column.
func (c *chooser) find(w keys.Choice) (chosen, error) {
	name := w.Path[0]
	inLog, inIDs := c.has(c.log, name), c.has(c.ids, name)
	isKey := c.key(name) >= 0
	ofIDs := false
	switch {
	case isKey, !c.typ.ColumnsOfIDs && inLog:
	case !c.typ.ColumnsOfIDs && inIDs:
		return chosen{}, fmt.Errorf("%s is a column of the IDs, and the answer of type %s has none of them (type inner or left has)", w, c.typ)
	case w.Side == "" && inLog && inIDs:
		return chosen{}, fmt.Errorf("both the log and the IDs have a column %s (name %s or %s)", w, keys.Choice{Side: keys.LogSide, Path: w.Path[:1]}, keys.Choice{Side: keys.IDsSide, Path: w.Path[:1]})
	case w.Side != keys.IDsSide && inLog:
	case w.Side != keys.LogSide && inIDs:
		ofIDs = true
	default:
		return chosen{}, c.notFound(w)
	}
	schema := c.log
	if ofIDs {
		if schema = c.ids; len(w.Path) > 1 {
			return chosen{}, faults.Unsupported(fault.At{}, "%s: a field of the IDs' columns", w).WithHint("choose the whole column")
		}
	}
	f, err := w.Path[:1].Resolve(schema, c.ignoreCase) // which rejects ambiguous names
	if err != nil {
		return chosen{}, err
	}
	if ofIDs {
		return chosen{ofIDs: true, at: f.Index[0], key: -1}, nil
	}
	return c.ofLog(f.Index[0], name), nil
}

// notFound returns the error for a column that neither side has. It carries the
// columns that exist, each as it would be written. Meant is the ID column that has
// the name in the answer.
func (c *chooser) notFound(w keys.Choice) error {
	name := w.Path[0]
	e := &keys.NotFoundError{Path: keys.Path{w.Side, name}, Name: name, Err: fmt.Errorf("no column %s", w)}
	if w.Side == "" {
		e.Path, e.Err = keys.Path{name}, fmt.Errorf("no column %q", name)
	}
	dotted := strings.TrimPrefix(strings.Join(append([]string{w.Side}, w.Path...), "."), ".")
	if dotted != name && (c.log.HasField(dotted) || c.ids.HasField(dotted)) {
		e.Err = faults.WithHint(e.Err, `the column of that very name is written '"%s"'`, dotted)
		return e
	}
	add := func(side string, schema, other *arrow.Schema) {
		for _, f := range schema.Fields() {
			path := keys.Path{f.Name}
			if isKey := c.key(f.Name) >= 0; isKey && side == keys.IDsSide {
				continue
			} else if c.has(other, f.Name) && !isKey && c.typ.ColumnsOfIDs {
				path = keys.Path{side, f.Name}
			}
			e.Have = append(e.Have, path)
			if path[0] == keys.IDsSide && len(path) > 1 && name == f.Name+c.suffix {
				e.Meant = path
			}
		}
	}
	add(keys.LogSide, c.log, c.ids)
	if c.typ.ColumnsOfIDs {
		add(keys.IDsSide, c.ids, c.log)
	}
	return e
}
