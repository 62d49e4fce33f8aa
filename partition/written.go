package partition

import (
	"iter"
)

// Written describes what was written to an output.
type Written struct {
	Files []WrittenFile
	// Inputs has the pieces that the worker was given, in order, also those without a
	// row in the output.
	Inputs []WrittenInput
	Rows   int64
	Bytes  int64
	// Gone are inputs that are gone, as their Rel, and whose outputs are kept in the
	// directory; see [Output].Prune.
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
	Piece
	// RowsIn is the number of stored rows, whether or not they satisfy the file's
	// condition; -1: unknown, of standard input and records.
	RowsIn int64
	// RowsKept is the number of log rows in the output. RowsOut is larger where a row
	// has several partners.
	RowsKept, RowsOut int64
	// KeysNull is the number of rows with a NULL in the first filter's key, as
	// [ScanStats] counts them; -1: unknown.
	KeysNull int64
	// Files are the names of the files that have the rows, in order, as in
	// [Written].Files. Several inputs may share a file.
	Files []string
}

// writtenInputs returns the inputs of the parts before anything is written.
func writtenInputs(parts []Part) []WrittenInput {
	var inputs []WrittenInput
	for _, p := range parts {
		if p.Piece.File != nil {
			inputs = append(inputs, WrittenInput{Piece: p.Piece, RowsIn: p.Piece.storedRows(), KeysNull: -1})
		}
	}
	return inputs
}

// storedRows returns the number of stored rows, or -1.
func (p Piece) storedRows() (n int64) {
	for g := p.Lo; g < p.Hi; g++ {
		rows := p.File.GroupRows(g)
		if rows < 0 {
			return -1
		}
		n += rows
	}
	return n
}

// partRows is a number of rows of one part of an output, and of the log rows in them.
type partRows struct {
	part       int
	rows, kept int64
}

// of returns the numbers of rows by part.
func (r Rows) of() []partRows {
	if r.group != nil {
		return r.group.from
	}
	n := r.Record.NumRows()
	return []partRows{{r.Piece, n, n}}
}

// counting counts the rows of the inputs of w, which come from the parts.
func (w *Written) counting(parts []Part, rows iter.Seq2[Rows, error]) iter.Seq2[Rows, error] {
	at := map[int]int{} // by part: its index among Inputs
	for i, p := range parts {
		if p.Piece.File != nil {
			at[i] = len(at)
		}
	}
	return func(yield func(Rows, error) bool) {
		for r, err := range rows {
			if err == nil {
				for _, f := range r.of() {
					if i, ok := at[f.part]; ok {
						w.Inputs[i].RowsOut += f.rows
						w.Inputs[i].RowsKept += f.kept
					}
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
