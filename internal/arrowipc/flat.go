package arrowipc

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/flat"
)

// Slots of the tables in the format's Schema.fbs, Message.fbs and File.fbs that are
// used here: 4 + 2·index of the field in its table.
const (
	messageVersion = 4
	messageType    = 6
	messageHeader  = 8
	messageBody    = 10
	messageMeta    = 12

	schemaFeatures = 10

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

// Kinds of message headers.
const (
	headerSchema = 1
	headerDict   = 2
	headerBatch  = 3
)

// Supported metadata versions.
const (
	metadataV4 = 3
	metadataV5 = 4
)

// outside replaces *err by the first out-of-bounds access in t's flatbuffer.
// Everything read after that access is empty, so *err may be a mere consequence.
func outside(at fault.At, t flat.Table, err *error) {
	if bad := t.Err(); bad != nil {
		*err = faults.Corrupt(at, "%v", bad)
	}
}

// message is the parsed envelope of an IPC message.
type message struct {
	v5     bool  // metadata version 5; else 4
	codec  codec // of the body's buffers, unless a batch's header names another
	kind   byte  // headerSchema, headerDict or headerBatch
	header flat.Table
	body   int64 // bytes of the body after the metadata
}

// parseMessage parses the envelope in meta, the metadata without its length prefix.
func parseMessage(at fault.At, meta []byte) (m message, err error) {
	t := flat.Root(meta)
	defer outside(at, t, &err)
	m.codec = codecNone
	switch v := t.Int16(messageVersion, 0); v {
	case metadataV5:
		m.v5 = true
	case metadataV4:
		if err := m.experimental(at, t); err != nil {
			return m, err
		}
	case 0, 1, 2:
		return m, faults.Unsupported(at, "Arrow metadata version V%d, older than V4", v+1)
	default:
		return m, faults.Corrupt(at, "metadata version %d", v)
	}
	m.kind = t.Byte(messageType, 0)
	m.body = t.Int64(messageBody, 0)
	if m.body < 0 || m.body > math.MaxInt64/2 {
		return m, faults.Corrupt(at, "body length %d", m.body)
	}
	switch m.kind {
	case headerSchema, headerDict, headerBatch:
	case 4, 5:
		return m, faults.Unsupported(at, "tensor message")
	default:
		return m, faults.Corrupt(at, "message of kind %d", m.kind)
	}
	var ok bool
	if m.header, ok = t.Table(messageHeader); !ok {
		return m, faults.Corrupt(at, "message without a header")
	}
	return m, nil
}

// experimental reads the message's custom metadata, where Arrow 0.17 named the
// codec. Later writers copy the key, where it means nothing, into V5 messages.
func (m *message) experimental(at fault.At, t flat.Table) error {
	pairs, n := t.Tables(messageMeta)
	for i := range n {
		switch key, name := pairs(i).Bytes(4), pairs(i).Bytes(6); {
		case !bytes.HasPrefix(key, []byte("ARROW:experimental_")):
		case string(key) != "ARROW:experimental_compression":
			return faults.Unsupported(at, "a message with %.40q", key)
		case bytes.EqualFold(name, []byte("lz4")):
			m.codec = codecLZ4
		case bytes.EqualFold(name, []byte("zstd")):
			m.codec = codecZstd
		case !bytes.EqualFold(name, []byte("uncompressed")):
			return faults.Unsupported(at, "compression codec %.40q", name)
		}
	}
	return nil
}

// dictBatch is the header of a dictionary batch.
type dictBatch struct {
	id    int64
	delta bool
	data  batch
}

// parseDict reads the header of a dictionary batch.
func parseDict(at fault.At, m message) (d dictBatch, err error) {
	defer outside(at, m.header, &err)
	d.id = m.header.Int64(dictID, 0)
	d.delta = m.header.Bool(dictDelta, false)
	data, ok := m.header.Table(dictData)
	if !ok {
		return d, faults.Corrupt(at, "dictionary batch without data")
	}
	d.data, err = parseBatch(at, data, m)
	return d, err
}

// codec is the compression of a body's buffers.
type codec int8

const (
	codecNone codec = -1
	codecLZ4  codec = 0 // LZ4 frames
	codecZstd codec = 1
)

// batch is the header of a record batch: the number of values and nulls of each
// node of the schema tree, and the positions of its buffers in the body.
type batch struct {
	v5       bool
	length   int64
	nodes    []byte // pairs of int64: length, nulls
	buffers  []byte // pairs of int64: offset, length
	variadic []byte // int64 each: data buffers of each view column
	codec    codec
	body     int64
}

// parseBatch reads a RecordBatch table of message m. It checks that its buffers are
// aligned, lie in the body and follow one another, so that no byte is claimed twice.
// Offsets of empty buffers are ignored.
func parseBatch(at fault.At, t flat.Table, m message) (b batch, err error) {
	defer outside(at, t, &err)
	b = batch{v5: m.v5, codec: m.codec, body: m.body}
	if b.length = t.Int64(batchLength, 0); b.length < 0 {
		return b, faults.Corrupt(at, "batch of %d rows", b.length)
	}
	b.nodes, _ = t.Vector(batchNodes, 16)
	b.buffers, _ = t.Vector(batchBuffers, 16)
	b.variadic, _ = t.Vector(batchVariadic, 8)
	if c, ok := t.Table(batchCompression); ok {
		b.codec = codec(c.Byte(4, 0))
		if b.codec != codecLZ4 && b.codec != codecZstd {
			return b, faults.Unsupported(at, "compression codec %d", b.codec)
		}
		if method := c.Byte(6, 0); method != 0 {
			return b, faults.Unsupported(at, "compression method %d", method)
		}
	}
	end := int64(0) // of the buffers so far
	for i := range len(b.buffers) / 16 {
		switch off, n := pair(b.buffers, i); {
		case n == 0:
		case off < 0 || n < 0 || n > b.body || off > b.body-n:
			return b, faults.Corrupt(at, "buffer %d lies outside its body of %d bytes", i, b.body)
		case off%8 != 0:
			return b, faults.Wanted(faults.Corrupt(at, "where buffer %d begins in its body", i), "a multiple of 8", off)
		case off < end:
			return b, faults.Corrupt(at, "buffer %d begins at %d, before the end of another at %d", i, off, end)
		default:
			end = off + n
		}
	}
	return b, nil
}

// pair returns the i-th pair of int64 in mem.
func pair(mem []byte, i int) (int64, int64) {
	return int64(binary.LittleEndian.Uint64(mem[16*i:])), int64(binary.LittleEndian.Uint64(mem[16*i+8:]))
}
