package output

import "github.com/bloomjoin/bloomjoin/internal/leaves"

// Table holds rows of files in memory, leaf by leaf as Parquet stores them. Rows are
// numbered from 0 as they are appended. Append must not be concurrent with anything
// else; otherwise it is safe for concurrent use.
type Table struct {
	store *leaves.Store
	rows  []uint32 // memory for Append
}

// NewTable returns an empty table. take, if not nil, is called before memory is
// allocated; its error is [Table.Append]'s.
func (c *TableColumns) NewTable(take func(bytes int64) error) *Table {
	return &Table{store: leaves.New(c.leaves, take)}
}

// Append appends rows of a batch, all if rows is nil.
func (t *Table) Append(b *RowBatch, rows []uint32) error {
	return t.store.Append(b.block, b.inBlock(&t.rows, rows))
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.store.Len() }

// Bytes returns the memory that the rows take.
func (t *Table) Bytes() int64 { return t.store.Bytes() }
