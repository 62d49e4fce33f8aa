package arrowparquet

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/flat"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// StoredField is a column of an Arrow schema to be stored in a Parquet file.
type StoredField struct {
	// Field is the column. Its metadata about annotations and field ids is not
	// stored, because the Parquet schema has them.
	Field arrow.Field
	// Stored, if not empty, is the stored schema of a file with the column (see
	// [Parquet.StoredSchema]), and At is the column's position in it. The column is then
	// stored as described there, except that it is nullable if Field is. The description
	// may say more than Field: types that Go's Arrow library does not have, seconds,
	// dictionaries.
	Stored string
	At     int
}

// StoreFields returns the Arrow schema of the columns in the form in which it is
// stored in a Parquet file. md is the schema's metadata.
func StoreFields(fields []StoredField, md []meta.KeyValue) (string, error) {
	c := fieldCopier{b: flatbuffers.NewBuilder(1 << 10), schemas: map[string][]flat.Field{}}
	tables, err := c.find(fields)
	if err != nil {
		return "", fmt.Errorf("storing the Arrow schema: %w", err)
	}
	offsets := make([]flatbuffers.UOffsetT, len(fields))
	for i, f := range fields {
		offsets[i] = c.field(tables[i], f.Field.Nullable)
	}
	b := c.b
	keys, list := c.metadata(md), c.vector(offsets)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, list, 0)
	b.PrependUOffsetTSlot(2, keys, 0)
	schema := b.EndObject()
	const version5, schemaHeader = 4, 1
	b.StartObject(5)
	b.PrependInt16Slot(0, version5, 0)
	b.PrependByteSlot(1, schemaHeader, 0)
	b.PrependUOffsetTSlot(2, schema, 0)
	b.Finish(b.EndObject())

	message := b.FinishedBytes()
	for len(message)%8 != 0 {
		message = append(message, 0)
	}
	out := binary.LittleEndian.AppendUint32(nil, 0xffffffff)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(message)))
	return base64.StdEncoding.EncodeToString(append(out, message...)), nil
}

// fieldCopier copies fields of encoded schemas into another one.
type fieldCopier struct {
	b       *flatbuffers.Builder
	schemas map[string][]flat.Field // by their encoded form
	dicts   int64                   // dictionaries so far, which are numbered anew
}

// typeSlot is a slot of a table that describes a type.
type typeSlot struct {
	form  byte  // of its value: b for a boolean, s for 16 bits, i for 32 bits, t for text
	empty int32 // value of an empty slot
}

// typeSlots are the slots of each member of the Type union in Arrow's Schema.fbs, except
// unions, which Parquet cannot hold.
var typeSlots = map[byte][]typeSlot{
	1: {}, 4: {}, 5: {}, 6: {}, // null, binary, utf8, bool
	2:           {{'i', 0}, {'b', 0}}, // int
	3:           {{'s', 0}},           // float
	fbDecimal:   {{'i', 0}, {'i', 0}, {'i', 128}},
	8:           {{'s', 1}},            // date
	9:           {{'s', 1}, {'i', 32}}, // time
	fbTimestamp: {{'s', 0}, {'t', 0}},
	11:          {{'s', 0}}, // interval
	fbList:      {}, fbStruct: {},
	15:          {{'i', 0}}, // fixed-size binary
	fbFixedList: {{'i', 0}},
	fbMap:       {{'b', 0}},
	fbDuration:  {{'s', 1}},
	fbLargeBin:  {}, fbLargeUtf8: {}, fbLargeList: {},
	22: {}, 23: {}, 24: {}, 25: {}, 26: {}, // run ends and views
}

// find returns the tables that describe the fields: those that are stored or, where
// there is none that can be copied, new ones.
func (c *fieldCopier) find(fields []StoredField) ([]flat.Field, error) {
	tables, found := make([]flat.Field, len(fields)), make([]bool, len(fields))
	var others []arrow.Field
	for i, f := range fields {
		if f.Stored != "" {
			if from := c.schema(f.Stored); f.At < len(from) && from[f.At].Name() == f.Field.Name && known(from[f.At]) {
				tables[i], found[i] = from[f.At], true
				continue
			}
		}
		others = append(others, take.WithoutFieldKeys(f.Field, fieldIDKey, logicalKey))
	}
	if others == nil {
		return tables, nil
	}
	encoded, err := EncodeSchema(arrow.NewSchema(others, nil))
	if err != nil {
		return nil, err
	}
	from, n := c.schema(encoded), 0
	for i := range tables {
		if found[i] {
			continue
		}
		if n >= len(from) || !known(from[n]) {
			return nil, faults.Unsupported(fault.At{Column: others[n].Name}, "a column of type %s in a stored Arrow schema", others[n].Type)
		}
		tables[i] = from[n]
		n++
	}
	return tables, nil
}

// schema returns the fields of an encoded schema, nil if it is malformed.
func (c *fieldCopier) schema(encoded string) []flat.Field {
	fields, ok := c.schemas[encoded]
	if !ok {
		if s := parseStored(encoded); s != nil {
			fields = s.fields
		}
		c.schemas[encoded] = fields
	}
	return fields
}

// known reports whether the types of the field are known, so that it can be copied.
func known(f flat.Field) bool {
	kind, _ := f.Type()
	_, ok := typeSlots[kind]
	for child := range f.Children() {
		ok = ok && known(child)
	}
	return ok
}

// slotValue returns the value of a slot other than text.
func slotValue(t flat.Table, i int, s typeSlot) int32 {
	switch at := 4 + 2*i; {
	case s.form == 's':
		return int32(t.Int16(at, int16(s.empty)))
	case s.form == 'i':
		return t.Int32(at, s.empty)
	case s.form == 'b' && t.Bool(at, false):
		return 1
	}
	return 0
}

// field adds a copy of a known field.
func (c *fieldCopier) field(t flat.Field, nullable bool) flatbuffers.UOffsetT {
	var children []flatbuffers.UOffsetT
	for child := range t.Children() {
		children = append(children, c.field(child, child.Nullable()))
	}
	kind, typ := t.Type()
	described, dict := c.typ(kind, typ), c.dictionary(t)
	list, md, name := c.vector(children), c.metadata(storedPairs(t.Metadata())), c.b.CreateByteString(t.Bytes(4))
	c.b.StartObject(7)
	c.b.PrependUOffsetTSlot(0, name, 0)
	c.b.PrependBoolSlot(1, nullable, false)
	c.b.PrependByteSlot(2, kind, 0)
	c.b.PrependUOffsetTSlot(3, described, 0)
	c.b.PrependUOffsetTSlot(4, dict, 0)
	c.b.PrependUOffsetTSlot(5, list, 0)
	c.b.PrependUOffsetTSlot(6, md, 0)
	return c.b.EndObject()
}

// typ adds a copy of the table that describes a type.
func (c *fieldCopier) typ(kind byte, t flat.Table) flatbuffers.UOffsetT {
	slots := typeSlots[kind]
	var text flatbuffers.UOffsetT
	for i, s := range slots {
		if s.form == 't' && len(t.Bytes(4+2*i)) > 0 {
			text = c.b.CreateByteString(t.Bytes(4 + 2*i))
		}
	}
	c.b.StartObject(len(slots))
	for i, s := range slots {
		switch v := slotValue(t, i, s); s.form {
		case 't':
			c.b.PrependUOffsetTSlot(i, text, 0)
		case 's':
			c.b.PrependInt16Slot(i, int16(v), int16(s.empty))
		case 'i':
			c.b.PrependInt32Slot(i, v, s.empty)
		case 'b':
			c.b.PrependBoolSlot(i, v != 0, false)
		}
	}
	return c.b.EndObject()
}

// dictionary adds a copy of the description of a field's dictionary; 0: it has none.
func (c *fieldCopier) dictionary(t flat.Field) flatbuffers.UOffsetT {
	from, ok := t.Table.Table(12)
	if !ok {
		return 0
	}
	var index flatbuffers.UOffsetT
	if i, ok := from.Table(6); ok {
		const integer = 2
		index = c.typ(integer, i)
	}
	c.b.StartObject(4)
	c.b.PrependInt64Slot(0, c.dicts, 0)
	c.b.PrependUOffsetTSlot(1, index, 0)
	c.b.PrependBoolSlot(2, from.Bool(8, false), false)
	c.b.PrependInt16Slot(3, from.Int16(10, 0), 0)
	c.dicts++
	return c.b.EndObject()
}

// metadata adds keys with their values; 0: there are none.
func (c *fieldCopier) metadata(entries []meta.KeyValue) flatbuffers.UOffsetT {
	var pairs []flatbuffers.UOffsetT
	for _, e := range entries {
		k, v := c.b.CreateString(e.Key), c.b.CreateString(e.Value)
		c.b.StartObject(2)
		c.b.PrependUOffsetTSlot(0, k, 0)
		c.b.PrependUOffsetTSlot(1, v, 0)
		pairs = append(pairs, c.b.EndObject())
	}
	if pairs == nil {
		return 0
	}
	return c.vector(pairs)
}

// vector adds a vector of tables.
func (c *fieldCopier) vector(tables []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	c.b.StartVector(4, len(tables), 4)
	for i := len(tables) - 1; i >= 0; i-- {
		c.b.PrependUOffsetT(tables[i])
	}
	return c.b.EndVector(len(tables))
}

// Infer returns the Arrow fields that a reader would infer from the Parquet schema and the
// file's metadata: without metadata of their own, INT96 in nanoseconds. Fields among the
// given ones that say more, such as the unit of a duration, are returned as they are; more
// reports whether there are any.
func Infer(schema []meta.Element, md []meta.KeyValue, fields []arrow.Field) (inferred []arrow.Field, more bool, err error) {
	f, err := parquet.SchemaFile(schema, "")
	if err != nil {
		return nil, false, err
	}
	f.Metadata.KeyValueMetadata = md
	_, micros, err := plan(f, int96Micros)
	if err != nil {
		return nil, false, err
	}
	_, nanos, err := plan(f, int96Nanos)
	if err != nil {
		return nil, false, err
	}
	inferred = slices.Clone(nanos.Fields())
	for i, given := range fields {
		given = take.WithoutFieldKeys(given, fieldIDKey, logicalKey)
		same := func(own arrow.Field) bool { return given.Equal(take.WithoutFieldKeys(own, fieldIDKey, logicalKey)) }
		if same(micros.Field(i)) || same(nanos.Field(i)) {
			inferred[i] = take.WithoutFieldKeys(nanos.Field(i), fieldIDKey, logicalKey, extensionKey, extensionData)
		} else {
			inferred[i], more = fields[i], true
		}
	}
	return inferred, more, nil
}

// StoredMetadata returns the metadata of the Arrow schema that the writer stored.
func (p *Parquet) StoredMetadata() (list []meta.KeyValue) {
	if s := parseStored(p.StoredSchema()); s != nil {
		return s.metadata
	}
	return nil
}
