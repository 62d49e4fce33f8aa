// Package text reads ID sets that are written as text: CSV, TSV, NDJSON, or one ID
// per line; uncompressed, gzip or zstd; from a file or from standard input.
//
// Nothing is guessed from content. The rules:
//
//   - The format is given or follows from the name's suffix: .csv, .tsv, .txt and
//     .ids (lines), .ndjson and .jsonl, optionally followed by .gz, .zst or .zstd.
//     Compression is recognised by its first bytes; a name with the suffix of a
//     compression that the content does not have is an error.
//   - Text is UTF-8, unless a byte order mark of UTF-16 or Options.Encoding says
//     otherwise; then it is converted while it is read. Bytes that the encoding does
//     not have are an error.
//   - Lines end with LF or CR LF; the last one may also end with the input. A CR without
//     LF is an ordinary byte, except in an input without any LF, where it ends lines. If
//     that is in doubt (names of CSV and TSV with a CR; a CR within a line that ends with
//     the only LF), it is an error. Empty lines are skipped, lines of blanks are not. A
//     line (in CSV a row, which may span lines within quotes) has at most
//     Options.MaxLineBytes.
//   - CSV and TSV start with a row of distinct, non-empty names, unless Options.NoHeader
//     is set. Only the first field may have no name, as that of an index; it is no
//     column. Before the names, a line such as sep=; gives the delimiter of CSV. A row with
//     another number of fields is an error. An empty field is NULL. CSV has the quotes of
//     RFC 4180; a quoted empty field is NULL too, and everything within quotes, including
//     line ends, is kept unchanged. TSV has no quotes.
//   - Lines, CSV or TSV with many NUL bytes together, or with NUL and other control
//     characters, in the first 64 KiB are an error: the input is not text.
//   - Lines have one column, "id" or Options.Column, and no header. A whole line is
//     the ID, including blanks.
//   - NDJSON has one object per line. Columns are the keys of the first 1,000
//     objects, or of 32 MiB, in order of appearance. A key that is in none of them
//     is not a column, even if a type is given for it, and is ignored later.
//     Strings are taken as they are (an empty one is not NULL), numbers as their
//     literal text, so that no digit is lost, booleans as true and false, objects
//     and arrays as their compact JSON text. null and a missing key are NULL. A
//     duplicate key in an object, invalid UTF-8, and half a surrogate pair are
//     errors.
//   - An input has at most 32,768 columns. Those that are read must fit the memory budget.
//   - Columns are strings, unless a type is given for them; see [Options].Types.
//     Strings that are read are UTF-8; binary columns may have any bytes.
//
// A value that does not parse is an error with file, line, column and type, but
// without the value.
//
// With Options.SkipBad, bad lines are skipped and counted instead. A line is bad
// only if it is certainly wrong by itself and the error certainly ends with the
// line:
//
//   - a line with a value that does not parse, in a column that is read, or with text that
//     is not UTF-8, in any column;
//   - a row of CSV or TSV whose number of fields differs from that of the names;
//   - a line of NDJSON that is not a single object in UTF-8 with distinct keys.
//
// Everything else stays an error, because more than one line may be lost: in CSV,
// invalid quotes, and a bad row that spans lines (an opening quote without a
// closing one swallows good lines up to the next quote); a line that is too long; a
// missing or ambiguous header; bytes that Options.Encoding does not have; binary data;
// damaged or truncated compression; storage errors.
package text

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Format is the format of the text.
type Format int

// The formats. Auto means that the name determines it.
const (
	Auto Format = iota
	CSV
	TSV
	Lines
	NDJSON
)

// maxLine is the default of the longest line in bytes.
const maxLine = 16 << 20

// Limits on columns. Each column of a record takes memory even with few rows, here and where the
// record goes; other names take only their own bytes.
const (
	maxNames    = 32 << 10 // in an input
	columnBytes = 8 << 10  // of a record
)

// checkNumber returns an error if n is more than maxNames.
func checkNumber(at fault.At, n int, what string) error {
	if n <= maxNames {
		return nil
	}
	return faults.Unsupported(at, "%s more than %d columns", what, maxNames).
		WithHint("keep only the columns that are needed; if the names are data, write a row for each of them")
}

// Fits returns an error if records of this number of columns exceed the memory budget.
func (t *Table) Fits(columns int) error {
	need := int64(columns) * columnBytes
	if t.opts.Memory <= 0 || need <= t.opts.Memory/columnShare {
		return nil
	}
	e := faults.Memory(t.at, fmt.Sprintf("rows of %d columns", columns), need, t.opts.Memory, columnShare)
	return e.WithHint("raise {Memory to %dMiB} or more, or choose fewer {Columns}", need*columnShare>>20+1)
}

// Shares of the memory budget: an eighth is 8.
const (
	batchShare  = 32  // a batch
	rangeShare  = 256 // a batch of a range among several
	lineShare   = 8   // a line
	columnShare = 2   // the columns of a record
	aheadShare  = 8   // lines that were read to find the columns and cannot be read again
)

// part returns 1/share of the memory budget, at most most.
func (o *Options) part(share, most int64) int64 {
	if o.Memory <= 0 {
		return most
	}
	return min(o.Memory/share, most)
}

// lineBytes returns the largest number of bytes in a line.
func (o *Options) lineBytes() int {
	if o.MaxLineBytes > 0 {
		return o.MaxLineBytes
	}
	return int(o.part(lineShare, maxLine))
}

// Options control how text is read. The zero value is valid except for Size.
type Options struct {
	Format Format
	// Guessed means that Format is Lines only by default. An input that is
	// certainly something else is then an error.
	Guessed bool
	// Size of the input in bytes, as stored; -1 if unknown.
	Size int64
	// Once means that the input cannot be opened again, as for standard input. The
	// table can then be read only once.
	Once bool
	// Column is the name of the column for Lines; empty: "id".
	Column string
	// Types of columns by name; all others are strings. A dictionary type means the
	// type of its values. Names that are not columns are ignored.
	//
	//	integers            optional sign, digits; leading zeros are allowed
	//	floating point      decimal, also inf and nan; nearest value, no overflow
	//	boolean             true and false, in any case
	//	date32              YYYY-MM-DD
	//	timestamp           as ISO 8601: 2024-05-01, 2024-05-01 10:30, 2024-05-01T10:30:00.5;
	//	                    if the type has a zone also with Z, +02 or +02:00, else UTC
	//	time                10:30, 10:30:00.5
	//	decimal128/256      decimal, also with exponent; nothing is rounded
	//	fixed-size binary   hexadecimal; for 16 bytes also a UUID with dashes
	//	string, binary      the bytes, including the large variants
	Types map[string]arrow.DataType
	// Mem allocates arrays; nil: the Go heap.
	Mem memory.Allocator
	// MaxLineBytes is the longest line in bytes; 0: 16 MiB, or an eighth of Memory
	// if that is less.
	MaxLineBytes int
	// Memory is the memory budget of the whole process in bytes; 0: unlimited.
	// Batches of records take a small part of it.
	Memory int64
	// Encoding is that of the text: utf-8, latin1, windows-1252, utf-16le, utf-16be, or
	// utf-16 for the order that a byte order mark says. Empty: as a mark says, or UTF-8.
	// A mark that contradicts it is an error.
	Encoding string
	// Delimiter is between the fields of CSV; 0: a comma. It must be an ASCII character other
	// than a quote, CR and LF.
	Delimiter byte
	// NoHeader means that CSV or TSV has no row of names: its columns are named 1, 2, ….
	NoHeader bool
	// Nested has paths of two names or more, from a key of NDJSON into its objects. Each is a
	// column after those of the keys, named as [keys.Path.Flat] says, if one of the first objects
	// has it. A value that is no object on the way makes the line bad; what is missing is NULL.
	Nested [][]string
	// SkipBad skips bad lines and counts them; see [Table.Bad].
	SkipBad bool
	// At reads the stored bytes, if that is possible anywhere without much delay. From
	// opens those from a position on, where each opening is a request over a network;
	// the ones up to another position are certainly read. If neither is set, the
	// input has one range.
	At   io.ReaderAt
	From func(position, to int64) (io.ReadCloser, error)
	// RangeBytes is the size of ranges, for tests; 0: the default.
	RangeBytes int64
	// Turn, if not nil, waits until no other reader of a range depends on memory that
	// this one takes. It is called before a line longer than 1 MiB is read.
	Turn func(context.Context) error
}

// Table is a readable text input. It is safe for concurrent use; each Read is a
// pass of its own.
type Table struct {
	*input
	types  map[string]arrow.DataType
	wants  map[string]want
	schema *arrow.Schema
	parse  []parser // one per column
	err    error    // a type that text cannot be parsed to
	doubt  error    // a type with which it is not sure how the input is read
}

// input is shared by tables of the same input with different types.
type input struct {
	at      fault.At
	open    func() (io.ReadCloser, error)
	opts    Options
	columns []string // names; nil until they are found
	header  header   // of CSV and TSV
	inner   []innerColumn
	head    head    // for Lines; set with columns
	part    int     // splitBytes, except in tests
	kind    string  // of compression
	bounds  []int64 // the start of each range, and the size; nil until they are found
	whole   string  // why there is one range, however large
	cr      bool    // lines end with CR alone
	doubt   bool    // for Lines: CR may end them
	marked  bool    // a byte order mark alone says that the text is UTF-16
	tallies tallies

	mu    sync.Mutex
	first *pass         // if Once: the pass that has read the header, until it is used
	ends  map[int]ended // by range: of the last pass that reached its end
}

// FormatOf returns the format for a file name, in upper or lower case, with or
// without the suffix of a compression. It returns false if the name has no known
// suffix.
func FormatOf(name string) (Format, bool) {
	name, _ = cutCompression(strings.ToLower(name))
	for suffix, f := range map[string]Format{".csv": CSV, ".tsv": TSV, ".txt": Lines, ".ids": Lines, ".ndjson": NDJSON, ".jsonl": NDJSON} {
		if strings.HasSuffix(name, suffix) {
			return f, true
		}
	}
	return Auto, false
}

// Open opens an input. It calls open to read the header, and again for each Read,
// unless opts.Once is set. name is used in error messages, and determines the
// format if opts does not.
func Open(open func() (io.ReadCloser, error), name string, opts Options) (*Table, error) {
	at := fault.At{File: name}
	if opts.Format == Auto {
		f, ok := FormatOf(name)
		if !ok {
			return nil, faults.Unsupported(at, "a name that does not say how the text is written").
				WithHint("use one of .csv, .tsv, .txt, .ids, .ndjson, .jsonl, also with .gz or .zst behind")
		}
		opts.Format = f
	}
	if opts.Encoding != "" && !slices.Contains(Encodings(), opts.Encoding) {
		return nil, faults.Of(cause.Encoding, faults.Unsupported(at, "text in %s", opts.Encoding))
	}
	if opts.Mem == nil {
		opts.Mem = memory.NewGoAllocator()
	}
	in := &input{at: at, open: open, opts: opts, part: splitBytes}
	p, err := in.pass(0, 1)
	if err != nil {
		return nil, err
	}
	in.columns = append([]string{}, p.rows.columns()...) // it was nil before
	switch r := p.rows.(type) {
	case *csvRows:
		in.header, in.opts.Delimiter = r.header, r.by
	case *tsv:
		in.header = r.header
	}
	if opts.Once {
		in.first = p
	} else if err := p.close(); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if err := in.divide(p); err != nil {
		return nil, err
	}
	t := in.table(opts.Types, nil)
	if t.err != nil {
		_ = in.Close()
		return nil, t.err
	}
	return t, nil
}

// want is a condition on a column's texts in addition to its type.
type want struct {
	ok   func(value string) bool
	name fault.Text
}

// wanted describes valid values of a column for errors.
func (t *Table) wanted(column int) fault.Text {
	f := t.schema.Field(column)
	if w, ok := t.wants[f.Name]; ok {
		return w.name
	}
	if isText(f.Type) {
		return wantText
	}
	return faults.Textf("%s", f.Type)
}

// skipTexts returns the columns whose text makes a line bad, so that each pass skips the
// same lines, whatever columns it reads; nil if none are skipped.
func (t *Table) skipTexts() (columns []int) {
	if !t.opts.SkipBad || t.opts.Format == NDJSON { // whose lines were checked
		return nil
	}
	for c, f := range t.schema.Fields() {
		if isText(f.Type) {
			columns = append(columns, c)
		}
	}
	return columns
}

// wantText describes values of columns that are text.
const wantText fault.Text = "UTF-8"

// table returns a table of the input with types and conditions for some columns.
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
			t.err = faults.Unsupported(at, "text as %s", dt)
		}
		if w, given := wants[name]; given && ok {
			parse := p
			p = func(b array.Builder, s string) bool { return w.ok(s) && parse(b, s) }
		}
		if parse := p; isText(dt) && in.opts.Format != NDJSON { // whose lines were checked
			p = func(b array.Builder, s string) bool {
				return validUTF8(unsafe.Slice(unsafe.StringData(s), len(s))) && parse(b, s)
			}
		}
		fields[i] = arrow.Field{Name: name, Type: dt, Nullable: true}
		t.parse = append(t.parse, p)
		if in.opts.Format == Lines {
			t.doubt = in.doubtOf(dt.ID() == arrow.BINARY || dt.ID() == arrow.LARGE_BINARY)
		}
	}
	var about *arrow.Metadata
	if in.HasHeader() {
		m := arrow.NewMetadata([]string{keys.HasHeader}, []string{"true"})
		about = &m
	}
	if len(in.inner) > 0 {
		nested := map[string]string{}
		for _, n := range in.inner {
			nested[keys.HasNested+n.path.Flat()] = "true"
		}
		m := arrow.MetadataFrom(nested)
		about = &m
	}
	t.schema = arrow.NewSchema(fields, about)
	return t
}

// doubtOf returns an error if one ID a line may be meant in two ways: bytes that look like
// text in UTF-16 or have no LF, and a line of text with a CR within.
func (in *input) doubtOf(binary bool) error {
	first := in.at
	first.Line = 1
	switch {
	case binary && in.marked:
		return faults.Of(cause.Encoding, faults.Mismatch(in.at, "IDs of type binary", "any bytes", "a byte order mark of UTF-16")).
			WithHint("if they are text, add {Encoding utf-16}; if not, put an empty line first")
	case binary && in.cr:
		return faults.Of(cause.BadLine, faults.Mismatch(in.at, "IDs of type binary", "lines that end with LF", "CR and no LF")).
			WithHint("make each line end with LF")
	case !binary && in.doubt:
		return faults.Of(cause.BadLine, faults.Mismatch(first, "one ID or several", "lines that end alike", "CR within the only line that ends with LF")).
			WithHint("make each line end with LF")
	}
	return nil
}

// WithTypes returns a table of the same input with these types instead of the ones
// given to Open. If the input can be read only once, both tables share that pass;
// closing one closes both. Read returns an error if text cannot be parsed to one of
// the types.
func (t *Table) WithTypes(types map[string]arrow.DataType) *Table {
	return t.input.table(types, t.wants)
}

// WithCheck returns a table of the same input, as WithTypes does, with a condition:
// a text in the named columns, which must be strings or binaries, does not parse if
// ok returns false for it. name describes valid values for errors. ok may be called
// concurrently and must not keep the text.
func (t *Table) WithCheck(columns []string, ok func(value string) bool, name fault.Text) *Table {
	wants := map[string]want{}
	maps.Copy(wants, t.wants)
	for _, c := range columns {
		wants[c] = want{ok, name}
	}
	return t.input.table(t.types, wants)
}

// Schema returns the table's schema. All columns are nullable.
func (t *Table) Schema() *arrow.Schema { return t.schema }

// NumGroups returns the number of ranges, which can be read independently.
func (t *Table) NumGroups() int { return t.ranges() }

func (t *Table) checkGroups(lo, hi int) error {
	if lo < 0 || lo >= hi || hi > t.ranges() {
		return fmt.Errorf("%s: groups %d to %d of %d", t.at, lo, hi, t.ranges())
	}
	return nil
}

// GroupRows returns -1, because the number of rows is unknown before reading.
func (t *Table) GroupRows(int) int64 { return -1 }

// GroupBytes returns the stored size of a range in bytes, -1 if unknown.
func (t *Table) GroupBytes(group int) int64 {
	if t.opts.Size < 0 {
		return -1
	}
	return t.bounds[group+1] - t.bounds[group]
}

// Encoding returns the encoding from which the input is converted by [Options].Encoding; ""
// if there is none.
func (in *input) Encoding() string {
	if in.opts.Encoding == UTF8 {
		return ""
	}
	return in.opts.Encoding
}

// HasHeader reports whether the first row has the names of the columns.
func (in *input) HasHeader() bool { return in.header.width > 0 && !in.opts.NoHeader }

// Fields describes how the fields of CSV or TSV are told apart, if that is not as usual; else "".
func (in *input) Fields() (how string) {
	if in.opts.Format == CSV && in.opts.delimiter() != ',' {
		how = fmt.Sprintf("delimiter %q", in.opts.Delimiter)
	}
	if in.opts.NoHeader && in.header.width > 0 {
		how = strings.TrimSpace(how + " no header")
	}
	return how
}

// Close closes the input.
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

// begin returns the pass for a Read of ranges, which reads in advance until ctx ends.
func (in *input) begin(ctx context.Context, lo, hi int) (p *pass, err error) {
	if lo == 0 {
		p, err = in.fromStart(hi)
	} else {
		p, err = in.fromRange(ctx, lo, hi)
	}
	if err != nil {
		return nil, err
	}
	if in.ranges() > 1 && in.opts.Turn != nil {
		p.lines.wait = func() error { return in.opts.Turn(ctx) }
	}
	p.s.ahead(ctx)
	p.lines.bounded = true
	if p.group > 0 {
		_, csv := p.rows.(*csvRows)
		p.lines.skip(csv, p.quoted)
	}
	return p, nil
}

// fromRange returns a pass over ranges other than the first one.
func (in *input) fromRange(ctx context.Context, lo, hi int) (*pass, error) {
	quotes := int64(0)
	if in.opts.Format == CSV {
		t, err := in.before(ctx, lo)
		if err != nil {
			return nil, err
		}
		quotes = t.quotes
	}
	p, err := in.pass(lo, hi)
	if err == nil {
		p.quoted = quotes%2 != 0
	}
	return p, err
}

func (in *input) fromStart(hi int) (*pass, error) {
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
	p, err := in.pass(0, hi)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(p.rows.columns(), in.columns) {
		p.close()
		return nil, faults.Of(cause.Changed, faults.Mismatch(in.at, "the columns have changed since the input was opened", "", ""))
	}
	return p, nil
}
