// Package source turns names into open files: it lists, finds out formats and the columns of
// name=value directories, opens readers, and divides files among workers.
//
//	names ── Open ──► find (lists, patterns, excludes) ──► choose (read once) ──► detect (format) ──► File
//	records of a program ── Records ──► File                                         Files ── Split(shard) ──► Pieces
//
// In come names, a [storage.Source] and an [Opening]; out go [File]s, in order of Rel, equal in
// every process, and [Piece]s of them. A file is immutable once open. It counts its readers
// (keepopen.go), and the last one closes it. Sizes in it are checked before they are used.
package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/where"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Table is the reader of a format. Read yields the rows of one row group with the
// given top-level columns, in that order; nil means all. A record is valid until
// yield returns, unless it is retained.
type Table interface {
	Schema() *arrow.Schema
	NumGroups() int
	GroupRows(i int) int64  // -1: unknown before they are read
	GroupBytes(i int) int64 // as stored
	Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error]
	Close() error
}

// File is an open table: its footer, and its identity. It is immutable: any number of scans,
// joins and builds may use it, and call its methods, concurrently. A File comes from [Open],
// inputs.List.Open or [Records].
type File struct {
	name   string
	rel    string
	format dataset.Format
	size   int64

	table   Table          // nil: the File was not opened
	readers *readers       // shared by its views; nil: records, which need not be closed
	reader  storage.Reader // nil: standard input or records
	once    bool           // the rows can be read only once
	origin  Origin
	left    *leftOut      // what was listed with it and not opened; nil: nothing
	bytes   *atomic.Int64 // read from src so far
	reading *atomic.Int64 // see Opening
	print   func() ([]byte, error)
	hive    *HiveLayout // shared; nil: no partition columns
	parts   []hive.Part // in the order of hive's columns

	where    *where.Bound // the condition of its rows; nil: none
	sample   *Sample      // of their keys; nil: all
	reads    string       // see Reads
	of       *OfTable     // nil: it is in no table
	deleted  *roaring.Bitmap
	keys     *deletedKeys // nil: no row is deleted by its key
	starts   []int64      // the first row of each row group, and the number of all, if rows are deleted
	live     []int64      // rows of each row group that are not
	doubts   *doubts      // shared by its views
	inFlight int64        // see Opening
}

// Origin says where a file was found.
type Origin struct {
	Root    string // the directory in which it was found; empty: in none
	Found   bool   // in a directory, whose path in Rel is RootRel
	RootRel string
}

// NewTable returns a file of a table that is in no storage.
func NewTable(name string, format dataset.Format, t Table) *File {
	return &File{name: name, rel: name, format: format, size: -1, table: t, bytes: new(atomic.Int64), doubts: new(doubts)}
}

// Origin returns where the file was found.
func (f *File) Origin() Origin { return f.origin }

// Listed sets what a list of inputs says of the file.
func (f *File) Listed(format dataset.Format, origin Origin) { f.format, f.origin = format, origin }

// KnownAs sets the fingerprint, which a list of inputs says.
func (f *File) KnownAs(fingerprint []byte) {
	f.print = func() ([]byte, error) { return fingerprint, nil }
}

// Table returns the reader of the file's format.
func (f *File) Table() Table { return f.table }

// Reader returns the bytes of the file. It is nil for standard input and records.
func (f *File) Reader() storage.Reader { return f.reader }

// Where returns the condition of the rows that the file has; nil: it has all.
func (f *File) Where() *where.Bound { return f.where }

// Reads returns other names of columns, the sample and the condition, if there are any.
func (f *File) Reads() string { return f.reads }

// Partial reports whether rows that the file stores may be left out: it has a condition, or some are
// deleted.
func (f *File) Partial() bool { return f.Filtered() || f.deleted != nil || f.keys != nil }

// InFlight returns the limit of what is between the file and its consumers; see [Opening].
func (f *File) InFlight() int64 { return f.inFlight }

// Parts returns the name=value directories of the file's path, in the order of its columns.
func (f *File) Parts() []hive.Part { return f.parts }

// Doubt notes that a part of the file that was not needed is damaged.
func (f *File) Doubt(why error) { f.doubts.add(why) }

// LeftOut returns the Rels of files that were listed with it and not opened.
func (f *File) LeftOut() []string {
	if f.left == nil {
		return nil
	}
	return f.left.Sorted()
}

// Name returns the name by which the file was opened, for messages.
func (f *File) Name() string { return f.name }

// Failed returns err with the name of the file before it.
func (f *File) Failed(err error) error { return fmt.Errorf("%s: %w", f.name, err) }

// Rel returns what identifies the file on every machine, see [storage.Object].
func (f *File) Rel() string { return f.rel }

// Format returns the format of the file.
func (f *File) Format() dataset.Format { return f.format }

// IsText reports whether a format's columns have no types of their own.
func IsText(f dataset.Format) bool {
	return f == dataset.CSV || f == dataset.TSV || f == dataset.NDJSON || f == dataset.Lines
}

// Size returns the size of the file in bytes; -1 for standard input and records.
func (f *File) Size() int64 { return f.size }

// Schema returns the columns of the file, those of its path included.
func (f *File) Schema() *arrow.Schema {
	if f.table == nil {
		return arrow.NewSchema(nil, nil)
	}
	return f.table.Schema()
}

// SharesSchema reports whether both are Parquet files with one schema in memory, since these and
// their metadata were found equal when they were opened.
func (f *File) SharesSchema(g *File) bool {
	return f.Parquet() != nil && g.Parquet() != nil && f.Schema() == g.Schema()
}

// NumGroups returns the number of row groups. A file of another format than Parquet has
// parts that are read on their own in their place.
func (f *File) NumGroups() int {
	if f.table == nil {
		return 0
	}
	return f.table.NumGroups()
}

// GroupRows returns the number of stored rows of row group i, counted from 0. It returns
// -1 if reading alone would show it, or if i is not a row group.
func (f *File) GroupRows(i int) int64 {
	if i < 0 || i >= f.NumGroups() {
		return -1
	}
	return f.table.GroupRows(i)
}

// GroupBytes returns the stored size of row group i in bytes. It returns -1 if the size is
// unknown, or if i is not a row group.
func (f *File) GroupBytes(i int) int64 {
	if i < 0 || i >= f.NumGroups() {
		return -1
	}
	return f.table.GroupBytes(i)
}

// Rest releases what the file's reader holds, such as a descriptor, until the
// next read.
func (f *File) Rest() error { return objects.Rest(f.reader) }

// Passed releases the bytes that are kept of a file over a network. It is called when the
// last row group has been read.
func (f *File) Passed() {
	if p := f.Parquet(); p != nil {
		p.File().Rest()
	}
}

// Remote reports whether the file is read over a network, by a reader that fetches
// ahead.
func (f *File) Remote() bool {
	_, ok := f.reader.(storage.Prefetcher)
	return ok
}

// Unless returns err, or a "file changed" error that wraps it if the file has
// changed since it was opened: then another attempt may succeed.
func (f *File) Unless(err error) error {
	if err == nil {
		return nil
	}
	if changed := objects.Changed(f.reader); changed != nil {
		return fmt.Errorf("%w (%w)", changed, err)
	}
	return err
}

// Close closes the file without waiting. Active readers finish, and the last one releases the
// file; meanwhile Close returns an error that wraps [storage.ErrAgain], and nil if called again
// when they have ended. A reader that begins after Close gets an error that wraps [fs.ErrClosed].
// Rows, Schema and other facts of the footer stay available.
func (f *File) Close() error {
	if err := f.usable(); err != nil {
		return err
	}
	if f.readers == nil {
		return nil
	}
	atWork, err := f.readers.close()
	if atWork > 0 {
		return fmt.Errorf("%s: closed while it is being read (readers at work: %d; the last one releases the file)%w", f.name, atWork, quiet.Error{Err: storage.ErrAgain})
	}
	return err
}

// setReaders sets what Close releases. It is called once the table and the source are known.
func (f *File) setReaders() {
	t, src := f.table, f.reader
	f.readers = &readers{release: func() error {
		err := t.Close()
		if src != nil {
			err = errors.Join(err, src.Close())
		}
		return err
	}}
}

// with returns a view of the file with another table: the same file, read in another
// way.
func (f *File) with(t Table) *File {
	view := *f
	view.table = t
	return &view
}

// checkGroup returns an error unless i, counted from 0, is a row group.
func (f *File) checkGroup(i int) error {
	if n := f.NumGroups(); i < 0 || i >= n {
		return faults.Mismatch(fault.At{File: f.name}, "row group", fmt.Sprintf("0 to %d", n-1), i)
	}
	return nil
}

// CheckColumns returns an error unless all of these, counted from 0, are columns.
func (f *File) CheckColumns(columns []int) error {
	for _, c := range columns {
		if n := f.Schema().NumFields(); c < 0 || c >= n {
			return faults.Mismatch(fault.At{File: f.name}, "column", fmt.Sprintf("0 to %d", n-1), c)
		}
	}
	return nil
}

// BytesRead returns the number of bytes read from the file so far.
func (f *File) BytesRead() int64 {
	if f.bytes == nil {
		return 0
	}
	return f.bytes.Load()
}

// Once reports whether the file can be read only once.
func (f *File) Once() bool { return f.once }

// Rows returns the number of stored rows, or -1 if it is unknown before they are read.
// With a condition the file has at most as many; see [Opening].
func (f *File) Rows() int64 {
	var n int64
	for i := range f.NumGroups() {
		r := f.GroupRows(i)
		if r < 0 {
			return -1
		}
		n += r
	}
	return n
}

// CountRows is Rows, with the error if the number could not be read.
func (f *File) CountRows() (n int64, err error) {
	_, release, err := f.keepOpen(context.Background())
	if err != nil {
		return 0, err
	}
	defer faults.Join(&err, release)
	if t, ok := Stored(f.table).(*arrowipc.Table); ok {
		n, err := t.Rows()
		return n, errors.Join(f.Unless(err), f.Rest())
	}
	return f.Rows(), nil
}

// Parquet returns the reader of a Parquet file, or nil.
func (f *File) Parquet() *arrowparquet.Parquet {
	p, _ := f.table.(*arrowparquet.Parquet)
	return p
}

// Codec returns the compression of a Parquet file, or "".
func (f *File) Codec() string {
	if p, ok := f.table.(*arrowparquet.Parquet); ok {
		return p.Codec()
	}
	return ""
}

// StoredSchema returns the Arrow schema that is stored in a Parquet file's metadata,
// or "".
func (f *File) StoredSchema() string {
	if p, ok := f.table.(*arrowparquet.Parquet); ok {
		return p.StoredSchema()
	}
	return ""
}

// Coded returns a schema that begins with columns of the file, with the file's
// dictionary types in place of their value types. Parquet outputs store it, so that
// Arrow readers restore the dictionaries.
func (f *File) Coded(s *arrow.Schema) *arrow.Schema {
	from := f.Schema()
	if p := f.Parquet(); p != nil {
		from = p.CodedSchema()
	}
	fields := s.Fields()
	for i, field := range fields[:min(len(fields), from.NumFields())] { // columns of the IDs follow those of the log
		if at := from.FieldIndices(field.Name); len(at) > 0 {
			if t := from.Field(at[0]).Type; arrow.TypeEqual(take.PlainType(t), field.Type) {
				fields[i].Type = t
			}
		}
	}
	md := s.Metadata()
	return arrow.NewSchema(fields, &md)
}

// Doubts describes damaged parts of the file that were not needed, one sentence
// each: results are correct nevertheless. It is complete when all readers of the
// file have ended.
func (f *File) Doubts() []string {
	if f.doubts == nil {
		return nil
	}
	f.doubts.mu.Lock()
	defer f.doubts.mu.Unlock()
	out := slices.Clone(f.doubts.list)
	if f.doubts.more > 0 {
		out = append(out, fmt.Sprintf("%s: %d more of the kind", f.name, f.doubts.more))
	}
	return out
}
