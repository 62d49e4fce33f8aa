// Package partition reads and writes the pieces of a table: it opens Parquet,
// Arrow and text files, splits them into shards, scans them with a filter and
// writes what is left.
//
// The way of the data is
//
//	names ── Open ──► Files ── Split(shard) ──► Pieces ── Scanner(filter) ──► pages or batches ── Output ──► Parquet or Arrow
//
// A [Piece] is a range of a file's row groups. What workers make of pieces comes
// out in input order, whatever their number.
//
// Of Parquet files the scan reads the key columns first, and of the others only
// what belongs to rows that pass. On the way to a Parquet file the rows never
// become rows: their entries are copied from page to page (pages.go). Else they
// leave as Arrow record batches, as do those of files of other formats.
//
// Every size in a file is checked before it is used, every error says where it
// stands, and no output is visible before it is whole.
package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/text"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Format is a file format.
type Format string

// The formats. Text formats are read as ID sets only.
const (
	Parquet     Format = "parquet"
	ArrowFile   Format = "arrow"
	ArrowStream Format = "arrow-stream"
	CSV         Format = "csv"
	TSV         Format = "tsv"
	NDJSON      Format = "ndjson"
	Lines       Format = "lines" // one ID a line, in a column called id
	// RecordBatches are those that a program brings, see [Records].
	RecordBatches Format = "records"
)

// textFormats are the formats that package text reads.
var textFormats = map[Format]text.Format{CSV: text.CSV, TSV: text.TSV, NDJSON: text.NDJSON, Lines: text.Lines}

// IsText reports whether the format's columns have no types of their own.
func (f Format) IsText() bool { return textFormats[f] != text.Auto }

// table is what each format's reader offers. Read yields the rows of one
// group, the given top-level columns of them (nil: all) in the given order;
// a record is valid until yield returns, unless it is retained.
type table interface {
	Schema() *arrow.Schema
	NumGroups() int
	GroupRows(i int) int64  // -1: not known before they are read
	GroupBytes(i int) int64 // as stored
	Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error]
	Close() error
}

// File is an open file of a table. Its methods may be called from many
// goroutines at once.
type File struct {
	Name   string // as it was opened, for messages
	Rel    string // identifies it on every machine, see [storage.Object]
	Format Format
	Size   int64 // bytes; -1 for standard input and records

	table
	src   storage.Reader // nil: standard input or records
	once  bool           // the rows can be read only one time
	root  string         // the directory that was searched for it, or ""
	bytes *atomic.Int64  // read from src so far
	print func() ([]byte, error)

	doubts   doubts
	inFlight int64 // see OpenOptions
}

// OpenOptions says how to open files. The zero value reads local Parquet and
// Arrow files.
type OpenOptions struct {
	Store storage.Source // nil: the local file system
	Mem   memory.Allocator
	// Text allows text formats: for ID sets.
	Text bool
	// TextFormat is the format of inputs whose name does not tell, and of .txt
	// and .ids; empty: one ID a line, unless an input surely is something else,
	// which is an error.
	TextFormat Format
	// Column names the column of inputs with one ID a line; empty: "id".
	Column string
	// Types gives columns of text inputs a type. Others are strings.
	Types map[string]arrow.DataType
	// IgnoreCase finds the columns of Types by names whose letters may differ in
	// case.
	IgnoreCase bool
	// SkipBad leaves out lines of text that are surely bad and surely all that
	// is: a value that does not parse, a row of another width than the names, a
	// line of NDJSON that is no object; see [File.BadLines].
	SkipBad bool
	// Stdin is read for the name "-". Nil: that name is refused.
	Stdin io.Reader
	// Int96Nanos makes INT96 timestamps of Parquet timestamp[ns], which holds
	// all of their digits in the years 1677 to 2262. Else they are
	// timestamp[us], which holds all years, and digits below a microsecond are
	// an error. Keys are compared in full in either case, and pages that are
	// copied stay INT96.
	Int96Nanos bool

	// Include and Exclude are patterns for the files of directories, as those of
	// [path.Match]: against the path below the directory, or the file's own name
	// if the pattern has no slash. Only files that match Include, if there is one,
	// and no Exclude are read.
	Include, Exclude []string
	// PassedOver, if not nil, is told of files of directories that are not read,
	// and why.
	PassedOver func(name, why string)
	// AllowEmpty allows directories without data. Else they are errors.
	AllowEmpty bool
	// Base is the directory that outputs mirror: a file's Rel is its path below
	// it. Empty: Rel begins with the first name=value directory of the path, and
	// without one is as [storage.Object] says.
	Base string
	// Memory is the memory budget of the whole process in bytes; 0: no bound. It
	// bounds what is read of the files at once, as batches of text. What needs
	// more is an error that wraps [fault.ErrMemory].
	Memory int64
	// InFlight is the most bytes that pages, records and row groups on their way
	// from the files to a consumer may take together, about; 0: no bound. Fewer
	// and smaller buffers, then fewer workers, keep to it. One worker is the
	// least, whatever it needs.
	InFlight int64

	room *parquet.Room // of Memory
	like *like         // what other files may share
}

// like is the Parquet file that was opened last.
type like struct{ table *arrowparquet.Parquet }

func (o *OpenOptions) fill() {
	if o.Store == nil {
		o.Store = storage.Local{}
	}
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	o.room, o.like = parquet.NewRoom(o.Memory), new(like)
}

// Open opens all files that the names stand for, in ascending order of Rel:
// the same order in every process. The caller closes them, see [Close].
func Open(ctx context.Context, names []string, opts OpenOptions) (files []*File, err error) {
	opts.fill()
	defer func() {
		if err != nil {
			err = errors.Join(err, Close(files))
			files = nil
		}
	}()
	for _, name := range names {
		if name == "-" {
			f, err := openStdin(opts)
			if err != nil {
				return files, err
			}
			files = append(files, f)
			continue
		}
		found, err := opts.find(ctx, name)
		files = append(files, found...)
		if err != nil {
			return files, err
		}
	}
	sort.SliceStable(files, func(i, j int) bool { return files[i].Rel < files[j].Rel })
	return files, nil
}

// Close closes the files.
func Close(files []*File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// rest releases what the file's reader holds, such as a descriptor, until the
// next read.
func (f *File) rest() error { return storage.Rest(f.src) }

// unless returns err, or a "file changed" error that wraps it if the file has
// changed since it was opened: then another attempt may succeed.
func (f *File) unless(err error) error {
	if err == nil {
		return nil
	}
	if changed := storage.Changed(f.src); changed != nil {
		return fmt.Errorf("%w (%w)", changed, err)
	}
	return err
}

// Unchanged returns an error that wraps [storage.ErrChanged] if the file of a
// piece is known to have changed since it was opened: some of what was read may
// be of another file.
func Unchanged(pieces []Piece) error {
	for _, p := range pieces {
		if err := storage.Changed(p.File.src); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	err := f.table.Close()
	if f.src != nil {
		err = errors.Join(err, f.src.Close())
	}
	return err
}

// BytesRead returns how many bytes were read from the file so far.
func (f *File) BytesRead() int64 { return f.bytes.Load() }

// Once reports whether the file can be read only one time.
func (f *File) Once() bool { return f.once }

// Rows returns the number of rows, or -1 if it is not known before they are
// read.
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

// CountRows is Rows, but where the number is -1 only because it could not be
// read, it returns the error.
func (f *File) CountRows() (int64, error) {
	if t, ok := f.table.(*arrowipc.Table); ok {
		n, err := t.Rows()
		return n, errors.Join(f.unless(err), f.rest())
	}
	return f.Rows(), nil
}

// parquet returns the reader of a Parquet file, else nil.
func (f *File) parquet() *arrowparquet.Parquet {
	p, _ := f.table.(*arrowparquet.Parquet)
	return p
}

// Codec returns the compression of a Parquet file, else "".
func (f *File) Codec() string {
	if p, ok := f.table.(*arrowparquet.Parquet); ok {
		return p.Codec()
	}
	return ""
}

// storedSchema returns the Arrow schema that a Parquet file's writer has stored
// beside its own, else "".
func (f *File) storedSchema() string {
	if p, ok := f.table.(*arrowparquet.Parquet); ok {
		return p.StoredSchema()
	}
	return ""
}

// coded returns the schema of an answer, which has the file's columns first or
// some of them, with their dictionary types where it has those of their values.
// Parquet outputs store it as what readers that know Arrow restore.
func (f *File) coded(s *arrow.Schema) *arrow.Schema {
	from := f.Schema()
	if p := f.parquet(); p != nil {
		from = p.CodedSchema()
	}
	fields := slices.Clone(s.Fields())
	for i, field := range fields {
		at := slices.IndexFunc(from.Fields(), func(g arrow.Field) bool { return g.Name == field.Name })
		if at < 0 || i >= len(from.Fields()) { // behind the log's columns stand the IDs'
			continue
		}
		if t := from.Field(at).Type; arrow.TypeEqual(take.PlainType(t), field.Type) {
			fields[i].Type = t
		}
	}
	md := s.Metadata()
	return arrow.NewSchema(fields, &md)
}

// SetTypes gives columns of a text file types, with ignoreCase by names whose
// letters may differ in case; of other files it does nothing.
func (f *File) SetTypes(types map[string]arrow.DataType, ignoreCase bool) {
	t, ok := f.table.(*text.Table)
	if !ok {
		return
	}
	if ignoreCase {
		spelled := map[string]arrow.DataType{}
		for name, typ := range types {
			for _, column := range t.Schema().Fields() {
				if strings.EqualFold(column.Name, name) {
					spelled[column.Name] = typ
				}
			}
		}
		types = spelled
	}
	f.table = t.WithTypes(types)
}

// detect finds the format by name and by the first bytes. The name decides for
// text, so that a damaged Parquet file is not taken for one.
func detect(src storage.Reader, e storage.Object, unnamed Format) (Format, error) {
	var head [8]byte
	n, err := src.ReadAt(head[:min(8, src.Object().Size)], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: %w", e.Name, err)
	}
	if f := byMagic(head[:n]); f != "" {
		return f, nil
	}
	if err := notRows(e.Name, head[:n]); err != nil {
		return "", err
	}
	if f := byName(e.Rel); f == Lines {
		return cmp.Or(unnamed, Lines), nil // .txt says little
	} else if f != "" {
		return f, nil
	}
	if e.Found {
		return "", fmt.Errorf("%s: %w", e.Name, ErrNoData)
	}
	if f, err := byTail(src); f != "" || err != nil {
		return f, err
	}
	return cmp.Or(unnamed, Lines), nil
}

// byTail finds the format of a file by its last bytes, for one whose first are
// damaged: it is no text.
func byTail(src storage.Reader) (Format, error) {
	var tail [6]byte
	size := src.Object().Size
	n := min(int64(len(tail)), size)
	if m, err := src.ReadAt(tail[:n], size-n); int64(m) < n {
		return "", err
	}
	s := string(tail[:n])
	switch {
	case strings.HasSuffix(s, "PAR1"), strings.HasSuffix(s, "PARE"):
		return Parquet, nil
	case s == "ARROW1":
		return ArrowFile, nil
	}
	return "", nil
}

func byMagic(head []byte) Format {
	s := string(head)
	switch {
	case strings.HasPrefix(s, "PAR1"), strings.HasPrefix(s, "PARE"):
		return Parquet
	case strings.HasPrefix(s, "ARROW1"):
		return ArrowFile
	case strings.HasPrefix(s, "\xff\xff\xff\xff") && len(s) == 8 && head[7] == 0:
		return ArrowStream
	}
	return ""
}

func byName(name string) Format {
	name = strings.ToLower(name)
	for _, c := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, c)
	}
	switch {
	case strings.HasSuffix(name, ".parquet"), strings.HasSuffix(name, ".parq"), strings.HasSuffix(name, ".pq"):
		return Parquet
	case strings.HasSuffix(name, ".arrow"), strings.HasSuffix(name, ".feather"), strings.HasSuffix(name, ".ipc"):
		return ArrowFile
	case strings.HasSuffix(name, ".arrows"):
		return ArrowStream
	case strings.HasSuffix(name, ".csv"):
		return CSV
	case strings.HasSuffix(name, ".tsv"):
		return TSV
	case strings.HasSuffix(name, ".ndjson"), strings.HasSuffix(name, ".jsonl"):
		return NDJSON
	case strings.HasSuffix(name, ".txt"), strings.HasSuffix(name, ".ids"):
		return Lines
	}
	return ""
}

// farRead is how many bytes are read of a Parquet file at once, at least, where
// each read may be a request over a network.
const (
	farRead   = 4 << 20
	leastRead = 256 << 10 // where the memory budget is small
)

// open makes the reader of the file's format.
func (f *File) open(opts OpenOptions) (err error) {
	r := counted{f.src, f.bytes}
	switch f.Format {
	case Parquet:
		p, err := arrowparquet.OpenParquet(r, f.Size, f.Name, arrowparquet.ParquetOptions{
			Mem: opts.Mem, Room: opts.room, Like: opts.like.table, Int96Nanos: opts.Int96Nanos,
		})
		if err != nil {
			return err
		}
		f.table, opts.like.table = p, p
		if _, near := f.src.(storage.Mapper); !near {
			p.File().ReadAtLeast(min(farRead, max(opts.room.Part(64, farRead), leastRead)))
		}
	case ArrowFile:
		f.table, err = arrowipc.OpenFile(opts.Memory, r, f.Size, f.Name, opts.Mem)
	case ArrowStream:
		f.table, err = arrowipc.OpenStream(f.reopen(r), f.Name, opts.Mem, arrowipc.StreamOptions{Size: f.Size, Memory: opts.Memory})
	default:
		if !opts.Text {
			return fault.Errorf("%s: %w (text is read as IDs only, with {IDs}; rows in other formats can come as an Arrow stream on standard input: docs/stdin.md)", f.Name, ErrNoData)
		}
		f.table, err = text.Open(f.reopen(r), f.Name, text.Options{
			Format: textFormats[f.Format], Guessed: opts.TextFormat == "", Size: f.Size, Column: opts.Column, Mem: opts.Mem, Memory: opts.Memory, SkipBad: opts.SkipBad,
		})
		if err == nil {
			f.SetTypes(opts.Types, opts.IgnoreCase)
		}
	}
	return err
}

// reopen returns a function that reads the file from its beginning.
func (f *File) reopen(r io.ReaderAt) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(r, 0, f.Size)), nil
	}
}

// openStdin reads an ID set, or an Arrow stream, from standard input.
func openStdin(opts OpenOptions) (*File, error) {
	if opts.Stdin == nil {
		return nil, errors.New(`standard input ("-") cannot be read here: name a file`)
	}
	f := &File{Name: "standard input", Rel: "-", Size: -1, once: true, bytes: new(atomic.Int64)}
	r := &counted64{r: opts.Stdin, n: f.bytes}
	head := make([]byte, 8)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	whole := io.NopCloser(io.MultiReader(strings.NewReader(string(head[:n])), r))
	open := func() (io.ReadCloser, error) { return whole, nil }
	switch f.Format = byMagic(head[:n]); f.Format {
	case ArrowStream:
		f.table, err = arrowipc.OpenStream(open, f.Name, opts.Mem, arrowipc.StreamOptions{Once: true, Memory: opts.Memory})
		return f, err
	case Parquet, ArrowFile:
		return nil, fault.Unsupported(fault.At{File: f.Name}, "a file of format %s, which is read from its end", f.Format).
			WithHint("name the file instead")
	}
	if err := notRows(f.Name, head[:n]); err != nil {
		return nil, err
	}
	if !opts.Text {
		if n == 0 {
			return nil, fault.Mismatch(fault.At{File: f.Name}, "the log", "an Arrow IPC stream", "nothing").
				WithHint("check that the program that writes it has not failed")
		}
		e := fault.Mismatch(fault.At{File: f.Name}, "the log", "an Arrow IPC stream", "something else")
		return nil, e.WithHint("write one with DuckDB or pyarrow, see docs/stdin.md, or name a Parquet or Arrow file")
	}
	if f.Format = opts.TextFormat; f.Format == "" {
		f.Format = Lines
	}
	f.table, err = text.Open(open, f.Name, text.Options{
		Format: textFormats[f.Format], Guessed: opts.TextFormat == "", Size: -1, Once: true, Column: opts.Column, Mem: opts.Mem, Memory: opts.Memory, SkipBad: opts.SkipBad,
	})
	if err == nil {
		f.SetTypes(opts.Types, opts.IgnoreCase)
	}
	return f, err
}

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	n *atomic.Int64
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.n.Add(int64(n))
	return n, err
}

type counted64 struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counted64) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
