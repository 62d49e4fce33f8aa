package main

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
)

// Types of Thrift's compact protocol.
const (
	kindTrue   = 1
	kindFalse  = 2
	kindByte   = 3
	kindI16    = 4
	kindI32    = 5
	kindI64    = 6
	kindDouble = 7
	kindBinary = 8
	kindList   = 9
	kindSet    = 10
	kindMap    = 11
	kindStruct = 12
)

// node is a value of the compact protocol.
type node struct {
	kind   byte
	number int64   // of kinds up to kindI64
	bytes  []byte  // of kindDouble and kindBinary
	fields []field // of kindStruct
	elem   byte    // kind of a list's elements
	list   []*node
}

type field struct {
	id    int64
	value *node
}

var errThrift = errors.New("no Thrift that this program knows")

type thriftReader struct {
	b   []byte
	bad bool
}

// parseThrift parses a struct and returns its encoded length.
func parseThrift(b []byte) (*node, int, error) {
	r := &thriftReader{b: b}
	n := r.value(kindStruct, false)
	if r.bad {
		return nil, 0, errThrift
	}
	return n, len(b) - len(r.b), nil
}

func (r *thriftReader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return make([]byte, 8)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *thriftReader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *thriftReader) value(kind byte, inList bool) *node {
	n := &node{kind: kind}
	switch kind {
	case kindTrue, kindFalse:
		if inList {
			n.kind = r.take(1)[0]
		}
	case kindByte:
		n.number = int64(int8(r.take(1)[0]))
	case kindI16, kindI32, kindI64:
		n.number = r.varint()
	case kindDouble:
		n.bytes = append([]byte(nil), r.take(8)...)
	case kindBinary:
		n.bytes = append([]byte{}, r.take(r.uvarint())...)
	case kindList, kindSet:
		head := r.take(1)[0]
		count := uint64(head >> 4)
		if count == 15 {
			count = r.uvarint()
		}
		n.elem = head & 15
		for i := uint64(0); i < count && !r.bad; i++ {
			n.list = append(n.list, r.value(n.elem, true))
		}
	case kindStruct:
		id := int64(0)
		for !r.bad {
			head := r.take(1)[0]
			if head == 0 {
				break
			}
			if delta := int64(head >> 4); delta != 0 {
				id += delta
			} else {
				id = r.varint()
			}
			n.fields = append(n.fields, field{id, r.value(head&15, false)})
		}
	default:
		r.bad = true
	}
	return n
}

func (n *node) append(out []byte, inList bool) []byte {
	switch n.kind {
	case kindTrue, kindFalse:
		if inList {
			out = append(out, n.kind)
		}
	case kindByte:
		out = append(out, byte(n.number))
	case kindI16, kindI32, kindI64:
		out = binary.AppendVarint(out, n.number)
	case kindDouble:
		out = append(out, n.bytes...)
	case kindBinary:
		out = append(binary.AppendUvarint(out, uint64(len(n.bytes))), n.bytes...)
	case kindList, kindSet:
		if len(n.list) < 15 {
			out = append(out, byte(len(n.list))<<4|n.elem)
		} else {
			out = binary.AppendUvarint(append(out, 0xf0|n.elem), uint64(len(n.list)))
		}
		for _, e := range n.list {
			out = e.append(out, true)
		}
	case kindStruct:
		last := int64(0)
		for _, f := range n.fields {
			if d := f.id - last; d > 0 && d < 16 {
				out = append(out, byte(d)<<4|f.value.kind)
			} else {
				out = binary.AppendVarint(append(out, f.value.kind), f.id)
			}
			last = f.id
			out = f.value.append(out, false)
		}
		out = append(out, 0)
	}
	return out
}

func (n *node) encode() []byte { return n.append(nil, false) }

func (n *node) clone() *node {
	c := *n
	c.bytes = append([]byte(nil), n.bytes...)
	c.fields = append([]field(nil), n.fields...)
	for i := range c.fields {
		c.fields[i].value = c.fields[i].value.clone()
	}
	c.list = append([]*node(nil), n.list...)
	for i := range c.list {
		c.list[i] = c.list[i].clone()
	}
	return &c
}

// at returns the nested field with the given path of numbers, or nil.
func (n *node) at(ids ...int64) *node {
	for _, id := range ids {
		var next *node
		for _, f := range n.fields {
			if f.id == id {
				next = f.value
			}
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return n
}

func (n *node) number0(ids ...int64) int64 {
	if v := n.at(ids...); v != nil {
		return v.number
	}
	return 0
}

// set sets the number of an existing field.
func (n *node) set(v int64, ids ...int64) {
	if f := n.at(ids...); f != nil {
		f.number = v
	}
}

// all returns the value and all values below it.
func (n *node) all(out []*node) []*node {
	out = append(out, n)
	for _, f := range n.fields {
		out = f.value.all(out)
	}
	for _, e := range n.list {
		out = e.all(out)
	}
	return out
}

// mutateTree mutates a value below n and returns a description.
func mutateTree(rng *rand.Rand, n *node) string {
	nodes := n.all(nil)
	v := nodes[rng.IntN(len(nodes))]
	switch v.kind {
	case kindTrue, kindFalse:
		v.kind = 3 - v.kind
		return "flag"
	case kindByte, kindI16, kindI32, kindI64:
		v.number = oddNumber(rng, v.number)
		return "number"
	case kindDouble, kindBinary:
		v.bytes = damage(rng, v.bytes)
		if v.kind == kindDouble {
			v.bytes = append(v.bytes, make([]byte, 8)...)[:8]
		}
		return "bytes"
	case kindList, kindSet:
		if len(v.list) == 0 {
			v.elem = byte(1 + rng.IntN(12))
			return "element kind"
		}
		i, j := rng.IntN(len(v.list)), rng.IntN(len(v.list))
		switch rng.IntN(4) {
		case 0:
			v.list = append(v.list[:i:i], v.list[i+1:]...)
			return "element dropped"
		case 1:
			v.list[i], v.list[j] = v.list[j], v.list[i]
			return "elements swapped"
		case 2:
			v.list = append(v.list, v.list[i].clone())
			return "element twice"
		}
		v.list[i] = v.list[j].clone()
		return "element copied"
	}
	if len(v.fields) == 0 {
		v.fields = append(v.fields, field{int64(1 + rng.IntN(9)), &node{kind: kindI32, number: oddNumber(rng, 1)}})
		return "field added"
	}
	i := rng.IntN(len(v.fields))
	switch rng.IntN(4) {
	case 0, 1:
		v.fields = append(v.fields[:i:i], v.fields[i+1:]...)
		return "field dropped"
	case 2:
		v.fields[i].id += int64(rng.IntN(5) - 2)
		return "field renumbered"
	}
	like := nodes[rng.IntN(len(nodes))]
	if like.kind != v.fields[i].value.kind {
		return "nothing"
	}
	v.fields[i].value = like.clone()
	return "field copied"
}

// oddNumber returns a replacement for v that readers may mishandle.
func oddNumber(rng *rand.Rand, v int64) int64 {
	odd := []int64{0, 1, -1, 2, 7, 8, 31, 32, 63, 64, 127, 255, 256, 1 << 15, 1<<16 - 1, 1 << 16, 1 << 20, 1 << 24, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 40, 1<<63 - 1, -1 << 63, -1 << 31}
	switch rng.IntN(8) {
	case 0:
		return v + 1
	case 1:
		return v - 1
	case 2:
		return v * 2
	case 3:
		return v / 2
	case 4:
		return -v
	case 5:
		return v ^ 1<<rng.IntN(34)
	case 6:
		return v + int64(rng.IntN(64)) - 32
	}
	return odd[rng.IntN(len(odd))]
}

// damage mutates some bytes, or the length.
func damage(rng *rand.Rand, b []byte) []byte {
	b = append([]byte(nil), b...)
	switch k := rng.IntN(12); {
	case k == 0 && len(b) > 0:
		return b[:rng.IntN(len(b))]
	case k == 1:
		more := make([]byte, 1+rng.IntN(24))
		for i := range more {
			more[i] = byte(rng.IntN(3) * 127)
		}
		return append(b, more...)
	case k == 2 && len(b) > 1:
		i := rng.IntN(len(b))
		j := i + rng.IntN(min(64, len(b)-i))
		return append(b[:i:i], b[j:]...)
	case k == 3 && len(b) > 1:
		i, j := rng.IntN(len(b)), rng.IntN(len(b))
		copy(b[i:], b[j:min(len(b), j+1+rng.IntN(64))])
		return b
	}
	for range 1 + rng.IntN(4) {
		if len(b) == 0 {
			break
		}
		// Lengths and levels are at the start.
		i := rng.IntN(len(b))
		if rng.IntN(2) == 0 {
			i = rng.IntN(min(len(b), 24))
		}
		switch rng.IntN(4) {
		case 0:
			b[i] ^= 1 << rng.IntN(8)
		case 1:
			b[i] = byte(rng.IntN(256))
		case 2:
			b[i] = []byte{0, 1, 0x7f, 0x80, 0xff, 0xfe}[rng.IntN(6)]
		case 3:
			b[i] += byte(rng.IntN(5) - 2)
		}
	}
	return b
}
