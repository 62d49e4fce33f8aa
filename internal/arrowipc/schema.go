package arrowipc

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/flat"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// Limits on a schema. Flatbuffers may share parts, so a few bytes can describe a
// tree of any size.
const (
	maxDepth       = 64       // levels of nesting, as in other readers
	maxFields      = 1 << 20  // fields of all levels
	maxSchemaBytes = 64 << 20 // bytes of names and metadata
	maxWidth       = 1 << 24  // bytes of a fixed-size binary value
)

const (
	schemaShare = 4   // a schema may take 1/schemaShare of the memory budget
	fieldBytes  = 600 // memory of a field in addition to its name
)

// fits returns an error if the budget has no room for n bytes of a schema.
func fits(at fault.At, what string, n, memory int64) error {
	if memory > 0 && n > memory/schemaShare {
		return faults.Memory(at, what, n, memory, schemaShare)
	}
	return nil
}

// field is a node of the schema tree, as stored in messages.
type field struct {
	arrow.Field                // as returned to callers; Type is the extension type if it is registered
	layout      arrow.DataType // type in the body: the storage type, or *arrow.DictionaryType
	plain       *conversion    // conversion of the body's arrays; nil: none
	children    []*field
	dict        *dictionary // of a dictionary-encoded field; the values' field then has the children
}

// dictionary is the schema's information on one dictionary id.
type dictionary struct {
	id     int64
	values *field
}

// schemaTree is a parsed schema.
type schemaTree struct {
	schema *arrow.Schema
	fields []*field
	dicts  map[int64]*dictionary
}

// parseSchema parses a Schema table. It checks everything that would make
// constructors of Arrow types panic. memory is the process's memory budget in
// bytes; 0: unlimited.
func parseSchema(at fault.At, t flat.Table, memory int64) (tree *schemaTree, err error) {
	defer panics.Recover(at, &err)
	defer outside(at, t, &err)
	if e := t.Int16(4, 0); e != 0 {
		return nil, faults.Unsupported(at, "big-endian data").WithHint("write the file on a little-endian machine")
	}
	known, n := t.Vector(schemaFeatures, 8)
	for i := range n {
		if feature := binary.LittleEndian.Uint64(known[8*i:]); feature > 2 { // 1: replaced dictionaries; 2: compression
			return nil, faults.Unsupported(at, "feature %d of the Arrow format", feature)
		}
	}
	if err := limited(at, flat.SizeOf(t, flat.Size{Depth: maxDepth, Fields: maxFields, Bytes: maxSchemaBytes}), memory); err != nil {
		return nil, err
	}
	p := schemaParser{at: at, dicts: map[int64]*dictionary{}}
	tree = &schemaTree{dicts: p.dicts}
	var shown []arrow.Field
	for ft := range t.Fields(flat.SchemaFields) {
		f, err := p.field(ft)
		if err != nil {
			return nil, err
		}
		tree.fields = append(tree.fields, f)
		shown = append(shown, f.Field)
	}
	meta := metadata(t.Pairs(flat.SchemaMetadata))
	tree.schema = arrow.NewSchema(shown, &meta)
	return tree, nil
}

// limited returns an error if a schema is too large.
func limited(at fault.At, s flat.Size, memory int64) error {
	switch {
	case s.Depth > maxDepth:
		return faults.Unsupported(at, "schema nested deeper than %d levels", maxDepth)
	case s.Fields > maxFields:
		return faults.Unsupported(at, "schema with more than %d fields", maxFields)
	case s.Bytes > maxSchemaBytes:
		return faults.Unsupported(at, "schema with more than %d bytes of names and metadata", maxSchemaBytes)
	}
	return fits(at, "the schema", fieldBytes*int64(s.Fields), memory)
}

type schemaParser struct {
	at    fault.At
	dicts map[int64]*dictionary
}

// metadata returns keys with their values.
func metadata(pairs iter.Seq2[string, string]) arrow.Metadata {
	var keys, values []string
	for k, v := range pairs {
		keys, values = append(keys, k), append(values, v)
	}
	return arrow.NewMetadata(keys, values)
}

// field reads a field and its children.
func (p *schemaParser) field(t flat.Field) (*field, error) {
	f := &field{Field: arrow.Field{Name: t.Name(), Nullable: t.Nullable(), Metadata: metadata(t.Metadata())}}
	for child := range t.Children() {
		c, err := p.field(child)
		if err != nil {
			return nil, err
		}
		f.children = append(f.children, c)
	}
	if _, ok := t.Table.Table(flat.FieldType); !ok {
		return nil, p.corrupt(f, "field without a type")
	}
	kind, typ := t.Type()
	var err error
	if f.layout, err = p.typ(f, kind, typ); err != nil {
		return nil, err
	}
	if enc, ok := t.Dictionary(); ok {
		if err := p.encoded(f, enc); err != nil {
			return nil, err
		}
	}
	return f, p.extension(f)
}

// encoded turns f into a dictionary-encoded field.
func (p *schemaParser) encoded(f *field, enc flat.Table) error {
	index := arrow.DataType(arrow.PrimitiveTypes.Int32) // the format's default
	if t, ok := enc.Table(6); ok {
		var err error
		if index, err = p.integer(f, t); err != nil {
			return err
		}
	}
	if enc.Int16(10, 0) != 0 {
		return p.unsupported(f, "dictionary of another kind than a dense array")
	}
	values := &field{Field: arrow.Field{Name: f.Name, Nullable: true}, layout: f.layout, plain: f.plain, children: f.children}
	if f.plain == nil {
		values.plain = ofViews(f.layout)
	}
	values.Type = values.shown()
	f.dict = &dictionary{id: enc.Int64(4, 0), values: values}
	if old := p.dicts[f.dict.id]; old == nil {
		p.dicts[f.dict.id] = f.dict
	} else if !sameLayout(old.values, values) {
		return p.corrupt(f, "dictionary %d has two types", f.dict.id)
	} else {
		f.dict = old
	}
	f.layout = &arrow.DictionaryType{IndexType: index, ValueType: values.Type, Ordered: enc.Bool(8, false)}
	f.plain, f.children = nil, nil
	if arrow.IsFloating(values.Type.ID()) {
		f.plain = &conversion{values.Type, plainDictionary}
	}
	return nil
}

// sameLayout reports whether two trees have the same representation, including the
// ids of nested dictionaries.
func sameLayout(a, b *field) bool {
	if !arrow.TypeEqual(a.layout, b.layout) || len(a.children) != len(b.children) || a.dict != b.dict {
		return false
	}
	for i := range a.children {
		if !sameLayout(a.children[i], b.children[i]) {
			return false
		}
	}
	return true
}

// Keys of a field's metadata that name its extension type.
const (
	extensionName = "ARROW:extension:name"
	extensionData = "ARROW:extension:metadata"
)

// extension sets the type returned to callers: the registered extension type, whose
// two metadata keys are then removed, or the storage type.
func (p *schemaParser) extension(f *field) error {
	f.Type = f.shown()
	i := f.Metadata.FindKey(extensionName)
	if i < 0 {
		return nil
	}
	ext := arrow.GetExtensionType(f.Metadata.Values()[i])
	if ext == nil {
		return nil
	}
	var data string
	var keys, values []string
	for j, k := range f.Metadata.Keys() {
		switch v := f.Metadata.Values()[j]; k {
		case extensionName:
		case extensionData:
			data = v
		default:
			keys, values = append(keys, k), append(values, v)
		}
	}
	t, err := ext.Deserialize(f.shown(), data)
	if err != nil || !arrow.TypeEqual(t.StorageType(), f.shown()) {
		e := p.unsupported(f, "these parameters of extension type %s", ext.ExtensionName())
		e.Err = err
		return e
	}
	f.Type, f.Metadata = t, arrow.NewMetadata(keys, values)
	return nil
}

func (p *schemaParser) corrupt(f *field, format string, args ...any) *fault.Error {
	return faults.Corrupt(f.in(p.at), format, args...)
}

func (p *schemaParser) unsupported(f *field, format string, args ...any) *fault.Error {
	return faults.Unsupported(f.in(p.at), format, args...)
}

// in returns the place of the field in what is at the given one.
func (f *field) in(at fault.At) fault.At {
	at.Column = f.Name
	return at
}

// typ reads the type of f, whose children have been read. kind is the member of the
// format's Type union.
func (p *schemaParser) typ(f *field, kind byte, t flat.Table) (arrow.DataType, error) {
	want := 0 // number of children
	switch kind {
	case 12, 16, 17, 21, 25, 26:
		want = 1
	case 22:
		want = 2
	case 13, 14:
		want = len(f.children)
	}
	if len(f.children) != want {
		return nil, p.corrupt(f, "type %d with %d children", kind, len(f.children))
	}
	if want > 0 || kind == 13 || kind == 14 {
		return p.nested(f, kind, t)
	}
	return p.flat(f, kind, t)
}

// simple maps the kinds of types without parameters.
var simple = map[byte]arrow.DataType{
	1: arrow.Null, 4: arrow.BinaryTypes.Binary, 5: arrow.BinaryTypes.String, 6: arrow.FixedWidthTypes.Boolean,
	19: arrow.BinaryTypes.LargeBinary, 20: arrow.BinaryTypes.LargeString,
	23: arrow.BinaryTypes.BinaryView, 24: arrow.BinaryTypes.StringView,
}

// flat reads a type without children.
func (p *schemaParser) flat(f *field, kind byte, t flat.Table) (arrow.DataType, error) {
	if dt, ok := simple[kind]; ok {
		return dt, nil
	}
	switch kind {
	case 2:
		return p.integer(f, t)
	case 3:
		return pick(p, f, t.Int16(4, 0), arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64)
	case 7:
		return p.decimal(f, t)
	case 8:
		return pick(p, f, t.Int16(4, 1), arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64)
	case 9:
		unit, width := t.Int16(4, 1), t.Int32(6, 32)
		if (width == 32) != (unit < 2) || width != 32 && width != 64 {
			return nil, p.corrupt(f, "time of unit %d in %d bits", unit, width)
		}
		return pick(p, f, unit, arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns)
	case flat.Timestamp:
		unit := t.Int16(4, 0)
		if unit < 0 || unit > 3 {
			return nil, p.corrupt(f, "time unit %d", unit)
		}
		return &arrow.TimestampType{Unit: arrow.TimeUnit(unit), TimeZone: string(t.Bytes(6))}, nil
	case 11:
		return pick(p, f, t.Int16(4, 0), arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthDayNanoInterval)
	case 15:
		n := t.Int32(4, 0)
		if n < 0 {
			return nil, p.corrupt(f, "fixed-size binary of %d bytes", n)
		}
		if n > maxWidth {
			return nil, p.unsupported(f, "fixed-size binary of %d bytes", n)
		}
		if n == 0 {
			f.plain = &conversion{arrow.BinaryTypes.Binary, plainEmpty}
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: int(n)}, nil
	case 18:
		return pick(p, f, t.Int16(4, 1), arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.Duration_ms, arrow.FixedWidthTypes.Duration_us, arrow.FixedWidthTypes.Duration_ns)
	case 0:
		return nil, p.corrupt(f, "field without a type")
	}
	return nil, p.unsupported(f, "type %d of the Arrow format", kind)
}

// pick returns the type for an enumeration's value.
func pick(p *schemaParser, f *field, i int16, of ...arrow.DataType) (arrow.DataType, error) {
	if i < 0 || int(i) >= len(of) {
		return nil, p.corrupt(f, "unit or precision %d", i)
	}
	return of[i], nil
}

func (p *schemaParser) integer(f *field, t flat.Table) (arrow.DataType, error) {
	dt := flat.Integer(t)
	switch bits := t.Int32(4, 0); {
	case dt == nil && bits > 0:
		return nil, p.unsupported(f, "integer of %d bits", bits)
	case dt == nil:
		return nil, p.corrupt(f, "integer of %d bits", bits)
	}
	return dt, nil
}

func (p *schemaParser) decimal(f *field, t flat.Table) (arrow.DataType, error) {
	precision, scale, bits := t.Int32(4, 0), t.Int32(6, 0), t.Int32(8, 128)
	var digits int32
	switch bits {
	case 128:
		digits = 38
	case 256:
		digits = 76
	case 32:
		digits = 9
	case 64:
		digits = 18
	default:
		return nil, p.corrupt(f, "decimal of %d bits", bits)
	}
	if precision < 1 || precision > digits {
		return nil, p.corrupt(f, "decimal of precision %d in %d bits", precision, bits)
	}
	if scale < -digits || scale > digits {
		return nil, p.unsupported(f, "decimal of scale %d", scale)
	}
	if bits == 256 {
		return &arrow.Decimal256Type{Precision: precision, Scale: scale}, nil
	}
	to := &arrow.Decimal128Type{Precision: precision, Scale: scale}
	switch bits {
	case 32:
		f.plain = &conversion{to, plainDecimals}
		return arrow.PrimitiveTypes.Int32, nil
	case 64:
		f.plain = &conversion{to, plainDecimals}
		return arrow.PrimitiveTypes.Int64, nil
	}
	return to, nil
}

// nested reads a type with children.
func (p *schemaParser) nested(f *field, kind byte, t flat.Table) (arrow.DataType, error) {
	kids := each.Slice(f.children, func(c *field) arrow.Field { return c.Field })
	switch kind {
	case 12:
		return arrow.ListOfField(kids[0]), nil
	case 21:
		return arrow.LargeListOfField(kids[0]), nil
	case 25:
		f.plain = &conversion{arrow.ListOfField(kids[0]), plainLists}
		return arrow.ListViewOfField(kids[0]), nil
	case 26:
		f.plain = &conversion{arrow.LargeListOfField(kids[0]), plainLists}
		return arrow.LargeListViewOfField(kids[0]), nil
	case 13:
		return arrow.StructOf(kids...), nil
	case 14:
		return p.union(f, t, kids)
	case 16:
		n := t.Int32(4, 0)
		if n < 0 {
			return nil, p.corrupt(f, "fixed-size list of %d", n)
		}
		if n == 0 { // which arrow does not make
			f.plain = &conversion{arrow.ListOfField(kids[0]), plainEmpty}
			return &arrow.FixedSizeListType{}, nil
		}
		return arrow.FixedSizeListOfField(n, kids[0]), nil
	case 17:
		return p.mapped(f, t, kids[0])
	default: // 22
		switch kids[0].Type.ID() {
		case arrow.INT16, arrow.INT32, arrow.INT64:
			return arrow.RunEndEncodedOf(kids[0].Type, kids[1].Type), nil
		}
		return nil, p.corrupt(f, "run ends of type %s", kids[0].Type)
	}
}

func (p *schemaParser) mapped(f *field, t flat.Table, entries arrow.Field) (arrow.DataType, error) {
	s, ok := entries.Type.(*arrow.StructType)
	if !ok || s.NumFields() != 2 || f.children[0].dict != nil {
		return nil, p.corrupt(f, "map without a struct of two fields")
	}
	m := arrow.MapOfWithMetadata(s.Field(0).Type, s.Field(0).Metadata, s.Field(1).Type, s.Field(1).Metadata)
	m.SetItemNullable(s.Field(1).Nullable)
	m.KeysSorted = t.Bool(4, false)
	f.children[0].layout, f.children[0].Type = m.Elem(), m.Elem() // the names of a map's entry fields are not kept
	return m, nil
}

func (p *schemaParser) union(f *field, t flat.Table, kids []arrow.Field) (arrow.DataType, error) {
	var codes []arrow.UnionTypeCode
	ids, n := t.Vector(6, 4)
	if n == 0 {
		if len(kids) > math.MaxInt8+1 {
			return nil, p.corrupt(f, "union of %d types", len(kids))
		}
		for i := range kids {
			codes = append(codes, arrow.UnionTypeCode(i))
		}
	} else if n != len(kids) {
		return nil, p.corrupt(f, "union of %d types with %d type ids", len(kids), n)
	}
	seen := [math.MaxInt8 + 1]bool{}
	for i := range n {
		id := int32(binary.LittleEndian.Uint32(ids[4*i:]))
		if id < 0 || id > math.MaxInt8 || seen[id] {
			return nil, p.corrupt(f, "union with type id %d", id)
		}
		seen[id] = true
		codes = append(codes, arrow.UnionTypeCode(id))
	}
	switch mode := t.Int16(4, 0); mode {
	case 0:
		return arrow.SparseUnionOf(kids, codes), nil
	case 1:
		return arrow.DenseUnionOf(kids, codes), nil
	default:
		return nil, p.corrupt(f, "union of mode %d", mode)
	}
}
