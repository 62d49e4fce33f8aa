package keys

import (
	"encoding/binary"
	"slices"

	"github.com/bloomjoin/bloomjoin/bloom"
)

// Batch holds the keys of one record batch in normal form. Rows with a NULL in
// any part of the key have none, nor, under a [Rule] with UUID, those with a
// text that is no UUID: either equals nothing. The zero value is empty and ready
// for [Encoder.Encode], which reuses its memory.
type Batch struct {
	// Rows are the rows that have a key, ascending. All other slices and
	// positions run along it.
	Rows []uint32
	// Len is the number of rows in the record, with and without a key.
	Len int

	// A key that is one integer column stands in ints, any other in data.
	isInt  bool
	ints   []uint64
	signed bool
	data   []byte
	ends   []int // of key i in data; it begins gap bytes behind the end of key i-1
	gap    int

	void []uint32 // rows without a key in which no part is NULL

	shared     bool     // data is the record's, or the page's
	own        []byte   // what data is otherwise
	sharedInts bool     // ints is the page's
	ownInts    []uint64 // what ints is otherwise
}

// Ints returns the keys as integers, if the key is one integer column: two's
// complement if signed, else unsigned. ok is false for all other keys.
func (b *Batch) Ints() (values []uint64, signed, ok bool) {
	return b.ints, b.signed, b.isInt
}

// Nulls returns the number of rows with a NULL in the key.
func (b *Batch) Nulls() int { return b.Len - len(b.Rows) - len(b.void) }

// Void returns the rows without a key that have no NULL in it, ascending.
func (b *Batch) Void() []uint32 { return b.void }

// KeepVoid leaves only those of Void that keep is true of: the batch may be of
// entries of a dictionary, which no row needs to have.
func (b *Batch) KeepVoid(keep func(row uint32) bool) {
	b.void = slices.DeleteFunc(b.void, func(row uint32) bool { return !keep(row) })
}

// Append appends the key at position i of Rows to dst: bytes that are equal
// if, and only if, the keys are.
func (b *Batch) Append(dst []byte, i int) []byte {
	if b.isInt {
		return appendInt(dst, b.ints[i], b.signed && int64(b.ints[i]) < 0)
	}
	return append(dst, b.bytes(i)...)
}

// Bytes returns what Append appends: the batch's own, or, of an integer, in the
// memory of buf.
func (b *Batch) Bytes(buf []byte, i int) []byte {
	if b.isInt {
		return b.Append(buf[:0], i)
	}
	return b.bytes(i)
}

// Hash returns the hash of each key in Rows, in dst's memory if it suffices.
// Equal keys have equal hashes; an integer's hash leaves out its sign, so that
// -1 and 2^64-1 share one.
func (b *Batch) Hash(h bloom.Hash, dst []uint64) []uint64 {
	if cap(dst) < len(b.Rows) {
		dst = make([]uint64, len(b.Rows))
	}
	dst = dst[:len(b.Rows)]
	if b.isInt {
		h.Sum64(dst, b.ints)
		return dst
	}
	for i := range dst {
		dst[i] = h.Sum(b.bytes(i))
	}
	return dst
}

// bytes returns the normal form of the key at position i; not for integers.
func (b *Batch) bytes(i int) []byte {
	start := b.gap
	if i > 0 {
		start += b.ends[i-1]
	}
	return b.data[start:b.ends[i]]
}

// Select makes dst a batch of the keys at some positions of b.Rows, in that
// order; a position may come several times. Rows then numbers the keys. dst keeps
// its memory, and shares none with b.
func (b *Batch) Select(dst *Batch, positions []uint32) {
	dst.reset(len(positions))
	dst.numberRows(len(positions))
	if b.isInt {
		dst.isInt, dst.signed = true, b.signed
		for _, p := range positions {
			dst.ints = append(dst.ints, b.ints[p])
		}
		return
	}
	for _, p := range positions {
		dst.data = append(dst.data, b.bytes(int(p))...)
		dst.ends = append(dst.ends, len(dst.data))
	}
}

// reset empties the batch for a record of n rows and keeps its memory.
func (b *Batch) reset(n int) {
	if b.shared {
		b.data = b.own
	}
	if b.sharedInts {
		b.ints = b.ownInts
	}
	*b = Batch{Rows: b.Rows[:0], Len: n, ints: b.ints[:0], data: b.data[:0], ends: b.ends[:0], void: b.void[:0]}
}

// normalise applies a rule to keys that are one column of strings, in data that
// is the batch's own. A key that becomes none takes its row along.
func (b *Batch) normalise(r Rule) {
	start, out, n := 0, 0, 0
	for i, end := range b.ends {
		key, ok := r.apply(b.data[start:end])
		start = end
		if !ok {
			b.void = append(b.void, b.Rows[i])
			continue
		}
		out += copy(b.data[out:], key)
		b.ends[n], b.Rows[n] = out, b.Rows[i]
		n++
	}
	b.data, b.ends, b.Rows = b.data[:out], b.ends[:n], b.Rows[:n]
}

// appendInt appends an integer as a part of a key: eight bytes of two's
// complement and a byte for the sign, which keeps -1 and 2^64-1 apart.
func appendInt(dst []byte, v uint64, negative bool) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, v)
	if negative {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// HashAt returns the hash of the key at position i of Rows, as Hash does.
func (b *Batch) HashAt(h bloom.Hash, i int) uint64 {
	if b.isInt {
		var out [1]uint64
		h.Sum64(out[:], b.ints[i:i+1])
		return out[0]
	}
	return h.Sum(b.bytes(i))
}
