// Package arrowipc reads and writes Arrow IPC files and streams.
//
// Input is not trusted. The framing and the metadata are walked by hand, with
// every offset and size held against the bytes that are there; buffers are
// read and decompressed within limits; and offsets, views, type ids, run ends
// and dictionary indices are checked before an array is handed out, so that
// reading it at any index is safe. The arrays themselves are those of
// arrow/go. Its own IPC reader is not used: it trusts sizes, node counts and
// indices, and what would have to be validated for it is nearly all there is
// to do. Whether strings are UTF-8 is not checked.
//
// Read: metadata versions V4 and V5, with and without the continuation marker
// that came with 0.15; all types that arrow/go v15 has; buffers compressed
// with LZ4 frames or zstd; dictionaries, nested ones, deltas, and in streams
// replacements. Dictionaries of views become dictionaries of large strings or
// binary, dictionaries of floating-point numbers their values, list views lists,
// and decimals of 32 and 64 bits decimals of 128. Refused as unsupported:
// big-endian data, tensors, unions with NULLs of their own (before 1.0), arrays of more
// than 2³¹-1 values, and what lies beyond the limits in this package.
package arrowipc

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/bloomjoin/bloomjoin/fault"
)

// Table is an Arrow IPC file or stream that can be read. Its methods may be
// called concurrently.
type Table struct {
	at   fault.At
	tree *schemaTree
	src  source
}

// source is what a file and a stream do differently.
type source interface {
	groups() int
	rows(group int) (int64, error)
	bytes(group int) int64
	// read hands the columns of one group to yield until it returns false.
	read(ctx context.Context, group int, p projection, yield func(arrow.Record, error) bool)
	close() error
}

// projection says which top-level fields are wanted.
type projection struct {
	schema  *arrow.Schema
	columns []int
}

// of picks the wanted nodes.
func (p projection) of(nodes []*node) []*node {
	out := make([]*node, len(p.columns))
	for i, c := range p.columns {
		out[i] = nodes[c]
	}
	return out
}

// Schema is the table's schema. Extension types that are registered with
// arrow/go appear as such, others as their storage type with their metadata.
func (t *Table) Schema() *arrow.Schema { return t.tree.schema }

// NumGroups is the number of record batches of a file, and 1 for a stream.
func (t *Table) NumGroups() int { return t.src.groups() }

// GroupRows is the number of rows of a group; -1 when it is not known. For a
// file it reads the header of that batch, once.
func (t *Table) GroupRows(group int) int64 {
	n, _ := t.src.rows(group)
	return n
}

// Rows is the number of rows of all groups; -1 when it is not known. An error
// says why a file does not tell it.
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

// GroupBytes is the size of a group in the input; -1 when it is not known.
func (t *Table) GroupBytes(group int) int64 { return t.src.bytes(group) }

// Close ends the use of the table and frees the dictionaries it keeps. It does
// not close the reader that was given to OpenFile.
func (t *Table) Close() error { return t.src.close() }

// Read returns the record batches of one group. columns are indexes of
// top-level fields, in the wanted order; nil means all, and an empty list
// gives records without columns that still know their number of rows. A record
// is released when yield returns: whoever keeps it, or a column of it, retains
// it. The sequence ends after its first error. Errors about the input are of
// package fault; ctx is looked at before each batch.
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
