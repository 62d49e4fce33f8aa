package partition

import (
	"context"
	"io"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// OpenOptions are the options of [Open]. The zero value reads local
// Parquet and Arrow files.
type OpenOptions struct {
	Store storage.Source // nil: the local file system
	Mem   memory.Allocator
	// Text allows text formats, for ID sets.
	Text bool
	// TextFormat is the format of text inputs, whatever their names say. If empty, the names
	// decide, and inputs with other names must have one ID per line.
	TextFormat dataset.Format
	// Encoding is that of text inputs: utf-8, latin1, windows-1252, utf-16le, utf-16be, or
	// utf-16, whose byte order mark gives the order. If empty, a byte order mark of UTF-8 or
	// UTF-16 decides; without one it is UTF-8. A mark that contradicts the encoding is an
	// error, and so are bytes that are not valid in it. Columns made binary by
	// [OpenOptions].Types, or in a join by the log's key, take any bytes, unless converted.
	Encoding string
	// Delimiter is between the fields of CSV; 0: a comma. It must be an ASCII character other
	// than a quote, CR and LF.
	Delimiter byte
	// NoHeader means that CSV and TSV have no row of names. Their columns are named 1, 2, ….
	NoHeader bool
	// Nested has paths into the objects of NDJSON, such as ["user", "id"]. Each becomes a column
	// that is found as a field of a struct would be.
	Nested [][]string
	// Column is the name of the column of inputs with one ID per line; empty: "id".
	Column string
	// Types gives types to columns of text inputs. Other columns are strings.
	Types map[string]arrow.DataType
	// IgnoreCase finds the columns of Types and Where by names whose letters differ in
	// case, and columns that are both in a file and in its path.
	IgnoreCase bool
	// SkipBad leaves out bad lines of text: a value that does not parse, a row of
	// another width than the header, a line of NDJSON that is not an object. Errors
	// that may span several lines cannot be skipped. See [File.BadLines].
	SkipBad bool
	// Stdin is read for the name "-". Nil: that name is refused.
	Stdin io.Reader
	// Int96Nanos reads INT96 timestamps of Parquet as timestamp[ns], which holds
	// all digits in the years 1677 to 2262. Otherwise they are read as
	// timestamp[us], which holds all years; digits below a microsecond are an
	// error. Keys are always compared in full, and copied pages stay INT96.
	Int96Nanos bool
	// Include and Exclude are patterns for the files of directories and those that a
	// pattern stands for, as in .gitignore: * ? [a-z] [!a] {a,b} **. Without a slash they
	// match names at any depth; with one, paths below the directory; and a directory
	// stands for all files in it. Only files that match some Include, if any, and no
	// Exclude are read. A file that is named is read in any case.
	Include, Exclude []string
	// PassedOver, if not nil, receives the files of directories that are not read,
	// with the reason.
	PassedOver func(name, why string)
	// Uncommitted reads outputs of runs that have not been committed, which lack rows.
	// Otherwise they are errors. A copy of such a directory, without the manifests
	// beside it, cannot be told from a whole one.
	Uncommitted bool
	// Hive decides whether name=value directories are columns of the files in them; see
	// [File.Partitions]. All files of one Open must then have the same.
	Hive dataset.HiveMode
	// Memory is the memory budget of the process in bytes; 0 means no bound. It
	// bounds what is read of the files at once: half of it is for pages and records
	// between the files and a consumer, unless one worker needs more. A page or
	// line that needs more than Memory is an error that wraps fault.ErrMemory.
	Memory int64
	// Where, if not empty, is a condition on the columns, as in SQL: "ts >= '2024-05-01'
	// AND country IN ('DE', 'FR')", see
	// https://github.com/bloomjoin/bloomjoin/blob/main/docs/where.md. The files have only
	// the rows for which it is true: no reader sees others. [File.Rows] still counts all
	// rows that are stored. Columns of text are strings, but for Types.
	Where string
	// SampleKeys, if not 0, is a share of all keys: the files have only the rows with one of
	// these. SampleBy names the key columns, each perhaps with a cast, as in "user_id::int64"; strings
	// are as they are stored. A
	// key is in the sample of every file, and in all larger ones; a key with a NULL is in none.
	SampleKeys float64
	SampleBy   string
	// Base is the directory that outputs mirror: a file's Rel is its path below it.
	// Empty: Rel begins with the first name=value directory of the path or, if
	// there is none, is as in [storage.Object].
	Base string
	// HiveTypes gives types to these columns, as in "dt:date,country:string", with
	// the names of casts, as `::date`. Names that no directory has are ignored. Other
	// columns have the first of these types that fits the values in all files that were
	// listed: int64 (no plus sign, no leading zeros), date32 (YYYY-MM-DD),
	// timestamp[us] (YYYY-MM-DD HH:MM:SS), string.
	HiveTypes string
	// OtherNames are names of columns in other files, as "user_id|uid": all are read by the first.
	OtherNames []string
}

// in returns the options of the room. Half of the memory is for what is between the files and
// a consumer.
func (o OpenOptions) in() source.Opening {
	return source.Opening{OpenOptions: source.OpenOptions(o), InFlight: o.Memory / 2}
}

// Open opens all files that the names match, in ascending order of Rel, which is
// the same in every process. A name is a file, a glob, a directory, a table (as delta:DIR, see the guide
// "tables"), an object's URL or "-". The caller closes the files; see [Close]. The error for no names, or for
// names without data, wraps [storage.ErrNoFiles].
func Open(ctx context.Context, names []string, opts OpenOptions) ([]*File, error) {
	files, err := source.Open(ctx, names, opts.in())
	return each.Slice(files, outer), err
}

// ReadSchema reads the schema of a Parquet file, such as an earlier output.
func ReadSchema(ctx context.Context, name string, opts OpenOptions) (*dataset.PinnedSchema, error) {
	return output.ReadSchema(ctx, name, opts.in())
}

// RecordsOptions describes rows that a program provides.
type RecordsOptions struct {
	// Once says that read can be called only once. Work that needs a second pass
	// is then an error, before the first pass if possible.
	Once bool
	// Rows is the number of rows, or 0 if unknown. It saves a counting pass. A pass
	// with another number of rows is an error.
	Rows int64
}

// Records returns a File whose rows are the record batches that read yields. It
// serves as a log or as IDs wherever a File does. It has one row group, so one
// worker reads it: rows for several workers are several Files with different names.
//
// read is called once for each pass over the rows, and must yield the same rows in
// the same order each time. It receives the context of the pass and runs in the
// goroutine of the reader. A pass ends with the sequence, at its first error, or
// when the reader stops; the sequence then frees what it holds. Passes may overlap,
// unless Once is set. Nothing runs ahead of the reader.
//
// The sequence keeps ownership of its records: each must be valid until the next
// one is asked for. So array.RecordReaders and channels of records are a short
// loop away. A record has any number of rows, and the columns of the schema, in
// order, with their types; metadata may differ. Other columns, a NULL in a column
// that the schema declares without NULLs, and a panic of the sequence are errors
// that name the File and the record, counted from 1 as a row group.
//
// The File has no size and no identity: a run over it is never taken for done, and
// several processes cannot divide it by [dataset.Shard]. Close does nothing.
func Records(name string, schema *arrow.Schema, read func(context.Context) iter.Seq2[arrow.Record, error], opts RecordsOptions) *File {
	return outer(source.Records(name, schema, read, source.RecordsOptions(opts)))
}
