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
	if b.zstd {
		f.StartObject(2)
		f.PrependInt8Slot(0, int8(codecZstd), 0)
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
	f.StartObject(5)
	f.PrependInt16Slot(0, metadataV5, 0)
	f.PrependByteSlot(1, kind, 0)
	f.PrependUOffsetTSlot(2, header, 0)
	f.PrependInt64Slot(3, int64(len(b.body)), 0)
	f.Finish(f.EndObject())
	meta := f.FinishedBytes()
	meta = append(meta, make([]byte, -len(meta)&7)...)
	out := binary.LittleEndian.AppendUint32([]byte{0xFF, 0xFF, 0xFF, 0xFF}, uint32(len(meta)))
	return append(append(out, meta...), b.body...)
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
