package arrowparquet

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/bloomjoin/bloomjoin/internal/flat"
)

// The Arrow schema that writers store in addition to the Parquet one has
// information that Parquet types lack: time zones, large offsets, field metadata.
// It is only a hint. It is parsed here within limits and without building types,
// because available decoders allocate whatever its lengths claim. A schema that is
// malformed or does not fit the Parquet schema is ignored.

// SchemaKey is the key of the stored Arrow schema in a Parquet file's metadata.
const SchemaKey = "ARROW:schema"

// Members of the Type union in Arrow's Schema.fbs.
const (
	fbDecimal   = 7
	fbTimestamp = 10
	fbList      = 12
	fbStruct    = 13
	fbFixedList = 16
	fbMap       = 17
	fbDuration  = 18
	fbLargeBin  = 19
	fbLargeUtf8 = 20
	fbLargeList = 21
)

// origin is a field of the stored Arrow schema.
type origin struct {
	name     string
	kind     byte // member of the Type union
	zone     string
	unit     arrow.TimeUnit // of a duration
	bits     int            // of a decimal
	size     int            // of a fixed-size list
	sorted   bool           // a map's keys are sorted
	coded    *coding        // of a dictionary-encoded field; the other members describe its values
	children []*origin
	keys     []string // field metadata
	values   []string
}

// coding describes a dictionary in a stored Arrow schema.
type coding struct {
	index   arrow.DataType
	ordered bool
}

var errOrigin = errors.New("malformed stored Arrow schema")

const (
	maxOriginDepth  = 64
	maxOriginFields = 1 << 20

	// Parts of a flatbuffer may overlap. The output is limited to what they would
	// give without overlap, with some allowance for writers that store equal
	// strings once.
	minOrigin    = 8 // bytes of a table
	sharedOrigin = 4 // output strings may take this many times the input's bytes
)

// parseOrigin parses a stored Arrow schema. It returns nil if it is malformed.
func parseOrigin(encoded string) (root *origin) {
	schema, size := originSchema(encoded)
	if size == 0 {
		return nil
	}
	p := originParser{budget: min(maxOriginFields, size/minOrigin), bytes: sharedOrigin * size}
	root = &origin{}
	var err error
	if root.children, err = p.fields(schema, 6, 0); err != nil {
		return nil
	}
	if root.keys, root.values, err = p.metadata(schema, 8); err != nil || schema.Err() != nil {
		return nil
	}
	return root
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

type originParser struct {
	budget int // tables that may still follow
	bytes  int // bytes of strings that may still follow
}

// text copies a string. Once the limit is exceeded, it returns "" and the schema
// becomes an error.
func (p *originParser) text(t flat.Table, slot int) string {
	b := t.Bytes(slot)
	if p.bytes -= len(b); p.bytes < 0 {
		return ""
	}
	return string(b)
}

// tables calls f for each table of the vector at slot.
func (p *originParser) tables(t flat.Table, slot int, f func(flat.Table) error) error {
	at, n := t.Tables(slot)
	if p.budget -= n; p.budget < 0 {
		return errOrigin
	}
	for i := range n {
		if err := f(at(i)); err != nil {
			return err
		}
	}
	if p.bytes < 0 {
		return errOrigin
	}
	return t.Err()
}

func (p *originParser) metadata(t flat.Table, slot int) (keys, values []string, err error) {
	err = p.tables(t, slot, func(kv flat.Table) error {
		keys = append(keys, p.text(kv, 4))
		values = append(values, p.text(kv, 6))
		return kv.Err()
	})
	return keys, values, err
}

func (p *originParser) fields(t flat.Table, slot int, depth int) (out []*origin, err error) {
	if depth > maxOriginDepth {
		return nil, errOrigin
	}
	err = p.tables(t, slot, func(ft flat.Table) error {
		f := &origin{name: p.text(ft, 4), kind: ft.Byte(8, 0)}
		p.parameters(f, ft)
		f.coded = p.coding(ft)
		var err error
		if f.children, err = p.fields(ft, 14, depth+1); err != nil {
			return err
		}
		f.keys, f.values, err = p.metadata(ft, 16)
		out = append(out, f)
		return err
	})
	return out, err
}

// parameters reads the parameters of the types that matter here.
func (p *originParser) parameters(f *origin, ft flat.Table) {
	t, _ := ft.Table(10)
	switch f.kind {
	case fbTimestamp:
		f.zone = p.text(t, 6)
	case fbDuration:
		f.unit = arrow.TimeUnit(t.Int16(4, int16(arrow.Millisecond)))
		if f.unit < arrow.Second || f.unit > arrow.Nanosecond {
			f.kind = 0
		}
	case fbDecimal:
		f.bits = int(t.Int32(8, 128))
	case fbFixedList:
		f.size = int(t.Int32(4, 0))
	case fbMap:
		f.sorted = t.Bool(4, false)
	}
}

// named returns o with another name: parts of lists and maps are matched by
// position.
func (o *origin) named(name string) *origin {
	if o == nil || o.name == name {
		return o
	}
	c := *o
	c.name = name
	return &c
}

// coding returns the coding of a field that may be nil.
func (o *origin) coding() *coding {
	if o == nil {
		return nil
	}
	return o.coded
}

// coding reads the description of the field's dictionary. It returns nil if there
// is none or if its index type is unknown.
func (p *originParser) coding(ft flat.Table) *coding {
	t, ok := ft.Table(12)
	if !ok {
		return nil
	}
	c := &coding{index: arrow.PrimitiveTypes.Int32, ordered: t.Bool(8, false)}
	if index, ok := t.Table(6); ok {
		types := map[int32][2]arrow.DataType{
			8:  {arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int8},
			16: {arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int16},
			32: {arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int32},
			64: {arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int64},
		}
		c.index = types[index.Int32(4, 0)][0]
		if index.Bool(6, false) {
			c.index = types[index.Int32(4, 0)][1]
		}
	}
	if c.index == nil {
		return nil
	}
	return c
}

// child returns the i-th child if there are n children, else nil.
func (o *origin) child(i, n int) *origin {
	if o == nil || len(o.children) != n {
		return nil
	}
	return o.children[i]
}
