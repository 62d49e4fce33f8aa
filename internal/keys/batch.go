package keys

import (
	"encoding/binary"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/urlform"
)

// Batch holds the keys of one record batch in normal form. It leaves out rows that
// equal nothing: rows with a NULL in the key, and with a text that cannot be an ID
// under a [Rule] with UUID or URLHost. The zero value is empty and ready for
// [Encoder.Encode], which reuses its memory.
//
// Methods that only read may run concurrently. A nil *Batch has no rows.
type Batch struct {
	// Rows lists the rows that have a key, in ascending order. A position is an
	// index into Rows; all other slices are indexed by it too.
	Rows []uint32
	// Len is the number of rows in the record, with and without a key.
	Len int

	// A key of one integer column is stored in ints, any other key in data.
	isInt  bool
	ints   []uint64
	signed bool
	above  []bool // by position, for signed keys: the value is 2^63 or more; nil: none is
	data   []byte
	ends   []int // end of key i in data; it starts gap bytes after the end of key i-1
	gap    int

	classes []Class // of the key's columns; nil: not recorded
	rule    Rule    // under which the keys were made, if classes are recorded

	void    []uint32 // rows whose key matches nothing, although no part is NULL
	unfit   []uint32 // the rows of void that cannot be IDs under the rule
	misfits []uint32 // rows with a value that does not fit its cast
	lenient bool     // misfits count as NULLs

	nullParts bool // keys have NULLs

	shared     bool     // data belongs to the record or the page
	own        []byte   // the batch's own buffer while data is shared
	sharedInts bool     // ints belongs to the page
	ownInts    []uint64 // the batch's own buffer while ints is shared
	spare      []byte   // the next data, for rules under which keys grow
}

// Ints returns the keys as 64-bit integers, in two's complement if negative. ok is
// false unless the key is one integer column. The slice belongs to the batch.
func (b *Batch) Ints() (values []uint64, ok bool) {
	if b == nil {
		return nil, false
	}
	return b.ints, b.isInt
}

// Negative reports whether the integer at position i of Rows is below zero.
func (b *Batch) Negative(i int) bool {
	return b.signed && int64(b.ints[i]) < 0 && (b.above == nil || !b.above[i])
}

// Fits returns nil if the keys can be compared with keys of the given classes
// under the given rule, else an error that wraps fault.ErrMismatch. A batch
// without keys fits everything. Batches from [Batch.SetBytes] record no class:
// for these it only rejects integer classes.
func (b *Batch) Fits(classes []Class, rule Rule) error {
	integers := len(classes) == 1 && classes[0] == Integer
	switch {
	case b == nil || len(b.Rows) == 0:
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
		return faults.Of(cause.Normalized, faults.Mismatch(fault.At{}, "rule of the keys", rule.Word(), b.rule.Word()))
	}
	return nil
}

func classMismatch(want, got []Class) error {
	return faults.Of(cause.KeyTypes, faults.Mismatch(fault.At{}, "key class", joined(want), joined(got)))
}

// BySign calls fn with the integer keys, grouped so that all values of a call are
// int64s (signed, in two's complement) or all are uint64s. Usually that is one
// call, and positions is nil: values are in the order of Rows. If some keys are
// negative and others are 2^63 or more, there are two calls, each with the
// positions of its values in Rows.
func (b *Batch) BySign(fn func(values []uint64, signed bool, positions []uint32) error) error {
	if b == nil {
		return nil
	}
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
// [Options.NullMisfits] misfits count as NULLs.
func (b *Batch) Nulls() int {
	if b == nil {
		return 0
	}
	n := b.Len - len(b.Rows) - len(b.void)
	if b.lenient {
		return n
	}
	return n - len(b.misfits)
}

// NullParts reports whether some keys have NULLs; see [Options].NullsEqual.
func (b *Batch) NullParts() bool { return b.nullParts }

// Void returns the rows whose key matches nothing, although no part is NULL.
func (b *Batch) Void() []uint32 {
	if b == nil {
		return nil
	}
	return b.void
}

// Faulty returns the first row for which [Batch.Fit] or [Batch.IDs] would return an
// error. ok is false if there is none.
func (b *Batch) Faulty() (row uint32, ok bool) {
	if b == nil {
		return 0, false
	}
	misfits := b.misfits
	if b.lenient {
		misfits = nil
	}
	for _, rows := range [][]uint32{misfits, b.unfit} {
		if len(rows) > 0 && (!ok || rows[0] < row) {
			row, ok = rows[0], true
		}
	}
	return row, ok
}

// Misfits returns the rows with a value that does not fit its cast, in ascending
// order. Under [Options.NullMisfits] they count in [Batch.Nulls] too.
func (b *Batch) Misfits() []uint32 {
	if b == nil {
		return nil
	}
	return b.misfits
}

// Keep drops void rows and misfits for which keep returns false; a nil keep keeps all. It serves batches
// of dictionary entries, since a dictionary may have entries that no row uses.
func (b *Batch) Keep(keep func(row uint32) bool) {
	if b == nil || keep == nil {
		return
	}
	for _, rows := range []*[]uint32{&b.void, &b.unfit, &b.misfits} {
		*rows = slices.DeleteFunc(*rows, func(row uint32) bool { return !keep(row) })
	}
}

// Append appends the key at position i of Rows to dst. Two keys have equal bytes if
// and only if they are equal.
func (b *Batch) Append(dst []byte, i int) []byte {
	if b.isInt {
		return appendInt(dst, b.ints[i], b.Negative(i))
	}
	return append(dst, b.bytes(i)...)
}

// Bytes returns the bytes that Append would append. They belong to the batch, or,
// for an integer, are written to buf if it has room.
func (b *Batch) Bytes(buf []byte, i int) []byte {
	if b.isInt {
		return b.Append(buf[:0], i)
	}
	return b.bytes(i)
}

// Hash returns the hash of each key in Rows, using dst's memory if it is large
// enough. Equal keys have equal hashes. An integer's hash ignores its sign, so -1
// and 2^64-1 share one.
func (b *Batch) Hash(h bloom.Hash, dst []uint64) []uint64 {
	if b == nil {
		return dst[:0]
	}
	if b.isInt {
		return h.AppendInts(dst[:0], b.ints)
	}
	dst = slices.Grow(dst[:0], len(b.Rows))[:len(b.Rows)]
	for i := range dst {
		dst[i] = h.Sum(b.bytes(i))
	}
	return dst
}

// maxParent is the longest parent domain that is looked up, in bytes: DNS resolves no
// longer one, and the work for a row must not grow with the square of its length.
const maxParent = 253

// Asked returns the hashes to look up in a set, and the position in Rows of each: the
// hashes of the keys and, under URLHost, of their parent domains of up to 253 bytes.
// positions is nil if each key has one hash. It uses the memory of its arguments.
func (b *Batch) Asked(h bloom.Hash, rule Rule, hashes []uint64, positions []uint32) ([]uint64, []uint32) {
	if rule&URLHost == 0 || b == nil || b.isInt {
		return b.Hash(h, hashes), nil
	}
	hashes, positions = hashes[:0], positions[:0]
	for i := range b.Rows {
		host := b.bytes(i)
		hashes, positions = append(hashes, h.Sum(host)), append(positions, uint32(i))
		host = host[max(len(host)-maxParent-1, 0):] // where the first of its parents is short enough
		for host = urlform.Parent(host); len(host) > 0; host = urlform.Parent(host) {
			hashes, positions = append(hashes, h.Sum(host)), append(positions, uint32(i))
		}
	}
	return hashes, positions
}

// bytes returns the normal form of the key at position i. Integer keys have none in
// data.
func (b *Batch) bytes(i int) []byte {
	start := b.gap
	if i > 0 {
		start += b.ends[i-1]
	}
	return b.data[start:b.ends[i]]
}

// Select sets dst to the keys at the given positions of b.Rows, in that order. A
// position may occur several times. dst.Rows numbers the selected keys from 0. dst
// keeps its own memory and shares none with b.
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
		void: b.void[:0], unfit: b.unfit[:0], misfits: b.misfits[:0], spare: b.spare,
	}
}

// raise records that the signed integer at position i of n is 2^63 or more.
func (b *Batch) raise(i, n int) {
	if b.above == nil {
		b.above = make([]bool, n)
	}
	b.above[i] = true
}

// normalise applies a rule to keys of one string column; data must belong to the
// batch. Keys that become void leave Rows.
func (b *Batch) normalise(r Rule) {
	if r&Unicode != 0 {
		r = r.over(b.data)
	}
	out := b.data[:0] // in place, where keys do not grow
	grows := r&(urlRules|Unicode) != 0
	if grows {
		out = b.spare[:0]
	}
	start, n := 0, 0
	for i, end := range b.ends {
		key, ok := r.apply(b.data[start:end], out[len(out):])
		start = end
		if !ok {
			b.void, b.unfit = append(b.void, b.Rows[i]), append(b.unfit, b.Rows[i])
			continue
		}
		out = append(out, key...)
		b.ends[n], b.Rows[n] = len(out), b.Rows[i]
		n++
	}
	if grows {
		b.spare = b.data
	}
	b.data, b.ends, b.Rows = out, b.ends[:n], b.Rows[:n]
}

// appendInt appends an integer as a part of a composite key: eight bytes of two's
// complement and a sign byte, which distinguishes -1 from 2^64-1.
func appendInt(dst []byte, v uint64, negative bool) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, v)
	if negative {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// HashAt returns the hash of the key at position i of Rows: the value that Hash
// returns for it.
func (b *Batch) HashAt(h bloom.Hash, i int) uint64 {
	if b.isInt {
		var out [1]uint64
		h.Sum64(out[:], b.ints[i:i+1])
		return out[0]
	}
	return h.Sum(b.bytes(i))
}
