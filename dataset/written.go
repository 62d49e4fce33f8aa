package dataset

// Written describes what was written to an output.
type Written struct {
	Files []WrittenFile
	// Inputs has the pieces that the worker was given, in order, also those without a
	// row in the output.
	Inputs []WrittenInput
	Rows   int64
	Bytes  int64
	// Gone are inputs that are gone, as their Rel, and whose outputs are kept in the
	// directory.
	Gone []string
	// Notes are for the user of a directory: why it is not marked complete although
	// this run is, and which files of an earlier run were damaged.
	Notes []string
	// Unfinished says what a directory lacks when this worker ends, as "1 of 2 workers are
	// done, without 1"; empty: nothing, the run is committed.
	Unfinished string
}

// WrittenFile is one file of an output.
type WrittenFile struct {
	Name  string // below the directory, or as given
	Rows  int64
	Bytes int64
}

// WrittenInput is a piece of the log with what became of it.
type WrittenInput struct {
	Rel    string // of the file, see partition.File.Rel
	Lo, Hi int    // row groups, as of partition.Piece
	// RowsIn is the number of stored rows, whether or not they satisfy the file's
	// condition; -1: unknown, of standard input and records.
	RowsIn int64
	// RowsKept is the number of log rows in the output. RowsOut is larger where a row
	// has several partners.
	RowsKept, RowsOut int64
	// KeysNull is the number of rows with a NULL in the first filter's key, as
	// partition.ScanStats counts them; -1: unknown.
	KeysNull int64
	// Files are the names of the files that have the rows, in order, as in
	// [Written].Files. Several inputs may share a file.
	Files []string
}
