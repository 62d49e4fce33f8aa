package flat

import (
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
)

// Slots of tables in Arrow's Schema.fbs.
const (
	SchemaFields   = 6
	SchemaMetadata = 8
	FieldType      = 10
	FieldChildren  = 14
)

// Timestamp is a member of the Type union.
const Timestamp = 10

// Field is a table that describes a field in Arrow's Schema.fbs.
type Field struct{ Table }

// Name returns the field's name.
func (f Field) Name() string { return string(f.Bytes(4)) }

// Nullable reports whether the field's values may be NULL.
func (f Field) Nullable() bool { return f.Bool(6, false) }

// Type returns the member of the Type union, and the table that describes it.
func (f Field) Type() (kind byte, t Table) {
	t, _ = f.Table.Table(FieldType)
	return f.Byte(8, 0), t
}

// Dictionary returns the description of the field's dictionary, if it has one.
func (f Field) Dictionary() (Table, bool) { return f.Table.Table(12) }

// Children yields the fields of the type.
func (f Field) Children() iter.Seq[Field] { return f.Fields(FieldChildren) }

// Metadata yields the field's metadata.
func (f Field) Metadata() iter.Seq2[string, string] { return f.Pairs(16) }

// Fields yields the fields of the vector in a slot.
func (t Table) Fields(slot int) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		at, n := t.Tables(slot)
		for i := range n {
			if !yield(Field{at(i)}) {
				return
			}
		}
	}
}

// Pairs yields the keys and values of the vector in a slot.
func (t Table) Pairs(slot int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for kv := range t.Fields(slot) {
			if !yield(string(kv.Bytes(4)), string(kv.Bytes(6))) {
				return
			}
		}
	}
}

// Integer returns the type that an Int table describes, nil if it is unknown.
func Integer(t Table) arrow.DataType {
	types := map[int32][2]arrow.DataType{
		8:  {arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int8},
		16: {arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int16},
		32: {arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int32},
		64: {arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int64},
	}
	pair := types[t.Int32(4, 0)]
	if t.Bool(6, false) {
		return pair[1]
	}
	return pair[0]
}

// Size is what a schema takes outside its flatbuffer.
type Size struct {
	Depth  int // levels of fields
	Fields int // of all levels
	Bytes  int // of names, zones and metadata, with pairBytes for each pair
}

const pairBytes = 32 // so that empty pairs count, too

// SizeOf adds up a Schema table, up to a limit that it exceeds.
func SizeOf(schema Table, most Size) Size {
	s := sizer{most: most}
	s.fields(schema.Fields(SchemaFields), 1)
	s.pairs(schema, SchemaMetadata)
	return s.Size
}

// Within reports whether no part is larger than a limit.
func (s Size) Within(most Size) bool {
	return s.Depth <= most.Depth && s.Fields <= most.Fields && s.Bytes <= most.Bytes
}

type sizer struct {
	Size
	most Size
}

func (s *sizer) fields(fields iter.Seq[Field], depth int) {
	for f := range fields {
		s.Depth, s.Fields, s.Bytes = max(s.Depth, depth), s.Fields+1, s.Bytes+len(f.Bytes(4))
		if kind, t := f.Type(); kind == Timestamp {
			s.Bytes += len(t.Bytes(6)) // its zone
		}
		s.pairs(f.Table, 16)
		if !s.Within(s.most) {
			return
		}
		s.fields(f.Children(), depth+1)
	}
}

func (s *sizer) pairs(t Table, slot int) {
	for kv := range t.Fields(slot) {
		if s.Bytes += pairBytes + len(kv.Bytes(4)) + len(kv.Bytes(6)); !s.Within(s.most) {
			return
		}
	}
}
