package arrowparquet

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// column is a node of the plan that converts levels and values to arrays: an Arrow
// field and the levels that determine its slots.
//
// An entry of the column's leaf starts a slot of this node if its repetition level
// is at most rep and its definition level is at least slot, that is, if the
// innermost enclosing list has an element there. The slot is not NULL if the
// definition level is at least def.
type column struct {
	field    arrow.Field
	rep      int // number of repeated nodes that contain this one
	slot     int
	def      int
	elemDef  int       // of a list: the definition level of an element
	children []*column // of a struct: its fields; of a list: its element; of a map: key and value
	leaf     int       // index of the (first) leaf
	leaves   int       // number of leaves
	sink     sinkFunc  // of a leaf
	coded    *coding   // of a leaf that was dictionary-encoded in Arrow
}

// planner builds the columns of a file.
type planner struct {
	f     *parquet.File
	int96 int96Form
}

// plan returns the file's top-level columns and its Arrow schema.
func plan(f *parquet.File, int96 int96Form) ([]*column, *arrow.Schema, error) {
	var stored *storedSchema
	var keys, values []string
	seen := map[string]bool{SchemaKey: true}
	for _, kv := range f.Metadata.KeyValueMetadata {
		if kv.Key == SchemaKey {
			stored = parseStored(kv.Value)
			continue
		}
		seen[kv.Key] = true
		keys, values = append(keys, kv.Key), append(values, kv.Value)
	}
	if stored == nil {
		stored = &storedSchema{}
	}
	for _, kv := range stored.metadata {
		if !seen[kv.Key] {
			keys, values = append(keys, kv.Key), append(values, kv.Value)
		}
	}
	p := planner{f: f, int96: int96}
	columns := make([]*column, len(f.Root.Children))
	fields := make([]arrow.Field, len(columns))
	for i, n := range f.Root.Children {
		var o origin
		if n := f.StoredColumns(); i < n && n == len(stored.fields) {
			o.Field = stored.fields[i]
		}
		c, err := p.node(n, levels{}, o)
		if err != nil {
			return nil, nil, err
		}
		columns[i], fields[i] = c, c.field
	}
	metadata := arrow.NewMetadata(keys, values)
	return columns, arrow.NewSchema(fields, &metadata), nil
}

// levels are the levels at a node.
type levels struct{ def, rep, slot int }

// element returns the levels at the elements of a list.
func (l levels) element() levels { return levels{l.def + 1, l.rep + 1, l.def + 1} }

// node plans a node according to its repetition.
func (p *planner) node(n *meta.Node, l levels, o origin) (*column, error) {
	if !o.parts && o.Name() != n.Name {
		o = origin{} // belongs to another field
	}
	if n.Repetition == format.Repeated {
		// A repeated node outside a list is a list by itself and never NULL.
		elem, err := p.value(n, l.element(), false, o.child(0, 1))
		if err != nil {
			return nil, err
		}
		// The annotation belongs to the element, the field id to the column.
		if elem.field.Metadata, err = p.fieldMetadata(n, o.child(0, 1), true, false); err != nil {
			return nil, err
		}
		return p.list(n, l, elem, o, false)
	}
	return p.value(n, l, n.Repetition == format.Optional, o)
}

// value plans the contents of a node, without its repetition.
func (p *planner) value(n *meta.Node, l levels, nullable bool, o origin) (*column, error) {
	if nullable {
		l.def++
	}
	var c *column
	var err error
	switch {
	case n.Leaf >= 0:
		c, err = p.leaf(n, l, o)
	case n.Logical.Kind == meta.List:
		c, err = p.annotatedList(n, l, o)
	case n.Logical.Kind == meta.Map:
		c, err = p.annotatedMap(n, l, o)
	default:
		c, err = p.structure(n, l, o)
	}
	if err != nil {
		return nil, err
	}
	c.field.Nullable = nullable || p.f.Viewed() // files of one table may differ
	return c, nil
}

func (p *planner) fail(n *meta.Node, format string, args ...any) error {
	return faults.Unsupported(fault.At{File: p.f.Name, Column: n.Name}, "%s", fmt.Sprintf(format, args...))
}

func (p *planner) structure(n *meta.Node, l levels, o origin) (*column, error) {
	c := &column{rep: l.rep, slot: l.slot, def: l.def}
	fields := make([]arrow.Field, len(n.Children))
	for i, child := range n.Children {
		cc, err := p.node(child, l, o.child(i, len(fields)))
		if err != nil {
			return nil, err
		}
		c.children, fields[i] = append(c.children, cc), cc.field
		c.leaves += cc.leaves
	}
	c.leaf = c.children[0].leaf
	metadata, err := p.fieldMetadata(n, o, true, true)
	c.field = arrow.Field{Name: n.Name, Type: arrow.StructOf(fields...), Metadata: metadata}
	return c, err
}

// list returns the column of a list of elem. The node's annotation belongs to the
// list if annotated is set, else to elem. l are the levels outside its repeated
// node.
func (p *planner) list(n *meta.Node, l levels, elem *column, o origin, annotated bool) (*column, error) {
	metadata, err := p.fieldMetadata(n, o, annotated, true)
	return &column{
		field: arrow.Field{Name: n.Name, Type: listType(elem.field, o), Metadata: metadata},
		rep:   l.rep, slot: l.slot, def: l.def, elemDef: l.def + 1,
		children: []*column{elem}, leaf: elem.leaf, leaves: elem.leaves,
	}, err
}

// maxFixedList is the largest fixed-size list that is supported: a NULL one takes
// as much memory as any other.
const maxFixedList = 1 << 16

func listType(elem arrow.Field, o origin) arrow.DataType {
	switch kind, t := o.Type(); kind {
	case fbLargeList:
		return arrow.LargeListOfField(elem)
	case fbFixedList:
		if size := t.Int32(4, 0); size > 0 && size <= maxFixedList {
			return arrow.FixedSizeListOfField(size, elem)
		}
	}
	return arrow.ListOfField(elem)
}

// repeatedChild returns the only child of a list or map, which must be repeated.
func (p *planner) repeatedChild(n *meta.Node) (*meta.Node, error) {
	if len(n.Children) != 1 || n.Children[0].Repetition != format.Repeated {
		return nil, p.fail(n, "a list or map that is not one repeated field")
	}
	return n.Children[0], nil
}

// annotatedList plans a LIST. In files of old writers the repeated node in it is
// the element itself, which the format's rules recognise by shape and name.
func (p *planner) annotatedList(n *meta.Node, l levels, o origin) (*column, error) {
	r, err := p.repeatedChild(n)
	if err != nil {
		return nil, err
	}
	inner := l.element()
	var elem *column
	if r.Leaf >= 0 || len(r.Children) > 1 || r.Name == "array" || r.Name == n.Name+"_tuple" ||
		r.Logical.Kind != meta.None || r.Children[0].Repetition == format.Repeated {
		elem, err = p.value(r, inner, false, o.child(0, 1))
	} else {
		elem, err = p.node(r.Children[0], inner, o.child(0, 1).part())
	}
	if err != nil {
		return nil, err
	}
	return p.list(n, l, elem, o, true)
}

// annotatedMap plans a MAP. If its keys may be NULL, Arrow cannot represent it as a
// map, and it becomes a list of key-value structs. If it has no values, it is a set
// and becomes a list of its keys.
func (p *planner) annotatedMap(n *meta.Node, l levels, o origin) (*column, error) {
	r, err := p.repeatedChild(n)
	if err != nil {
		return nil, err
	}
	if r.Leaf >= 0 || len(r.Children) > 2 {
		return nil, p.fail(n, "a map that is not one repeated key and value")
	}
	inner := l.element()
	if len(r.Children) == 1 {
		key, err := p.node(r.Children[0], inner, origin{})
		if err != nil {
			return nil, err
		}
		return p.list(n, l, key, origin{}, true)
	}
	entries := o.child(0, 1)
	entries.entries = true
	pair, err := p.value(r, inner, false, entries)
	if err != nil {
		return nil, err
	}
	if r.Children[0].Repetition != format.Required {
		return p.list(n, l, pair, origin{}, true)
	}
	c, err := p.list(n, l, pair, o, true)
	if err != nil {
		return nil, err
	}
	key, value := pair.children[0], pair.children[1]
	t := arrow.MapOfWithMetadata(key.field.Type, key.field.Metadata, value.field.Type, value.field.Metadata)
	t.SetItemNullable(value.field.Nullable)
	of, ok := o.is(fbMap)
	t.KeysSorted = ok && of.Bool(4, false)
	c.field.Type = t
	pair.field.Type = t.Elem()
	return c, nil
}

func (p *planner) leaf(n *meta.Node, l levels, o origin) (*column, error) {
	leaf, int96 := &p.f.Leaves[n.Leaf], p.int96
	if p.f.Instants(n.Leaf) {
		int96 |= int96Instants
	}
	dt, sink, err := leafType(leaf, o, int96)
	if err != nil {
		return nil, faults.Unsupported(fault.At{File: p.f.Name, Column: leaf.Dotted}, "%s", err.Error())
	}
	metadata, err := p.fieldMetadata(n, o, true, true)
	return &column{
		field: arrow.Field{Name: n.Name, Type: dt, Metadata: metadata},
		rep:   l.rep, slot: l.slot, def: l.def,
		leaf: n.Leaf, leaves: 1, sink: sink, coded: o.coding(),
	}, err
}
