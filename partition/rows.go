package partition

import (
	"github.com/apache/arrow/go/v15/arrow"
)

// Rows is a record batch with its origin. The receiver releases the record.
type Rows struct {
	Piece  int // position among the pieces that were read
	Record arrow.Record

	group *outGroup // rows copied as pages, in place of Record
}

func (r Rows) release() {
	if r.Record != nil {
		r.Record.Release()
	}
}

// ReadOptions are the options of [Map].
type ReadOptions struct {
	// Threads is the number of workers; 0: GOMAXPROCS.
	Threads int
	// Columns returns the top-level columns to read of a file, in order. Nil, or
	// a nil result, means all.
	Columns func(*File) ([]int, error)
	// Keys says that the columns serve as keys only. INT96 timestamps are then
	// read with all years and digits, into a type that serves nothing else.
	Keys bool
}

// Work transforms one record that was read. One goroutine calls it at a time. It
// passes any number of records to emit, which takes ownership of one reference to
// each. An error of emit means that the consumer has stopped; Work returns it. rec
// is released after the call.
type Work func(piece Piece, rec arrow.Record, emit func(arrow.Record) error) error
