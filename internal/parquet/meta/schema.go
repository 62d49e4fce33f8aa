package meta

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

const (
	maxSchemaDepth   = 64      // levels of nesting, which bounds definition levels
	maxFixedLength   = 1 << 20 // bytes of a fixed-length value
	maxSchemaColumns = 1 << 20
)

// Node is a node of the schema: a leaf if Leaf ≥ 0, else a group.
type Node struct {
	Name       string
	Repetition format.FieldRepetitionType
	FieldID    int32 // -1 if there is none
	Logical    Logical
	Children   []*Node
	Leaf       int // index into Schema.Leaves; -1 for groups
	Element    *Element
}

// Names returns the names of the children.
func (n *Node) Names() (names []string) {
	for _, c := range n.Children {
		names = append(names, c.Name)
	}
	return names
}

// Leaf is a column: a leaf of the schema.
type Leaf struct {
	Path       []string // names, from the top-level column down
	Dotted     string   // Path joined by dots, for messages
	Index      int      // of the leaf, and of its chunk in each row group
	MaxDef     int      // definition level of a value other than NULL
	MaxRep     int      // number of repeated nodes on the path
	Type       format.Type
	TypeLength int // bytes of a FIXED_LEN_BYTE_ARRAY, else 0
	Logical    Logical

	shared []int // indices into Schema.shared of the groups that contain the leaf
}

// Width returns the size of a PLAIN value in bytes, 0 for byte arrays and booleans.
func (l *Leaf) Width() int {
	switch l.Type {
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	case format.Int96:
		return 12
	case format.FixedLenByteArray:
		return l.TypeLength
	}
	return 0
}

// Schema is the schema of a file as a tree. It is immutable.
type Schema struct {
	Root   *Node  // its children are the top-level columns
	Leaves []Leaf // in the order of the schema, which is that of a row group's chunks

	shared []shared
}

// schemaBuilder turns the footer's flat list of elements into the tree. It repairs
// meaningless parts of the list that other readers would refuse: groups without
// columns, a group's physical type or logical type NULL, the converted type NULL,
// and a missing repetition.
type schemaBuilder struct {
	m      *Footer
	s      Schema
	at     fault.At
	next   int
	path   []string
	kept   []Element // the repaired list
	mended bool
}

// Tree returns the footer's schema as a tree, and replaces m.Schema if it has parts that
// are repaired. at is the place in errors.
func (m *Footer) Tree(at fault.At) (Schema, error) {
	if len(m.Schema) == 0 {
		return Schema{}, faults.Corrupt(at, "the footer has no schema")
	}
	if len(m.Schema) > maxSchemaColumns {
		return Schema{}, faults.Unsupported(at, "a schema of %d elements", len(m.Schema)).
			WithHint("write the file again with fewer columns")
	}
	b := schemaBuilder{m: m, at: at}
	root, err := b.node(0, 0, 0)
	if err != nil {
		return Schema{}, err
	}
	if root.Leaf >= 0 {
		return Schema{}, faults.Corrupt(at, "the schema's root is a column")
	}
	if b.next != len(m.Schema) {
		return Schema{}, faults.Wanted(faults.Corrupt(at, "elements of the schema"), fmt.Sprintf("%d, as its tree has", b.next), len(m.Schema))
	}
	if b.mended {
		m.Schema = b.kept
	}
	b.s.Root = root
	b.s.shareGroups()
	return b.s, nil
}

// LeavesOf returns the leaves of a schema: elements depth first, as in a footer.
func LeavesOf(schema []Element) ([]Leaf, error) {
	s, err := (&Footer{Schema: schema}).Tree(fault.At{})
	return s.Leaves, err
}

func (b *schemaBuilder) here() fault.At {
	at := b.at
	at.Column = strings.Join(b.path, ".")
	return at
}

// node builds the tree of the next element. It returns nil for a group without
// columns.
func (b *schemaBuilder) node(depth, def, rep int) (*Node, error) {
	if b.next >= len(b.m.Schema) {
		return nil, faults.Corrupt(b.at, "the schema's tree has more elements than the schema")
	}
	if depth > maxSchemaDepth {
		return nil, faults.Unsupported(b.here(), "a schema nested more than %d levels deep", maxSchemaDepth)
	}
	b.kept = append(b.kept, b.m.Schema[b.next])
	e := &b.m.Schema[b.next]
	b.next++
	n := &Node{Name: e.Name, FieldID: -1, Leaf: -1, Element: e}
	if e.FieldID.Valid {
		n.FieldID = e.FieldID.V
	}
	if depth > 0 { // the root's name and repetition are meaningless
		b.path = append(b.path, e.Name)
		defer func() { b.path = b.path[:len(b.path)-1] }()
		if !e.RepetitionType.Valid { // means the zero value, REQUIRED
			b.kept[len(b.kept)-1].RepetitionType = thrift.New(format.Required)
			b.mended = true
		}
		switch {
		case e.RepetitionType.V == format.Optional:
			def++
		case e.RepetitionType.V == format.Repeated:
			def++
			rep++
		case e.RepetitionType.V != format.Required:
			return nil, faults.Corrupt(b.here(), "unknown repetition type %d", int32(e.RepetitionType.V))
		}
		n.Repetition = e.RepetitionType.V
	}
	if e.Type.Valid && e.NumChildren.V <= 0 {
		return n, b.leaf(n, e, def, rep)
	}
	at := len(b.kept) - 1
	if err := b.group(n, e, depth, def, rep); err != nil {
		return nil, err
	}
	if len(n.Children) == 0 && depth > 0 {
		b.kept, b.mended = b.kept[:at], true
		return nil, nil
	}
	if k := &b.kept[at]; annotatedNull(k) {
		k.LogicalType = thrift.Null[format.LogicalType]{}
		b.mended = true
	}
	if k := &b.kept[at]; k.Type.Valid || int(k.NumChildren.V) != len(n.Children) {
		k.Type, k.NumChildren = thrift.Null[format.Type]{}, thrift.New(int32(len(n.Children)))
		b.mended = true
	}
	return n, nil
}

func (b *schemaBuilder) group(n *Node, e *Element, depth, def, rep int) error {
	count := int(e.NumChildren.V)
	if count < 0 || count > len(b.m.Schema)-b.next {
		return faults.Corrupt(b.here(), "neither a column nor a group: %d children", count)
	}
	if depth > 0 {
		var err error
		if n.Logical, err = b.groupLogical(e); err != nil {
			return err
		}
	}
	n.Children = make([]*Node, 0, count)
	for range count {
		child, err := b.node(depth+1, def, rep)
		if err != nil {
			return err
		}
		if child != nil {
			n.Children = append(n.Children, child)
		}
	}
	return nil
}

func (b *schemaBuilder) leaf(n *Node, e *Element, def, rep int) error {
	l := Leaf{
		Path:   append([]string(nil), b.path...),
		Dotted: strings.Join(b.path, "."),
		Index:  len(b.s.Leaves),
		MaxDef: def, MaxRep: rep,
		Type: e.Type.V,
	}
	if l.Type < format.Boolean || l.Type > format.FixedLenByteArray {
		return faults.Corrupt(b.here(), "unknown physical type %d", int32(l.Type))
	}
	if l.Type == format.FixedLenByteArray {
		if !e.TypeLength.Valid || e.TypeLength.V <= 0 {
			return faults.Corrupt(b.here(), "fixed-length values of %d bytes", e.TypeLength.V)
		}
		if e.TypeLength.V > maxFixedLength {
			return faults.Unsupported(b.here(), "fixed-length values of %d bytes", e.TypeLength.V)
		}
		l.TypeLength = int(e.TypeLength.V)
	}
	var err error
	if l.Logical, err = leafLogical(b.here(), e, &l); err != nil {
		return err
	}
	if e.ConvertedType.Valid && e.ConvertedType.V == convertedNull {
		k := &b.kept[len(b.kept)-1]
		k.ConvertedType = thrift.Null[deprecated.ConvertedType]{}
		if !k.LogicalType.Valid {
			k.LogicalType = thrift.New(format.LogicalType{Value: new(format.NullType)})
		}
		b.mended = true
	}
	n.Leaf, n.Logical = l.Index, l.Logical
	b.s.Leaves = append(b.s.Leaves, l)
	return nil
}

// annotatedNull reports whether an element has the logical type NULL, which
// parquet-java 1.11 adds to MAP_KEY_VALUE. On a group it is meaningless.
func annotatedNull(e *Element) bool {
	_, ok := e.LogicalType.V.Value.(*format.NullType)
	return ok
}

// groupLogical reads the annotation of a group: LIST, MAP, VARIANT or none.
func (b *schemaBuilder) groupLogical(e *Element) (Logical, error) {
	if e.LogicalType.Valid && !annotatedNull(e) {
		switch e.LogicalType.V.Value.(type) {
		case *format.ListType:
			return Logical{Kind: List}, nil
		case *format.MapType:
			return Logical{Kind: Map}, nil
		case *format.VariantType:
			return Logical{Kind: Variant}, nil
		case nil:
			return Logical{Kind: Unknown}, nil
		}
		return Logical{}, faults.Corrupt(b.here(), "a group annotated %s", e.LogicalType.V.String())
	}
	c, ok := e.ConvertedType.Get()
	switch {
	case !ok:
		return Logical{}, nil
	case c == deprecated.List:
		return Logical{Kind: List}, nil
	case c == deprecated.Map:
		return Logical{Kind: Map}, nil
	case c == deprecated.MapKeyValue:
		// Intended for the repeated group inside a map; old writers put it on the
		// map itself.
		if e.RepetitionType.V == format.Repeated {
			return Logical{}, nil
		}
		return Logical{Kind: Map}, nil
	}
	return Logical{}, faults.Corrupt(b.here(), "a group annotated with converted type %d", int32(c))
}
