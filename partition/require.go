package partition

import "github.com/bloomjoin/bloomjoin/internal/publish"

// Require are conditions on the rows of a directory, over all inputs of a run and all of
// its workers. The zero value requires nothing.
type Require struct {
	// Rows is the least number of rows.
	Rows int64
	// IDsMatched is the least share, from 0 to 1, of the IDs that have a row. Workers
	// count separately and may find the same IDs, so with several of them it must be met
	// by one alone.
	IDsMatched float64
	// MaxKept is the largest share, from 0 to 1, of the log's rows that are kept; 0: any.
	MaxKept float64
}

// ErrRequire is wrapped by errors about conditions that are not met.
var ErrRequire = publish.ErrRequire
