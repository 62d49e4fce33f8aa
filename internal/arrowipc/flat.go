package arrowipc

import (
	"math"

	"github.com/bloomjoin/bloomjoin/internal/fault"
	flatbuffers "github.com/google/flatbuffers/go"
)

// Slots of the tables in the format's Schema.fbs, Message.fbs and File.fbs
// that are read here: 4 + 2·index of the field in its table.
const (
	messageVersion = 4
	messageType    = 6
	messageHeader  = 8
	messageBody    = 10

	footerVersion = 4
	footerSchema  = 6
	footerDicts   = 8
	footerBatches = 10

	batchLength      = 4
	batchNodes       = 6
	batchBuffers     = 8
	batchCompression = 10
	batchVariadic    = 12

	dictID    = 4
	dictData  = 6
	dictDelta = 8
)

// Kinds of a message's header.
const (
	headerSchema = 1
	headerDict   = 2
	headerBatch  = 3
)

// Metadata versions that are read.
const (
	metadataV4 = 3
	metadataV5 = 4
)

// table is one flatbuffer table. Its accessors panic with a runtime error when
// an offset leads outside the bytes; every entry point that parses metadata
// recovers and reports fault.ErrCorrupt. Nothing here allocates from a size
// that has not been held against the bytes.
type table struct{ flatbuffers.Table }

// rootTable is the table that buf's first offset points at.
func rootTable(buf []byte) table {
	return table{flatbuffers.Table{Bytes: buf, Pos: flatbuffers.GetUOffsetT(buf)}}
}

// sub is the table (or union member) in a slot; false when the slot is empty.
func (t table) sub(slot flatbuffers.VOffsetT) (table, bool) {
	o := t.Offset(slot)
	if o == 0 {
		return table{}, false
	}
	pos := t.Indirect(flatbuffers.UOffsetT(o) + t.Pos)
	_ = t.Bytes[pos] // a table lies inside the bytes
	return table{flatbuffers.Table{Bytes: t.Bytes, Pos: pos}}, true
}

// bytes is the string in a slot, nil when the slot is empty. It shares memory.
func (t table) bytes(slot flatbuffers.VOffsetT) []byte {
	o := t.Offset(slot)
	if o == 0 {
		return nil
	}
	return t.ByteVector(flatbuffers.UOffsetT(o) + t.Pos)
}

// vector is the memory of the vector in a slot, whose n elements are width
// bytes each. Its bounds are checked; an empty slot is an empty vector.
func (t table) vector(slot flatbuffers.VOffsetT, width int) (mem []byte, n int) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil, 0
	}
	n = t.VectorLen(o)
	start := uint64(t.Vector(o))
	return t.Bytes[start : start+uint64(n)*uint64(width)], n
}

// tables is the vector of tables in a slot; at(i) is its i-th element.
func (t table) tables(slot flatbuffers.VOffsetT) (at func(i int) table, n int) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil, 0
	}
	_, n = t.vector(slot, flatbuffers.SizeUOffsetT)
	start := t.Vector(o)
	return func(i int) table {
		pos := t.Indirect(start + flatbuffers.UOffsetT(i)*flatbuffers.SizeUOffsetT)
		_ = t.Bytes[pos]
		return table{flatbuffers.Table{Bytes: t.Bytes, Pos: pos}}
	}, n
}

// message is the parsed envelope of one IPC message.
type message struct {
	v5     bool // metadata version 5; otherwise 4
	kind   byte // headerSchema, headerDict or headerBatch
	header table
	body   int64 // bytes of body that follow the metadata
}

// parseMessage reads the envelope in meta, the metadata without its length
// prefix.
func parseMessage(at fault.At, meta []byte) (m message, err error) {
	defer fault.Recovered(at, &err)
	t := rootTable(meta)
	switch v := t.GetInt16Slot(messageVersion, 0); v {
	case metadataV5:
		m.v5 = true
	case metadataV4:
	case 0, 1, 2:
		return m, fault.Unsupported(at, "Arrow metadata version V%d, older than V4", v+1)
	default:
		return m, fault.Corrupt(at, "metadata version %d", v)
	}
	m.kind = t.GetByteSlot(messageType, 0)
	m.body = t.GetInt64Slot(messageBody, 0)
	if m.body < 0 || m.body > math.MaxInt64/2 {
		return m, fault.Corrupt(at, "body length %d", m.body)
	}
	switch m.kind {
	case headerSchema, headerDict, headerBatch:
	case 4, 5:
		return m, fault.Unsupported(at, "tensor message")
	default:
		return m, fault.Corrupt(at, "message of kind %d", m.kind)
	}
	var ok bool
	if m.header, ok = t.sub(messageHeader); !ok {
		return m, fault.Corrupt(at, "message without a header")
	}
	return m, nil
}

// dictBatch is the header of a dictionary batch.
type dictBatch struct {
	id    int64
	delta bool
	data  batch
}

// parseDict reads the header of a dictionary batch.
func parseDict(at fault.At, m message) (d dictBatch, err error) {
	defer fault.Recovered(at, &err)
	d.id = m.header.GetInt64Slot(dictID, 0)
	d.delta = m.header.GetBoolSlot(dictDelta, false)
	data, ok := m.header.sub(dictData)
	if !ok {
		return d, fault.Corrupt(at, "dictionary batch without data")
	}
	d.data, err = parseBatch(at, data, m)
	return d, err
}

// codec says how the buffers of a body are compressed.
type codec int8

const (
	codecNone codec = -1
	codecLZ4  codec = 0 // LZ4 frames
	codecZstd codec = 1
)

// batch is the header of a record batch: how many values and nulls each node
// of the schema's tree has, and where its buffers lie in the body.
type batch struct {
	v5       bool
	length   int64
	nodes    []byte // pairs of int64: length, nulls
	buffers  []byte // pairs of int64: offset, length
	variadic []byte // int64 each: data buffers of each view column
	codec    codec
	body     int64
}

// parseBatch reads a RecordBatch table of message m and checks that every
// buffer lies in the body and that together they are no bigger than it, so
// that no byte can be claimed twice.
func parseBatch(at fault.At, t table, m message) (b batch, err error) {
	defer fault.Recovered(at, &err)
	b = batch{v5: m.v5, codec: codecNone, body: m.body}
	if b.length = t.GetInt64Slot(batchLength, 0); b.length < 0 {
		return b, fault.Corrupt(at, "batch of %d rows", b.length)
	}
	b.nodes, _ = t.vector(batchNodes, 16)
	b.buffers, _ = t.vector(batchBuffers, 16)
	b.variadic, _ = t.vector(batchVariadic, 8)
	if c, ok := t.sub(batchCompression); ok {
		b.codec = codec(c.GetInt8Slot(4, 0))
		if b.codec != codecLZ4 && b.codec != codecZstd {
			return b, fault.Unsupported(at, "compression codec %d", b.codec)
		}
		if method := c.GetInt8Slot(6, 0); method != 0 {
			return b, fault.Unsupported(at, "compression method %d", method)
		}
	}
	var sum int64
	for i := range len(b.buffers) / 16 {
		off, n := pair(b.buffers, i)
		if off < 0 || n < 0 || n > b.body || off > b.body-n {
			return b, fault.Corrupt(at, "buffer %d lies outside its body of %d bytes", i, b.body)
		}
		if sum += n; sum > b.body {
			return b, fault.Corrupt(at, "buffers overlap")
		}
	}
	return b, nil
}

// pair is the i-th pair of int64 in mem.
func pair(mem []byte, i int) (int64, int64) {
	return flatbuffers.GetInt64(mem[16*i:]), flatbuffers.GetInt64(mem[16*i+8:])
}
