package pagecopy

import (
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// Pairs makes a scan write pairs: a row that passes stands once for each partner, a
// row of a table, with the table's columns beside its own. The Match of the scan must
// be a single one whose Check sets [keyscan.Keys.Entries].
type Pairs struct {
	// Columns are the columns of the output, for each log file.
	Columns func(f *source.File) []PairColumn
	// Table holds the partners. Nil: the output has no column of a table, and only
	// their number matters.
	Table *tables.Table
	// Of describes the columns of Table; nil without a table.
	Of *tables.Columns
	// Times returns how many partners an entry has, at least one. It is safe for
	// concurrent use.
	Times func(entry uint32) int64
	// Unique says that Times is 1 for every entry.
	Unique bool
	// Rows appends the rows of Table that are partners of an entry, in order. It is
	// safe for concurrent use.
	Rows func(dst []uint32, entry uint32) []uint32
	// KeepLog keeps log rows without a partner, once, with NULLs in the table's columns.
	KeepLog bool
	// KeepTable makes the log's columns optional, for rows of tables without a log
	// row: see output.ScanWriter.WriteUnmatched.
	KeepTable bool
	// Joined, if not nil, is set where the pieces are a single row group that is
	// scanned several times, with different partners: a bit for each of its rows
	// that had a partner so far. The scan sets bits, and KeepLog keeps only rows
	// without one.
	Joined []uint64
}

// PairColumn is a column of the output of a scan with [Pairs].
type PairColumn struct {
	Log   int    // position among the top-level columns of the log file; -1: none
	Table int    // position among the columns of the Table; -1: none. With a Log column too: what a row without a log row has there
	Name  string // in the output; of a log column, its own
}
