package generic

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/schema"
	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// shape is a node of the plan by which arrays become levels and values.
type shape struct {
	optional bool
	rep      int16    // of a list: repetition level of its second and later elements
	children []*shape // of a struct; of a list its element; of a map its key and value
	list     bool
	pair     bool // of a map: children are the parts of its element
	leaf     *leafShape
}

// leafShape is a leaf of the schema being written.
type leafShape struct {
	path           string
	maxDef, maxRep int16
	noStats        bool // the column's order is undefined, or v15 gets its bounds wrong
}

// shaper makes the Parquet schema of an Arrow schema.
type shaper struct {
	at     fault.At
	leaves []*leafShape
}

func (s *shaper) fail(dt arrow.DataType, why string) error {
	return fault.Unsupported(s.at, "%s cannot be written to Parquet: %s", dt, why)
}

func (s *shaper) root(sc *arrow.Schema) (*schema.GroupNode, []*shape, error) {
	nodes := make(schema.FieldList, sc.NumFields())
	shapes := make([]*shape, sc.NumFields())
	for i, f := range sc.Fields() {
		s.at.Column = f.Name
		var err error
		if nodes[i], shapes[i], err = s.field(f, f.Name, "", 0, 0); err != nil {
			return nil, nil, err
		}
	}
	root, err := schema.NewGroupNode("schema", v15.Repetitions.Required, nodes, -1)
	return root, shapes, err
}

// field makes the node and shape of a field. def and rep are the levels
// around it, path the dotted one of its parent.
func (s *shaper) field(f arrow.Field, name, path string, def, rep int16) (schema.Node, *shape, error) {
	dt := storage(f.Type)
	sh := &shape{optional: f.Nullable}
	repetition := v15.Repetitions.Required
	if f.Nullable {
		repetition = v15.Repetitions.Optional
		def++
	}
	if path != "" {
		path += "."
	}
	path += name
	id := fieldID(f.Metadata)
	switch dt := dt.(type) {
	case *arrow.StructType:
		nodes, err := s.fields(sh, dt, path, def, rep)
		if err != nil {
			return nil, nil, err
		}
		if a := value(f.Metadata, logicalKey); a != "" {
			return nil, nil, s.fail(dt, "its annotation "+a)
		}
		n, err := schema.NewGroupNode(name, repetition, nodes, id)
		return n, sh, err
	case *arrow.MapType:
		n, err := s.mapping(sh, dt, name, path, repetition, def, rep, id)
		return n, sh, err
	case arrow.ListLikeType:
		n, err := s.list(sh, dt, name, path, repetition, def, rep, id)
		return n, sh, err
	}
	sh.leaf = &leafShape{path: path, maxDef: def, maxRep: rep}
	s.leaves = append(s.leaves, sh.leaf)
	n, err := s.primitive(sh.leaf, f, dt, name, repetition, id)
	return n, sh, err
}

// storage is the type that an extension or dictionary type's values have.
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

func (s *shaper) fields(sh *shape, dt *arrow.StructType, path string, def, rep int16) (schema.FieldList, error) {
	if dt.NumFields() == 0 {
		return nil, s.fail(dt, "a struct without fields")
	}
	nodes := make(schema.FieldList, dt.NumFields())
	for i, f := range dt.Fields() {
		n, child, err := s.field(f, f.Name, path, def, rep)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
		sh.children = append(sh.children, child)
	}
	return nodes, nil
}

func (s *shaper) list(sh *shape, dt arrow.ListLikeType, name, path string, repetition v15.Repetition, def, rep int16, id int32) (schema.Node, error) {
	switch dt.(type) {
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
	default:
		return nil, s.fail(dt, "its layout")
	}
	elem := dt.ElemField()
	if elem.Name == "" {
		elem.Name = "element"
	}
	n, child, err := s.field(elem, elem.Name, path+".list", def+1, rep+1)
	if err != nil {
		return nil, err
	}
	sh.list, sh.rep, sh.children = true, rep+1, []*shape{child}
	repeated, err := schema.NewGroupNode("list", v15.Repetitions.Repeated, schema.FieldList{n}, -1)
	if err != nil {
		return nil, err
	}
	return schema.NewGroupNodeLogical(name, repetition, schema.FieldList{repeated}, schema.NewListLogicalType(), id)
}

func (s *shaper) mapping(sh *shape, dt *arrow.MapType, name, path string, repetition v15.Repetition, def, rep int16, id int32) (schema.Node, error) {
	key, item := dt.KeyField(), dt.ItemField()
	key.Nullable = false
	path += ".key_value"
	k, keyShape, err := s.field(key, "key", path, def+1, rep+1)
	if err != nil {
		return nil, err
	}
	v, itemShape, err := s.field(item, "value", path, def+1, rep+1)
	if err != nil {
		return nil, err
	}
	sh.list, sh.pair, sh.rep, sh.children = true, true, rep+1, []*shape{keyShape, itemShape}
	repeated, err := schema.NewGroupNode("key_value", v15.Repetitions.Repeated, schema.FieldList{k, v}, -1)
	if err != nil {
		return nil, err
	}
	return schema.NewGroupNodeLogical(name, repetition, schema.FieldList{repeated}, schema.MapLogicalType{}, id)
}

// physical is how a leaf's values are stored.
type physical struct {
	t       v15.Type
	length  int
	logical schema.LogicalType
	noStats bool
}

func (s *shaper) primitive(l *leafShape, f arrow.Field, dt arrow.DataType, name string, repetition v15.Repetition, id int32) (schema.Node, error) {
	ph, why := physicalOf(f, dt)
	if why != "" {
		return nil, s.fail(f.Type, why)
	}
	l.noStats = ph.noStats
	n, err := schema.NewPrimitiveNodeLogical(name, repetition, ph.logical, ph.t, ph.length, id)
	if err != nil {
		return nil, s.fail(f.Type, err.Error())
	}
	return n, nil
}

// physicalOf decides how values of dt are stored. why says what hinders it.
func physicalOf(f arrow.Field, dt arrow.DataType) (ph physical, why string) {
	t := v15.Types
	none := schema.LogicalType(schema.NoLogicalType{})
	plain := func(t v15.Type) physical { return physical{t, -1, none, false} }
	integer := func(t v15.Type, bits int8, signed bool) physical {
		return physical{t, -1, schema.NewIntLogicalType(bits, signed), !signed}
	}
	annotation := value(f.Metadata, logicalKey)
	switch dt := dt.(type) {
	case *arrow.NullType:
		if !f.Nullable {
			return ph, "it must be nullable"
		}
		return physical{t.Int32, -1, schema.NullLogicalType{}, true}, ""
	case *arrow.BooleanType:
		return plain(t.Boolean), ""
	case *arrow.Int8Type:
		return integer(t.Int32, 8, true), ""
	case *arrow.Int16Type:
		return integer(t.Int32, 16, true), ""
	case *arrow.Int32Type:
		return plain(t.Int32), ""
	case *arrow.Int64Type, *arrow.DurationType:
		return plain(t.Int64), ""
	case *arrow.Uint8Type:
		return integer(t.Int32, 8, false), ""
	case *arrow.Uint16Type:
		return integer(t.Int32, 16, false), ""
	case *arrow.Uint32Type:
		return integer(t.Int32, 32, false), ""
	case *arrow.Uint64Type:
		return integer(t.Int64, 64, false), ""
	case *arrow.Float16Type:
		return physical{t.FixedLenByteArray, 2, schema.Float16LogicalType{}, true}, ""
	case *arrow.Float32Type:
		return plain(t.Float), ""
	case *arrow.Float64Type:
		return plain(t.Double), ""
	case *arrow.Date32Type, *arrow.Date64Type:
		return physical{t.Int32, -1, schema.DateLogicalType{}, false}, ""
	case *arrow.Time32Type:
		return physical{t.Int32, -1, schema.NewTimeLogicalType(false, schema.TimeUnitMillis), false}, ""
	case *arrow.Time64Type:
		return physical{t.Int64, -1, schema.NewTimeLogicalType(false, parquetUnit(dt.Unit)), false}, ""
	case *arrow.TimestampType:
		return physical{t.Int64, -1, schema.NewTimestampLogicalType(dt.TimeZone != "", parquetUnit(dt.Unit)), false}, ""
	case *arrow.Decimal128Type:
		return decimalPhysical(dt.Precision, dt.Scale, 38)
	case *arrow.Decimal256Type:
		return decimalPhysical(dt.Precision, dt.Scale, 76)
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType,
		*arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return bytesPhysical(f, dt, annotation)
	case *arrow.FixedSizeBinaryType:
		return fixedPhysical(f, dt, annotation)
	}
	return ph, "there is no Parquet type for it"
}

func bytesPhysical(f arrow.Field, dt arrow.DataType, annotation string) (physical, string) {
	ph := physical{v15.Types.ByteArray, -1, schema.NoLogicalType{}, false}
	text := dt.ID() == arrow.STRING || dt.ID() == arrow.LARGE_STRING || dt.ID() == arrow.STRING_VIEW
	switch {
	case annotation == "ENUM" && text:
		ph.logical = schema.EnumLogicalType{}
	case annotation == "BSON" && !text:
		ph.logical = schema.BSONLogicalType{}
	case annotation != "":
		return ph, "its annotation " + annotation
	case text && value(f.Metadata, extensionKey) == "arrow.json":
		ph.logical = schema.JSONLogicalType{}
	case text:
		ph.logical = schema.StringLogicalType{}
	}
	return ph, ""
}

func fixedPhysical(f arrow.Field, dt *arrow.FixedSizeBinaryType, annotation string) (physical, string) {
	ph := physical{v15.Types.FixedLenByteArray, dt.ByteWidth, schema.NoLogicalType{}, false}
	switch {
	case dt.ByteWidth <= 0:
		return ph, "values without bytes"
	case annotation == "INTERVAL" && dt.ByteWidth == 12:
		ph.logical, ph.noStats = schema.IntervalLogicalType{}, true
	case annotation != "":
		return ph, "its annotation " + annotation
	case dt.ByteWidth == 16 && value(f.Metadata, extensionKey) == "arrow.uuid":
		ph.logical = schema.UUIDLogicalType{}
	}
	return ph, ""
}

func decimalPhysical(precision, scale, most int32) (physical, string) {
	if precision < 1 || precision > most || scale < 0 || scale > precision {
		return physical{}, "its precision and scale"
	}
	return physical{v15.Types.FixedLenByteArray, decimalBytes(int(precision)),
		schema.NewDecimalLogicalType(precision, scale), true}, ""
}

// decimalBytes is the least number of bytes that hold all numbers of so many
// decimal digits in two's complement.
func decimalBytes(precision int) int {
	n := 1
	for maxDigits(n) < precision {
		n++
	}
	return n
}

// maxDigits is ⌊(8n-1)·log10(2)⌋, the digits that n bytes always hold; the
// fraction is exact for the n in question.
func maxDigits(n int) int { return (8*n - 1) * 301029996 / 1000000000 }

func parquetUnit(u arrow.TimeUnit) schema.TimeUnitType {
	switch u {
	case arrow.Nanosecond:
		return schema.TimeUnitNanos
	case arrow.Microsecond:
		return schema.TimeUnitMicros
	}
	return schema.TimeUnitMillis // seconds too: Parquet has no unit for them
}

func value(m arrow.Metadata, key string) string {
	if i := m.FindKey(key); i >= 0 {
		return m.Values()[i]
	}
	return ""
}

func fieldID(m arrow.Metadata) int32 {
	id, err := strconv.ParseInt(value(m, fieldIDKey), 10, 32)
	if err != nil || id < 0 {
		return -1
	}
	return int32(id)
}

// storedSchema is the value under originKey: the schema as an encapsulated
// IPC message.
func storedSchema(sc *arrow.Schema) (out string, err error) {
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
	end := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0} // of the stream, which this is not
	return base64.StdEncoding.EncodeToString(bytes.TrimSuffix(b.Bytes(), end)), nil
}

// keyValues are the file's: the schema's metadata, then extra by key, then the
// Arrow schema, which is the given one unless that is empty. A key of extra
// replaces the schema's.
func keyValues(sc *arrow.Schema, extra map[string]string, stored string) (keys, values []string, err error) {
	m := sc.Metadata()
	for i, k := range m.Keys() {
		if _, ok := extra[k]; !ok && k != originKey && !slices.Contains(keys, k) {
			keys, values = append(keys, k), append(values, m.Values()[i])
		}
	}
	more := make([]string, 0, len(extra))
	for k := range extra {
		if k != originKey {
			more = append(more, k)
		}
	}
	slices.Sort(more)
	for _, k := range more {
		keys, values = append(keys, k), append(values, extra[k])
	}
	if stored == "" {
		stored, err = storedSchema(sc)
	}
	return append(keys, originKey), append(values, stored), err
}
