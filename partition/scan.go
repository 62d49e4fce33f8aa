package partition

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
)

// ScanOptions are the options of a [Scanner]. Each row that passes is kept once.
type ScanOptions struct {
	// Match holds the filters. A row is kept if it passes all of them or, with Any,
	// one of them. Filters with NoMatch always apply. Without any, files need a condition.
	Match []dataset.Match
	Any   bool
	// Normalize names the rule that normalizes the log's strings before they are
	// compared: some of trim and lower and one of uuid, url and url-host, separated by
	// commas; see FORMAT.md of package codec. It must be the rule with which the filters were built. Filters
	// over keys without strings fit any rule, if another filter has that rule.
	Normalize string
	// Columns are the columns to keep, in order, as --columns has them: names, fields of
	// structs and stars; nil means all. Each file must have them or, if Schema is Union, at
	// least one file. IgnoreCase matches their names regardless of case.
	Columns    []string
	IgnoreCase bool
	// Schema decides about files whose columns differ. Empty: PerFile for a directory,
	// otherwise Strict. With Union, Pinned is the schema of the output instead of the
	// union of the files' schemas.
	Schema dataset.SchemaMode
	Pinned *dataset.PinnedSchema
	// CountNulls makes KeysNull and RowsWhere exact. Otherwise rows in skipped pages
	// count as non-NULL when the page index gives no null count.
	CountNulls bool
	// Limit is the maximum number of rows, the first ones in input order; 0: no limit. A scan into a
	// directory has none. When they are found, or counted, the scan ends; Stats may have more.
	Limit int64
	// Threads is the number of workers; 0 means GOMAXPROCS.
	Threads int
	Mem     memory.Allocator
	// Progress, if not nil, receives the number of rows of each batch, concurrently
	// from several goroutines.
	Progress func(rows int64)
}

// Rows are rows of one piece.
type Rows struct {
	Piece  int // position among the pieces that were read
	Record arrow.Record
}

func outerRows(r arraycopy.Rows) Rows { return Rows{Piece: r.Piece, Record: r.Record} }

// Scanner applies filters to files. It runs one scan: a second call of Scan, Count or
// [Output.WriteScan] returns an error. Stats may be called while it runs.
type Scanner struct{ in *keyscan.Scanner }

// room returns the scanner inside; nil if NewScanner did not make it, which is an error there.
func (s *Scanner) room() *keyscan.Scanner {
	if s == nil {
		return nil
	}
	return s.in
}

// NewScanner returns a scanner. It returns an error if one of the files lacks a
// column, or has a key that cannot be compared with a filter's. It reads nothing;
// files that are not given are checked when they are scanned.
func NewScanner(opts ScanOptions, files ...*File) (*Scanner, error) {
	s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions(opts)}, each.Slice(files, (*File).in)...)
	if err != nil {
		return nil, err
	}
	return &Scanner{s}, nil
}

// Scan yields the rows of the pieces that pass, in input order, as Arrow
// records. The sequence can be used once.
func (s *Scanner) Scan(ctx context.Context, pieces []Piece) iter.Seq2[Rows, error] {
	return each.Seq(arraycopy.Scan(ctx, s.room(), each.Slice(pieces, Piece.in)), outerRows)
}

// Count counts the rows of the pieces that pass, in Stats.
func (s *Scanner) Count(ctx context.Context, pieces []Piece) error {
	return output.Count(ctx, s.room(), each.Slice(pieces, Piece.in))
}

// ScanStats are the figures of a scan.
type ScanStats struct {
	RowsIn, RowsOut int64
	// RowsWhere counts the rows that were found to satisfy [OpenOptions].Where; without
	// a condition it equals RowsIn. Rows that the filters drop first are not tested, and
	// are counted only with CountNulls.
	RowsWhere        int64
	KeysNull         int64 // rows with a NULL in the first filter's key
	RowGroups        int64
	RowGroupsSkipped int64 // row groups whose pages were not read
	Pages            int64 // pages of keys, and of leaves that were copied
	PagesSkipped     int64 // pages that were not decompressed
}

// Stats returns the figures so far.
func (s *Scanner) Stats() ScanStats {
	if s.room() == nil {
		return ScanStats{}
	}
	c := s.room().Stats
	return ScanStats{
		RowsIn: c.RowsIn.Load(), RowsOut: c.RowsOut.Load(), RowsWhere: c.RowsWhere.Load(), KeysNull: c.KeysNull.Load(),
		RowGroups: c.RowGroups.Load(), RowGroupsSkipped: c.RowGroupsSkipped.Load(), Pages: c.Pages.Load(), PagesSkipped: c.PagesSkipped.Load(),
	}
}
