package main

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
)

const arrowMagic = "ARROW1"

// message is an encapsulated Arrow IPC message.
type message struct {
	meta []byte // padded to 8 bytes
	body []byte
}

// arrowModel is a parsed Arrow stream, or a file with its footer.
type arrowModel struct {
	messages []message
	footer   []byte // nil: a stream
}

func takeArrow(b []byte) (mutable, error) {
	m := &arrowModel{}
	rest := b
	if len(b) > 20 && string(b[:6]) == arrowMagic {
		size := int(binary.LittleEndian.Uint32(b[len(b)-10:]))
		if size > len(b)-20 {
			return nil, errors.New("footer beyond the file")
		}
		m.footer = b[len(b)-10-size : len(b)-10]
		rest = b[8 : len(b)-10-size]
	}
	for len(rest) >= 8 {
		size := int(binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
		if size == 0xffffffff {
			size = int(binary.LittleEndian.Uint32(rest))
			rest = rest[4:]
		}
		if size == 0 {
			break
		}
		if size < 8 || size > len(rest) {
			return nil, errors.New("a message beyond the file")
		}
		meta := rest[:size]
		rest = rest[size:]
		body := bodyLength(meta)
		if body < 0 || body > int64(len(rest)) {
			return nil, errors.New("a body beyond the file")
		}
		m.messages = append(m.messages, message{meta, rest[:body]})
		rest = rest[body:]
	}
	if len(m.messages) < 2 {
		return nil, errors.New("no records")
	}
	return m, nil
}

// slot returns the position of a field of a table; 0: absent.
func slot(b []byte, table, n int) int {
	if table <= 0 || table+4 > len(b) {
		return 0
	}
	v := table - int(int32(binary.LittleEndian.Uint32(b[table:])))
	if v < 0 || v+4 > len(b) {
		return 0
	}
	at := v + 4 + 2*n
	if at+2 > len(b) || 4+2*n+2 > int(binary.LittleEndian.Uint16(b[v:])) {
		return 0
	}
	off := int(binary.LittleEndian.Uint16(b[at:]))
	if off == 0 || table+off+8 > len(b) {
		return 0
	}
	return table + off
}

func root(b []byte) int { return int(binary.LittleEndian.Uint32(b)) }

// follow returns the position that the offset at a position points to.
func follow(b []byte, at int) int {
	if at <= 0 || at+4 > len(b) {
		return 0
	}
	to := at + int(binary.LittleEndian.Uint32(b[at:]))
	if to+4 > len(b) {
		return 0
	}
	return to
}

// Fields of Message: version, header type, header, body length.
func bodyLength(meta []byte) int64 {
	at := slot(meta, root(meta), 3)
	if at == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(meta[at:]))
}

func setBodyLength(meta []byte, n int) {
	if at := slot(meta, root(meta), 3); at != 0 {
		binary.LittleEndian.PutUint64(meta[at:], uint64(n))
	}
}

// batch returns the position of the record batch of a message, which may be in a
// dictionary batch; 0: none.
func batch(meta []byte) int {
	kind := slot(meta, root(meta), 1)
	header := follow(meta, slot(meta, root(meta), 2))
	if kind == 0 || header == 0 {
		return 0
	}
	switch meta[kind] {
	case 3:
		return header
	case 2:
		return follow(meta, slot(meta, header, 1))
	}
	return 0
}

// vector returns the start and the length of a vector in a table.
func vector(meta []byte, table, n, size int) (at, count int) {
	at = follow(meta, slot(meta, table, n))
	if at == 0 {
		return 0, 0
	}
	count = int(binary.LittleEndian.Uint32(meta[at:]))
	if count < 0 || at+4+count*size > len(meta) {
		return 0, 0
	}
	return at + 4, count
}

func (m *arrowModel) bytes(blocks bool) []byte {
	var out []byte
	if m.footer != nil {
		out = append(out, arrowMagic+"\x00\x00"...)
	}
	type place struct{ at, meta, body int }
	var places [2][]place
	for _, msg := range m.messages {
		p := place{at: len(out)}
		out = binary.LittleEndian.AppendUint32(out, 0xffffffff)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(msg.meta)))
		out = append(out, msg.meta...)
		p.meta, p.body = len(out)-p.at, len(msg.body)
		out = append(out, msg.body...)
		if kind := slot(msg.meta, root(msg.meta), 1); kind != 0 && (msg.meta[kind] == 2 || msg.meta[kind] == 3) {
			places[msg.meta[kind]-2] = append(places[msg.meta[kind]-2], p)
		}
	}
	out = append(out, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
	if m.footer == nil {
		return out
	}
	footer := slices.Clone(m.footer)
	for i := range 2 { // dictionaries, record batches: structures of 24 bytes
		at, n := vector(footer, root(footer), 2+i, 24)
		for k := range min(n, len(places[i])) {
			if blocks {
				binary.LittleEndian.PutUint64(footer[at+24*k:], uint64(places[i][k].at))
				binary.LittleEndian.PutUint32(footer[at+24*k+8:], uint32(places[i][k].meta))
				binary.LittleEndian.PutUint64(footer[at+24*k+16:], uint64(places[i][k].body))
			}
		}
		// The message was dropped, so the list is shorter.
		if blocks && n > len(places[i]) && at > 0 {
			binary.LittleEndian.PutUint32(footer[at-4:], uint32(len(places[i])))
		}
	}
	out = append(out, footer...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(footer)))
	return append(out, arrowMagic...)
}

// changeWords mutates one to three numbers of 1, 2, 4 or 8 bytes.
func changeWords(rng *rand.Rand, b []byte) {
	if len(b) < 8 {
		return
	}
	for range 1 + rng.IntN(3)/2 {
		switch size := []int{4, 4, 4, 8, 8, 2, 1}[rng.IntN(7)]; size {
		case 1:
			b[rng.IntN(len(b))] = byte(oddNumber(rng, int64(b[rng.IntN(len(b))])))
		case 2:
			at := rng.IntN(len(b)/2) * 2
			binary.LittleEndian.PutUint16(b[at:], uint16(oddNumber(rng, int64(binary.LittleEndian.Uint16(b[at:])))))
		case 4:
			at := rng.IntN(len(b)/4) * 4
			binary.LittleEndian.PutUint32(b[at:], uint32(oddNumber(rng, int64(int32(binary.LittleEndian.Uint32(b[at:]))))))
		case 8:
			at := rng.IntN(len(b)/8) * 8
			binary.LittleEndian.PutUint64(b[at:], uint64(oddNumber(rng, int64(binary.LittleEndian.Uint64(b[at:])))))
		}
	}
}

func (m *arrowModel) mutate(rng *rand.Rand) mutation {
	c := &arrowModel{footer: slices.Clone(m.footer)}
	for _, msg := range m.messages {
		c.messages = append(c.messages, message{slices.Clone(msg.meta), slices.Clone(msg.body)})
	}
	var out mutation
	blocks := true
	for range 1 + rng.IntN(3)/2 {
		i := rng.IntN(len(c.messages))
		msg := &c.messages[i]
		what := ""
		switch k := rng.IntN(20); {
		case k < 5:
			changeWords(rng, msg.meta)
			what = "metadata"
		case k < 9: // lengths, null counts, positions of buffers
			b := batch(msg.meta)
			which, size := 1+rng.IntN(2), 16
			at, n := vector(msg.meta, b, which, size)
			if n == 0 {
				changeWords(rng, msg.meta)
				what = "metadata"
				break
			}
			at += 8 * rng.IntN(2*n)
			binary.LittleEndian.PutUint64(msg.meta[at:], uint64(oddNumber(rng, int64(binary.LittleEndian.Uint64(msg.meta[at:])))))
			what = []string{"node", "buffer"}[which-1]
		case k < 15: // the content of a buffer; offsets are mostly at its start
			at, n := vector(msg.meta, batch(msg.meta), 2, 16)
			if n == 0 {
				break
			}
			at += 16 * rng.IntN(n)
			from, size := int(binary.LittleEndian.Uint64(msg.meta[at:])), int(binary.LittleEndian.Uint64(msg.meta[at+8:]))
			if from < 0 || size <= 0 || from > len(msg.body) || size > len(msg.body)-from {
				break
			}
			changeWords(rng, msg.body[from:from+size])
			what = "buffer's bytes"
		case k == 15: // rows
			if at := slot(msg.meta, batch(msg.meta), 0); at != 0 {
				binary.LittleEndian.PutUint64(msg.meta[at:], uint64(oddNumber(rng, int64(binary.LittleEndian.Uint64(msg.meta[at:])))))
				what = "rows"
			}
		case k == 16:
			msg.body = damage(rng, msg.body)
			setBodyLength(msg.meta, len(msg.body))
			what = "body's length"
		case k == 17:
			j := rng.IntN(len(c.messages))
			c.messages[i], c.messages[j] = c.messages[j], c.messages[i]
			what = "messages swapped"
		case k == 18:
			j := rng.IntN(len(c.messages))
			if rng.IntN(2) == 0 {
				c.messages = slices.Insert(c.messages, j, message{slices.Clone(msg.meta), slices.Clone(msg.body)})
				what = "message twice"
			} else if len(c.messages) > 1 {
				c.messages = slices.Delete(c.messages, j, j+1)
				what = "message dropped"
			}
		case k == 19:
			if c.footer != nil {
				changeWords(rng, c.footer)
				blocks = rng.IntN(2) == 0
				what = "footer"
			} else {
				j := rng.IntN(len(c.messages))
				msg.meta = slices.Clone(c.messages[j].meta)
				what = "metadata of another"
			}
		}
		if out.what != "" {
			out.what += ", "
		}
		out.what += what
	}
	out.bytes = c.bytes(blocks)
	return out
}
