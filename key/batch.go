package key

import (
	"encoding/binary"
	"slices"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/fault"
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
	above  []bool // by position: of signed keys, those from 2^63 on; nil: none
	data   []byte
	ends   []int // of key i in data; it begins gap bytes behind the end of key i-1
	gap    int

	classes []Class // of the key's columns; nil: not recorded
	rule    Rule    // under which they became keys, if classes are recorded

	void    []uint32 // rows whose key matches nothing, though no part is NULL
	noUUIDs []uint32 // of them, those that are no UUID under a rule
	misfits []uint32 // rows with a value that does not fit its cast
	lenient bool     // misfits are NULLs

	shared     bool     // data is the record's, or the page's
	own        []byte   // what data is otherwise
	sharedInts bool     // ints is the page's
	ownInts    []uint64 // what ints is otherwise
}

// Ints returns the keys as integers in 64 bits, two's complement if negative, if
// the key is one integer column. ok is false for all other keys.
func (b *Batch) Ints() (values []uint64, ok bool) { return b.ints, b.isInt }

// Negative reports whether the integer at a position of Rows is below zero.
func (b *Batch) Negative(i int) bool {
	return b.signed && int64(b.ints[i]) < 0 && (b.above == nil || !b.above[i])
}

// Fits returns nil if the keys can be compared with keys of the given classes
// under the given rule, else an error that wraps fault.ErrMismatch. A batch
// without keys fits everything. Batches from [Batch.SetBytes] record no class:
// for them it checks no more than that no integers are wanted.
func (b *Batch) Fits(classes []Class, rule Rule) error {
	integers := len(classes) == 1 && classes[0] == Integer
	switch {
	case len(b.Rows) == 0:
		return nil
	case b.classes == nil && integers == b.isInt:
		return nil
	case b.classes == nil && b.isInt:
		return classMismatch(classes, []Class{Integer})
	case b.classes == nil:
		return classMismatch(classes, []Class{Bytes})
	case !slices.Equal(b.classes, classes):
		return classMismatch(classes, b.classes)
	case b.rule != rule && slices.Contains(classes, Bytes):
		return fault.Mismatch(fault.At{}, "rule of the keys", rule.Word(), b.rule.Word())
	}
	return nil
}

func classMismatch(want, got []Class) error {
	return fault.Mismatch(fault.At{}, "key class", joined(want), joined(got))
}

// BySign calls fn with the integers, two's complement if signed, else unsigned:
// once for all of them, with nil for their positions in Rows, or, where some are
// negative and some 2^63 or more, once for either kind.
func (b *Batch) BySign(fn func(values []uint64, signed bool, positions []uint32) error) error {
	if b.above == nil {
		return fn(b.ints, b.signed, nil)
	}
	for _, signed := range []bool{true, false} {
		var values []uint64
		var positions []uint32
		for i, v := range b.ints {
			if b.above[i] != signed {
				values, positions = append(values, v), append(positions, uint32(i))
			}
		}
		if len(values) == 0 {
			continue
		}
		if err := fn(values, signed, positions); err != nil {
			return err
		}
	}
	return nil
}

// Nulls returns the number of rows with a NULL in the key. Under
// [Options.NullMisfits] misfits are among them.
func (b *Batch) Nulls() int {
	n := b.Len - len(b.Rows) - len(b.void)
	if b.lenient {
		return n
	}
	return n - len(b.misfits)
}

// Void returns the rows whose key matches nothing, though it has no NULL.
func (b *Batch) Void() []uint32 { return b.void }

// Faulty returns the first row that [Batch.Fit] or [Batch.IDs] is about, if there
// is one.
func (b *Batch) Faulty() (row uint32, ok bool) {
	misfits := b.misfits
	if b.lenient {
		misfits = nil
	}
	for _, rows := range [][]uint32{misfits, b.noUUIDs} {
		if len(rows) > 0 && (!ok || rows[0] < row) {
			row, ok = rows[0], true
		}
	}
	return row, ok
}

// Misfits returns the rows with a value that does not fit its cast, ascending.
// Under [Options.NullMisfits] [Batch.Nulls] counts them, too.
func (b *Batch) Misfits() []uint32 { return b.misfits }

// Keep forgets all rows without a key but those that keep is true of: the batch
// may be of entries of a dictionary, which no row needs to have.
func (b *Batch) Keep(keep func(row uint32) bool) {
	for _, rows := range []*[]uint32{&b.void, &b.noUUIDs, &b.misfits} {
		*rows = slices.DeleteFunc(*rows, func(row uint32) bool { return !keep(row) })
	}
}

// Append appends the key at position i of Rows to dst: bytes that are equal
// if, and only if, the keys are.
func (b *Batch) Append(dst []byte, i int) []byte {
	if b.isInt {
		return appendInt(dst, b.ints[i], b.Negative(i))
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
	dst.classes, dst.rule = b.classes, b.rule
	dst.numberRows(len(positions))
	if b.isInt {
		dst.isInt, dst.signed = true, b.signed
		for i, p := range positions {
			dst.ints = append(dst.ints, b.ints[p])
			if b.above != nil && b.above[p] {
				dst.raise(i, len(positions))
			}
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
	*b = Batch{
		Rows: b.Rows[:0], Len: n, ints: b.ints[:0], data: b.data[:0], ends: b.ends[:0],
		void: b.void[:0], noUUIDs: b.noUUIDs[:0], misfits: b.misfits[:0],
	}
}

// raise notes that the signed integer at position i of n is 2^63 or more.
func (b *Batch) raise(i, n int) {
	if b.above == nil {
		b.above = make([]bool, n)
	}
	b.above[i] = true
}

// normalise applies a rule to keys that are one column of strings, in data that
// is the batch's own. A key that becomes none takes its row along.
func (b *Batch) normalise(r Rule) {
	start, out, n := 0, 0, 0
	for i, end := range b.ends {
		key, ok := r.apply(b.data[start:end])
		start = end
		if !ok {
			b.void, b.noUUIDs = append(b.void, b.Rows[i]), append(b.noUUIDs, b.Rows[i])
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
