package partition

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/key"
)

// Match is a filter and the log columns that it is applied to.
type Match struct {
	Filter *codec.Filter
	// Key names the log's key columns: paths separated by commas, as in
	// `user.id` or `"a.b",c`, each of which may be cast, as in `user.id::int64`.
	// Empty: the names that the filter was built with.
	Key string
	// IgnoreCase finds the columns by names whose letters may differ in case.
	IgnoreCase bool
	// NullMisfits makes a value that does not fit its cast a NULL. Otherwise it
	// is an error that wraps [fault.ErrMismatch].
	NullMisfits bool
	// NoMatch keeps the rows whose key is surely not in the set, and those
	// with a NULL key. It needs an exact filter, or a Verifier.
	NoMatch bool
	// Verifier, if not nil, makes what looks closer at the keys that the filter
	// lets through; each worker has its own. With it a Match is exact.
	Verifier func() Verifier
}

// A Verifier tells members from false positives. One goroutine uses it.
type Verifier interface {
	// Begin is called before the keys of a row group, or of a part of it. Keys
	// that a row group has in a dictionary come once for each part.
	Begin(f *File, group int)
	// Filter reports whether the filter is to be asked about the keys that come
	// next. If not, all of them are hits.
	Filter() bool
	// Verify returns those of hits, ascending positions in k, whose key is a
	// member, in memory of its own or that of hits.
	Verify(k *key.Batch, hits []uint32) []uint32
	// Count is told of all keys of k, after Verify: which of them the filter
	// let through, which of these are members, and how many rows have each;
	// rows nil: one. An error ends the scan.
	Count(k *key.Batch, hits, members, rows []uint32) error
}

// exact reports whether what the match lets through are members.
func (m *Match) exact() bool { return m.Verifier != nil || m.Filter.Kind() == codec.KindExact }

// ScanOptions says what to keep. Each row that passes is kept once.
type ScanOptions struct {
	// Match holds the filters. A row is kept if all let it through, or, with
	// Any, if one does; those with NoMatch are applied in any case.
	Match []Match
	Any   bool
	// Stages, if not nil, divides the pieces of a scan into stages, which have
	// filters of their own in place of those of Match. They come one after the
	// other: no worker is in two.
	Stages func(ctx context.Context, pieces []Piece) iter.Seq2[Stage, error]
	// Normalize names the rule by which the log's strings are made alike before
	// they are compared: some of trim, lower and uuid, separated by commas; see
	// FORMAT.md of package codec. It is to be the one that the filters were
	// built with. Filters over keys that no rule is about, as integers, need
	// none beside others that have one.
	Normalize string
	// Columns are the top-level columns to keep, in order; nil: all. Each file
	// has them, unless Schema is Union: then some file has. With IgnoreCase
	// their letters may differ in case.
	Columns    []string
	IgnoreCase bool
	// Schema says what becomes of files whose columns differ; see
	// [Output.SchemaModeOf]. Pinned, with Union, is the schema that rows are
	// brought to, in place of the union of the files'.
	Schema SchemaMode
	Pinned *PinnedSchema
	// CountNulls says that KeysNull is to be right. Otherwise rows count as
	// having a key if they are in stretches that need not be read, of which
	// nobody says how many NULLs they have.
	CountNulls bool
	// Threads is the number of workers; 0: GOMAXPROCS.
	Threads int
	Mem     memory.Allocator
	// Work, if not nil, makes what is made of the records that pass, by the
	// worker that has read them, on their way out of [Scanner.Scan].
	Work func() (Work, error)
	// End, if not nil, is called when all rows have been scanned, before an
	// output of them becomes visible; its error is the scan's.
	End func() error
	// Progress, if not nil, is called with the number of rows of each batch,
	// from many goroutines.
	Progress func(rows int64)
}

// ScanStats counts what a scan did. It is complete when the scan has ended.
type ScanStats struct {
	RowsIn, RowsOut  atomic.Int64
	KeysNull         atomic.Int64 // rows with a NULL in the first filter's key
	RowGroups        atomic.Int64
	RowGroupsSkipped atomic.Int64 // of them, those of which no page was read
	Pages            atomic.Int64 // that were come by
	PagesSkipped     atomic.Int64 // of them, those that were not decompressed
}

// Scanner applies filters to files.
type Scanner struct {
	opts    ScanOptions
	Stats   *ScanStats
	copied  map[*File]bool // files whose pages are copied
	counted bool           // rows are counted, not kept
}

// NewScanner checks the options as far as that needs no file.
func NewScanner(opts ScanOptions) (*Scanner, error) {
	if len(opts.Match) == 0 {
		return nil, fmt.Errorf("a scan needs a filter")
	}
	if opts.Mem == nil {
		opts.Mem = memory.DefaultAllocator
	}
	if err := opts.checkSchema(); err != nil {
		return nil, err
	}
	for _, m := range opts.Match {
		at := fault.At{Column: m.columns()}
		if err := m.Filter.Usable(at); err != nil {
			return nil, err
		}
		if m.NoMatch && !m.exact() {
			return nil, fault.Unsupported(at, "dropping the members of a Bloom filter, since its false positives would be dropped, too").
				WithHint("build the filter with {Kind exact}, or use an anti join")
		}
	}
	if err := opts.checkRules(); err != nil {
		return nil, err
	}
	return &Scanner{opts: opts, Stats: new(ScanStats), copied: map[*File]bool{}}, nil
}

// Result returns what the rows that pass are: ResultExact if every filter is
// exact, else ResultCandidates.
func (s *Scanner) Result() string {
	for _, m := range s.opts.Match {
		if !m.exact() {
			return ResultCandidates
		}
	}
	return ResultExact
}

// columns names the log columns that the match is applied to, for messages.
func (m Match) columns() string {
	if m.Key != "" {
		return m.Key
	}
	return strings.Join(m.Filter.KeyNames(), ",")
}

// KeyColumns returns the log columns that the match is applied to.
func (m Match) KeyColumns() ([]key.Column, error) {
	if m.Key != "" {
		return key.ParseColumns(m.Key)
	}
	var columns []key.Column
	for _, name := range m.Filter.KeyNames() {
		c, err := key.ParseColumns(name)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c...)
	}
	return columns, nil
}

// options returns how the columns become keys that the filter can be asked about.
func (m Match) options() (key.Options, error) {
	o, err := m.Filter.KeyOptions()
	o.IgnoreCase, o.NullMisfits = m.IgnoreCase, m.NullMisfits
	return o, err
}

// mayFail reports whether a value that does not fit its cast is an error.
func (m Match) mayFail() (bool, error) {
	columns, err := m.KeyColumns()
	return !m.NullMisfits && slices.ContainsFunc(columns, func(c key.Column) bool { return c.Cast != nil }), err
}

// Check finds all columns in the file and compares their classes with the
// filters', so that a mismatch is reported before anything is read.
func (s *Scanner) Check(f *File) error {
	if s.opts.Schema != Union {
		if _, err := s.Schema(f); err != nil {
			return err
		}
	}
	for _, m := range s.opts.Match {
		if _, err := NewProber(f.Name, f.Schema(), m); err != nil {
			return err
		}
	}
	return nil
}

// Schema returns the schema of what is kept of the file; see
// [ScanOptions.SchemaOf].
func (s *Scanner) Schema(f *File) (*arrow.Schema, error) { return s.opts.SchemaOf(f) }

// SchemaOf returns the schema of what is kept of the file, as it is there.
func (o *ScanOptions) SchemaOf(f *File) (*arrow.Schema, error) {
	cols, err := o.columns(f)
	if cols == nil || err != nil {
		return f.Schema(), err
	}
	return project(f.Schema(), cols), nil
}

// columns returns the positions of the columns to keep; nil: all.
func (o *ScanOptions) columns(f *File) ([]int, error) {
	if o.Columns == nil {
		return nil, nil
	}
	cols := []int{}
	for _, name := range o.Columns {
		field, err := key.Path{name}.Resolve(f.Schema(), o.IgnoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if at := slices.Index(cols, field.Index[0]); at >= 0 {
			return nil, fmt.Errorf("%s: %s and %s are the same column (name it once)", f.Name, o.Columns[at], name)
		}
		cols = append(cols, field.Index[0])
	}
	return cols, nil
}

func project(schema *arrow.Schema, cols []int) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = schema.Field(c)
	}
	md := schema.Metadata()
	return Reshaped(arrow.NewSchema(fields, &md))
}

// Reshaped returns the schema without the metadata in which other programs
// keep their own description of the columns, for a schema whose columns are
// not those of the file that it comes from.
func Reshaped(s *arrow.Schema) *arrow.Schema {
	return Without(s, describing...)
}

// describing are the metadata in which programs describe the columns.
var describing = []string{"ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata"}

// Without returns the schema without the metadata of the given keys.
func Without(s *arrow.Schema, drop ...string) *arrow.Schema {
	md := s.Metadata()
	var ks, vs []string
	for i, k := range md.Keys() {
		if !slices.Contains(drop, k) {
			ks, vs = append(ks, k), append(vs, md.Values()[i])
		}
	}
	kept := arrow.NewMetadata(ks, vs)
	return arrow.NewSchema(s.Fields(), &kept)
}

// begin tells the verifiers which row group comes.
func begin(verifiers []Verifier, f *File, group int) {
	for _, v := range verifiers {
		if v != nil {
			v.Begin(f, group)
		}
	}
}

// verifiers returns those of one worker, nil for a match without.
func (s *Scanner) verifiers() []Verifier {
	vs := make([]Verifier, len(s.opts.Match))
	for i, m := range s.opts.Match {
		if m.Verifier != nil {
			vs[i] = m.Verifier()
		}
	}
	return vs
}

// Count scans the pieces and counts, in Stats, the rows that pass.
func (s *Scanner) Count(ctx context.Context, pieces []Piece) error {
	s.counted = true
	parts, err := s.parts(pieces, false)
	if err != nil {
		return err
	}
	for i := range parts {
		if p := &parts[i]; p.Piece.File.parquet() != nil {
			p.pages = &pageSource{part: i, piece: p.Piece}
		}
	}
	for r, err := range s.output(ctx, parts) {
		if err != nil {
			return err
		}
		r.release()
	}
	return nil
}

// Scan yields the rows of the pieces that pass, in input order.
func (s *Scanner) Scan(ctx context.Context, pieces []Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		for st, err := range s.stages(ctx, pieces) {
			if err != nil {
				yield(Rows{}, err)
				return
			}
			for r, err := range st.scan(ctx) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// readColumns returns the columns to keep, none if rows are only counted,
// followed by those that only the keys need.
func (s *Scanner) readColumns(f *File) ([]int, error) {
	cols, err := s.opts.columns(f)
	if s.counted {
		cols = []int{}
	}
	if cols == nil || err != nil {
		return nil, err
	}
	for _, m := range s.opts.Match {
		p, err := NewProber(f.Name, f.Schema(), m)
		if err != nil {
			return nil, err
		}
		for _, c := range p.enc.Columns() {
			if !slices.Contains(cols, c) {
				cols = append(cols, c)
			}
		}
	}
	return cols, nil
}

// scanWorker filters the row groups of one goroutine.
type scanWorker struct {
	scanner   *Scanner
	way       flight
	within    [2]int64 // rows of a row group to look at
	verifiers []Verifier
	further   Work // what becomes of the records; nil: they are what is wanted

	keys     *keyScan // of a Parquet file
	keysFile *File
	buf      *parquet.Buffers
	selected []uint32

	file    *File // that probers are for
	probers []*Prober
	votes   []int16 // filters that let a row through
	barred  []bool  // rows that an exclusion drops
	rows    []int
}

// group scans a row group: of Parquet files the keys first, and then the rows
// that pass; of others all rows.
func (w *scanWorker) group(ctx context.Context, p Piece, group int, emit func(arrow.Record) error) error {
	s := w.scanner
	emit = w.beyond(p, group, emit)
	begin(w.verifiers, p.File, group)
	if p.File.parquet() == nil {
		return readGroup(ctx, p, group, ReadOptions{Columns: s.readColumns}, w.way, w.work, emit)
	}
	if w.keysFile != p.File {
		k, err := newKeyScan(s, p.File, w.buf, w.verifiers)
		if err != nil {
			return err
		}
		w.keys, w.keysFile = k, p.File
	}
	columns, err := s.opts.columns(p.File)
	if err != nil {
		return err
	}
	for part := range stretches(p.File.parquet().File(), group) {
		part, ok := part.clip(w.within)
		if !ok {
			continue
		}
		rows, err := w.keys.scan(ctx, part, w.selected[:0])
		if err != nil {
			return err
		}
		w.selected = rows
		for rec, err := range w.way.table(p.File).(*arrowparquet.Parquet).ReadRows(ctx, group, columns, rows) {
			if err != nil {
				return err
			}
			rec.Retain()
			if err := emit(rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// beyond returns what passes records on through what becomes of them.
func (w *scanWorker) beyond(p Piece, group int, emit func(arrow.Record) error) func(arrow.Record) error {
	if w.further == nil {
		return emit
	}
	return func(rec arrow.Record) error {
		defer rec.Release()
		return inGroup(w.further(p, rec, emit), p.File, group)
	}
}

func (w *scanWorker) work(p Piece, rec arrow.Record, emit func(arrow.Record) error) error {
	if err := w.enter(p.File, rec.Schema()); err != nil {
		return err
	}
	rows, err := w.pass(rec)
	if err != nil {
		return err
	}
	st := w.scanner.Stats
	st.RowsIn.Add(rec.NumRows())
	if w.scanner.opts.Progress != nil {
		w.scanner.opts.Progress(rec.NumRows())
	}
	st.RowsOut.Add(int64(len(rows)))
	if len(rows) == 0 || w.scanner.counted {
		return nil
	}
	if n := len(w.scanner.opts.Columns); w.scanner.opts.Columns != nil {
		rec = array.NewRecord(project(rec.Schema(), upTo(n)), rec.Columns()[:n], rec.NumRows())
		defer rec.Release()
	}
	kept, err := take.Record(w.scanner.opts.Mem, rec, rows)
	if err != nil {
		return fmt.Errorf("%s: %w", p.File.Name, err)
	}
	return emit(kept)
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// enter prepares for the batches of a file. Batches of one file share a
// schema.
func (w *scanWorker) enter(f *File, schema *arrow.Schema) error {
	if w.file == f {
		return nil
	}
	w.file, w.probers = f, w.probers[:0]
	for _, m := range w.scanner.opts.Match {
		p, err := NewProber(f.Name, schema, m)
		if err != nil {
			return err
		}
		w.probers = append(w.probers, p)
	}
	return nil
}

// pass returns the rows to keep, ascending.
func (w *scanWorker) pass(rec arrow.Record) ([]int, error) {
	n := int(rec.NumRows())
	w.votes = append(w.votes[:0], make([]int16, n)...)
	w.barred = append(w.barred[:0], make([]bool, n)...)
	need := int16(0)
	for i, p := range w.probers {
		v := w.verifiers[i]
		hits, err := p.probe(rec, v != nil && !v.Filter())
		if err != nil {
			return nil, err
		}
		if v != nil {
			members := v.Verify(&p.Keys, append([]uint32(nil), hits...))
			if err := v.Count(&p.Keys, hits, members, nil); err != nil {
				return nil, err
			}
			hits = members
		}
		if i == 0 {
			w.scanner.Stats.KeysNull.Add(int64(p.Keys.Nulls()))
		}
		if w.scanner.opts.Match[i].NoMatch {
			for _, h := range hits {
				w.barred[p.Keys.Rows[h]] = true
			}
			continue
		}
		need++
		for _, h := range hits {
			w.votes[p.Keys.Rows[h]]++
		}
	}
	if w.scanner.opts.Any {
		need = min(need, 1)
	}
	w.rows = w.rows[:0]
	for row, v := range w.votes {
		if v >= need && !w.barred[row] {
			w.rows = append(w.rows, row)
		}
	}
	return w.rows, nil
}
