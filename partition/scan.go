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
	// is an error that wraps [ErrMismatch].
	NullMisfits bool
	// NoMatch keeps the rows whose key is surely not in the set, and those
	// with a NULL key. It needs an exact filter, or a Verifier.
	NoMatch bool
	// Check, if not nil, decides in place of the filter which keys are members.
	// It is called once by each worker; the function that it returns receives
	// batches of keys and returns the positions in Batch.Rows of the members,
	// ascending, in memory that stays valid until the next call. It may ask the
	// filter first, with [Keys.Probe]. With Check a Match is exact.
	//
	// Keys of a row group's dictionary come twice: for the decision, before any
	// page is read, with Times all zero, and then once more with the number of
	// rows that have each key. Nothing but the filter's own bounds keeps keys from
	// being counted: pages that cannot hold a member may be skipped.
	Check func() func(*Keys) (members []uint32, err error)
	// Verifier is replaced by Check.
	//
	// Deprecated: use Check.
	Verifier func() Verifier
}

// check is what Match.Check returns.
type check = func(*Keys) ([]uint32, error)

// exact reports whether what the match lets through are members.
func (m *Match) exact() bool {
	return m.Check != nil || m.Verifier != nil || m.Filter.Kind() == codec.KindExact
}

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
		if err := usable(at, m.Filter); err != nil {
			return nil, err
		}
		if m.NoMatch && !m.exact() {
			return nil, fault.Unsupported(at, "dropping the members of a Bloom filter, since its false positives would be dropped, too").
				WithHint("build the filter with --kind exact, or use an anti join")
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

// usable refuses filters that would lose rows.
func usable(at fault.At, f *codec.Filter) error {
	if !f.Sealed() {
		return fault.Mismatch(at, "filter", "a finished filter", "a partial one, in which keys are missing").
			WithHint("merge all partial filters of the build first")
	}
	_, err := key.RuleOf(f.Normal())
	return err
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

// key returns the key columns, and how they become keys that the filter can be
// asked about.
func (m Match) key() (columns []key.Column, o key.Options, err error) {
	if columns, err = m.KeyColumns(); err != nil {
		return nil, o, err
	}
	o, err = m.Filter.KeyOptions()
	o.IgnoreCase, o.NullMisfits = m.IgnoreCase, m.NullMisfits
	return columns, o, err
}

// encoder finds the match's key columns in the schema of a file, and compares
// their classes with the filter's.
func (m Match) encoder(file string, schema *arrow.Schema) (*key.Encoder, error) {
	columns, o, err := m.key()
	if err != nil {
		return nil, err
	}
	return newKeyEncoder(file, schema, columns, o, true)
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
		if _, err := m.encoder(f.Name, f.Schema()); err != nil {
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

// checks returns the functions of one worker, nil for a match that only asks its
// filter.
func (s *Scanner) checks() []check {
	all := make([]check, len(s.opts.Match))
	for i, m := range s.opts.Match {
		switch {
		case m.Check != nil:
			all[i] = m.Check()
		case m.Verifier != nil:
			all[i] = checkOf(m.Verifier())
		}
	}
	return all
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
		enc, err := m.encoder(f.Name, f.Schema())
		if err != nil {
			return nil, err
		}
		for _, c := range enc.Columns() {
			if !slices.Contains(cols, c) {
				cols = append(cols, c)
			}
		}
	}
	return cols, nil
}

// scanWorker filters the row groups of one goroutine.
type scanWorker struct {
	scanner *Scanner
	way     flight
	within  [2]int64 // rows of a row group to look at
	checks  []check
	further Work // what becomes of the records; nil: they are what is wanted

	keys     *keyScan // of a Parquet file
	keysFile *File
	buf      *parquet.Buffers
	selected []uint32

	file    *File         // that matches are for
	matches []*recordKeys // of records, one for each match
	votes   votes
	found   []uint32
	rows    []int
}

// group scans a row group: of Parquet files the keys first, and then the rows
// that pass; of others all rows.
func (w *scanWorker) group(ctx context.Context, p Piece, group int, emit func(arrow.Record) error) error {
	s := w.scanner
	emit = w.beyond(p, group, emit)
	if p.File.parquet() == nil {
		work := func(p Piece, rec arrow.Record, emit func(arrow.Record) error) error {
			return w.work(p, group, rec, emit)
		}
		return readGroup(ctx, p, group, ReadOptions{Columns: s.readColumns}, w.way, work, emit)
	}
	if w.keysFile != p.File {
		k, err := newKeyScan(s, p.File, w.buf, w.checks)
		if err != nil {
			return err
		}
		w.keys, w.keysFile = k, p.File
	}
	columns, err := s.opts.columns(p.File)
	if err != nil {
		return err
	}
	for r := range rangesIn(p.File.parquet().File(), group) {
		r, ok := r.clip(w.within)
		if !ok {
			continue
		}
		rows, err := w.keys.scan(ctx, r, w.selected[:0])
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

func (w *scanWorker) work(p Piece, group int, rec arrow.Record, emit func(arrow.Record) error) error {
	if err := w.enter(p.File); err != nil {
		return err
	}
	rows, err := w.pass(rec, group)
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

// enter prepares for the batches of a file.
func (w *scanWorker) enter(f *File) error {
	if w.file == f {
		return nil
	}
	w.file, w.matches = f, w.matches[:0]
	for i, m := range w.scanner.opts.Match {
		columns, o, err := m.key()
		if err != nil {
			return err
		}
		if w.checks[i] == nil {
			w.checks[i] = (*Keys).Probe
		}
		keys := &Keys{Batch: new(key.Batch), filter: m.Filter}
		w.matches = append(w.matches, &recordKeys{file: f, columns: columns, options: o, filtered: true, keys: keys})
	}
	return nil
}

// pass returns the rows to keep, ascending.
func (w *scanWorker) pass(rec arrow.Record, group int) ([]int, error) {
	w.votes.begin(int(rec.NumRows()))
	for i, m := range w.matches {
		m.keys.Piece = Piece{File: w.file, Lo: group, Hi: group + 1}
		err := m.step(rec, position{}, func() error {
			members, err := w.checks[i](m.keys)
			if err != nil {
				return err
			}
			if i == 0 {
				w.scanner.Stats.KeysNull.Add(int64(m.keys.Batch.Nulls()))
			}
			w.found = w.found[:0]
			for _, h := range members {
				w.found = append(w.found, m.keys.Batch.Rows[h])
			}
			w.votes.add(w.found, 0, w.scanner.opts.Match[i].NoMatch)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	w.rows = passed(&w.votes, w.rows[:0], 0, w.scanner.opts.Any)
	return w.rows, nil
}
