package join

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
)

// idColumns are the columns of the ID files that a join reads, and those that it
// holds with the IDs. Dictionaries, which differ between files, are replaced by
// their values.
type idColumns struct {
	rows   bool          // the answer needs the IDs' rows, not only their keys
	names  []string      // of the columns to read if rows are needed; nil: all
	schema *arrow.Schema // of these
	held   []int         // of these, the ones that the answer has
	shared []sharedKey   // key columns with one name on both sides
	all    *arrow.Schema // of the first file
	of     map[int]int   // position in all → position in held

	leaves *tables.Columns // of an answer of pages: the columns to hold, in leaves
	leafOf []uint32        // position in held → position in leaves

	ignoreCase bool // of names
}

// sharedKey is a key column with one name on both sides.
type sharedKey struct {
	name  string
	idCol int  // in the ID files
	cast  bool // on one side or both
}

// newIDColumns determines which columns of the ID files are needed, in a join with
// a log of the given schema.
func (a *answer) newIDColumns(p *pairing, ids []*source.File, logFile *source.File) (*idColumns, error) {
	c := &idColumns{all: take.PlainSchema(ids[0].Schema()), of: map[int]int{}, ignoreCase: p.ignoreCase}
	if !a.typ.columnsOfIDs {
		return c, nil
	}
	for i, col := range p.ids {
		if len(col.Path) == 1 && slices.Equal(col.Path, p.log[i].Path) {
			f, err := col.Resolve(c.all, p.ignoreCase)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ids[0].Name(), err)
			}
			c.shared = append(c.shared, sharedKey{col.Name(), f.Index[0], col.Cast != nil || p.log[i].Cast != nil})
		}
	}
	columns, err := a.chooser(c, logFile.Schema()).choose(a.wanted)
	if err != nil {
		return nil, fmt.Errorf("%s: columns of the answer: %w", logFile.Name(), err)
	}
	var held []int // positions in all
	for _, col := range columns {
		switch {
		case col.ofIDs:
			held = append(held, col.at)
		case col.key >= 0 && a.typ.keepsIDs:
			held = append(held, col.key)
		}
	}
	slices.Sort(held)
	if c.rows = !a.counts && (a.typ.keepsIDs || len(held) > 0); !c.rows {
		return c, nil
	}
	return c, c.readRows(p, ids, held, a.wanted == nil)
}

// readRows determines the columns to read if rows are needed: those to hold, at
// positions in c.all, and the key.
func (c *idColumns) readRows(p *pairing, ids []*source.File, held []int, all bool) error {
	read := slices.Clone(held)
	for _, col := range p.ids {
		f, err := col.Resolve(c.all, c.ignoreCase)
		if err != nil {
			return fmt.Errorf("%s: %w", ids[0].Name(), err)
		}
		read = append(read, f.Index[0])
	}
	slices.Sort(read)
	read = slices.Compact(read)
	if all {
		read = nil
		for i := range c.all.Fields() {
			read = append(read, i)
		}
	} else {
		c.names = []string{}
		for _, i := range read {
			c.names = append(c.names, c.all.Field(i).Name)
		}
	}
	c.held = []int{}
	for i, at := range read {
		if slices.Contains(held, at) {
			c.of[at] = len(c.held)
			c.held = append(c.held, i)
		}
	}
	return c.unify(ids)
}

// unify sets the schema of what is read of the ID files, which must be the same
// for all of them.
func (c *idColumns) unify(ids []*source.File) error {
	var fields []arrow.Field
	for i, f := range ids {
		got := take.PlainSchema(f.Schema()).Fields()
		at, err := c.read(f)
		if err != nil {
			return err
		}
		if at != nil {
			got = table.FieldsAt(got, at)
		}
		if i == 0 {
			fields = slices.Clone(got)
			continue
		}
		if !slices.EqualFunc(fields, got, c.sameColumn) {
			return fault.Mismatch(fault.At{File: f.Name()}, "columns of the ID files",
				fmt.Sprintf("%v as in %s", fields, ids[0].Name()), fmt.Sprint(got)).
				WithHint("give the files the same columns, or choose those that are alike; a semi or anti join needs only the key")
		}
		for k, g := range got {
			fields[k].Nullable = fields[k].Nullable || g.Nullable
		}
	}
	md := c.all.Metadata()
	c.schema = arrow.NewSchema(fields, &md)
	return nil
}

// sameColumn compares names and types, not metadata.
func (c *idColumns) sameColumn(x, y arrow.Field) bool {
	return c.folded(x.Name) == c.folded(y.Name) && arrow.TypeEqual(x.Type, y.Type)
}

// folded returns a name in the form in which names are compared.
func (c *idColumns) folded(name string) string {
	if c.ignoreCase {
		return strings.ToLower(name)
	}
	return name
}

// read returns the positions of the columns to read of an ID file; nil: all.
func (c *idColumns) read(f *source.File) ([]int, error) {
	if c.names == nil {
		return nil, nil
	}
	at := []int{}
	for _, name := range c.names {
		field, err := key.Path{name}.Resolve(f.Schema(), c.ignoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		at = append(at, field.Index[0])
	}
	return at, nil
}

// kept returns the positions of the columns to hold of an ID file.
func (c *idColumns) kept(f *source.File) ([]int, error) {
	read, err := c.read(f)
	if read == nil {
		return c.held, err
	}
	at := make([]int, len(c.held))
	for i, h := range c.held {
		at[i] = read[h]
	}
	return at, nil
}

// asLeaves returns the columns as they are held for an answer of pages. Keys come with
// the rows, so no column is read for them.
func (c *idColumns) asLeaves(files []*source.File) (_ *idColumns, err error) {
	out := *c
	names := make([]string, len(c.held))
	for i, at := range c.held {
		names[i] = c.schema.Field(at).Name
	}
	out.leafOf = table.UpTo(nil, len(c.held))
	if c.ambiguous(names, files) { // by name, but all columns are read, by position
		names = nil
		for i, at := range c.held {
			out.leafOf[i] = uint32(at)
		}
	}
	out.leaves, err = tables.NewColumns(files, names, c.ignoreCase)
	return &out, err
}

// ambiguous reports whether a name stands for several columns of a file. All columns
// are read then, since choosing such a column is an error.
func (c *idColumns) ambiguous(names []string, files []*source.File) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(files, func(f *source.File) bool {
			_, err := key.Path{name}.Resolve(f.Schema(), c.ignoreCase)
			return err != nil
		})
	})
}
