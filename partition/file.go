// Package partition reads and writes data in files: it opens Parquet, Arrow and text files,
// divides them among workers, scans them with filters and writes the rows that pass.
//
//	names ── Open ──► Files ── Split(shard) ──► Pieces ── Scanner(filters) ─┬─ Scan ──► Arrow records
//	records of a program ── Records ──► File                                └─ Output.WriteScan ──► Parquet or Arrow
//
// A [Piece] is a range of a file's row groups. Results come out in input order, whatever
// the number of workers. [File.Read] yields all rows.
//
// A scan of a Parquet file reads the key columns first, and of the other columns only what
// belongs to rows that pass. On the way to a Parquet file these rows are copied from page to
// page. Otherwise they become Arrow records, as do rows of files of other formats.
//
// Sizes in a file are checked before they are used, errors name file, row group, column and
// page, and no output is visible before it is complete.
package partition

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// File is an open file of a table, made by [Open] or [Records]. Its methods may be called
// from many goroutines.
type File source.File

func (f *File) in() *source.File { return (*source.File)(f) }

func outer(f *source.File) *File { return (*File)(f) }

// Name returns the name by which the file was opened, for messages.
func (f *File) Name() string { return f.in().Name() }

// Rel returns what identifies the file on every machine, see [storage.Object].
func (f *File) Rel() string { return f.in().Rel() }

// Format returns the format of the file.
func (f *File) Format() dataset.Format { return f.in().Format() }

// Size returns the size of the file in bytes; -1 for standard input and records.
func (f *File) Size() int64 { return f.in().Size() }

// Schema returns the columns of the file, including those of its path.
func (f *File) Schema() *arrow.Schema { return f.in().Schema() }

// Partitions returns the columns that the name=value directories of the file's path
// stand for, in the order of the first file of its Open; nil without any.
// Names and values are without escapes; __HIVE_DEFAULT_PARTITION__ is NULL.
func (f *File) Partitions() []dataset.PartitionValue { return f.in().Partitions() }

// Rows returns the number of stored rows, or -1 if it is unknown before they are read.
// With a condition the file has at most as many; see [OpenOptions].Where.
func (f *File) Rows() int64 { return f.in().Rows() }

// CountRows is Rows, with the error if the number could not be read.
func (f *File) CountRows() (int64, error) { return f.in().CountRows() }

// NumGroups returns the number of row groups or, in formats other than Parquet, of parts that
// can be read on their own.
func (f *File) NumGroups() int { return f.in().NumGroups() }

// GroupRows returns the number of stored rows of row group i, counted from 0. It returns
// -1 if that is unknown before reading, or if i is not a row group.
func (f *File) GroupRows(i int) int64 { return f.in().GroupRows(i) }

// BytesRead returns the number of bytes read from the file so far.
func (f *File) BytesRead() int64 { return f.in().BytesRead() }

// BadLines returns the lines of a text file that the last complete read skipped
// because of [OpenOptions].SkipBad: their number, and the line numbers of the first
// 20, counted from 1. skips reports whether bad lines of the file are skipped at all,
// which changes its contents. BadLines may be called concurrently.
func (f *File) BadLines() (count int64, first []int, skips bool) { return f.in().BadLines() }

// Doubts describes damaged parts of the file that were not needed, one sentence
// each: results are correct nevertheless. It is complete when all readers of the
// file have ended.
func (f *File) Doubts() []string { return f.in().Doubts() }

// Close closes the file. It never waits: readers that are at work go on to their end, and
// the last of them releases the file. Close then returns an error that says how many
// there are and wraps [storage.ErrAgain]; called again when they have ended, it returns
// nil. A reader that begins after Close gets an error that wraps fs.ErrClosed; what the
// footer says, such as Rows and Schema, stays known.
func (f *File) Close() error { return f.in().Close() }

// Read yields the rows of a row group with the given top-level columns, in that order;
// nil means all. A record is valid until yield returns, unless it is retained.
func (f *File) Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return rowfilter.Read(ctx, f.in(), group, columns)
}

// Close closes the files; see [File.Close].
func Close(files []*File) error { return source.Close(each.Slice(files, (*File).in)) }

// Piece is a range of row groups of a file, which one worker reads.
type Piece struct {
	File   *File
	Lo, Hi int // row groups Lo to Hi, Hi exclusive, counted from 0
}

func (p Piece) in() source.Piece { return source.Piece{File: p.File.in(), Lo: p.Lo, Hi: p.Hi} }

func outerPiece(p source.Piece) Piece { return Piece{File: outer(p.File), Lo: p.Lo, Hi: p.Hi} }

// Split returns the pieces of the files that belong to the shard. It divides the
// row groups of all files, in order, among the workers by bytes. Every row group
// belongs to exactly one worker. The division depends on the files' sizes alone, so
// each worker computes its own. A file without row groups belongs to the worker of
// the row groups around it.
//
// The largest share is at most 1.2 times the mean if any division in this order
// achieves that; otherwise it is as small as possible.
//
// For a shard that does not exist, such as 4/4, Split returns a piece of a File that
// stands for no input. Everything that reads this piece or its File returns an error.
func Split(files []*File, s dataset.Shard) []Piece {
	return each.Slice(source.Split(each.Slice(files, (*File).in), s), outerPiece)
}

// Unchanged returns an error that wraps [storage.ErrChanged] if the file of a piece
// is known to have changed since it was opened: some of the data that was read may
// be from another version.
func Unchanged(pieces []Piece) error { return source.Unchanged(each.Slice(pieces, Piece.in)) }
