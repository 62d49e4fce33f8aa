package output

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/key"
)

// ScanOptions has the fields of [partition.ScanOptions], which documents them.
type ScanOptions struct {
	Match      []dataset.Match
	Any        bool
	Normalize  string
	Columns    []string
	IgnoreCase bool
	Schema     dataset.SchemaMode
	Pinned     *dataset.PinnedSchema
	CountNulls bool
	Threads    int
	Mem        memory.Allocator
	Progress   func(rows int64)
}

// Scan is [ScanOptions] with what joins and the command set beside them.
type Scan struct {
	ScanOptions
	// Check, if not nil, decides in place of the first filter, as [Predicate].Check does.
	Check func() func(*Keys) (members []uint32, err error)
	// Work, if not nil, transforms surviving records on the goroutine that read
	// them, before [ScanRecords] yields them. It is called once by each worker.
	Work func() (Work, error)
	// Entries makes a scan for [Pairs]: Check sets [Keys.Entries] for each member. KeepLog
	// says that rows without a member are kept, too.
	Entries, KeepLog bool

	mirrored bool // see Mirrored: they are columns to keep only if Columns names them
}

// ScanStats counts the work of a scan. It is complete when the scan has ended.
type ScanStats struct {
	RowsIn, RowsOut atomic.Int64
	// RowsWhere counts the rows that were found to satisfy [source.OpenOptions].Where; without
	// a condition all of RowsIn. Rows that the filters were found to drop before are not
	// examined, and not counted unless CountNulls is set.
	RowsWhere        atomic.Int64
	KeysNull         atomic.Int64 // rows with a NULL in the first filter's key
	RowGroups        atomic.Int64
	RowGroupsSkipped atomic.Int64 // row groups whose pages were not read
	Pages            atomic.Int64 // pages of keys, and of leaves that were copied
	PagesSkipped     atomic.Int64 // pages that were not decompressed

	nulls nullCounts
}

// KeysNullOf returns what KeysNull has of a piece.
func (s *ScanStats) KeysNullOf(p source.Piece) int64 { return s.nulls.of(p) }

// addNulls counts n rows of a row group that have a NULL in the first filter's key.
func (s *ScanStats) addNulls(f *source.File, group int, n int64) {
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

// Scanner applies filters to files. It runs one scan: what uses it a second time, by
// [ScanRecords], [Count], [ScanWriter.Scan] or [Destination.WriteScan], gets an error.
// A scan may run while others ask for PathOf and Stats.
type Scanner struct {
	opts    Scan
	match   []Predicate
	Stats   *ScanStats
	used    atomic.Bool // a scan has begun
	counted bool        // rows are counted, not kept

	mu     sync.Mutex              // of what PathOf reads
	copied map[*source.File]string // files whose pages are copied, and how; not changed any more
	count  bool                    // Count has begun
}

// ScannerOf returns a scanner. It returns an error if one of the files lacks a
// column, or has a key that cannot be compared with a filter's. It reads nothing;
// files that are not given are checked when they are scanned.
func ScannerOf(opts Scan, files ...*source.File) (*Scanner, error) {
	if len(opts.Match) == 0 {
		return nil, fmt.Errorf("a scan needs a filter")
	}
	if err := options.AtLeastZero("Threads", opts.Threads, "GOMAXPROCS"); err != nil {
		return nil, err
	}
	if opts.Mem == nil {
		opts.Mem = memory.DefaultAllocator
	}
	if err := opts.checkSchema(); err != nil {
		return nil, err
	}
	match := opts.predicates()
	for i, m := range match {
		if m.Filter == nil {
			return nil, fmt.Errorf("Match %d of %d: Filter is nil", i+1, len(opts.Match))
		}
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
	s := &Scanner{opts: opts, match: match, Stats: new(ScanStats)}
	if err := source.CheckFiles("NewScanner", files); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := s.check(f); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// predicates returns what decides, one for each of Match.
func (o *Scan) predicates() (all []Predicate) {
	for _, m := range o.Match {
		all = append(all, Predicate{Match: m})
	}
	if len(all) > 0 {
		all[0].Check = o.Check
	}
	return all
}

// begin begins the one scan.
func (s *Scanner) begin() error {
	switch {
	case s == nil || len(s.match) == 0:
		return errors.New("a Scanner that NewScanner has not made")
	case s.used.Swap(true):
		return errors.New("the Scanner has run already: it runs one scan (make another with NewScanner)")
	}
	return nil
}

// Result returns ResultExact if every filter is exact, else ResultCandidates.
func (s *Scanner) Result() string {
	for _, m := range s.match {
		if !m.exact() {
			return source.ResultCandidates
		}
	}
	return source.ResultExact
}

// check returns an error if the file lacks a column, or if its key cannot be
// compared with a filter's. It reads nothing.
func (s *Scanner) check(f *source.File) error {
	if s.opts.Schema != dataset.Union {
		if _, err := s.opts.SchemaOf(f); err != nil {
			return err
		}
	}
	for _, m := range s.match {
		if _, err := m.encoder(f.Name(), f.Schema()); err != nil {
			return err
		}
	}
	return nil
}

// checks returns one worker's check for each match; nil if only the filter decides.
func (s *Scanner) checks() []check {
	all := make([]check, len(s.match))
	for i, m := range s.match {
		if m.Check != nil {
			all[i] = m.Check()
		}
	}
	return all
}

// SchemaOf returns the schema of the columns to keep, with the file's own types.
func (o *Scan) SchemaOf(f *source.File) (*arrow.Schema, error) {
	cols, err := o.columns(f)
	if err != nil {
		return nil, err
	}
	return o.schemaOf(f, cols), nil
}

// SchemaOf is SchemaOf for what columns returns.
func (o *Scan) schemaOf(f *source.File, cols []int) *arrow.Schema {
	switch {
	case o.Columns != nil:
		return source.Project(f.Schema(), cols)
	case cols == nil:
		cols = source.UpTo(f.Schema().NumFields())
	}
	return f.SchemaOf(cols)
}

// Columns returns the positions of the columns to keep; nil means all.
func (o *Scan) columns(f *source.File) ([]int, error) {
	if o.Columns == nil && o.mirrored {
		return f.Besides(f.Mirrored()), nil
	}
	if o.Columns == nil {
		return nil, nil
	}
	cols := []int{}
	for _, name := range o.Columns {
		field, err := key.Path{name}.Resolve(f.Schema(), o.IgnoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		if at := slices.Index(cols, field.Index[0]); at >= 0 {
			return nil, fmt.Errorf("%s: %s and %s are the same column (name it once)", f.Name(), o.Columns[at], name)
		}
		cols = append(cols, field.Index[0])
	}
	return cols, nil
}

// readColumns returns the columns to keep (none if rows are only counted) and then
// those that only the keys need.
func (s *Scanner) readColumns(f *source.File) ([]int, error) {
	cols, err := s.opts.columns(f)
	if s.counted {
		cols = []int{}
	}
	if cols == nil || err != nil {
		return nil, err
	}
	for _, m := range s.match {
		enc, err := m.encoder(f.Name(), f.Schema())
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

// checkSchema refuses options that contradict each other.
func (opts *Scan) checkSchema() error {
	switch {
	case !slices.Contains([]dataset.SchemaMode{"", dataset.PerFile, dataset.Strict, dataset.Union}, opts.Schema):
		return fmt.Errorf("schema mode %q: want %s, %s or %s", opts.Schema, dataset.PerFile, dataset.Strict, dataset.Union)
	case opts.Pinned != nil && opts.Schema != dataset.Union:
		return fmt.Errorf("a given schema with schema mode %q: want %s", opts.Schema, dataset.Union)
	}
	return nil
}

// checkScanner returns an error if the scanner was not made by [ScannerOf].
func checkScanner(s *Scanner) error {
	if s == nil || s.Stats == nil {
		return errors.New("the Scanner is nil or empty (make it with NewScanner)")
	}
	return nil
}

// setCopied records of which files pages are copied, and how, for PathOf.
func (s *Scanner) setCopied(copied map[*source.File]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copied = copied
}

// copiedAs sets what is the same in all scans that write one output.
func (s *Scanner) copiedAs(first *Scanner) {
	s.setCopied(first.copied)
	s.opts.mirrored = first.opts.mirrored
}

// countOnly makes the scan count rows without keeping any.
func (s *Scanner) countOnly() {
	s.counted = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count = true
}

func (s *Scanner) countGroups(pieces []source.Piece) {
	for _, p := range pieces {
		s.Stats.RowGroups.Add(int64(p.Hi - p.Lo))
	}
}

// PathOf returns how the rows of a file were read, and why: "engine" if pages were
// copied or only keys read, "generic" if Arrow records were made. For pages, why also
// says which columns' chunks could not be copied whole, as far as the footer shows.
// It is known once the scan has begun. It may be called while the scan runs.
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
