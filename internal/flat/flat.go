// Package flat reads flatbuffers, and Arrow schemas in them, from untrusted bytes.
//
// No read panics or allocates. The first access outside the bytes is recorded as
// the buffer's error; from then on every slot reads as empty. Callers read what
// they need and check [Table.Err] once before they use or report anything. Tables
// may overlap, share parts and contain themselves, so callers must limit depth and
// number; [SizeOf] measures schemas.
package flat

import (
	"encoding/binary"
	"fmt"
)

// buffer is shared by all tables of a flatbuffer.
type buffer struct {
	b   []byte
	err error
}

// Table is a table in a flatbuffer. The zero value has only empty slots. A slot is
// an offset in the vtable: 4 + 2·index of the field. It is not safe for concurrent
// use.
type Table struct {
	buf    *buffer
	pos    int64
	vtable []byte
}

// Root returns the table that the first offset in b refers to.
func Root(b []byte) Table {
	buf := &buffer{b: b}
	return buf.table(buf.indirect(0))
}

// Err returns the first access outside the bytes, by any table of this flatbuffer.
func (t Table) Err() error {
	if t.buf == nil {
		return nil
	}
	return t.buf.err
}

// Pos returns the table's position in its flatbuffer.
func (t Table) Pos() int64 { return t.pos }

// has reports whether size bytes are present at pos, and records an error if not.
func (b *buffer) has(what string, pos, size int64) bool {
	if b.err != nil {
		return false
	}
	if n := int64(len(b.b)); pos < 0 || size < 0 || pos > n || size > n-pos {
		b.err = fmt.Errorf("metadata of %d bytes with a %s of %d bytes at byte %d", n, what, size, pos)
		return false
	}
	return true
}

// indirect returns the target of the offset at pos, -1 if the offset is not within
// the bytes.
func (b *buffer) indirect(pos int64) int64 {
	if !b.has("offset", pos, 4) {
		return -1
	}
	return pos + int64(binary.LittleEndian.Uint32(b.b[pos:]))
}

// table returns the table at pos, whose vtable must be within the bytes.
func (b *buffer) table(pos int64) Table {
	t := Table{buf: b, pos: pos}
	if !b.has("table", pos, 4) {
		return t
	}
	v := pos - int64(int32(binary.LittleEndian.Uint32(b.b[pos:])))
	if !b.has("vtable", v, 4) {
		return t
	}
	if n := int64(binary.LittleEndian.Uint16(b.b[v:])); b.has("vtable", v, n) {
		t.vtable = b.b[v : v+n]
	}
	return t
}

// field returns the position of the value in a slot, whose width bytes are present.
// ok is false if the slot is empty.
func (t Table) field(slot int, width int64) (pos int64, ok bool) {
	if slot+2 > len(t.vtable) || t.buf.err != nil {
		return 0, false
	}
	o := int64(binary.LittleEndian.Uint16(t.vtable[slot:]))
	if o == 0 || !t.buf.has("field", t.pos+o, width) {
		return 0, false
	}
	return t.pos + o, true
}

// Bool returns the value in a slot, or empty if the slot is empty.
func (t Table) Bool(slot int, empty bool) bool {
	if pos, ok := t.field(slot, 1); ok {
		return t.buf.b[pos] != 0
	}
	return empty
}

// Byte returns the value in a slot, or empty if the slot is empty.
func (t Table) Byte(slot int, empty byte) byte {
	if pos, ok := t.field(slot, 1); ok {
		return t.buf.b[pos]
	}
	return empty
}

// Int16 returns the value in a slot, or empty if the slot is empty.
func (t Table) Int16(slot int, empty int16) int16 {
	if pos, ok := t.field(slot, 2); ok {
		return int16(binary.LittleEndian.Uint16(t.buf.b[pos:]))
	}
	return empty
}

// Int32 returns the value in a slot, or empty if the slot is empty.
func (t Table) Int32(slot int, empty int32) int32 {
	if pos, ok := t.field(slot, 4); ok {
		return int32(binary.LittleEndian.Uint32(t.buf.b[pos:]))
	}
	return empty
}

// Int64 returns the value in a slot, or empty if the slot is empty.
func (t Table) Int64(slot int, empty int64) int64 {
	if pos, ok := t.field(slot, 8); ok {
		return int64(binary.LittleEndian.Uint64(t.buf.b[pos:]))
	}
	return empty
}

// Table returns the table or union member in a slot, false if the slot is empty.
func (t Table) Table(slot int) (Table, bool) {
	pos, ok := t.field(slot, 4)
	if !ok {
		return Table{}, false
	}
	sub := t.buf.table(t.buf.indirect(pos))
	return sub, t.buf.err == nil
}

// Bytes returns the string in a slot, nil if the slot is empty. It shares the
// flatbuffer's memory.
func (t Table) Bytes(slot int) []byte {
	b, _ := t.Vector(slot, 1)
	return b
}

// Vector returns the memory and the number of elements of the vector in a slot.
// Elements have width bytes. An empty slot is an empty vector.
func (t Table) Vector(slot, width int) (mem []byte, n int) {
	start, n := t.vector(slot, width)
	if n == 0 {
		return nil, 0
	}
	return t.buf.b[start : start+int64(n)*int64(width)], n
}

func (t Table) vector(slot, width int) (start int64, n int) {
	pos, ok := t.field(slot, 4)
	if !ok {
		return 0, 0
	}
	if pos = t.buf.indirect(pos); !t.buf.has("vector", pos, 4) {
		return 0, 0
	}
	count := int64(binary.LittleEndian.Uint32(t.buf.b[pos:]))
	if !t.buf.has("vector", pos+4, count*int64(width)) {
		return 0, 0
	}
	return pos + 4, int(count)
}

// Tables returns the vector of n tables in a slot; at(i) is the i-th.
func (t Table) Tables(slot int) (at func(i int) Table, n int) {
	start, n := t.vector(slot, 4)
	return func(i int) Table {
		return t.buf.table(t.buf.indirect(start + 4*int64(i)))
	}, n
}
