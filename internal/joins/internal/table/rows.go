package table

import (
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Form is the form in which rows of IDs are held, and written to disk. [RecordForm] is
// one; those who know files may have others. It is immutable and safe for concurrent
// use.
type Form interface {
	// NewRows returns an empty holder of rows. Memory is put on the share before it
	// is allocated.
	NewRows(of *budget.Share) Rows
	// Parse reads what [Batch].Append has appended, from byte at of src on. The batch
	// refers to src, and is released by the caller.
	Parse(src []byte, at int) (Batch, error)
}

// Batch is consecutive rows of IDs in some form, with their keys. Keys is for one
// goroutine, the other methods are safe for concurrent use.
type Batch interface {
	// Keys returns the keys of the rows, which belong to the batch.
	Keys() (*keys.Batch, error)
	// Bytes returns the approximate memory of the rows.
	Bytes() int64
	// Append appends the given rows, all if rows is nil, to dst in a form that
	// [Form].Parse reads.
	Append(dst []byte, rows []uint32) ([]byte, error)
	Release()
}

// Rows holds rows of IDs, numbered from 0 as they are added. It is filled by one
// goroutine, and then sealed; after that, reading is safe for concurrent use.
type Rows interface {
	// Add adds the given rows of a batch of the same form, ascending; all if rows is
	// nil. The error may wrap [fault.ErrMemory].
	Add(b Batch, rows []uint32) error
	// Seal ends filling.
	Seal() error
	Release()
}
