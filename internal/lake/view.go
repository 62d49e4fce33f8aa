package lake

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// View returns the table's columns as a Parquet file stores them, without those of partitions.
// Columns that the table has dropped are left out; columns that the file does not have are NULL.
func (t *Table) View(f *parquet.File) (*parquet.View, error) {
	v := viewer{file: f, view: parquet.View{Without: take.Describing, Elements: f.Metadata.Schema[:1:1]}}
	v.ids = slices.ContainsFunc(f.Metadata.Schema, func(e meta.Element) bool { return e.FieldID.Valid })
	var stored []Column
	for i, c := range t.Columns {
		if !slices.Contains(t.Partitions, i) {
			stored = append(stored, c)
		}
	}
	if err := v.children(0, stored, f.Root.Children, fault.At{File: f.Name}); err != nil {
		return nil, err
	}
	return &v.view, nil
}

// viewer makes a view of a file.
type viewer struct {
	file *parquet.File
	ids  bool // columns of the file have ids
	view parquet.View
}

// children adds columns that are in a group of the file, whose element is at a place of the view.
func (v *viewer) children(group int, columns []Column, nodes []*meta.Node, at fault.At) error {
	for i := range columns {
		c := &columns[i]
		n := v.find(c, nodes)
		switch {
		case n != nil:
			if err := v.column(c, n, at); err != nil {
				return err
			}
		case group == 0:
			if err := v.missing(c, at); err != nil {
				return err
			}
		default: // whether it is NULL or its struct is can't be told without another column's levels
			at.Column = path(at, c)
			return faults.Unsupported(at, "a field that the table has, and the structs of the file lack").
				WithHint("rewrite the table's files")
		}
	}
	v.view.Elements[group].NumChildren = thrift.New(int32(len(columns)))
	return nil
}

// path returns the name of a part of a column, for errors.
func path(at fault.At, c *Column) string {
	if at.Column == "" {
		return c.Name
	}
	return at.Column + "." + c.Name
}

// find returns the node of a column, nil if there is none.
func (v *viewer) find(c *Column, nodes []*meta.Node) *meta.Node {
	name := cmp.Or(c.Stored, c.Name)
	is := func(n *meta.Node) bool { return n.Name == name }
	like := func(n *meta.Node) bool { return strings.EqualFold(n.Name, name) } // no two of a table are alike
	if c.ID > 0 && v.ids {
		is = func(n *meta.Node) bool { return n.FieldID == c.ID }
		like = is
	}
	if i := slices.IndexFunc(nodes, is); i >= 0 {
		return nodes[i]
	} else if i = slices.IndexFunc(nodes, like); i >= 0 {
		return nodes[i]
	}
	return nil
}

// add adds an element of a column, if it has a name. Its id is that of the table: some files may have none.
func (v *viewer) add(e meta.Element, c *Column) (at int) {
	e.FieldID = thrift.Null[int32]{}
	if c.ID > 0 {
		e.FieldID = thrift.New(c.ID)
	}
	e.Name = cmp.Or(c.Name, e.Name)
	v.view.Elements = append(v.view.Elements, e)
	return len(v.view.Elements) - 1
}

// column adds a column, or a part of one, that is a node of the file.
func (v *viewer) column(c *Column, n *meta.Node, at fault.At) error {
	at.Column = path(at, c)
	if len(c.Children) == 0 && n.Leaf >= 0 {
		l := &v.file.Leaves[n.Leaf]
		if !fits(c.Type, l) {
			return v.other(c, at)
		}
		v.instants(&v.view.Elements[v.add(*n.Element, c)], l, c.Type == "timestamptz")
		v.view.Leaves = append(v.view.Leaves, n.Leaf)
		return nil
	}
	if n.Leaf >= 0 || len(c.Children) == 0 {
		return v.other(c, at)
	}
	group := v.add(*n.Element, c)
	switch {
	case c.Type == structType && n.Logical.Kind == meta.None:
		return v.children(group, c.Children, n.Children, at)
	case c.Type == listType && n.Logical.Kind == meta.List && len(n.Children) == 1:
		r := n.Children[0]
		if r.Leaf >= 0 || len(r.Children) > 1 || r.Name == "array" || r.Name == n.Name+"_tuple" {
			return v.part(&c.Children[0], r, at)
		}
		v.add(*r.Element, new(Column))
		return v.part(&c.Children[0], r.Children[0], at)
	case c.Type == mapType && n.Logical.Kind == meta.Map && len(n.Children) == 1 && len(n.Children[0].Children) == 2:
		r := n.Children[0]
		v.add(*r.Element, new(Column))
		for i := range r.Children {
			if err := v.part(&c.Children[i], r.Children[i], at); err != nil {
				return err
			}
		}
		return nil
	}
	return v.other(c, at)
}

// instants gives timestamps the meaning that they have in the table: files of old writers have another.
func (v *viewer) instants(e *meta.Element, l *meta.Leaf, are bool) {
	switch as := l.Logical; {
	case as.Kind == meta.Timestamp && as.UTC != are:
		as.UTC, e.ConvertedType = are, thrift.Null[deprecated.ConvertedType]{}
		e.SetLogical(as)
	case l.Type == format.Int96 && are:
		v.view.Instants = append(v.view.Instants, len(v.view.Leaves))
	}
}

// part adds a part of a list or map, which keeps its name.
func (v *viewer) part(c *Column, n *meta.Node, at fault.At) error {
	named := *c
	named.Name = n.Name
	return v.column(&named, n, at)
}

func (v *viewer) other(c *Column, at fault.At) error {
	return faults.Unsupported(at, "a file that stores the column of type %s with another type", c.Type).
		WithHint("rewrite the table's files")
}

// missing adds a column that the file does not have.
func (v *viewer) missing(c *Column, at fault.At) error {
	t, err := c.Arrow()
	if err != nil {
		return err
	}
	s, err := arrowparquet.NewShredder(arrow.NewSchema([]arrow.Field{{Name: c.Name, Type: t, Nullable: true}}, nil))
	if err != nil {
		return err
	}
	for i, e := range s.Schema()[1:] {
		of := new(Column)
		if i == 0 {
			of = c
		}
		v.add(e, of)
		if e.Type.Valid {
			v.view.Leaves = append(v.view.Leaves, -1)
		}
	}
	return nil
}

// The types of columns with parts.
const (
	structType = "struct"
	listType   = "list"
	mapType    = "map"
)

// Arrow returns the type of a column.
func (c *Column) Arrow() (arrow.DataType, error) {
	var parts []arrow.Field
	for i := range c.Children {
		t, err := c.Children[i].Arrow()
		if err != nil {
			return nil, err
		}
		parts = append(parts, arrow.Field{Name: c.Children[i].Name, Type: t, Nullable: true})
	}
	switch {
	case c.Type == structType:
		return arrow.StructOf(parts...), nil
	case c.Type == listType && len(parts) == 1:
		return arrow.ListOf(parts[0].Type), nil
	case c.Type == mapType && len(parts) == 2:
		return arrow.MapOf(parts[0].Type, parts[1].Type), nil
	}
	t, err := keys.ParseType(c.Type)
	if ts, ok := t.(*arrow.TimestampType); ok {
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: ts.TimeZone}, err
	}
	return t, err
}

// fits reports whether a leaf has values of a type. A reader that knows no widening of types can
// take no other.
func fits(typ string, l *meta.Leaf) bool {
	g := l.Logical
	whole := g.Kind == meta.None || g.Kind == meta.Int && g.Signed
	switch typ {
	case "tinyint", "int16":
		return l.Type == format.Int32 && whole
	case "int32":
		return l.Type == format.Int32 && whole && (g.Kind == meta.None || g.BitWidth == 32)
	case "int64":
		return l.Type == format.Int64 && whole
	case "float":
		return l.Type == format.Float
	case "double":
		return l.Type == format.Double
	case "boolean":
		return l.Type == format.Boolean
	case "string", "binary":
		return l.Type == format.ByteArray && slices.Contains([]meta.Kind{meta.None, meta.String, meta.Enum, meta.JSON, meta.BSON}, g.Kind)
	case "date":
		return g.Kind == meta.Date
	case "timestamptz", "timestamp":
		return l.Type == format.Int96 || g.Kind == meta.Timestamp
	}
	t, err := keys.ParseType(typ)
	d, ok := t.(arrow.DecimalType)
	return err == nil && ok && g.Kind == meta.Decimal && int32(g.Precision) == d.GetPrecision() && int32(g.Scale) == d.GetScale()
}
