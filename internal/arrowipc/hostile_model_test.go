package arrowipc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/klauspost/compress/zstd"
)

// apart is a valid input, split into parts so that one thing can be changed and all
// lengths and positions corrected. It does not use the reader's code.
type apart struct {
	stream   bool
	messages []framed
	footer   []byte // flatbuffer of a file
}

// framed is one message: its flatbuffer and its body.
type framed struct{ meta, body []byte }

func takeApart(b []byte, stream bool) *apart {
	a := &apart{stream: stream}
	rest := b
	if !stream {
		end := len(b) - fileTail
		n := int(binary.LittleEndian.Uint32(b[end:]))
		a.footer = bytes.Clone(b[end-n : end])
		rest = b[fileHead : end-n]
	}
	for len(rest) >= 8 {
		n := int(binary.LittleEndian.Uint32(rest[4:]))
		if n == 0 {
			break
		}
		m := framed{meta: bytes.Clone(rest[8 : 8+n])}
		rest = rest[8+n:]
		if at := slotOf(m.meta, rootOf(m.meta), messageBody); at > 0 {
			body := int(binary.LittleEndian.Uint64(m.meta[at:]))
			m.body, rest = bytes.Clone(rest[:body]), rest[body:]
		}
		a.messages = append(a.messages, m)
	}
	return a
}

func (a *apart) clone() *apart {
	c := &apart{stream: a.stream, footer: bytes.Clone(a.footer)}
	for _, m := range a.messages {
		c.messages = append(c.messages, framed{bytes.Clone(m.meta), bytes.Clone(m.body)})
	}
	return c
}

// bytes assembles the input. Lengths and positions of messages are correct.
func (a *apart) bytes() []byte {
	var out []byte
	if !a.stream {
		out = append(out, magic+"\x00\x00"...)
	}
	var blocks [2][]byte // of dictionaries and batches
	for i, m := range a.messages {
		meta := append(bytes.Clone(m.meta), make([]byte, -len(m.meta)&7)...)
		if i > 0 {
			which := 1
			if at := slotOf(meta, rootOf(meta), messageType); at > 0 && meta[at] == headerDict {
				which = 0
			}
			blk := binary.LittleEndian.AppendUint64(blocks[which], uint64(len(out)))
			blk = binary.LittleEndian.AppendUint64(blk, uint64(8+len(meta)))
			blocks[which] = binary.LittleEndian.AppendUint64(blk, uint64(len(m.body)))
		}
		out = binary.LittleEndian.AppendUint32(append(out, 0xFF, 0xFF, 0xFF, 0xFF), uint32(len(meta)))
		out = append(append(out, meta...), m.body...)
	}
	out = append(out, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0)
	if a.stream {
		return out
	}
	footer := append(bytes.Clone(a.footer), make([]byte, -len(a.footer)&7)...)
	for which, slot := range []int{footerDicts, footerBatches} {
		at := slotOf(footer, rootOf(footer), slot)
		if at == 0 || at+4 > len(footer) {
			continue
		}
		binary.LittleEndian.PutUint32(footer[at:], uint32(len(footer)-at)) // the vector moves to the end
		footer = binary.LittleEndian.AppendUint32(footer, uint32(len(blocks[which])/24))
		footer = append(append(footer, blocks[which]...), make([]byte, 4)...)
	}
	out = binary.LittleEndian.AppendUint32(append(out, footer...), uint32(len(footer)))
	return append(out, magic...)
}

func rootOf(b []byte) int { return int(binary.LittleEndian.Uint32(b)) }

// slotOf returns the position of the value in a table's slot, 0 if it is empty or
// the table is no longer valid.
func slotOf(b []byte, table, slot int) int {
	if table < 0 || table+4 > len(b) {
		return 0
	}
	v := table - int(int32(binary.LittleEndian.Uint32(b[table:])))
	if v < 0 || v+4 > len(b) || slot+2 > int(binary.LittleEndian.Uint16(b[v:])) || v+slot+2 > len(b) {
		return 0
	}
	if o := int(binary.LittleEndian.Uint16(b[v+slot:])); o > 0 && table+o < len(b) {
		return table + o
	}
	return 0
}

// site is a number in a flatbuffer.
type site struct {
	at, width int
	kind      string
}

// shape describes a table's slots: a width, "text", "vector N" for words in structs
// of N bytes, or another shape, alone or as a vector.
type shape map[int]any

// many is a vector of tables.
type many struct{ of shape }

var (
	pairShape  = shape{4: "text", 6: "text"}
	typeShape  = shape{4: 2, 6: 2, 8: 2}
	dictShape  = shape{4: 8, 6: shape{4: 4, 6: 1}, 8: 1}
	fieldShape = shape{4: "text", 6: 1, 8: 1, 10: typeShape, 12: dictShape, 16: many{pairShape}}
	batchShape = shape{4: 8, 6: "vector 16", 8: "vector 16", 10: shape{4: 1, 6: 1}, 12: "vector 8"}
	schemaOf   = shape{4: 2, 6: many{fieldShape}, 8: many{pairShape}}
	headers    = map[byte]shape{headerSchema: schemaOf, headerDict: {4: 8, 6: batchShape, 8: 1}, headerBatch: batchShape}
	footerOf   = shape{4: 2, 6: schemaOf, 8: "vector 24", 10: "vector 24"}
)

func init() {
	fieldShape[14] = many{fieldShape}
}

// sites returns the numbers in the valid flatbuffer b with the given shape.
func sites(b []byte, sh shape) (out []site) {
	add := func(at, width int, kind string) { out = append(out, site{at, width, kind}) }
	var visit func(table int, sh shape)
	visit = func(table int, sh shape) {
		v := table - int(int32(binary.LittleEndian.Uint32(b[table:])))
		add(table, 4, "offset of a vtable")
		add(v, 2, "size of a vtable")
		for slot, what := range sh {
			at := slotOf(b, table, slot)
			if at == 0 {
				continue
			}
			add(v+slot, 2, "entry of a vtable")
			if width, ok := what.(int); ok {
				add(at, width, "number")
				continue
			}
			add(at, 4, "offset")
			to := at + int(binary.LittleEndian.Uint32(b[at:]))
			switch what := what.(type) {
			case shape:
				visit(to, what)
			case many:
				add(to, 4, "length of a vector")
				for i := range int(binary.LittleEndian.Uint32(b[to:])) {
					e := to + 4 + 4*i
					add(e, 4, "offset")
					visit(e+int(binary.LittleEndian.Uint32(b[e:])), what.of)
				}
			case string:
				add(to, 4, "length of a vector")
				var width int
				if _, err := fmt.Sscanf(what, "vector %d", &width); err == nil {
					for i := range int(binary.LittleEndian.Uint32(b[to:])) * width / 8 {
						add(to+4+8*i, 8, "number")
					}
				}
			}
		}
	}
	add(0, 4, "offset")
	visit(rootOf(b), sh)
	return out
}

// messageSites returns the sites of a message.
func messageSites(meta []byte) []site {
	kind := meta[slotOf(meta, rootOf(meta), messageType)]
	return sites(meta, shape{messageVersion: 2, messageType: 1, messageHeader: headers[kind], messageBody: 8})
}

// change gives a site another value, often close to an edge.
func change(rng *rand.Rand, b []byte, s site) {
	var old [8]byte
	copy(old[:], b[s.at:s.at+s.width])
	v := int64(binary.LittleEndian.Uint64(old[:]))
	switch rng.IntN(8) {
	case 0:
		v += rng.Int64N(17) - 8
	case 1:
		v = rng.Int64N(64)
	case 2:
		v = int64(len(b)) + rng.Int64N(33) - 16
	case 3:
		v = 1<<rng.IntN(63) - rng.Int64N(3)
	case 4:
		v = -1 - rng.Int64N(1<<rng.IntN(33))
	case 5:
		v ^= 1 << rng.IntN(8*s.width)
	case 6:
		v *= 1 + rng.Int64N(3)
	default:
		v = int64(rng.Uint64())
	}
	var now [8]byte
	binary.LittleEndian.PutUint64(now[:], uint64(v))
	copy(b[s.at:s.at+s.width], now[:])
}

// batchTable returns the position of a message's RecordBatch table, 0 for other
// messages.
func batchTable(meta []byte) int {
	at := slotOf(meta, rootOf(meta), messageHeader)
	t := at + int(binary.LittleEndian.Uint32(meta[at:]))
	switch meta[slotOf(meta, rootOf(meta), messageType)] {
	case headerBatch:
		return t
	case headerDict:
		at = slotOf(meta, t, dictData)
		return at + int(binary.LittleEndian.Uint32(meta[at:]))
	}
	return 0
}

// buffersOf returns the position of the n buffer descriptors of a batch.
func buffersOf(meta []byte) (at, n int) {
	at = slotOf(meta, batchTable(meta), batchBuffers)
	at += int(binary.LittleEndian.Uint32(meta[at:]))
	return at + 4, int(binary.LittleEndian.Uint32(meta[at:]))
}

// rewrite replaces the i-th buffer of a message and corrects the positions of the
// following ones and the body's length.
func (m *framed) rewrite(i int, with []byte) {
	at, n := buffersOf(m.meta)
	var body []byte
	for j := range n {
		pair := m.meta[at+16*j:]
		off, size := binary.LittleEndian.Uint64(pair), binary.LittleEndian.Uint64(pair[8:])
		buf := m.body[off : off+size]
		if j == i {
			buf = with
		}
		binary.LittleEndian.PutUint64(pair, uint64(len(body)))
		binary.LittleEndian.PutUint64(pair[8:], uint64(len(buf)))
		body = append(append(body, buf...), make([]byte, -len(buf)&7)...)
	}
	m.body = body
	binary.LittleEndian.PutUint64(m.meta[slotOf(m.meta, rootOf(m.meta), messageBody):], uint64(len(body)))
}

// plain returns the uncompressed contents of a buffer, and a function that
// compresses it again.
func (m *framed) plain(i int) (b []byte, pack func([]byte) []byte) {
	at, _ := buffersOf(m.meta)
	off, size := binary.LittleEndian.Uint64(m.meta[at+16*i:]), binary.LittleEndian.Uint64(m.meta[at+16*i+8:])
	b = bytes.Clone(m.body[off : off+size])
	packed := slotOf(m.meta, batchTable(m.meta), batchCompression) > 0
	if !packed || len(b) < 8 {
		return b, bytes.Clone
	}
	if int64(binary.LittleEndian.Uint64(b)) == -1 {
		return b[8:], func(b []byte) []byte { return append(bytes.Repeat([]byte{0xFF}, 8), b...) }
	}
	r, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	defer r.Close()
	inner, err := r.DecodeAll(b[8:], nil)
	if err != nil { // LZ4: uncompressed is valid as well
		return make([]byte, min(binary.LittleEndian.Uint64(b), 1<<16)), func(b []byte) []byte { return append(bytes.Repeat([]byte{0xFF}, 8), b...) }
	}
	return inner, func(b []byte) []byte {
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		defer w.Close()
		return w.EncodeAll(b, binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
	}
}
