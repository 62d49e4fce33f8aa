package arrowparquet

import (
	"encoding/base64"
	"encoding/binary"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/flat"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// The Arrow schema that writers store in addition to the Parquet one has
// information that Parquet types lack: time zones, large offsets, field metadata.
// It is only a hint. Its tables are read in place, within limits and without building types,
// because available decoders allocate whatever its lengths claim. A schema that is
// malformed or does not fit the Parquet schema is ignored.

// SchemaKey is the key of the stored Arrow schema in a Parquet file's metadata.
const SchemaKey = "ARROW:schema"

// Members of the Type union in Arrow's Schema.fbs.
const (
	fbDecimal   = 7
	fbTimestamp = flat.Timestamp
	fbList      = 12
	fbStruct    = 13
	fbFixedList = 16
	fbMap       = 17
	fbDuration  = 18
	fbLargeBin  = 19
	fbLargeUtf8 = 20
	fbLargeList = 21
)

// storedSchema is a stored Arrow schema. Reads of its fields that [visit] has made cannot fail.
type storedSchema struct {
	fields   []flat.Field
	metadata []meta.KeyValue
}

const (
	maxOriginDepth  = 64
	maxOriginFields = 1 << 20

	// Parts of a flatbuffer may overlap. The output is limited to what they would
	// give without overlap, with some allowance for writers that store equal
	// strings once.
	minOrigin    = 8 // bytes of a table
	sharedOrigin = 4 // output may take this many times the input's bytes
)

// parseStored parses a stored Arrow schema. It returns nil if it is malformed.
func parseStored(encoded string) *storedSchema {
	schema, size := originSchema(encoded)
	most := flat.Size{Depth: maxOriginDepth, Fields: min(maxOriginFields, size/minOrigin), Bytes: sharedOrigin * size}
	if size == 0 || !flat.SizeOf(schema, most).Within(most) {
		return nil
	}
	s := &storedSchema{}
	for f := range schema.Fields(flat.SchemaFields) {
		visit(f)
		s.fields = append(s.fields, f)
	}
	s.metadata = storedPairs(schema.Pairs(flat.SchemaMetadata))
	if schema.Err() != nil {
		return nil
	}
	return s
}

func storedPairs(pairs iter.Seq2[string, string]) (list []meta.KeyValue) {
	for k, v := range pairs {
		list = append(list, meta.KeyValue{Key: k, Value: v})
	}
	return list
}

// visit makes all reads of a field that later code makes, to check its offsets.
func visit(f flat.Field) {
	kind, typ := f.Type()
	for i, s := range typeSlots[kind] {
		slotValue(typ, i, s)
	}
	if t, ok := f.Dictionary(); ok {
		_ = codingOf(t)
		t.Int16(10, 0)
	}
	for child := range f.Children() {
		visit(child)
	}
}

// originSchema returns the Schema table of a stored Arrow schema, and the size of its
// message in bytes; 0: it is malformed.
func originSchema(encoded string) (schema flat.Table, size int) {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		if b, err = base64.RawStdEncoding.DecodeString(encoded); err != nil {
			return schema, 0
		}
	}
	if len(b) >= 8 && binary.LittleEndian.Uint32(b) == 0xffffffff {
		b = b[4:]
	}
	if len(b) < 8 {
		return schema, 0
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) || n < 8 {
		return schema, 0
	}
	b = b[:n:n]
	message := flat.Root(b)
	const schemaHeader = 1
	schema, ok := message.Table(8)
	if !ok || message.Byte(6, 0) != schemaHeader {
		return schema, 0
	}
	return schema, len(b)
}

// origin is a field of the stored Arrow schema; the zero value is none.
type origin struct {
	flat.Field
	parts   bool // of a list or map: matched by position, whatever its name is
	entries bool // of a map: so are its children, and its own metadata does not count
}

// is reports whether the field's type is a member of the Type union, and returns the table that
// describes it.
func (o origin) is(kind byte) (flat.Table, bool) {
	k, t := o.Type()
	return t, k == kind
}

// part returns o as a part of a list or map.
func (o origin) part() origin {
	o.parts = true
	return o
}

// child returns the i-th child if there are n children.
func (o origin) child(i, n int) origin {
	if at, count := o.Tables(flat.FieldChildren); count == n {
		return origin{Field: flat.Field{Table: at(i)}, parts: o.entries}
	}
	return origin{}
}

// coding describes a dictionary in a stored Arrow schema.
type coding struct {
	index   arrow.DataType
	ordered bool
}

// coding returns the description of the field's dictionary. It returns nil if there
// is none or if its index type is unknown.
func (o origin) coding() *coding {
	if t, ok := o.Dictionary(); ok {
		return codingOf(t)
	}
	return nil
}

func codingOf(t flat.Table) *coding {
	c := &coding{index: arrow.PrimitiveTypes.Int32, ordered: t.Bool(8, false)}
	if index, ok := t.Table(6); ok {
		if c.index = flat.Integer(index); c.index == nil {
			return nil
		}
	}
	return c
}
