package tables

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Pairs makes a scan write pairs: a row that passes appears once for each partner, a row of a
// table, with the table's columns beside its own. The scan must have a single Match, whose Check
// sets [keyscan.Keys.Entries].
type Pairs struct {
	rows.Partners // KeepLog: with NULLs in the table's columns
	// Columns are the columns of the output, for each log file.
	Columns func(f *source.File) []PairColumn
	// Log is the file whose columns these count: f, or a view of it with the columns of a union.
	Log func(f *source.File) *source.File
	// Schema has these columns as Arrow records have them.
	Schema func(f *source.File) *arrow.Schema
	// Table holds the partners. Nil: the output has no column of a table, and only
	// their number matters.
	Table *Table
	// Of describes the columns of Table; nil without a table.
	Of *Columns
	// KeepTable makes the log's columns optional, for rows of tables without a log
	// row: see output.ScanWriter.WriteUnmatched.
	KeepTable bool
	// Arrays says that rows go to the output as Arrow arrays, not as pages.
	Arrays bool
}

// PairColumn is a column of the output of a scan with [Pairs].
type PairColumn struct {
	Log   int    // position among the top-level columns of Log's file; -1: none
	Table int    // position among the columns of the Table; -1: none. With a Log column too: what a row without a log row has there
	Name  string // in the output; of a log column, its own
}
