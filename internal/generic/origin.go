package generic

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	flatbuffers "github.com/google/flatbuffers/go"
)

// The Arrow schema that writers store beside the Parquet one tells what the
// Parquet types cannot: time zones, large offsets, metadata of fields. It is a
// hint. It is read here, bounded and without building types, because the
// decoders at hand allocate what its lengths claim; where it is malformed or
// does not fit the Parquet schema it is ignored.

const originKey = "ARROW:schema"

// Members of the Type union of Arrow's Schema.fbs.
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
	sorted   bool           // of a map's keys
	children []*origin
	keys     []string // of the field's metadata
	values   []string
}

var errOrigin = errors.New("malformed stored Arrow schema")

const (
	maxOriginDepth  = 64
	maxOriginFields = 1 << 20
)

// parseOrigin reads a stored Arrow schema. It returns nil when it is not one.
func parseOrigin(encoded string) (root *origin) {
	defer func() { // offsets are checked against the slice's bounds by Go itself
		if recover() != nil {
			root = nil
		}
	}()
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		if b, err = base64.RawStdEncoding.DecodeString(encoded); err != nil {
			return nil
		}
	}
	if len(b) >= 8 && binary.LittleEndian.Uint32(b) == 0xffffffff {
		b = b[4:]
	}
	if len(b) < 8 {
		return nil
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) || n < 8 {
		return nil
	}
	b = b[:n:n]
	p := originParser{budget: maxOriginFields}
	message := flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}
	const schemaHeader = 1
	o := flatbuffers.UOffsetT(message.Offset(6))
	header := flatbuffers.UOffsetT(message.Offset(8))
	if o == 0 || header == 0 || message.GetByte(o+message.Pos) != schemaHeader {
		return nil
	}
	var schema flatbuffers.Table
	message.Union(&schema, header)
	root = &origin{}
	if root.children, err = p.fields(&schema, 6, 0); err != nil {
		return nil
	}
	if root.keys, root.values, err = p.metadata(&schema, 8); err != nil {
		return nil
	}
	return root
}

type originParser struct{ budget int }

// tables calls f for each table of the vector at slot.
func (p *originParser) tables(t *flatbuffers.Table, slot flatbuffers.VOffsetT, f func(*flatbuffers.Table) error) error {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	n := t.VectorLen(o)
	if p.budget -= n; n < 0 || n > len(t.Bytes)/4 || p.budget < 0 {
		return errOrigin
	}
	start := t.Vector(o)
	for i := range n {
		pos := t.Indirect(start + flatbuffers.UOffsetT(4*i))
		if err := f(&flatbuffers.Table{Bytes: t.Bytes, Pos: pos}); err != nil {
			return err
		}
	}
	return nil
}

func (p *originParser) text(t *flatbuffers.Table, slot flatbuffers.VOffsetT) string {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return ""
	}
	return string(t.ByteVector(o + t.Pos))
}

func (p *originParser) metadata(t *flatbuffers.Table, slot flatbuffers.VOffsetT) (keys, values []string, err error) {
	err = p.tables(t, slot, func(kv *flatbuffers.Table) error {
		keys = append(keys, p.text(kv, 4))
		values = append(values, p.text(kv, 6))
		return nil
	})
	return keys, values, err
}

func (p *originParser) fields(t *flatbuffers.Table, slot flatbuffers.VOffsetT, depth int) (out []*origin, err error) {
	if depth > maxOriginDepth {
		return nil, errOrigin
	}
	err = p.tables(t, slot, func(ft *flatbuffers.Table) error {
		f := &origin{name: p.text(ft, 4)}
		if o := flatbuffers.UOffsetT(ft.Offset(8)); o != 0 {
			f.kind = ft.GetByte(o + ft.Pos)
		}
		p.parameters(f, ft)
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

// parameters reads those of the types that matter here.
func (p *originParser) parameters(f *origin, ft *flatbuffers.Table) {
	o := flatbuffers.UOffsetT(ft.Offset(10))
	if o == 0 {
		return
	}
	var t flatbuffers.Table
	ft.Union(&t, o)
	switch f.kind {
	case fbTimestamp:
		f.zone = p.text(&t, 6)
	case fbDuration:
		f.unit = arrow.TimeUnit(t.GetInt16Slot(4, int16(arrow.Millisecond)))
		if f.unit < arrow.Second || f.unit > arrow.Nanosecond {
			f.kind = 0
		}
	case fbDecimal:
		f.bits = int(t.GetInt32Slot(8, 128))
	case fbFixedList:
		f.size = int(t.GetInt32Slot(4, 0))
	case fbMap:
		f.sorted = t.GetBoolSlot(4, false)
	}
}

// named returns o under another name: parts of lists and maps are known by their
// place.
func (o *origin) named(name string) *origin {
	if o == nil || o.name == name {
		return o
	}
	c := *o
	c.name = name
	return &c
}

// child returns the i-th child when there are n.
func (o *origin) child(i, n int) *origin {
	if o == nil || len(o.children) != n {
		return nil
	}
	return o.children[i]
}
