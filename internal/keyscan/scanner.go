package keyscan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// ScanOptions has the fields of partition.ScanOptions, which documents them.
type ScanOptions struct {
	Match      []dataset.Match
	Any        bool
	Normalize  string
	Columns    []string
	IgnoreCase bool
	Schema     dataset.SchemaMode
	Pinned     *dataset.PinnedSchema
	CountNulls bool
	Limit      int64
	Threads    int
	Mem        memory.Allocator
	Progress   func(rows int64)
}

// Options is [ScanOptions] with what joins and the command set beside them.
type Options struct {
	ScanOptions
	// Check, if not nil, decides in place of the first filter, as [Predicate].Check does.
	Check func() func(*Keys) (members []uint32, err error)
	// Entries makes a scan for tables.Pairs: Check sets [Keys.Entries] for each member. KeepLog
	// says that rows without a member are kept, too.
	Entries, KeepLog bool
	// Settles says that Check sets [Keys].Settle, so that rows are checked before it is known whether they
	// are deleted.
	Settles bool

	Mirrored bool // see Mirrored: they are columns to keep only if Columns names them

	// Rows, if not nil, decides in place of filters, which are then none: it appends to dst the
	// rows lo to hi, exclusive, of a row group that pass, ascending. Workers call it concurrently.
	Rows func(f *source.File, group int, lo, hi int64, dst []uint32) []uint32
}

// Stats counts the work of a scan. It is complete when the scan has ended.
type Stats struct {
	RowsIn, RowsOut atomic.Int64
	// RowsWhere counts the rows that were found to satisfy [source.OpenOptions].Where; without a
	// condition it is RowsIn. Rows already dropped by the filters are not tested, and are counted
	// only with CountNulls.
	RowsWhere        atomic.Int64
	KeysNull         atomic.Int64 // rows with a NULL in the first filter's key
	RowGroups        atomic.Int64
	RowGroupsSkipped atomic.Int64 // row groups whose pages were not read
	Pages            atomic.Int64 // pages of keys, and of leaves that were copied
	PagesSkipped     atomic.Int64 // pages that were not decompressed

	nulls nullCounts
}

// KeysNullOf returns what KeysNull has of a piece.
func (s *Stats) KeysNullOf(p source.Piece) int64 { return s.nulls.of(p) }

// AddNulls counts n rows of a row group that have a NULL in the first filter's key.
func (s *Stats) AddNulls(f *source.File, group int, n int64) {
	s.KeysNull.Add(n)
	s.nulls.add(f, group, n)
}

// nullCounts counts rows without a key by row group. It is safe for concurrent use.
type nullCounts struct {
	mu     sync.Mutex
	groups map[source.Piece]int64 // of row groups that have any
}

func (c *nullCounts) add(f *source.File, group int, n int64) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups == nil {
		c.groups = map[source.Piece]int64{}
	}
	c.groups[source.Piece{File: f, Lo: group, Hi: group + 1}] += n
}

func (c *nullCounts) of(p source.Piece) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := p.Lo; g < p.Hi && len(c.groups) > 0; g++ {
		n += c.groups[source.Piece{File: p.File, Lo: g, Hi: g + 1}]
	}
	return n
}

// Scanner applies filters to files. It runs one scan, by arraycopy.Scan, output.Count,
// output.ScanWriter.Scan or output.Destination.WriteScan; a second use is an error. PathOf and
// Stats may be called concurrently.
type Scanner struct {
	Options Options
	Match   []Predicate
	Stats   *Stats
	used    atomic.Bool // a scan has begun
	Counted bool        // rows are counted, not kept

	mu     sync.Mutex              // of what PathOf reads
	copied map[*source.File]string // files whose pages are copied, and how; not changed any more
	count  bool                    // Count has begun
}

// New returns a scanner. It returns an error if a file lacks a column, or has a key that cannot
// be compared with a filter's. It reads nothing; files that are not given are checked when they are
// scanned.
func New(opts Options, files ...*source.File) (*Scanner, error) {
	if err := cmp.Or(options.AtLeastZero("Threads", opts.Threads, "GOMAXPROCS"), options.AtLeastZero("Limit", opts.Limit, "no limit")); err != nil {
		return nil, err
	}
	if opts.Mem == nil {
		opts.Mem = memory.DefaultAllocator
	}
	if err := opts.CheckSchema(); err != nil {
		return nil, err
	}
	match := opts.predicates()
	for i, m := range match {
		if m.Filter == nil {
			return nil, fmt.Errorf("filter %d of %d is nil", i+1, len(opts.Match))
		}
		at := fault.At{Column: m.columns()}
		if err := m.Members().Usable(at); err != nil {
			return nil, err
		}
		if m.NoMatch && !m.exact() {
			return nil, faults.Of(cause.NotExact, faults.Unsupported(at, "dropping the members of a Bloom filter, since its false positives would be dropped, too")).
				WithHint("build the filter with {Kind exact}, or use an anti join")
		}
	}
	if err := opts.checkRules(); err != nil {
		return nil, err
	}
	opts.Any = opts.Any && len(match) > 0
	s := &Scanner{Options: opts, Match: match, Stats: new(Stats)}
	if err := source.CheckFiles("NewScanner", files); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := s.Check(f); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// predicates returns what decides, one for each of Match.
func (o *Options) predicates() (all []Predicate) {
	for _, m := range o.Match {
		all = append(all, Predicate{Match: m})
	}
	if len(all) > 0 {
		all[0].Check = o.Check
	}
	return all
}

// Begin begins the one scan.
func (s *Scanner) Begin() error {
	switch {
	case s == nil || s.Stats == nil:
		return errors.New("a Scanner that NewScanner has not made")
	case s.used.Swap(true):
		return errors.New("the Scanner has run already: it runs one scan (make another with NewScanner)")
	}
	return nil
}

// Result returns ResultFiltered without a filter, ResultExact if every one is exact, else ResultCandidates.
func (s *Scanner) Result() string {
	if s.conditional() {
		return source.ResultFiltered
	}
	for _, m := range s.Match {
		if !m.exact() {
			return source.ResultCandidates
		}
	}
	return source.ResultExact
}

// conditional reports whether rows pass that satisfy the condition of their file, which must have one.
func (s *Scanner) conditional() bool { return len(s.Match) == 0 && s.Options.Rows == nil }

// decided returns an error if neither a filter nor the file's condition says which rows pass.
func (s *Scanner) decided(f *source.File) error {
	if s.conditional() && !f.Filtered() {
		return faults.Errorf("%s: a scan without a filter needs a condition (open the file with {Where}, or give a filter)", f.Name())
	}
	return nil
}

// Check returns an error if the file lacks a column, or if its key cannot be
// compared with a filter's. It reads nothing.
func (s *Scanner) Check(f *source.File) error {
	if err := s.decided(f); err != nil {
		return err
	}
	if !s.Options.United() {
		if _, err := s.Options.SchemaOf(f); err != nil {
			return err
		}
	}
	for _, m := range s.Match {
		if _, err := m.Encoder(f.Name(), f.Schema()); err != nil {
			return err
		}
	}
	return nil
}

// Checks returns one worker's check for each match; nil if only the filter decides.
func (s *Scanner) Checks() []Check {
	all := make([]Check, len(s.Match))
	for i, m := range s.Match {
		if m.Check != nil {
			all[i] = m.Check()
		}
	}
	return all
}

// SchemaOf returns the schema of the columns to keep, with the file's own types.
func (o *Options) SchemaOf(f *source.File) (*arrow.Schema, error) {
	cols, err := o.ColumnsOf(f)
	if err != nil {
		return nil, err
	}
	return o.SchemaWith(f, cols), nil
}

// SchemaWith is [Options.SchemaOf] for what ColumnsOf returns.
func (o *Options) SchemaWith(f *source.File, cols []int) *arrow.Schema {
	switch {
	case o.Columns != nil:
		return source.Project(f.Schema(), cols)
	case cols == nil:
		cols = source.UpTo(f.Schema().NumFields())
	}
	return f.SchemaOf(cols)
}

// ColumnsOf returns the positions of the columns to keep; nil means all.
func (o *Options) ColumnsOf(f *source.File) ([]int, error) {
	var hidden []string
	if o.Mirrored {
		hidden = source.Mirrored([]*source.File{f})
	}
	if o.Columns == nil && hidden == nil {
		return nil, nil
	}
	cols, fields, err := keys.ChooseIn(f.Schema(), o.Columns, hidden, o.IgnoreCase)
	if err == nil && keys.PickFields(o.Columns) {
		for _, at := range cols {
			for _, p := range fields[at] {
				if _, err := append(keys.Path{f.Schema().Field(at).Name}, p...).Resolve(f.Schema(), o.IgnoreCase); err != nil {
					return nil, f.Failed(err)
				}
			}
		}
		err = faults.Unsupported(fault.At{}, "fields of structs where rows become Arrow records").
			WithHint("choose whole columns, or write Parquet from Parquet")
	}
	if err != nil {
		return nil, f.Failed(err)
	}
	return cols, nil
}

// ReadColumns returns the columns to keep (none if rows are only counted), then the columns
// that only the keys need.
func (s *Scanner) ReadColumns(f *source.File) ([]int, error) {
	cols, err := s.Options.ColumnsOf(f)
	if s.Counted {
		cols = []int{}
	}
	if cols == nil || err != nil {
		return nil, err
	}
	for _, m := range s.Match {
		enc, err := m.Encoder(f.Name(), f.Schema())
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

// United reports whether the columns are those of a union of the log's files, as they are by
// default if fields of structs are chosen.
func (o *ScanOptions) United() bool {
	return o.Schema == dataset.UnionByName || o.Schema == "" && keys.PickFields(o.Columns)
}

// CheckSchema refuses options that contradict each other.
func (opts *ScanOptions) CheckSchema() error {
	switch {
	case !slices.Contains([]dataset.SchemaMode{"", dataset.PerFile, dataset.Strict, dataset.UnionByName}, opts.Schema):
		return fmt.Errorf("schema mode %q: want %s, %s or %s", opts.Schema, dataset.PerFile, dataset.Strict, dataset.UnionByName)
	case opts.Schema != "" && opts.Schema != dataset.UnionByName && keys.PickFields(opts.Columns):
		return faults.Unsupported(fault.At{}, "fields of structs with {Schema %s}", opts.Schema).WithHint("use {Schema union}, or choose whole columns")
	case opts.Pinned != nil && opts.Schema != dataset.UnionByName:
		return fmt.Errorf("a given schema with schema mode %q: want %s", opts.Schema, dataset.UnionByName)
	}
	return nil
}

// Usable returns an error if the scanner was not made by [New].
func Usable(s *Scanner) error {
	if s == nil || s.Stats == nil {
		return errors.New("the Scanner is nil or empty (make it with NewScanner)")
	}
	return nil
}

// SetCopied records, for PathOf, how the pages of each file are copied.
func (s *Scanner) SetCopied(copied map[*source.File]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copied = copied
}

// CopiedAs sets what is the same in all scans that write one output.
func (s *Scanner) CopiedAs(first *Scanner) {
	s.SetCopied(first.copied)
	s.Options.Mirrored = first.Options.Mirrored
}

// CountOnly makes the scan count rows without keeping any.
func (s *Scanner) CountOnly() {
	s.Counted = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count = true
}

// Left returns how many rows may follow when none were read; nil: any number.
func (o *Options) Left() *int64 {
	if o.Limit == 0 {
		return nil
	}
	n := o.Limit
	return &n
}

// Enough reports whether rows are counted, and are as many as the limit.
func (s *Scanner) Enough() bool {
	return s.Counted && s.Options.Limit > 0 && s.Stats.RowsOut.Load() >= s.Options.Limit
}

func (s *Scanner) CountGroups(pieces []source.Piece) {
	for _, p := range pieces {
		s.Stats.RowGroups.Add(int64(p.Hi - p.Lo))
	}
}

// PathOf returns how the rows of a file are read, and why: "engine" if pages are copied or only
// keys read, "generic" if Arrow records are made. For pages, why also names the columns whose
// chunks could not be copied whole, as far as the footer shows. It is known once the scan has begun,
// and may be called while it runs.
func (s *Scanner) PathOf(f *source.File) (path, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f == nil || f.Table() == nil:
		return "", ""
	case f.Format() == dataset.RecordBatches:
		return "generic", "the rows are given as Arrow records"
	case f.Parquet() == nil:
		return "generic", "the input is Arrow, not Parquet"
	case s.copied[f] != "":
		return "engine", s.copied[f]
	case s.count:
		return "engine", "only keys are read"
	}
	return "generic", "the keys are read first, then Arrow records are made of the rows that pass"
}
