package lake

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// View returns the table's columns as a Parquet file stores them, without those of partitions.
// Columns that the table has dropped are left out; columns that the file does not have are NULL,
// or have one of values in all rows.
func (t *Table) View(f *parquet.File, values []hive.Part) (*parquet.View, error) {
	v := t.viewer(f)
	v.values = values
	named := func(c Column) bool { return c.Names != nil }
	if t.ByID && !v.ids && !slices.ContainsFunc(t.Columns, named) {
		return nil, faults.Unsupported(fault.At{File: f.Name}, "a file whose columns have no ids, in a table without a name mapping").
			WithHint("set the table property schema.name-mapping.default")
	}
	var stored []Column
	for i, c := range t.Columns {
		if !slices.Contains(t.Partitions, i) {
			stored = append(stored, c)
		}
	}
	if err := v.children(0, stored, f.Root.Children, fault.At{File: f.Name}); err != nil {
		return nil, err
	}
	if len(v.twice) > 0 {
		return nil, faults.Corrupt(fault.At{File: f.Name}, "the columns %s and %s are one of the table, by their ids or its name mapping", v.twice[0], v.twice[1])
	}
	return &v.view, nil
}

// Only returns the table with the columns of some ids alone, and their names.
func (t *Table) Only(ids []int32) (*Table, []keys.Column, error) {
	only, names := *t, make([]keys.Column, len(ids))
	only.Columns, only.Partitions = columnsOf(t.Columns, nil, func(c *Column, path keys.Path) bool {
		i := slices.Index(ids, c.ID)
		if i >= 0 && len(c.Children) == 0 {
			names[i].Path = path
		}
		return i >= 0
	}), nil
	for i, c := range names {
		if c.Path == nil {
			return nil, nil, faults.Unsupported(fault.At{File: t.Location}, "rows that are deleted by the values of column %d, which the table has dropped, or has in a list", ids[i]).
				WithHint("compact the table's delete files")
		}
	}
	return &only, names, nil
}

// columnsOf returns the leaves of structs that are wanted, with these.
func columnsOf(columns []Column, above keys.Path, wanted func(c *Column, path keys.Path) bool) (some []Column) {
	for _, c := range columns {
		path := append(slices.Clip(above), c.Name)
		if c.Type == structType {
			c.Children = columnsOf(c.Children, path, wanted)
		}
		if len(c.Children) > 0 && c.Type == structType || len(c.Children) == 0 && wanted(&c, path) {
			some = append(some, c)
		}
	}
	return some
}

// Used returns the values of columns that a file lacks: its view depends on them.
func (t *Table) Used(f *parquet.File, values []hive.Part) (used []hive.Part) {
	if len(values) == 0 {
		return nil
	}
	v := t.viewer(f)
	for _, p := range values {
		i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == p.Name })
		if i >= 0 && v.find(&t.Columns[i], f.Root.Children) == nil {
			used = append(used, p)
		}
	}
	return used
}

// viewer makes a view of a file.
type viewer struct {
	table  *Table
	file   *parquet.File
	ids    bool // columns of the file have ids
	values []hive.Part
	view   parquet.View
	twice  []string // columns of the file that are the same one of the table
}

func (t *Table) viewer(f *parquet.File) *viewer {
	return &viewer{
		table: t, file: f, view: parquet.View{Without: take.Describing, Elements: f.Metadata.Schema[:1:1], Values: map[int][]byte{}},
		ids: slices.ContainsFunc(f.Metadata.Schema, func(e meta.Element) bool { return e.FieldID.Valid }),
	}
}

// children adds columns that are in a group of the file, whose element is at a place of the view.
func (v *viewer) children(group int, columns []Column, nodes []*meta.Node, at fault.At) error {
	for i := range columns {
		c := &columns[i]
		n, value := v.find(c, nodes), -1
		if group == 0 && len(c.Children) == 0 {
			value = slices.IndexFunc(v.values, func(p hive.Part) bool { return p.Name == c.Name })
		}
		switch {
		case n != nil:
			if err := v.column(c, n, at); err != nil {
				return err
			}
		case value < 0 && c.Default:
			at.Column = pathOf(at, c)
			return faults.Unsupported(at, "a column with a default value, which the file lacks").WithHint("rewrite the table's files")
		case group == 0:
			if err := v.missing(c, value, at); err != nil {
				return err
			}
		default: // whether it is NULL or its struct is can't be told without another column's levels
			at.Column = pathOf(at, c)
			return faults.Unsupported(at, "a field that the table has, and the structs of the file lack").
				WithHint("rewrite the table's files")
		}
	}
	v.view.Elements[group].NumChildren = thrift.New(int32(len(columns)))
	return nil
}

// pathOf returns the name of a part of a column, for errors.
func pathOf(at fault.At, c *Column) string {
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
	if v.ids && c.ID > 0 {
		is = func(n *meta.Node) bool { return n.FieldID == c.ID }
		like = is
	} else if v.table.ByID {
		is = func(n *meta.Node) bool { return slices.Contains(c.Names, n.Name) }
		like = is
	}
	i := slices.IndexFunc(nodes, is)
	if i < 0 {
		i = slices.IndexFunc(nodes, like)
	}
	if i < 0 {
		return nil
	}
	if j := slices.IndexFunc(nodes[i+1:], is); v.table.ByID && j >= 0 {
		v.twice = append(v.twice, nodes[i].Name, nodes[i+1+j].Name)
	}
	return nodes[i]
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
	at.Column = pathOf(at, c)
	if len(c.Children) == 0 && n.Leaf >= 0 {
		l, e := &v.file.Leaves[n.Leaf], *n.Element
		if !fits(c.Type, l) && !(v.table.Widens && widen(&e, c.Type, l)) {
			return v.other(c, at)
		}
		if c.Type == uuidType { // files may lack the annotation
			e.LogicalType = thrift.New(format.LogicalType{Value: new(format.UUIDType)})
		}
		v.instants(&v.view.Elements[v.add(e, c)], l, strings.HasPrefix(c.Type, "timestamptz"))
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

// instants gives timestamps and times the meaning that they have in the table: files of old writers
// have another.
func (v *viewer) instants(e *meta.Element, l *meta.Leaf, are bool) {
	switch as := l.Logical; {
	case (as.Kind == meta.Timestamp || as.Kind == meta.Time) && as.UTC != are:
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

// missing adds a column that the file does not have. value is the position of its value; -1: NULL.
func (v *viewer) missing(c *Column, value int, at fault.At) error {
	field, err := c.field()
	if err != nil {
		return err
	}
	schema := arrow.NewSchema([]arrow.Field{field}, nil)
	s, err := arrowparquet.NewShredder(schema)
	if err != nil {
		return err
	}
	if value >= 0 {
		p := v.values[value]
		if b, err := hex.DecodeString(p.Text); err == nil && c.Type == "binary" {
			p.Text = string(b)
		}
		a, ok := hive.Value(p, field.Type)
		if !ok {
			return faults.Mismatch(fault.At{File: at.File, Column: c.Name}, "the table's value of a column that the file lacks", "a value of type "+c.Type, strconv.Quote(v.values[value].Text))
		}
		defer a.Release()
		rec := array.NewRecord(schema, []arrow.Array{a}, 1)
		defer rec.Release()
		if err := s.Shred(rec, func(_ int, p *parquet.Page) error {
			if p.NonNull > 0 {
				v.view.Values[len(v.view.Leaves)] = bytes.Clone(p.Plain)
			}
			return nil
		}); err != nil {
			return err
		}
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

// Types of columns: those with parts, and one with an annotation that Arrow has none for.
const (
	structType = "struct"
	listType   = "list"
	mapType    = "map"
	uuidType   = "uuid"
)

// field returns the column as a field, from which the annotation in Parquet is made.
func (c *Column) field() (f arrow.Field, err error) {
	f = arrow.Field{Name: c.Name, Nullable: true}
	if c.Type == uuidType {
		f.Metadata = arrow.MetadataFrom(map[string]string{"ARROW:extension:name": "arrow.uuid"})
	}
	f.Type, err = c.Arrow()
	return f, err
}

// Arrow returns the type of a column.
func (c *Column) Arrow() (arrow.DataType, error) {
	var parts []arrow.Field
	for i := range c.Children {
		f, err := c.Children[i].field()
		if err != nil {
			return nil, err
		}
		parts = append(parts, f)
	}
	switch {
	case c.Type == structType:
		return arrow.StructOf(parts...), nil
	case c.Type == listType && len(parts) == 1:
		parts[0].Name = arrow.ListOf(parts[0].Type).ElemField().Name
		return arrow.ListOfField(parts[0]), nil
	case c.Type == mapType && len(parts) == 2:
		return arrow.MapOfWithMetadata(parts[0].Type, parts[0].Metadata, parts[1].Type, parts[1].Metadata), nil
	}
	name, nanos := strings.CutSuffix(c.Type, "_ns")
	t, err := keys.ParseType(name)
	switch of := t.(type) {
	case *arrow.TimestampType:
		if !nanos {
			t = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: of.TimeZone}
		}
	case *arrow.Time64Type:
		t = arrow.FixedWidthTypes.Time64us
	}
	return t, err
}

// fits reports whether a leaf has values of a type, and of no narrower one.
func fits(typ string, l *meta.Leaf) bool {
	g := l.Logical
	whole := g.Kind == meta.None || g.Kind == meta.Int && g.Signed
	switch typ {
	case "tinyint", "int16":
		return l.Type == format.Int32 && whole
	case "int64":
		return l.Type == format.Int64 && whole
	case "string", "binary":
		return l.Type == format.ByteArray && slices.Contains([]meta.Kind{meta.None, meta.String, meta.Enum, meta.JSON, meta.BSON}, g.Kind)
	case "timestamptz", "timestamp", "timestamptz_ns", "timestamp_ns":
		return l.Type == format.Int96 || g.Kind == meta.Timestamp
	case uuidType:
		return l.TypeLength == 16 && (g.Kind == meta.None || g.Kind == meta.UUID)
	}
	return typ == typeOf(l)
}

// widen gives the element of a leaf the type of a column. It returns false if that is not wider.
func widen(e *meta.Element, typ string, l *meta.Leaf) bool {
	g, none := l.Logical, l.Logical.Kind == meta.None
	t, _ := keys.ParseType(typ)
	d, isDecimal := t.(arrow.DecimalType)
	switch {
	case l.Type == format.Int32 && (none || g.Kind == meta.Int && g.Signed) && (typ == "int32" || typ == "int64"):
		e.LogicalType, e.ConvertedType = thrift.Null[format.LogicalType]{}, thrift.Null[deprecated.ConvertedType]{}
		if typ == "int64" {
			e.Type.V = format.Int64
		}
	case l.Type == format.Float && none && typ == "double":
		e.Type.V = format.Double
	case isDecimal && g.Kind == meta.Decimal && int32(g.Scale) == d.GetScale() && int32(g.Precision) < d.GetPrecision():
		g.Precision = int(d.GetPrecision())
		e.SetLogical(g)
		switch whole := l.Type == format.Int32 || l.Type == format.Int64; {
		case l.Type == format.ByteArray, l.Type == format.Int32 && g.Precision <= 9:
		case whole && g.Precision <= 18:
			e.Type.V = format.Int64
		default:
			n := max(l.TypeLength, 1)
			for meta.DecimalDigits(n) < g.Precision {
				n++
			}
			e.Type.V, e.TypeLength = format.FixedLenByteArray, thrift.New(int32(n))
		}
	default:
		return false
	}
	return true
}
