// Package tables holds rows of files in memory, leaf by leaf as Parquet stores them.
//
//	Pieces ── Read(Columns, predicate) ── keys, then leaves, or Arrow records ──► Batches ── Table.Append ──► Table
//
// In come pieces of files of any format, whose columns agree; out come rows with their keys, in
// input order, and a [Table] of the rows that the caller keeps. Memory is charged to the budget
// before it is allocated. Package leaves has the leaves, their blocks and pages.
//
// Package pagecopy writes rows of a table beside those of a log; joins hold IDs in one.
package tables

import "github.com/bloomjoin/bloomjoin/internal/leaves"

// Table holds rows of files in memory, leaf by leaf as Parquet stores them. Rows are
// numbered from 0 as they are appended. Append must not be concurrent with anything
// else; otherwise it is safe for concurrent use.
type Table struct {
	Store *leaves.Store
	rows  []uint32 // memory for Append
}

// NewTable returns an empty table. take, if not nil, is called before memory is
// allocated; its error is [Table.Append]'s.
func (c *Columns) NewTable(take func(bytes int64) error) *Table {
	return &Table{Store: leaves.New(c.Leaves, take)}
}

// Append appends rows of a batch, all if rows is nil.
func (t *Table) Append(b *Batch, rows []uint32) error {
	return t.Store.Append(b.Block, b.inBlock(&t.rows, rows))
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.Store.Len() }

// Bytes returns the memory that the rows take.
func (t *Table) Bytes() int64 { return t.Store.Bytes() }
