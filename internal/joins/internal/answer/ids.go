package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// IDColumns are the columns of the ID files that a join reads, and those that it
// holds with the IDs. Dictionaries, which differ between files, are replaced by
// their values.
type IDColumns struct {
	Rows   bool          // the answer needs the IDs' rows, not only their keys
	Names  []string      // of the columns to read if rows are needed; nil: all
	Schema *arrow.Schema // of these
	Held   []int         // of these, the ones that the answer has
	Shared []SharedKey   // key columns with one name on both sides
	all    *arrow.Schema // of the first file
	of     map[int]int   // position in all → position in Held

	Leaves *tables.Columns // of an answer of pages: the columns to hold, in leaves
	LeafOf []uint32        // position in Held → position in leaves

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
func (a *Answer) newIDColumns(p *Pairing, ids []*source.File, logFile *source.File) (*IDColumns, error) {
	c := &IDColumns{all: take.PlainSchema(ids[0].Schema()), of: map[int]int{}, ignoreCase: p.IgnoreCase}
	if !a.typ.ColumnsOfIDs {
		return c, nil
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
	columns, err := a.chooser(c, logFile.Schema()).choose(a.wanted)
	if err != nil {
		return nil, fmt.Errorf("%s: columns of the answer: %w", logFile.Name(), err)
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
	slices.Sort(held)
	if c.Rows = !a.Counts && (a.typ.KeepsIDs || len(held) > 0); !c.Rows {
		return c, nil
	}
	return c, c.readRows(p, ids, held, a.wanted == nil)
}

// readRows determines the columns to read if rows are needed: those to hold, at
// positions in c.all, and the key.
func (c *IDColumns) readRows(p *Pairing, ids []*source.File, held []int, all bool) error {
	read := slices.Clone(held)
	for _, col := range p.IDs {
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
		c.Names = []string{}
		for _, i := range read {
			c.Names = append(c.Names, c.all.Field(i).Name)
		}
	}
	c.Held = []int{}
	for i, at := range read {
		if slices.Contains(held, at) {
			c.of[at] = len(c.Held)
			c.Held = append(c.Held, i)
		}
	}
	return c.unify(ids)
}

// unify sets the schema of what is read of the ID files, which must be the same
// for all of them.
func (c *IDColumns) unify(ids []*source.File) error {
	var fields []arrow.Field
	for i, f := range ids {
		got := take.PlainSchema(f.Schema()).Fields()
		at, err := c.Read(f)
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
			return faults.Mismatch(fault.At{File: f.Name()}, "columns of the ID files",
				fmt.Sprintf("%v as in %s", fields, ids[0].Name()), fmt.Sprint(got)).
				WithHint("give the files the same columns, or choose those that are alike; a semi or anti join needs only the key")
		}
		for k, g := range got {
			fields[k].Nullable = fields[k].Nullable || g.Nullable
		}
	}
	md := c.all.Metadata()
	c.Schema = arrow.NewSchema(fields, &md)
	return nil
}

// sameColumn compares names and types, not metadata.
func (c *IDColumns) sameColumn(x, y arrow.Field) bool {
	return c.folded(x.Name) == c.folded(y.Name) && arrow.TypeEqual(x.Type, y.Type)
}

// folded returns a name in the form in which names are compared.
func (c *IDColumns) folded(name string) string {
	if c.ignoreCase {
		return strings.ToLower(name)
	}
	return name
}

// Read returns the positions of the columns to read of an ID file; nil: all.
func (c *IDColumns) Read(f *source.File) ([]int, error) {
	if c.Names == nil {
		return nil, nil
	}
	at := []int{}
	for _, name := range c.Names {
		field, err := keys.Path{name}.Resolve(f.Schema(), c.ignoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		at = append(at, field.Index[0])
	}
	return at, nil
}

// Kept returns the positions of the columns to hold of an ID file.
func (c *IDColumns) Kept(f *source.File) ([]int, error) {
	read, err := c.Read(f)
	if read == nil {
		return c.Held, err
	}
	at := make([]int, len(c.Held))
	for i, h := range c.Held {
		at[i] = read[h]
	}
	return at, nil
}

// asLeaves returns the columns as they are held for an answer of pages. Keys come with
// the rows, so no column is read for them.
func (c *IDColumns) asLeaves(files []*source.File) (_ *IDColumns, err error) {
	out := *c
	names := make([]string, len(c.Held))
	for i, at := range c.Held {
		names[i] = c.Schema.Field(at).Name
	}
	out.LeafOf = table.UpTo(nil, len(c.Held))
	if c.ambiguous(names, files) { // by name, but all columns are read, by position
		names = nil
		for i, at := range c.Held {
			out.LeafOf[i] = uint32(at)
		}
	}
	out.Leaves, err = tables.NewColumns(files, names, c.ignoreCase)
	return &out, err
}

// ambiguous reports whether a name stands for several columns of a file. All columns
// are read then, since choosing such a column is an error.
func (c *IDColumns) ambiguous(names []string, files []*source.File) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(files, func(f *source.File) bool {
			_, err := keys.Path{name}.Resolve(f.Schema(), c.ignoreCase)
			return err != nil
		})
	})
}
