package tables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet/adapt"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// Columns are the columns of files that a [Table] holds, in order. It is immutable.
type Columns struct {
	Schema *arrow.Schema // as Arrow records would have them
	// Elements are the columns' Parquet schema, depth first, the root first: the files' own
	// if all are Parquet and store the columns alike; else the schema in which Schema would be
	// written or, for arrays, a holder's.
	Elements []meta.Element
	orders   []format.ColumnOrder // of the leaves
	Leaves   []meta.Leaf
	Spans    []TableSpan // of the columns
	Sources  map[*source.File]*tableSource

	assemblies []arrowparquet.Assembly // of the columns; nil for pages of shredded records
	holds      bool                    // the schema is a holder's
}

// TableSpan is the part of a schema that is below a top-level column: elements and
// leaves from, to, exclusive.
type TableSpan struct{ Element, EndElement, Leaf, EndLeaf int }

// tableSource is a file that has the columns of a table.
type tableSource struct {
	columns []int   // positions among the file's top-level columns
	Leaves  []int   // of the file, one per leaf of the table; nil: rows are read as records
	shift   []uint8 // by leaf of the table: added to definition levels
}

// NewColumns returns the named top-level columns of the files, nil: all, for rows that
// become pages of a Parquet file. The files must agree in them, except that values may be
// optional in some.
func NewColumns(files []*source.File, names []string, ignoreCase bool) (*Columns, error) {
	c, alike, err := newColumns(files, names, ignoreCase, arrowparquet.NewShredder)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		c.findLeaves(f, alike)
	}
	if alike {
		c.assembleAs(files[0])
	}
	return c, nil
}

// NewArrayColumns is [NewColumns] for rows that become Arrow arrays.
func NewArrayColumns(files []*source.File, names []string, ignoreCase bool) (*Columns, error) {
	c, alike, err := newColumns(files, names, ignoreCase, arrowparquet.NewHolder)
	if err != nil {
		return nil, err
	}
	if alike {
		for _, f := range files {
			c.findLeaves(f, true)
		}
		c.assembleAs(files[0])
		return c, nil
	}
	c.holds = true
	holder, err := arrowparquet.NewHolder(c.Schema)
	if err == nil {
		c.assemblies, err = holder.Assemblies()
	}
	return c, err
}

// assembleAs makes arrays as of the columns of the first file, which stores them alike.
func (c *Columns) assembleAs(f *source.File) {
	src := c.Sources[f]
	for i, column := range src.columns {
		a := f.Parquet().Assembly(column)
		if src.shift[c.Spans[i].Leaf] > 0 {
			a = a.Optional()
		}
		c.assemblies = append(c.assemblies, a)
	}
}

// newColumns finds the columns in the form that the files store if they are alike, else in a
// shredder's form.
func newColumns(files []*source.File, names []string, ignoreCase bool, newShredder func(*arrow.Schema) (*arrowparquet.Shredder, error)) (c *Columns, alike bool, err error) {
	c = &Columns{Sources: map[*source.File]*tableSource{}}
	if err := c.unify(files, names, ignoreCase); err != nil {
		return nil, false, err
	}
	c.Elements, c.orders = c.stored(files)
	if alike = c.Elements != nil; !alike {
		s, err := newShredder(c.Schema)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", files[0].Name(), err)
		}
		c.Elements = s.Schema()
	}
	if c.Leaves, err = meta.LeavesOf(c.Elements); err != nil {
		return nil, false, fmt.Errorf("%s: %w", files[0].Name(), err)
	}
	for len(c.orders) < len(c.Leaves) {
		c.orders = append(c.orders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	c.Spans = SpansOf(c.Elements)
	return c, alike, nil
}

// newShredder returns what makes leaves of records, for one goroutine.
func (c *Columns) newShredder() (*arrowparquet.Shredder, error) {
	if c.holds {
		return arrowparquet.NewHolder(c.Schema)
	}
	return arrowparquet.NewShredder(c.Schema)
}

// In returns the positions of the columns in one of the files.
func (c *Columns) In(f *source.File) []int { return c.Sources[f].columns }

// unify sets the Arrow schema that the files must agree on, and finds the columns in each file.
func (c *Columns) unify(files []*source.File, names []string, ignoreCase bool) error {
	var fields []arrow.Field
	for i, f := range files {
		at, err := columnsNamed(f, names, ignoreCase)
		if err != nil {
			return err
		}
		if err := f.FitsColumns(len(at)); err != nil {
			return err
		}
		c.Sources[f] = &tableSource{columns: at}
		got := make([]arrow.Field, len(at))
		for k, col := range at {
			got[k] = f.Schema().Field(col)
			got[k].Type = take.PlainType(got[k].Type)
		}
		if i == 0 {
			fields = slices.Clone(got)
			continue
		}
		if !slices.EqualFunc(fields, got, func(x, y arrow.Field) bool {
			return (x.Name == y.Name || ignoreCase && strings.EqualFold(x.Name, y.Name)) && arrow.TypeEqual(x.Type, y.Type)
		}) {
			return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.Name()}, "columns of the ID files",
				fmt.Sprintf("%v as in %s", fields, files[0].Name()), got)).
				WithHint("give the files the same columns, or choose those that are alike; a semi or anti join needs only the key")
		}
		for k, g := range got {
			fields[k].Nullable = fields[k].Nullable || g.Nullable
		}
	}
	md := files[0].Schema().Metadata()
	c.Schema = arrow.NewSchema(fields, &md)
	return nil
}

// columnsNamed returns the positions of top-level columns of a file; without names, of
// all.
func columnsNamed(f *source.File, names []string, ignoreCase bool) ([]int, error) {
	if names == nil {
		return source.UpTo(f.Schema().NumFields()), nil
	}
	at := []int{}
	for _, name := range names {
		field, err := keys.Path{name}.Resolve(f.Schema(), ignoreCase)
		if err != nil {
			return nil, f.Failed(err)
		}
		at = append(at, field.Index[0])
	}
	return at, nil
}

// stored returns the schema that the files store the columns in, optional where one file has
// them optional. It returns nil if a file is not Parquet or stores them otherwise.
func (c *Columns) stored(files []*source.File) ([]meta.Element, []format.ColumnOrder) {
	first := files[0].Parquet()
	if first == nil {
		return nil, nil
	}
	p := first.File().Project(c.Sources[files[0]].columns)
	for i, s := range SpansOf(p.Schema) {
		if e := &p.Schema[s.Element]; e.RepetitionType.V == format.Required && c.Schema.Field(i).Nullable {
			e.RepetitionType.V = format.Optional
		}
	}
	for _, f := range files[1:] {
		own := f.Parquet()
		if own == nil || !adapt.SameLayout(own.File().Project(c.Sources[f].columns).Schema, p.Schema) {
			return nil, nil
		}
	}
	return p.Schema, p.Orders
}

// findLeaves finds the table's leaves in a Parquet file. alike says that the file
// stores them as the table does; else it finds none if the file does not.
func (c *Columns) findLeaves(f *source.File, alike bool) {
	own, src := f.Parquet(), c.Sources[f]
	if own == nil {
		return
	}
	p := own.File().Project(src.columns)
	if !alike && !adapt.SameLayout(p.Schema, c.Elements) {
		return
	}
	src.Leaves, src.shift = append([]int{}, p.Leaves...), make([]uint8, len(p.Leaves))
	for i, s := range SpansOf(p.Schema) {
		if p.Schema[s.Element].RepetitionType.V != c.Elements[c.Spans[i].Element].RepetitionType.V {
			for l := s.Leaf; l < s.EndLeaf; l++ {
				src.shift[l] = 1
			}
		}
	}
}

// SpansOf returns the spans of the top-level columns of a schema.
func SpansOf(elements []meta.Element) (spans []TableSpan) {
	at, leaf := 1, 0
	for at < len(elements) {
		s := TableSpan{Element: at, Leaf: leaf}
		for left := 1; left > 0; left-- {
			if e := &elements[at]; e.Type.Valid && e.NumChildren.V <= 0 {
				leaf++
			} else {
				left += int(e.NumChildren.V)
			}
			at++
		}
		s.EndElement, s.EndLeaf = at, leaf
		spans = append(spans, s)
	}
	return spans
}

// fewBytes is a size of all values of a table that leaves them small in any number of
// rows of the output, since a dictionary holds them.
const fewBytes = 1 << 20

// textBytes is the size that a value without a fixed one is taken to have where no
// footer says it.
const textBytes = 32

// PerRow estimates the bytes of the values of a row of the table, 0 if all rows have few.
// Because row groups are cut by it, it depends on the files alone, not on the rows that a table
// holds.
func (c *Columns) PerRow() int64 {
	if c == nil {
		return 0
	}
	var bytes, rows int64
	for f, src := range c.Sources {
		n := f.Rows()
		if bytes < 0 || n < 0 || f.Parquet() == nil {
			bytes = -1
			continue
		}
		rows += n
		for _, leaf := range f.Parquet().Below(src.columns) {
			for g := range f.NumGroups() {
				bytes += min(f.Parquet().File().Metadata.RowGroups[g].Columns[leaf].MetaData.TotalUncompressedSize, 1<<40)
			}
		}
	}
	if bytes >= 0 {
		if bytes <= fewBytes || rows == 0 {
			return 0
		}
		return bytes / rows
	}
	bytes = 0
	for i := range c.Leaves {
		if w := c.Leaves[i].Width(); w > 0 {
			bytes += int64(w)
		} else {
			bytes += textBytes
		}
	}
	return bytes
}

// Metadata returns the value of a key in the metadata of the columns' files: of the
// first by name that has it.
func (c *Columns) Metadata(key string) (value string, ok bool) {
	first := ""
	for f := range c.Sources {
		p := f.Parquet()
		if p == nil || ok && f.Name() >= first {
			continue
		}
		for _, e := range p.File().Metadata.KeyValueMetadata {
			if e.Key == key {
				value, ok, first = e.Value, true, f.Name()
			}
		}
	}
	return value, ok
}
