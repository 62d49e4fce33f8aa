package arrowipc

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/klauspost/compress/zstd"
)

// raw is an array with unchecked contents.
type raw struct {
	dt    arrow.DataType
	n     int
	nulls int
	bufs  []*memory.Buffer // the first is the validity bitmap
	kids  []arrow.ArrayData
	dict  arrow.ArrayData
}

func (r raw) data() arrow.ArrayData {
	return array.NewData(r.dt, r.n, r.bufs, r.kids, r.nulls, 0)
}

// rawBatch collects the header of a batch and its body.
type rawBatch struct {
	nodes, bufs [][2]int64
	variadic    []int64
	body        []byte
	zstd        bool
	odd         [2]int8  // added to the codec and the method
	keys        []string // of V4's custom metadata, each before its value; nil: V5
}

func (b *rawBatch) buffer(buf *memory.Buffer) {
	var p []byte
	if buf != nil {
		p = buf.Bytes()
	}
	if b.zstd && len(p) > 0 {
		w, _ := zstd.NewWriter(nil)
		p = w.EncodeAll(p, binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		w.Close()
	}
	b.bufs = append(b.bufs, [2]int64{int64(len(b.body)), int64(len(p))})
	b.body = append(b.body, p...)
	b.body = append(b.body, make([]byte, -len(b.body)&7)...)
}

func (b *rawBatch) add(d arrow.ArrayData) {
	b.nodes = append(b.nodes, [2]int64{int64(d.Len()), int64(d.NullN())})
	bufs := d.Buffers()
	switch d.DataType().ID() {
	case arrow.SPARSE_UNION, arrow.DENSE_UNION, arrow.RUN_END_ENCODED:
		bufs = bufs[1:]
	case arrow.STRING_VIEW:
		b.variadic = append(b.variadic, int64(len(bufs)-2))
	}
	for _, buf := range bufs {
		b.buffer(buf)
	}
	for _, k := range d.Children() {
		b.add(k)
	}
}

// message returns the framed batch: a record batch, or a dictionary batch if id is
// not negative.
func (b *rawBatch) message(rows, id int64, delta bool) []byte {
	f := flatbuffers.NewBuilder(0)
	pairs := func(v [][2]int64) flatbuffers.UOffsetT {
		f.StartVector(16, len(v), 8)
		for i := len(v) - 1; i >= 0; i-- {
			f.Prep(8, 16)
			f.PrependInt64(v[i][1])
			f.PrependInt64(v[i][0])
		}
		return f.EndVector(len(v))
	}
	nodes, bufs := pairs(b.nodes), pairs(b.bufs)
	f.StartVector(8, len(b.variadic), 8)
	for i := len(b.variadic) - 1; i >= 0; i-- {
		f.PrependInt64(b.variadic[i])
	}
	variadic := f.EndVector(len(b.variadic))
	var compression flatbuffers.UOffsetT
	if b.zstd && b.keys == nil {
		f.StartObject(2)
		f.PrependInt8Slot(0, int8(codecZstd)+b.odd[0], 0)
		f.PrependInt8Slot(1, b.odd[1], 0)
		compression = f.EndObject()
	}
	f.StartObject(5)
	f.PrependInt64Slot(0, rows, 0)
	f.PrependUOffsetTSlot(1, nodes, 0)
	f.PrependUOffsetTSlot(2, bufs, 0)
	f.PrependUOffsetTSlot(3, compression, 0)
	f.PrependUOffsetTSlot(4, variadic, 0)
	header, kind := f.EndObject(), byte(headerBatch)
	if id >= 0 {
		data := header
		f.StartObject(3)
		f.PrependInt64Slot(0, id, 0)
		f.PrependUOffsetTSlot(1, data, 0)
		f.PrependBoolSlot(2, delta, false)
		header, kind = f.EndObject(), headerDict
	}
	version, meta := int16(metadataV5), flatbuffers.UOffsetT(0)
	if b.keys != nil {
		version, meta = metadataV4, pairsOf(f, b.keys)
	}
	return append(framedMeta(f, version, kind, header, len(b.body), meta), b.body...)
}

// pairsOf writes a vector of KeyValue tables.
func pairsOf(f *flatbuffers.Builder, texts []string) flatbuffers.UOffsetT {
	var pairs []flatbuffers.UOffsetT
	for i := 0; i < len(texts); i += 2 {
		key, value := f.CreateString(texts[i]), f.CreateString(texts[i+1])
		f.StartObject(2)
		f.PrependUOffsetTSlot(0, key, 0)
		f.PrependUOffsetTSlot(1, value, 0)
		pairs = append(pairs, f.EndObject())
	}
	f.StartVector(4, len(pairs), 4)
	for i := len(pairs) - 1; i >= 0; i-- {
		f.PrependUOffsetT(pairs[i])
	}
	return f.EndVector(len(pairs))
}

// framedMeta finishes a message and returns it with its length before it.
func framedMeta(f *flatbuffers.Builder, version int16, kind byte, header flatbuffers.UOffsetT, body int, keys flatbuffers.UOffsetT) []byte {
	f.StartObject(5)
	f.PrependInt16Slot(0, version, 0)
	f.PrependByteSlot(1, kind, 0)
	f.PrependUOffsetTSlot(2, header, 0)
	f.PrependInt64Slot(3, int64(body), 0)
	f.PrependUOffsetTSlot(4, keys, 0)
	f.Finish(f.EndObject())
	meta := f.FinishedBytes()
	meta = append(meta, make([]byte, -len(meta)&7)...)
	return append(binary.LittleEndian.AppendUint32([]byte{0xFF, 0xFF, 0xFF, 0xFF}, uint32(len(meta))), meta...)
}

// featuredSchema returns the message of a schema of one column of integers, with
// a length of its body and with features.
func featuredSchema(body int, features ...int64) []byte {
	f := flatbuffers.NewBuilder(0)
	name := f.CreateString("c")
	f.StartObject(2)
	f.PrependInt32Slot(0, 32, 0)
	f.PrependBoolSlot(1, true, false)
	typ := f.EndObject()
	f.StartObject(7)
	f.PrependUOffsetTSlot(0, name, 0)
	f.PrependByteSlot(2, 2, 0)
	f.PrependUOffsetTSlot(3, typ, 0)
	field := f.EndObject()
	f.StartVector(4, 1, 4)
	f.PrependUOffsetT(field)
	fields := f.EndVector(1)
	f.StartVector(8, len(features), 8)
	for _, v := range features {
		f.PrependInt64(v)
	}
	list := f.EndVector(len(features))
	f.StartObject(4)
	f.PrependUOffsetTSlot(1, fields, 0)
	f.PrependUOffsetTSlot(3, list, 0)
	return framedMeta(f, metadataV5, headerSchema, f.EndObject(), body, 0)
}

// batchMessages returns the messages of a batch with one column, preceded by that
// of its dictionary.
func batchMessages(r raw, zstd bool) []byte {
	var out []byte
	if r.dict != nil {
		out = dictMessage(r.dict, 0, false)
	}
	b := rawBatch{zstd: zstd}
	b.add(r.data())
	return append(out, b.message(int64(r.n), -1, false)...)
}

// dictMessage returns the message of one dictionary batch.
func dictMessage(d arrow.ArrayData, id int64, delta bool) []byte {
	var b rawBatch
	b.add(d)
	return b.message(int64(d.Len()), id, delta)
}

// schemaMessage returns the message of a schema with a column of each type.
func schemaMessage(types ...arrow.DataType) []byte {
	fields := make([]arrow.Field, len(types))
	for i, dt := range types {
		fields[i] = field1("c", dt)
	}
	var out bytes.Buffer
	ipc.NewWriter(&out, ipc.WithSchema(arrow.NewSchema(fields, nil))).Close()
	return out.Bytes()[:out.Len()-8]
}

// stream concatenates messages and the end marker.
func stream(messages ...[]byte) []byte {
	return append(bytes.Join(messages, nil), 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0)
}
