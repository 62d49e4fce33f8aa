package partition

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Metadata keys that outputs carry, so that nobody takes candidates for
// answers, and a run knows its own results again.
const (
	MetaResult = "bloomjoin.result" // ResultCandidates or ResultExact
	MetaFilter = "bloomjoin.filter" // digest of the filter, hexadecimal
	MetaRun    = "bloomjoin.run"    // digest of the run, hexadecimal
)

// Values of MetaResult.
const (
	ResultCandidates = "candidates" // false positives may be among the rows
	ResultExact      = "exact"
)

// ErrExists says that an output of another run stands where this one should.
var ErrExists = codec.ErrExists

// ErrDone says that this very run has finished before; its output is whole.
var ErrDone = errors.New("already done")

// Output says where rows go.
type Output struct {
	// Name is a file, a directory (by a slash at the end, or because there is
	// one), or "-" for an Arrow stream on Stdout.
	Name   string
	Stdout io.Writer
	Store  storage.Storage // nil: the local file system
	Format Format          // Parquet or ArrowFile; empty: by the name, else Parquet
	// Compression is that of Parquet files. The zero value: as the first input.
	Compression Compression
	Result      string   // ResultCandidates or ResultExact
	Filter      [32]byte // digest of the filter that was used; zero: none
	// Run is the digest of the run without its shard, see Digest; zero: none,
	// so that no output is taken for that of the same run.
	Run   [32]byte
	Shard Shard // which worker writes
	// Force writes again what is done, and replaces what another run has left: a
	// file, or in a directory the outputs of Logs that its manifests list.
	Force bool
	// Logs are all files of the log, whatever the shard. Nil: those of the parts.
	Logs []*File
	// Hold keeps the files of a directory back until all rows have come, and
	// with Force leaves there what stands there until then: a sequence of rows
	// that ends in an error has changed nothing. (A single file is visible only
	// then in any case.) It takes the room of all files beside what they replace.
	Hold bool
	// Memory is the most bytes of encoded pages to hold in memory until their row
	// group is complete; 0: no bound. Others wait in TempDir; empty: [os.TempDir].
	// The output's bytes are the same.
	Memory  int64
	TempDir string
	Mem     memory.Allocator

	pool  *parquet.Pool // of all writers
	nonce string        // see identify
}

// Written is what an output came to.
type Written struct {
	Files []WrittenFile `json:"files"`
	Rows  int64         `json:"rows"`
	Bytes int64         `json:"bytes"`
	// Notes are what the user should know of a directory: why it is not marked
	// complete although this run is, and what of an earlier run was damaged.
	Notes []string `json:"-"`
}

// WrittenFile is one file of an output.
type WrittenFile struct {
	Name  string `json:"name"`            // below the directory, or as given
	Input string `json:"input,omitempty"` // Rel of the file that its rows come from
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Part is a stretch of an output that becomes a file of its own in a
// directory: the rows of one piece, or what has no piece.
type Part struct {
	Piece  Piece  // File nil: rows that come from no input of the log
	Name   string // file name without ending, where Piece.File is nil
	Schema *arrow.Schema

	pages *pageSource // its rows come as pages; nil: as records
}

func (o *Output) fill() {
	if o.Store == nil {
		o.Store = storage.Local{}
	}
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	if o.Format == "" {
		o.Format = Parquet
		if f := byName(o.Name); f == ArrowFile || f == ArrowStream {
			o.Format = f
		}
	}
}

// IsDir reports whether the output is a directory.
func (o Output) IsDir(ctx context.Context) bool {
	o.fill()
	return o.Name != "-" && storage.IsDir(ctx, o.Store, o.Name)
}

// Check returns nil if the output can be written, an error that wraps ErrDone if
// the same run has finished it before and Force is not set, and one that wraps
// ErrExists if something stands there that may not be replaced. An output that
// would stand in the place of an input is refused in any case. It is called
// before the work.
//
// logs are all files of the log, whatever the shard; others are further inputs.
func (o Output) Check(ctx context.Context, logs []*File, others ...*File) error {
	o.fill()
	if o.Name == "-" {
		return nil
	}
	inputs := append(slices.Clone(logs), others...)
	if err := o.apart(inputs); err != nil {
		return err
	}
	var err error
	done := o.Name
	if o.IsDir(ctx) {
		if err := o.checkNames(logs); err != nil {
			return err
		}
		o.Logs = logs
		if done, err = o.checkDir(ctx); done != "" {
			done = o.path(done)
		}
	} else if err = o.compare(ctx, o.Name); o.Force && (errors.Is(err, ErrDone) || errors.Is(err, ErrExists)) {
		return nil
	}
	if errors.Is(err, ErrDone) {
		if changed := ChangedSince(ctx, o.Store, done, inputs); changed != nil {
			err = changed
		}
	}
	return err
}

// apart refuses an output that stands in the place of an input, or in a
// directory that is read: the next run would take it for a part of the log.
func (o Output) apart(inputs []*File) error {
	place := newPlace(o.Store, o.Name)
	clear := map[string]bool{"": true} // directories that were looked at
	for _, f := range inputs {
		switch {
		case f.src == nil: // it stands nowhere
		case place.holds(f.Name):
			return fmt.Errorf("%s: the output is the input %s (write to another file or directory)", o.Name, f.Name)
		case !clear[f.root] && newPlace(o.Store, f.root).holds(o.Name):
			return fmt.Errorf("%s: the output is inside the input directory %s, and the next run would read it (write to another directory)", o.Name, f.root)
		}
		clear[f.root] = true
	}
	return nil
}

// ChangedSince returns an error that wraps ErrExists if an input was written
// after the output: the digest of a Parquet file does not cover all of its
// bytes, so that equal digests alone do not make a run done.
func ChangedSince(ctx context.Context, store storage.Source, output string, inputs []*File) error {
	out, err := store.Stat(ctx, output)
	if err != nil {
		return err
	}
	for _, f := range inputs {
		if f.src != nil && !out.ModTime.IsZero() && f.src.Object().ModTime.After(out.ModTime) {
			return fault.Errorf("%s: %w, and its input %s was written later ({Force} replaces it)", output, ErrExists, f.Name)
		}
	}
	return nil
}

// place is where an output will stand.
type place struct {
	store storage.Source
	real  string
	seen  map[string]string // what resolve has returned
}

func newPlace(s storage.Source, name string) *place {
	p := &place{store: s, seen: map[string]string{}}
	p.real = p.resolve(name)
	return p
}

// holds reports whether name is the place itself or lies below it, by its own
// name or by that of what it is a link to.
func (p *place) holds(name string) bool {
	for _, n := range []string{absolute(name), p.resolve(name)} {
		for {
			if p.resolve(n) == p.real {
				return true
			}
			up := filepath.Dir(n)
			if up == n || strings.Contains(n, "://") {
				break
			}
			n = up
		}
	}
	return false
}

// resolve is [storage.Resolve], called once for each name.
func (p *place) resolve(name string) string {
	name = absolute(name)
	real, ok := p.seen[name]
	if !ok {
		real = storage.Resolve(p.store, name)
		p.seen[name] = real
	}
	return real
}

func absolute(name string) string {
	if strings.Contains(name, "://") {
		return strings.TrimRight(name, "/")
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// compare looks at an existing file: nil if there is none, ErrDone if it is of
// the same run, ErrExists if not.
func (o Output) compare(ctx context.Context, name string) error {
	src, err := o.Store.Open(ctx, storage.Object{Name: name})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := src.Close(); err != nil {
		return err
	}
	marker, _, err := o.marker(ctx, name)
	if err != nil {
		return err
	}
	if o.known() && marker == o.run() {
		return ErrDone
	}
	return fault.Errorf("%s: %w, but does not come from these inputs and options ({Force} replaces it)", name, ErrExists)
}

// run is the text that marks files of this run and shard.
func (o Output) run() string {
	s := hex.EncodeToString(o.Run[:])
	if !o.Shard.Whole() {
		s += " " + o.Shard.String()
	}
	return s
}

// known reports whether the run can be told from others. One that read
// something without an identity cannot, and is never taken for done.
func (o Output) known() bool { return o.Run != [32]byte{} }

func (o Output) metadata() map[string]string {
	m := map[string]string{MetaResult: o.Result}
	if o.known() {
		m[MetaRun] = o.run()
	}
	if o.Filter != [32]byte{} {
		m[MetaFilter] = hex.EncodeToString(o.Filter[:])
	}
	return m
}

// Write writes the rows to the output. Rows.Piece is an index into parts; rows
// arrive in ascending order of it. Each part's schema is that of its rows. A
// single file or stream needs one schema for all parts.
//
// When Write returns an error, nothing of a single file is visible, and of a
// directory only whole files, without _SUCCESS; see also Hold. What went to a
// stream has gone.
func (o Output) Write(ctx context.Context, parts []Part, rows iter.Seq2[Rows, error]) (w Written, err error) {
	o.fill()
	if err := o.identify(ctx); err != nil {
		return w, err
	}
	end := o.begin()
	defer func() { err = errors.Join(err, end()) }()
	switch {
	case o.Name == "-":
		return o.writeStream(parts, rows)
	case o.IsDir(ctx):
		return o.writeDir(ctx, parts, rows)
	}
	return o.writeFile(ctx, parts, rows)
}

// WriteEmpty writes the output of a log without files: a directory without
// files, or a file of the given schema, which nil is an error.
func (o Output) WriteEmpty(ctx context.Context, schema *arrow.Schema) (Written, error) {
	o.fill()
	var parts []Part
	if !o.IsDir(ctx) {
		if schema == nil {
			return Written{}, fault.Errorf("%s: the log has no files, so the columns of the output are unknown (write to a directory, {Output OUT/}, or give them with {Pinned})", o.Name)
		}
		parts = []Part{{Schema: schema}}
	}
	return o.Write(ctx, parts, func(func(Rows, error) bool) {})
}

// writer is what writes a file of either format. Write takes over what it is
// given.
type writer interface {
	Write(r Rows) error
	Close() (rows, bytes int64, err error)
	Abort() // in place of Close, after an error: releases what the writer holds
}

// recordWriter writes records.
type recordWriter struct{ w recordSink }

func (w recordWriter) Write(r Rows) error {
	defer r.Record.Release()
	return w.w.Write(r.Record)
}

func (w recordWriter) Close() (rows, bytes int64, err error) { return w.w.Close() }

func (w recordWriter) Abort() { w.w.Abort() }

// newWriter begins a file of the part's schema.
func (o Output) newWriter(dst io.Writer, p Part) (writer, error) {
	if p.pages != nil {
		return newPageWriter(dst, p.pages)
	}
	w, err := o.newRecordWriter(dst, p.Schema, p.Piece.File)
	return recordWriter{w}, err
}

type recordSink interface {
	Write(rec arrow.Record) error
	Close() (rows, bytes int64, err error)
	Abort()
}

func (o Output) newRecordWriter(dst io.Writer, schema *arrow.Schema, in *File) (recordSink, error) {
	md := o.metadata()
	stored := ""
	if in != nil && schema == in.Schema() { // the columns of a file as they are
		stored = in.storedSchema()
	}
	schema = Without(schema, MetaResult, MetaFilter, MetaRun) // of an input that is itself an output
	switch o.Format {
	case Parquet:
		c := o.compression(in)
		if stored == "" && in != nil {
			var err error
			if stored, err = arrowparquet.EncodeSchema(in.coded(schema)); err != nil {
				return nil, err
			}
		}
		return arrowparquet.NewParquetWriter(dst, schema, arrowparquet.WriterOptions{Codec: c.Codec, Level: c.Level, Metadata: md, StoredSchema: stored, Pool: o.pool})
	case ArrowFile:
		return arrowipc.NewFileWriter(dst, schema, arrowipc.WriterOptions{Metadata: md, Mem: o.Mem})
	case ArrowStream:
		return arrowipc.NewStreamWriter(dst, schema, arrowipc.WriterOptions{Metadata: md, Mem: o.Mem})
	}
	return nil, fault.Unsupported(fault.At{File: o.Name}, "writing %s files", o.Format)
}

// oneSchema returns the schema that all parts share.
func oneSchema(parts []Part) (*arrow.Schema, *File, error) {
	if len(parts) == 0 {
		return nil, nil, errors.New("an output without a part, and so without a schema")
	}
	first := parts[0]
	if first.pages != nil { // which go into one file; see planPages
		return first.Schema, first.Piece.File, nil
	}
	for _, p := range parts[1:] {
		if !p.Schema.Equal(first.Schema) {
			return nil, nil, fault.Mismatch(fault.At{File: p.name()}, "schema", describe(first.Schema)+" as in "+first.name(), describe(p.Schema)).
				WithHint("write to a directory, {Output OUT/}, where each file keeps its own schema")
		}
	}
	return first.Schema, first.Piece.File, nil
}

func (p Part) name() string {
	if p.Piece.File != nil {
		return p.Piece.File.Name
	}
	return p.Name
}

// describe renders a schema on one line.
func describe(s *arrow.Schema) string {
	fields := make([]string, len(s.Fields()))
	for i, f := range s.Fields() {
		fields[i] = f.Name + " " + f.Type.String()
		if !f.Nullable {
			fields[i] += " not null"
		}
	}
	return "(" + strings.Join(fields, ", ") + ")"
}

// copyAll writes all rows to w, which is for the named output, and closes it, or
// aborts it after an error.
func copyAll(w writer, name string, rows iter.Seq2[Rows, error]) (n, size int64, err error) {
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	for r, err := range rows {
		if err != nil {
			return 0, 0, err
		}
		if err := w.Write(r); err != nil {
			return 0, 0, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if n, size, err = w.Close(); err != nil {
		return 0, 0, fmt.Errorf("writing %s: %w", name, err)
	}
	return n, size, nil
}

func (o Output) writeStream(parts []Part, rows iter.Seq2[Rows, error]) (Written, error) {
	schema, _, err := oneSchema(parts)
	if err != nil {
		return Written{}, err
	}
	o.Format = ArrowStream
	w, err := o.newWriter(o.Stdout, Part{Schema: schema})
	if err != nil {
		return Written{}, fmt.Errorf("standard output: writing: %w", err)
	}
	n, size, err := copyAll(w, "standard output", rows)
	return Written{Rows: n, Bytes: size}, err
}

func (o Output) writeFile(ctx context.Context, parts []Part, rows iter.Seq2[Rows, error]) (Written, error) {
	schema, in, err := oneSchema(parts)
	if err != nil {
		return Written{}, err
	}
	if o.Format == ArrowFile && len(parts) > 1 {
		schema, rows = take.PlainSchema(schema), o.plain(rows)
	}
	one := Part{Piece: Piece{File: in}, Schema: schema, pages: parts[0].pages}
	n, size, err := o.publish(ctx, o.Name, one, rows)
	if err != nil {
		return Written{}, err
	}
	return Written{Files: []WrittenFile{{Name: o.Name, Rows: n, Bytes: size}}, Rows: n, Bytes: size}, nil
}

// plain puts values in place of dictionaries: an Arrow file has one dictionary
// for a column, and each input its own.
func (o Output) plain(rows iter.Seq2[Rows, error]) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		for r, err := range rows {
			if err == nil {
				rec := r.Record
				r.Record, err = take.PlainRecord(o.Mem, rec)
				rec.Release()
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// publish writes one file and makes it visible.
func (o Output) publish(ctx context.Context, name string, p Part, rows iter.Seq2[Rows, error]) (n, size int64, err error) {
	if err := storage.Sweep(ctx, o.Store, name); err != nil {
		return 0, 0, err
	}
	sink, n, size, err := o.stage(ctx, name, p, rows, io.Discard)
	if err != nil {
		return 0, 0, err
	}
	return n, size, o.commit(ctx, name, sink)
}

// stage writes one file, which nobody sees yet, and copies its bytes to sum.
func (o Output) stage(ctx context.Context, name string, p Part, rows iter.Seq2[Rows, error], sum io.Writer) (_ storage.Writer, n, size int64, err error) {
	sink, err := o.Store.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, sink.Abort())
		}
	}()
	w, err := o.newWriter(io.MultiWriter(sink, sum), p)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("writing %s: %w", name, err)
	}
	n, size, err = copyAll(w, name, rows)
	return sink, n, size, err
}

// commit makes a file that was written visible, or drops it.
func (o Output) commit(ctx context.Context, name string, sink storage.Writer) (err error) {
	defer func() { err = errors.Join(err, sink.Abort()) }()
	err = sink.Commit(o.Force)
	if errors.Is(err, fs.ErrExist) {
		// A rival finished meanwhile. If it ran the same, all is well.
		switch rival := o.compare(ctx, name); {
		case errors.Is(rival, ErrDone):
			return nil
		case rival != nil:
			return rival
		}
	}
	return err
}

// ending returns the file name ending of the output's format.
func (o Output) ending() string {
	if o.Format == ArrowFile {
		return ".arrow"
	}
	return ".parquet"
}

// fileName returns the name of a part's file below the directory: the input's
// own path with the output's ending, and the range of row groups where the
// input is shared between workers.
func (o Output) fileName(p Part) string {
	if p.Piece.File == nil {
		return p.Name + o.ending()
	}
	stem := p.Piece.File.Rel
	if ext := path.Ext(stem); byName(ext) != "" { // not the 2001 of log.2001
		stem = strings.TrimSuffix(stem, ext)
	}
	if !p.Piece.Whole() {
		stem += fmt.Sprintf(".groups-%05d-%05d", p.Piece.Lo, p.Piece.Hi-1)
	}
	return stem + o.ending()
}
