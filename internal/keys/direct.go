package keys

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// This file makes keys of one integer or string column from Parquet's PLAIN values
// directly, without Arrow arrays.

// SetInts fills b with the n integer keys in plain: little-endian values of width 4
// or 8 bytes without gaps. Position i of Rows is value i. b may share plain's
// memory.
func (b *Batch) SetInts(plain []byte, n, width int, signed bool) {
	b.reset(n)
	b.isInt, b.signed = true, signed
	b.numberRows(n)
	if width == 8 && b.shareInts(plain, n) {
		return
	}
	b.ints = slices.Grow(b.ints, n)[:n]
	switch {
	case width == 8:
		plain = plain[:8*n]
		for i := range b.ints {
			b.ints[i] = binary.LittleEndian.Uint64(plain[8*i:])
		}
	case signed:
		for i := range b.ints {
			b.ints[i] = uint64(int64(int32(binary.LittleEndian.Uint32(plain[4*i:]))))
		}
	default:
		for i := range b.ints {
			b.ints[i] = uint64(binary.LittleEndian.Uint32(plain[4*i:]))
		}
	}
}

// SetAbove is called after [Batch.SetInts] if some signed keys stand for 2^63 or more:
// above reports whether value i does, instead of being negative.
func (b *Batch) SetAbove(above func(i int) bool) {
	for i := range b.ints {
		if above(i) {
			b.raise(i, len(b.ints))
		}
	}
}

// shareInts makes b use the n 8-byte integers in plain without a copy and reports
// whether it could: plain must be aligned. Parquet integers have the byte order of
// memory on the supported machines.
func (b *Batch) shareInts(plain []byte, n int) bool {
	if n == 0 || uintptr(unsafe.Pointer(&plain[0]))%8 != 0 {
		return false
	}
	b.sharedInts, b.ownInts = true, b.ints
	b.ints = unsafe.Slice((*uint64)(unsafe.Pointer(&plain[:8*n][0])), n)
	return true
}

// SetBytes fills b with the n byte-string keys in plain, each preceded by its
// length as 4 little-endian bytes, and applies the rule. Rows numbers the values;
// keys that are void under the rule are left out. Without a rule, position i of
// Rows is value i and b shares plain's memory.
func (b *Batch) SetBytes(plain []byte, n int, rule Rule) {
	b.reset(n)
	b.rule = rule
	b.numberRows(n)
	b.ends = slices.Grow(b.ends, n)[:n]
	end := 0
	for i := range b.ends {
		end += lengthBytes + int(binary.LittleEndian.Uint32(plain[end:]))
		b.ends[i] = end
	}
	b.shared, b.own, b.data, b.gap = true, b.data, plain[:end], lengthBytes
	if rule != 0 {
		b.unshare()
		b.normalise(rule)
	}
}

// lengthBytes is the size of the length before a PLAIN byte array.
const lengthBytes = 4

// unshare copies the keys to the batch's own memory.
func (b *Batch) unshare() {
	from, start := b.data, 0
	b.data = slices.Grow(b.own[:0], len(from))
	for i, end := range b.ends {
		b.data = append(b.data, from[start+b.gap:end]...)
		b.ends[i], start = len(b.data), end
	}
	b.shared, b.own, b.gap = false, nil, 0
}

// numberRows sets Rows to 0…n-1.
func (b *Batch) numberRows(n int) {
	b.Rows = slices.Grow(b.Rows[:0], n)[:n]
	for i := range b.Rows {
		b.Rows[i] = uint32(i)
	}
}
