package key

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// Keys that are one column of integers or strings need no Arrow arrays on the
// way: their values, as Parquet stores them, are the keys.

// SetInts fills b with n keys that are integers of 4 or 8 bytes, little-endian,
// one behind the other in plain, whose memory b may share. Position i of Rows is
// value i.
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

// shareInts makes n integers of 8 bytes in plain the batch's without a copy, if
// they are aligned; integers in memory are as they are in Parquet.
func (b *Batch) shareInts(plain []byte, n int) bool {
	if n == 0 || uintptr(unsafe.Pointer(&plain[0]))%8 != 0 {
		return false
	}
	b.sharedInts, b.ownInts = true, b.ints
	b.ints = unsafe.Slice((*uint64)(unsafe.Pointer(&plain[:8*n][0])), n)
	return true
}

// SetBytes fills b with n keys that are byte strings, each behind its length
// of 4 bytes, little-endian, in plain, under a rule. Rows numbers the values:
// without a rule, position i of Rows is value i, and b shares plain's memory.
func (b *Batch) SetBytes(plain []byte, n int, rule Rule) {
	b.reset(n)
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

// lengthBytes is what stands before a PLAIN byte array.
const lengthBytes = 4

// unshare copies the keys into the batch's own memory.
func (b *Batch) unshare() {
	from, start := b.data, 0
	b.data = slices.Grow(b.own[:0], len(from))
	for i, end := range b.ends {
		b.data = append(b.data, from[start+b.gap:end]...)
		b.ends[i], start = len(b.data), end
	}
	b.shared, b.own, b.gap = false, nil, 0
}

// numberRows gives every row a key.
func (b *Batch) numberRows(n int) {
	b.Rows = slices.Grow(b.Rows[:0], n)[:n]
	for i := range b.Rows {
		b.Rows[i] = uint32(i)
	}
}
