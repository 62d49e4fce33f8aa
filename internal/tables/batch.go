package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Batch is consecutive rows, or some rows in order, of a row group, with their
// keys. It is valid until the function that received it returns.
type Batch struct {
	Piece source.Piece // the row group; without a File if the batch was parsed
	Keys  *keys.Batch  // of the rows; Keys.Rows number rows of the batch, Keys.Len counts them

	Block  *leaves.Block
	first  int          // row of block with which the batch begins
	record arrow.Record // holds the memory of the keys; nil: they have their own
	rows   []uint32     // memory for AppendTo
}

// Release releases the memory of the batch.
func (b *Batch) Release() {
	if b.record != nil {
		b.record.Release()
		b.record = nil
	}
}

// Bytes returns the approximate memory of the batch.
func (b *Batch) Bytes() int64 {
	return b.Block.Bytes() * int64(b.Keys.Len) / int64(max(b.Block.Len(), 1))
}

// inBlock returns rows of the batch, all if rows is nil, as rows of its block: nil for
// all. It may use the memory of buf.
func (b *Batch) inBlock(buf *[]uint32, rows []uint32) []uint32 {
	if b.first == 0 && (rows != nil || b.Keys.Len == b.Block.Len()) {
		return rows
	}
	out := (*buf)[:0]
	if rows == nil {
		for row := range b.Keys.Len {
			out = append(out, uint32(b.first+row))
		}
	}
	for _, row := range rows {
		out = append(out, uint32(b.first)+row)
	}
	if *buf = out; out == nil {
		return []uint32{}
	}
	return out
}

// Forms of the keys of a batch in AppendTo.
const (
	bytesForm    = iota // PLAIN byte arrays
	unsignedForm        // integers of eight bytes
	signedForm
	wideForm // integers, then a bit for each: it is 2^63 or more
)

// AppendTo appends rows of the batch, all if rows is nil, with their keys to dst, in
// a form that [Columns.Parse] reads.
func (b *Batch) AppendTo(dst []byte, rows []uint32) ([]byte, error) {
	n := b.Keys.Len
	if rows != nil {
		n = len(rows)
	}
	has := make([]byte, (n+7)/8)
	var at []uint32 // positions of the rows' keys
	for i := range n {
		row := uint32(i)
		if rows != nil {
			row = rows[i]
		}
		if p, ok := positionOf(b.Keys.Rows, row); ok {
			at = append(at, p)
			has[i/8] |= 1 << (i % 8)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = append(dst, has...)
	dst = appendKeys(dst, b.Keys, at)
	return b.Block.Append(dst, b.inBlock(&b.rows, rows)), nil
}

// positionOf finds a row in an ascending list of rows.
func positionOf(rows []uint32, row uint32) (at uint32, ok bool) {
	if int(row) < len(rows) && rows[row] == row { // all rows up to this one are there
		return row, true
	}
	i := sort.Search(len(rows), func(i int) bool { return rows[i] >= row })
	return uint32(i), i < len(rows) && rows[i] == row
}

// appendKeys appends the keys at the given positions: their form, the size of what
// follows, and the keys.
func appendKeys(dst []byte, k *keys.Batch, at []uint32) []byte {
	ints, ok := k.Ints()
	if !ok {
		size := 0
		for _, p := range at {
			size += 4 + len(k.Bytes(nil, int(p)))
		}
		dst = binary.AppendUvarint(append(dst, bytesForm), uint64(size))
		for _, p := range at {
			v := k.Bytes(nil, int(p))
			dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(v))), v...)
		}
		return dst
	}
	negative, above := false, false
	for _, p := range at {
		if int64(ints[p]) < 0 {
			negative, above = negative || k.Negative(int(p)), above || !k.Negative(int(p))
		}
	}
	form, size := byte(unsignedForm), 8*len(at)
	switch {
	case negative && above:
		form, size = wideForm, size+(len(at)+7)/8
	case negative:
		form = signedForm
	}
	dst = binary.AppendUvarint(append(dst, form), uint64(size))
	for _, p := range at {
		dst = binary.LittleEndian.AppendUint64(dst, ints[p])
	}
	if form == wideForm {
		bits := make([]byte, (len(at)+7)/8)
		for i, p := range at {
			if int64(ints[p]) < 0 && !k.Negative(int(p)) {
				bits[i/8] |= 1 << (i % 8)
			}
		}
		dst = append(dst, bits...)
	}
	return dst
}

// errBatch means that bytes are not those of a batch of rows.
var errBatch = errors.New("not a batch of rows")

// Parse reads what [Batch.AppendTo] has written. The batch refers to src.
func (c *Columns) Parse(src []byte) (*Batch, error) {
	rows, n := binary.Uvarint(src)
	if n <= 0 || rows/8 > uint64(len(src)) {
		return nil, errBatch
	}
	bits := (int(rows) + 7) / 8
	if len(src)-n < bits+1 {
		return nil, errBatch
	}
	has, form, rest := src[n:n+bits], src[n+bits], src[n+bits+1:]
	size, n := binary.Uvarint(rest)
	if n <= 0 || size > uint64(len(rest)-n) {
		return nil, errBatch
	}
	b := &Batch{Keys: new(keys.Batch)}
	var with []uint32 // rows with a key
	for row := range uint32(rows) {
		if has[row/8]>>(row%8)&1 != 0 {
			with = append(with, row)
		}
	}
	if err := parseKeys(b.Keys, form, rest[n:n+int(size)], len(with)); err != nil {
		return nil, err
	}
	copy(b.Keys.Rows, with)
	b.Keys.Len = int(rows)
	var err error
	if b.Block, err = leaves.Parse(c.Leaves, rest[n+int(size):]); err != nil {
		return nil, err
	}
	if b.Block.Len() != int(rows) {
		return nil, fmt.Errorf("%w: keys of %d rows, and %d rows", errBatch, rows, b.Block.Len())
	}
	return b, nil
}

// parseKeys sets b to the n keys that appendKeys has written.
func parseKeys(b *keys.Batch, form byte, src []byte, n int) error {
	switch form {
	case unsignedForm, signedForm:
		if len(src) != 8*n {
			return errBatch
		}
		b.SetInts(src, n, 8, form == signedForm)
		return nil
	case wideForm:
		if len(src) != 8*n+(n+7)/8 {
			return errBatch
		}
		b.SetInts(src[:8*n], n, 8, true)
		b.SetAbove(func(i int) bool { return src[8*n+i/8]>>(i%8)&1 != 0 })
		return nil
	case bytesForm:
		rest := src
		for range n {
			if len(rest) < 4 || uint64(binary.LittleEndian.Uint32(rest)) > uint64(len(rest)-4) {
				return errBatch
			}
			rest = rest[4+binary.LittleEndian.Uint32(rest):]
		}
		if len(rest) > 0 {
			return errBatch
		}
		b.SetBytes(src, n, 0)
		return nil
	}
	return errBatch
}
