package partition

import (
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/key"
)

// TableColumns are columns of files that are held in a [Table]: those with the given
// names, in that order. It is immutable.
type TableColumns struct{}

// NewTableColumns returns the named top-level columns of the files, nil: all. The
// files must agree in them, except that values may be optional in some.
func NewTableColumns(files []*File, names []string, ignoreCase bool) (*TableColumns, error) {
	return nil, errors.New("unwritten")
}

// Schema returns the columns as Arrow records would have them.
func (c *TableColumns) Schema() *arrow.Schema { panic("unwritten") }

// NewTable returns an empty table. take, if not nil, is called before memory is
// allocated; its error is [Table.Append]'s.
func (c *TableColumns) NewTable(take func(bytes int64) error) *Table { panic("unwritten") }

// Table holds rows of files in memory, leaf by leaf as Parquet stores them. Rows are
// numbered from 0 as they are appended. Append must not be concurrent with anything
// else; otherwise it is safe for concurrent use.
type Table struct{}

// Append appends rows of a batch, all if rows is nil.
func (t *Table) Append(b *RowBatch, rows []uint32) error { panic("unwritten") }

// Len returns the number of rows.
func (t *Table) Len() int { panic("unwritten") }

// Bytes returns the memory that the rows take.
func (t *Table) Bytes() int64 { panic("unwritten") }

// RowBatch is consecutive rows, or some rows in order, of a row group, with their
// keys. It is valid until the function that received it returns.
type RowBatch struct {
	Piece Piece      // the row group; without a File if the batch was parsed
	Keys  *key.Batch // of the rows; Keys.Rows number rows of the batch, Keys.Len counts them
}

// Bytes returns the approximate memory of the batch.
func (b *RowBatch) Bytes() int64 { panic("unwritten") }

// AppendTo appends rows of the batch, all if rows is nil, with their keys to dst, in
// a form that [TableColumns.Parse] reads.
func (b *RowBatch) AppendTo(dst []byte, rows []uint32) ([]byte, error) { panic("unwritten") }

// Parse reads what [RowBatch.AppendTo] has written. The batch refers to src.
func (c *TableColumns) Parse(src []byte) (*RowBatch, error) { panic("unwritten") }

// RowOptions says which rows [ReadRows] reads. Key and Options are those of
// [KeyOptions].
type RowOptions struct {
	Key string
	key.Options
	// Match, if not nil, selects rows: those whose key passes its Filter or, if set,
	// its Check. Other rows, and those without a key, are not read. Nil: all rows
	// are read, with and without a key.
	Match *Match
	// Threads is the number of workers; 0 means GOMAXPROCS.
	Threads int
}

// ReadRows calls fn with the rows of the pieces, in order, on the calling goroutine.
// Values that are not IDs under the rule are an error. rows is the number of rows that
// were read or skipped, and nulls that of the rows among them that have a NULL in the
// key.
func ReadRows(ctx context.Context, pieces []Piece, c *TableColumns, o RowOptions, fn func(*RowBatch) error) (rows, nulls int64, err error) {
	panic("unwritten")
}
