// Package text reads ID sets that are written as text: CSV, TSV, NDJSON, or one
// ID a line; plain, gzip or zstd; from a file or from standard input.
//
// The rules, which guess nothing from content:
//
//   - The format is given, or is that of the name's suffix: .csv, .tsv, .txt
//     and .ids (lines), .ndjson and .jsonl; .gz, .zst and .zstd come last and
//     are looked past. Compression is seen by its first bytes; a name that
//     promises compression which is not there is an error.
//   - A UTF-8 byte order mark is skipped; UTF-16 is refused. Lines end with LF
//     or CR LF, the last one also with the input; a CR alone ends no line and
//     is a byte like any other. Wholly empty lines are skipped, those of blanks
//     are not. A line (in CSV a row, in quotes it may be many lines) has at
//     most Options.MaxLineBytes.
//   - CSV and TSV begin with a row of names, none empty, none twice. A row with
//     another number of fields is an error. An empty field is NULL. CSV has the
//     quotes of RFC 4180, and a quoted empty field is NULL like any other; what
//     stands inside quotes, line ends too, is taken as it is. TSV has no quotes.
//   - A NUL byte in the first 64 KiB of lines, CSV or TSV means that they are
//     no text, and is an error.
//   - Lines have one column, "id" or as Options.Column says, and no header. A
//     line is an ID as it stands, spaces too.
//   - NDJSON has one object a line. Columns are the keys of the first 1,000
//     objects, or of 32 MiB, in order of appearance; a key that appears in none
//     of them is no column, also if a type is given for it, and is ignored
//     later. Strings are taken as they are (an empty one is not NULL), numbers
//     by their literal text, so that no digit is lost, booleans as true and
//     false, objects and arrays as their compact JSON text. null and a missing
//     key are NULL. A key that stands twice in an object, invalid UTF-8, and
//     half a surrogate pair are errors.
//   - An input has at most 32,768 columns, and rows that are read as a whole at
//     most 10,000; a key is read alone.
//   - Columns are strings, unless a type is given for them; see [Options].Types.
//     A string is its bytes; except in NDJSON nobody checks that they are UTF-8.
//
// A value that does not parse is an error with file, line, column and type,
// without the value.
//
// With Options.SkipBad, bad lines are left out and counted instead. Bad is only
// what surely is bad by itself and surely ends with its line:
//
//   - a line with a value that does not parse, in a column that is read;
//   - a row of CSV or TSV with another number of fields than there are names;
//   - a line of NDJSON that is not one object in UTF-8 with each key once.
//
// All else stays an error, since more than a line may be lost: in CSV, quotes
// that break the rules, and a row that is bad and stands on several lines (an
// opening quote without a closing one takes good lines with it until the next
// quote); a line that is too long; a header that is missing or ambiguous; UTF-16
// and binary data; broken or unfinished compression; what the storage reports.
package text

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/fault"
)

// Format of the text.
type Format int

// Formats; Auto is decided by the name.
const (
	Auto Format = iota
	CSV
	TSV
	Lines
	NDJSON
)

// maxLine is the default for the bytes of one line.
const maxLine = 16 << 20

// Limits on columns. Each column of a record takes more than 1 KiB, however few
// rows there are, each further name only itself.
const (
	maxNames   = 32 << 10 // of an input
	maxColumns = 10_000   // of a record
)

// checkNumber refuses n columns if those are more than most.
func checkNumber(at fault.At, n, most int, what string) error {
	if n <= most {
		return nil
	}
	return fault.Unsupported(at, "%s more than %d columns", what, most).
		WithHint("keep only the columns that are needed; if the names are data, write a row for each of them")
}

// Parts of the memory budget.
const (
	batchShare = 32 // of a batch
	lineShare  = 8  // of a line
	aheadShare = 8  // of lines that were read for the columns, and cannot be read again
)

// part returns one part in share of the memory budget, but no more than most.
func (o *Options) part(share, most int64) int64 {
	if o.Memory <= 0 {
		return most
	}
	return min(o.Memory/share, most)
}

// lineBytes returns the most bytes of a line.
func (o *Options) lineBytes() int {
	if o.MaxLineBytes > 0 {
		return o.MaxLineBytes
	}
	return int(o.part(lineShare, maxLine))
}

// Options say how text is read. The zero value works, but for Size.
type Options struct {
	Format Format
	// Guessed: Format is Lines for want of a better one. An input that surely is
	// something else is an error then.
	Guessed bool
	// Size of the input in bytes, compressed as it is; -1 when not known.
	Size int64
	// Once: the input cannot be opened again, as standard input. The table can
	// be read once.
	Once bool
	// Column is the name of the column of Lines; empty: "id".
	Column string
	// Types of columns by name; all others are strings. A dictionary type
	// stands for the type of its values. Names that are no column are ignored.
	//
	//	integers            optional sign, digits; leading zeros are allowed
	//	floating point      decimal, also inf and nan; nearest value, no overflow
	//	boolean             true and false, in any case
	//	date32              YYYY-MM-DD
	//	timestamp           RFC 3339, T or a space before the time: with an offset
	//	                    or Z for a type with a zone, without for one without
	//	decimal128/256      decimal, exponents too; nothing is rounded
	//	fixed-size binary   hexadecimal; for 16 bytes also a UUID with dashes
	//	string, binary      the bytes, also of the large kinds
	Types map[string]arrow.DataType
	// Mem is where arrays come from; nil means the Go heap.
	Mem memory.Allocator
	// MaxLineBytes, 0 for 16 MiB, or an eighth of Memory if that is less.
	MaxLineBytes int
	// Memory is the memory budget of the whole process in bytes; 0: no bound.
	// Batches of records are a small part of it.
	Memory int64
	// SkipBad leaves bad lines out and counts them; see [Table.Bad].
	SkipBad bool
}

// Table is a text input that can be read. Its methods may be called
// concurrently; each Read is a pass of its own.
type Table struct {
	*input
	types  map[string]arrow.DataType
	wants  map[string]want
	schema *arrow.Schema
	parse  []parser // one for each column
	err    error    // a type that text is not parsed to
}

// input is what tables with different types share.
type input struct {
	at      fault.At
	open    func() (io.ReadCloser, error)
	opts    Options
	columns []string // names, as found; nil until they are
	head    head     // of Lines; set with columns
	part    int      // splitBytes, but for tests

	mu    sync.Mutex
	first *pass // Once: the pass that has read the header, until it is used
	bad   Bad   // of the last pass that came to the end
}

// FormatOf is the format that a file's name stands for, in upper or lower case,
// with or without the suffix of a compression; false when it stands for none.
func FormatOf(name string) (Format, bool) {
	name, _ = cutCompression(strings.ToLower(name))
	for suffix, f := range map[string]Format{".csv": CSV, ".tsv": TSV, ".txt": Lines, ".ids": Lines, ".ndjson": NDJSON, ".jsonl": NDJSON} {
		if strings.HasSuffix(name, suffix) {
			return f, true
		}
	}
	return Auto, false
}

// Open opens an input; open is called for the header and again for each Read,
// unless opts.Once is set. name is for error messages, and for the format when
// opts has none.
func Open(open func() (io.ReadCloser, error), name string, opts Options) (*Table, error) {
	at := fault.At{File: name}
	if opts.Format == Auto {
		f, ok := FormatOf(name)
		if !ok {
			return nil, fault.Unsupported(at, "a name that does not say how the text is written").
				WithHint("use one of .csv, .tsv, .txt, .ids, .ndjson, .jsonl, also with .gz or .zst behind")
		}
		opts.Format = f
	}
	if opts.Mem == nil {
		opts.Mem = memory.NewGoAllocator()
	}
	in := &input{at: at, open: open, opts: opts, part: splitBytes}
	p, err := in.pass()
	if err != nil {
		return nil, err
	}
	in.columns = append([]string{}, p.rows.columns()...) // nil before
	if opts.Once {
		in.first = p
	} else if err := p.close(); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	t := in.table(opts.Types, nil)
	if t.err != nil {
		_ = in.Close()
		return nil, t.err
	}
	return t, nil
}

// want is what the texts of a column must be, beside what its type wants.
type want struct {
	ok   func(value string) bool
	name fault.Text
}

// wanted words what the values of a column must be.
func (t *Table) wanted(column int) fault.Text {
	f := t.schema.Field(column)
	if w, ok := t.wants[f.Name]; ok {
		return w.name
	}
	return fault.Textf("%s", f.Type)
}

// table is the input with types and wants for some columns.
func (in *input) table(types map[string]arrow.DataType, wants map[string]want) *Table {
	t := &Table{input: in, types: maps.Clone(types), wants: wants}
	fields := make([]arrow.Field, len(in.columns))
	for i, name := range in.columns {
		var dt arrow.DataType = arrow.BinaryTypes.String
		if given, ok := types[name]; ok {
			dt = given
		}
		if d, ok := dt.(*arrow.DictionaryType); ok {
			dt = d.ValueType
		}
		p, ok := parserOf(dt)
		if !ok && t.err == nil {
			at := in.at
			at.Column = name
			t.err = fault.Unsupported(at, "text as %s", dt)
		}
		if w, given := wants[name]; given && ok {
			parse := p
			p = func(b array.Builder, s string) bool { return w.ok(s) && parse(b, s) }
		}
		fields[i] = arrow.Field{Name: name, Type: dt, Nullable: true}
		t.parse = append(t.parse, p)
	}
	t.schema = arrow.NewSchema(fields, nil)
	return t
}

// WithTypes is the same input with these types instead of those that it was
// opened with. Both tables share the one pass of an input that can be read
// once; closing one closes both. A type that text is not parsed to is reported
// by Read.
func (t *Table) WithTypes(types map[string]arrow.DataType) *Table {
	return t.input.table(types, t.wants)
}

// WithCheck is the same input, as with WithTypes, in which a text in the named
// columns, which are of strings or binaries, does not parse if ok returns false
// for it; name says what is wanted. ok may be called from many goroutines, and
// keeps no text.
func (t *Table) WithCheck(columns []string, ok func(value string) bool, name fault.Text) *Table {
	wants := map[string]want{}
	maps.Copy(wants, t.wants)
	for _, c := range columns {
		wants[c] = want{ok, name}
	}
	return t.input.table(t.types, wants)
}

// Schema is the table's schema. All columns may be NULL.
func (t *Table) Schema() *arrow.Schema { return t.schema }

// NumGroups is 1: text is read from its beginning.
func (t *Table) NumGroups() int { return 1 }

// GroupRows is -1: nobody knows before it is read.
func (t *Table) GroupRows(int) int64 { return -1 }

// GroupBytes is the size of the input, -1 when it is not known.
func (t *Table) GroupBytes(int) int64 { return t.opts.Size }

// Close ends the use of the input.
func (in *input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.first == nil {
		return nil
	}
	err := in.first.close()
	in.first = nil
	return err
}

// begin is the pass for a Read, which reads ahead until ctx ends.
func (in *input) begin(ctx context.Context) (*pass, error) {
	p, err := in.fromStart()
	if err == nil {
		p.s.ahead(ctx)
	}
	return p, err
}

func (in *input) fromStart() (*pass, error) {
	if in.opts.Once {
		in.mu.Lock()
		defer in.mu.Unlock()
		p := in.first
		in.first = nil
		if p == nil {
			return nil, fmt.Errorf("%s: an input that cannot be opened again was read a second time", in.at)
		}
		return p, nil
	}
	p, err := in.pass()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(p.rows.columns(), in.columns) {
		p.close()
		return nil, fault.Mismatch(in.at, "the columns have changed since the input was opened", "", "")
	}
	return p, nil
}
