package output

import "github.com/apache/arrow/go/v15/arrow"

// Rows is a record batch with its origin. The receiver releases the record.
type Rows struct {
	Piece  int // position among the pieces that were read
	Record arrow.Record
}
