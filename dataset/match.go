package dataset

import "github.com/bloomjoin/bloomjoin/codec"

// Match applies a filter to key columns of a log.
type Match struct {
	Filter *codec.Filter
	// Key names the log's key columns: paths separated by commas, such as `user.id`
	// or `"a.b",c`. Each may have a cast, as in `user.id::int64`. If empty, these
	// are the names with which the filter was built.
	Key string
	// IgnoreCase matches column names regardless of case.
	IgnoreCase bool
	// NullMisfits turns a value that does not fit its cast into NULL. Otherwise
	// such a value is an error that wraps fault.ErrMismatch.
	NullMisfits bool
	// NoMatch keeps the rows whose key is certainly not in the set, and those with
	// a NULL key. It needs an exact filter.
	NoMatch bool
}

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
