// Package arrowipc reads and writes Arrow IPC files and streams.
//
// Input is not trusted. The framing and the metadata are parsed here, and every
// offset and size is checked against the bytes present; buffers are read and
// decompressed within limits; and offsets, views, type ids, run ends and dictionary
// indices are checked before an array is returned, so that reading it at any index
// is safe. The arrays are those of arrow/go. Its IPC reader is not used, because it
// trusts sizes, node counts and indices, and validating its input would take nearly
// all the code that is here. UTF-8 is validated by [Table.Check] only.
//
// Supported: metadata versions V4 and V5, with and without the continuation marker
// introduced in 0.15; all types of arrow/go v15; buffers compressed with LZ4 frames
// or zstd, also as by 0.17; dictionaries, also nested ones, deltas and, in streams, replacements.
// Dictionaries of views are returned as dictionaries of large strings or binary,
// dictionaries of floating-point numbers as plain values, list views as lists,
// decimals of 32 and 64 bits as 128 bits, and lists and binary of a fixed size of 0
// as those of any size. Refused as unsupported: big-endian data,
// tensors, unions with their own NULLs (before 1.0), arrays of more than 2³¹-1
// values, and anything above the limits in this package.
package arrowipc

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
)

// Table is a readable Arrow IPC file or stream. It is safe for concurrent use.
type Table struct {
	at   fault.At
	tree *schemaTree
	src  source
}

// source is the part that differs between files and streams.
type source interface {
	groups() int
	rows(group int) (int64, error)
	bytes(group int) int64
	// read yields the columns of one group until yield returns false.
	read(ctx context.Context, group int, p projection, yield func(arrow.Record, error) bool)
	check() error
	close() error
}

// projection is the selection of top-level fields.
type projection struct {
	schema  *arrow.Schema
	columns []int
}

// of returns the selected nodes.
func (p projection) of(nodes []*node) []*node {
	return each.Slice(p.columns, func(c int) *node { return nodes[c] })
}

// Schema returns the table's schema. Extension types that are registered with
// arrow/go appear as such, others as their storage type with their metadata.
func (t *Table) Schema() *arrow.Schema { return t.tree.schema }

// NumGroups returns the number of record batches of a file, 1 for a stream.
func (t *Table) NumGroups() int { return t.src.groups() }

// GroupRows returns the number of rows of a group, -1 if unknown. For a file it
// reads the batch's header the first time.
func (t *Table) GroupRows(group int) int64 {
	n, _ := t.src.rows(group)
	return n
}

// Rows returns the number of rows of all groups, -1 if unknown. For a file, the
// error then gives the reason.
func (t *Table) Rows() (n int64, err error) {
	for g := range t.NumGroups() {
		r, err := t.src.rows(g)
		if r < 0 {
			return -1, err
		}
		n += r
	}
	return n, nil
}

// GroupBytes returns the size of a group in the input in bytes, -1 if unknown.
func (t *Table) GroupBytes(group int) int64 { return t.src.bytes(group) }

// Close frees the dictionaries of the table, which must not be used afterwards. It
// does not close the reader given to OpenFile.
func (t *Table) Close() error { return t.src.close() }

// Check compares a file's footer with its messages, once, and makes later Reads validate
// UTF-8, and bitmaps where NULLs are counted as 0.
func (t *Table) Check() error { return t.src.check() }

// Read returns the record batches of one group. columns are indices of top-level
// fields in the wanted order. nil means all; an empty list gives records without
// columns but with a number of rows. A record is released when yield returns;
// retain it, or a column of it, to keep it. The sequence ends after the first
// error. Errors about the input are *fault.Error. ctx is checked before each batch.
func (t *Table) Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		p, err := t.project(columns)
		if err == nil && (group < 0 || group >= t.NumGroups()) {
			err = fmt.Errorf("%s: group %d of %d", t.at, group, t.NumGroups())
		}
		if err != nil {
			yield(nil, err)
			return
		}
		t.src.read(ctx, group, p, yield)
	}
}

func (t *Table) project(columns []int) (projection, error) {
	s := t.tree.schema
	p := projection{schema: s, columns: columns}
	if columns == nil {
		for i := range s.NumFields() {
			p.columns = append(p.columns, i)
		}
		return p, nil
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		if c < 0 || c >= s.NumFields() {
			return p, fmt.Errorf("%s: column %d of %d", t.at, c, s.NumFields())
		}
		fields[i] = s.Field(c)
	}
	meta := s.Metadata()
	p.schema = arrow.NewSchema(fields, &meta)
	return p, nil
}
