package arrowparquet

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// schemaPlan is the Parquet schema for an Arrow schema, and the plan for converting
// arrays.
type schemaPlan struct {
	elements []meta.Element
	shapes   []*shape // one per column
	leaves   []*leafShape
}

// shape is a node of the plan that converts arrays to levels and values.
type shape struct {
	optional bool
	rep      uint8    // of a list: repetition level of its second and later elements
	children []*shape // of a struct: its fields; of a list: its element; of a map: key and value
	list     bool
	pair     bool // of a map: children are the parts of its element
	leaf     *leafShape
}

// leafShape is a leaf of the schema to be written.
type leafShape struct {
	path           string
	index          int
	maxDef, maxRep int
	length         int  // bytes of a FIXED_LEN_BYTE_ARRAY
	raw            bool // of a holder: values are as Arrow has them
}

// shaper builds the Parquet schema for an Arrow schema.
type shaper struct {
	at       fault.At
	elements []meta.Element
	leaves   []*leafShape
	holds    bool // the schema is a holder's, not one for files
}

// around is the context of a node: its levels and dotted path.
type around struct {
	def, rep int
	path     string
}

func (a around) below(name string) around {
	if a.path != "" {
		a.path += "."
	}
	a.path += name
	return a
}

func (s *shaper) fail(dt arrow.DataType, why string) error {
	if s.holds {
		return faults.Unsupported(s.at, "%s cannot be held in memory: %s", dt, why)
	}
	return faults.Unsupported(s.at, "%s cannot be written to Parquet: %s", dt, why)
}

func planSchema(sc *arrow.Schema) (*schemaPlan, error) { return planFor(sc, false) }

// planFor plans a schema for files, or that of a holder.
func planFor(sc *arrow.Schema, holds bool) (*schemaPlan, error) {
	s := shaper{holds: holds}
	root := meta.Element{Name: "schema", NumChildren: thrift.New(int32(sc.NumFields()))}
	s.elements = append(s.elements, root)
	shapes := make([]*shape, sc.NumFields())
	for i, f := range sc.Fields() {
		s.at.Column = f.Name
		var err error
		if shapes[i], err = s.field(f, f.Name, around{}); err != nil {
			return nil, err
		}
	}
	return &schemaPlan{elements: s.elements, shapes: shapes, leaves: s.leaves}, nil
}

// group adds an element with children.
func (s *shaper) group(name string, r format.FieldRepetitionType, children int) *meta.Element {
	s.elements = append(s.elements, meta.Element{
		Name: name, RepetitionType: thrift.New(r), NumChildren: thrift.New(int32(children)),
	})
	return &s.elements[len(s.elements)-1]
}

// field adds the elements of a field and returns its shape.
func (s *shaper) field(f arrow.Field, name string, up around) (*shape, error) {
	dt := storage(f.Type)
	if f.Nullable = f.Nullable || s.holds; s.holds && coded(f.Type) {
		return nil, s.fail(f.Type, "a dictionary below an extension type")
	}
	sh := &shape{optional: f.Nullable}
	r := format.Required
	if f.Nullable {
		r = format.Optional
		up.def++
	}
	here := up.below(name)
	id := fieldID(f.Metadata)
	switch dt := dt.(type) {
	case *arrow.StructType:
		if s.holds && dt.NumFields() == 0 {
			break // its NULLs are a leaf
		}
		g := s.group(name, r, dt.NumFields())
		g.FieldID = id
		if why := annotateGroup(g, f, dt); why != "" && !s.holds {
			return nil, s.fail(dt, why)
		}
		return sh, s.fields(sh, dt, here)
	case *arrow.MapType:
		s.annotated(name, r, &format.MapType{}, deprecated.Map).FieldID = id
		return sh, s.mapping(sh, dt, here)
	case arrow.ListLikeType:
		s.annotated(name, r, &format.ListType{}, deprecated.List).FieldID = id
		return sh, s.list(sh, dt, here)
	}
	sh.leaf = &leafShape{path: here.path, index: len(s.leaves), maxDef: here.def, maxRep: here.rep}
	s.leaves = append(s.leaves, sh.leaf)
	if s.holds {
		return sh, s.heldField(f, name, sh.leaf)
	}
	e, why := leafElement(f, dt)
	if why != "" {
		return nil, s.fail(f.Type, why)
	}
	e.Name, e.RepetitionType, e.FieldID = name, thrift.New(r), id
	sh.leaf.length = int(e.TypeLength.V)
	s.elements = append(s.elements, e)
	return sh, nil
}

// annotated adds the outer element of a list or map.
func (s *shaper) annotated(name string, r format.FieldRepetitionType, t format.LogicalTypeValue, c deprecated.ConvertedType) *meta.Element {
	e := s.group(name, r, 1)
	e.LogicalType = thrift.New(format.LogicalType{Value: t})
	e.ConvertedType = thrift.New(c)
	return e
}

// storage returns the type of the values of an extension or dictionary type.
func storage(dt arrow.DataType) arrow.DataType {
	for {
		switch t := dt.(type) {
		case arrow.ExtensionType:
			dt = t.StorageType()
		case *arrow.DictionaryType:
			dt = t.ValueType
		default:
			return dt
		}
	}
}

// coded reports whether values of a type are those of a dictionary.
func coded(dt arrow.DataType) bool {
	for {
		e, ok := dt.(arrow.ExtensionType)
		if !ok {
			return dt.ID() == arrow.DICTIONARY
		}
		dt = e.StorageType()
	}
}

func (s *shaper) fields(sh *shape, dt *arrow.StructType, here around) error {
	if dt.NumFields() == 0 {
		return s.fail(dt, "a struct without fields")
	}
	for _, f := range dt.Fields() {
		child, err := s.field(f, f.Name, here)
		if err != nil {
			return err
		}
		sh.children = append(sh.children, child)
	}
	return nil
}

// repeated adds the repeated inner element of a list or map.
func (s *shaper) repeated(sh *shape, name string, children int, here around) around {
	s.group(name, format.Repeated, children)
	here = here.below(name)
	here.def++
	here.rep++
	sh.list, sh.rep = true, uint8(here.rep)
	return here
}

func (s *shaper) list(sh *shape, dt arrow.ListLikeType, here around) error {
	switch dt.(type) {
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
	default:
		return s.fail(dt, "its layout")
	}
	elem := dt.ElemField()
	if elem.Name == "" {
		elem.Name = "element"
	}
	child, err := s.field(elem, elem.Name, s.repeated(sh, "list", 1, here))
	sh.children = []*shape{child}
	return err
}

func (s *shaper) mapping(sh *shape, dt *arrow.MapType, here around) error {
	key, item := dt.KeyField(), dt.ItemField()
	key.Nullable = false
	here = s.repeated(sh, "key_value", 2, here)
	sh.pair = true
	for _, f := range []struct {
		arrow.Field
		name string
	}{{key, "key"}, {item, "value"}} {
		child, err := s.field(f.Field, f.name, here)
		if err != nil {
			return err
		}
		sh.children = append(sh.children, child)
	}
	return nil
}

func value(m arrow.Metadata, key string) string {
	if i := m.FindKey(key); i >= 0 {
		return m.Values()[i]
	}
	return ""
}

// fieldID returns the field id in m, if it has one.
func fieldID(m arrow.Metadata) thrift.Null[int32] {
	id, err := strconv.ParseInt(value(m, fieldIDKey), 10, 32)
	if err != nil || id < 0 {
		return thrift.Null[int32]{}
	}
	return thrift.New(int32(id))
}

// EncodeSchema returns the form in which an Arrow schema is stored in a Parquet
// file: an encapsulated IPC message in base64.
func EncodeSchema(sc *arrow.Schema) (out string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("storing the Arrow schema: %v", r)
		}
	}()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(sc))
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("storing the Arrow schema: %w", err)
	}
	end := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0} // end of stream; the stored schema is not a stream
	return base64.StdEncoding.EncodeToString(bytes.TrimSuffix(b.Bytes(), end)), nil
}

// keyValues returns the file's key-value metadata: the schema's metadata, then
// extra in order of its keys, then the Arrow schema, which is stored or, if that is
// empty, sc. A key of extra replaces the schema's.
func keyValues(sc *arrow.Schema, extra map[string]string, stored string) (kv []meta.KeyValue, err error) {
	m := sc.Metadata()
	seen := map[string]bool{SchemaKey: true}
	for i, k := range m.Keys() {
		if _, ok := extra[k]; !ok && !seen[k] {
			kv = append(kv, meta.KeyValue{Key: k, Value: m.Values()[i]})
		}
		seen[k] = true
	}
	more := make([]string, 0, len(extra))
	for k := range extra {
		if k != SchemaKey {
			more = append(more, k)
		}
	}
	slices.Sort(more)
	for _, k := range more {
		kv = append(kv, meta.KeyValue{Key: k, Value: extra[k]})
	}
	if stored == "" {
		stored, err = EncodeSchema(sc)
	}
	return append(kv, meta.KeyValue{Key: SchemaKey, Value: stored}), err
}
