package output

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Rows is a record batch with its origin. The receiver releases the record.
type Rows struct {
	Piece  int // position among the pieces that were read
	Record arrow.Record
}

// Work transforms one record that was read. One goroutine calls it at a time. It
// passes any number of records to emit, which takes ownership of one reference to
// each. An error of emit means that the consumer has stopped; Work returns it. rec
// is released after the call.
type Work func(piece source.Piece, rec arrow.Record, emit func(arrow.Record) error) error
