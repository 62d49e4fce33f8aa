package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// IDColumns are the columns of the ID files that a join holds with the IDs. Dictionaries,
// which differ between files, are replaced by their values.
type IDColumns struct {
	Rows   bool            // the answer needs the IDs' rows, not only their keys
	Held   *tables.Columns // if rows are needed: the columns that the answer has
	Shared []SharedKey     // key columns with one name on both sides

	all   *arrow.Schema // of the first file
	names []string      // of Held; nil: all
	of    map[int]int   // position in all → column of Held

	ignoreCase bool // of names
}

// SharedKey is a key column with one name on both sides.
type SharedKey struct {
	Name  string
	idCol int  // in the ID files
	cast  bool // on one side or both
}

// newIDColumns determines which columns of the ID files are needed, in a join with
// a log of the given schema.
func (a *Answer) newIDColumns(p *Pairing, ids []*source.File, logName string, log *arrow.Schema) (*IDColumns, error) {
	c := &IDColumns{all: take.PlainSchema(ids[0].Schema()), of: map[int]int{}, ignoreCase: p.IgnoreCase}
	if !a.typ.ColumnsOfIDs {
		return c, nil
	}
	if !source.IsText(ids[0].Format()) { // whatever the file says of itself, its columns are its own
		c.all = arrow.NewSchema(c.all.Fields(), nil)
	}
	for i, col := range p.IDs {
		if len(col.Path) == 1 && slices.Equal(col.Path, p.Log[i].Path) {
			f, err := col.Resolve(c.all, p.IgnoreCase)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ids[0].Name(), err)
			}
			c.Shared = append(c.Shared, SharedKey{col.Name(), f.Index[0], col.Cast != nil || p.Log[i].Cast != nil})
		}
	}
	columns, _, err := a.choose(c, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", logName, err)
	}
	var held []int // positions in all
	for _, col := range columns {
		switch {
		case col.ofIDs:
			held = append(held, col.at)
		case col.key >= 0 && a.typ.KeepsIDs:
			held = append(held, col.key)
		}
	}
	if c.Rows = !a.Counts && (a.typ.KeepsIDs || len(held) > 0); !c.Rows {
		return c, nil
	}
	all := a.wanted == nil || slices.ContainsFunc(a.wanted, func(w keys.Choice) bool { return w.Path == nil && w.Side != keys.LogSide })
	c.hold(held, ids, all)
	if all {
		if err := c.lacksNone(ids); err != nil {
			return nil, err
		}
	}
	c.Held, err = tables.NewArrayColumns(ids, c.names, c.ignoreCase)
	return c, err
}

// lacksNone returns an error if a file has a column that the first one lacks: the answer would be
// without it.
func (c *IDColumns) lacksNone(files []*source.File) error {
	known := map[string]bool{}
	for _, f := range c.all.Fields() {
		known[c.folded(f.Name)] = true
	}
	for _, f := range files[1:] {
		for _, col := range f.Schema().Fields() {
			if !known[c.folded(col.Name)] {
				return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.Name(), Column: col.Name}, "columns of the ID files", "those of "+files[0].Name(), "another one")).
					WithHint("give the files the same columns, or choose those that all have; a semi or anti join needs only the key")
			}
		}
	}
	return nil
}

// hold names the columns at the given positions in c.all. If they were not chosen by name, and
// a name stands for several columns of a file, all are held, by position.
func (c *IDColumns) hold(held []int, files []*source.File, all bool) {
	slices.Sort(held)
	held = slices.Compact(held)
	c.names = []string{}
	for i, at := range held {
		c.names, c.of[at] = append(c.names, c.all.Field(at).Name), i
	}
	if !all || !c.ambiguous(files) {
		return
	}
	c.names = nil
	for _, at := range held {
		c.of[at] = at
	}
}

// ambiguous reports whether a name stands for several columns of a file.
func (c *IDColumns) ambiguous(files []*source.File) bool {
	return slices.ContainsFunc(c.names, func(name string) bool {
		return slices.ContainsFunc(files, func(f *source.File) bool {
			_, err := keys.Path{name}.Resolve(f.Schema(), c.ignoreCase)
			return err != nil
		})
	})
}

// folded returns a name in the form in which names are compared.
func (c *IDColumns) folded(name string) string {
	if c.ignoreCase {
		return strings.ToLower(name)
	}
	return name
}

// forPages returns the columns as they are held for an answer of pages.
func (c *IDColumns) forPages(files []*source.File) (_ *IDColumns, err error) {
	out := *c
	out.Held, err = tables.NewColumns(files, c.names, c.ignoreCase)
	return &out, err
}
