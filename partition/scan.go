package partition

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

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

// Scan yields the rows of the pieces that pass, in input order, as Arrow
// records.
func (s *Scanner) Scan(ctx context.Context, pieces []Piece) iter.Seq2[Rows, error] {
	if s.opts.Stages != nil {
		return s.scanStages(ctx, pieces)
	}
	return s.records(ctx, pieces)
}

// Count scans the pieces and counts, in Stats, the rows that pass.
func (s *Scanner) Count(ctx context.Context, pieces []Piece) error {
	s.counted = true
	if s.opts.Stages != nil {
		return s.countStages(ctx, pieces)
	}
	parts, err := s.parts(pieces, false)
	if err != nil {
		return err
	}
	for i := range parts {
		if p := &parts[i]; p.Piece.File.parquet() != nil {
			p.pages = &pageSource{piece: p.Piece}
		}
	}
	for r, err := range s.eachPart(ctx, parts) {
		if err != nil {
			return err
		}
		r.release()
	}
	if s.opts.End != nil {
		return s.opts.End()
	}
	return nil
}

// parts returns a part of an output for each piece. own: each with the schema of
// what is kept of its file.
func (s *Scanner) parts(pieces []Piece, own bool) ([]Part, error) {
	var parts []Part
	for _, p := range pieces {
		part := Part{Piece: p, Schema: p.File.Schema()}
		if own {
			var err error
			if part.Schema, err = s.opts.SchemaOf(p.File); err != nil {
				return nil, err
			}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// eachPart yields the rows of the parts that pass, as pages where a part has a
// pageSource, else as records. Rows.Piece is the number of the part.
func (s *Scanner) eachPart(ctx context.Context, parts []Part) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		for lo, hi := 0, 0; lo < len(parts); lo = hi {
			asPages := parts[lo].pages != nil
			var pieces []Piece
			var sources []*pageSource
			for hi = lo; hi < len(parts) && (parts[hi].pages != nil) == asPages; hi++ {
				if asPages {
					parts[hi].pages.number = hi - lo
				}
				pieces, sources = append(pieces, parts[hi].Piece), append(sources, parts[hi].pages)
			}
			rows := s.records(ctx, pieces)
			if asPages {
				rows = s.pages(ctx, sources)
			}
			for r, err := range rows {
				r.Piece += lo
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// pages yields the rows that pass as pages. Rows.Piece is the number of the
// source.
func (s *Scanner) pages(ctx context.Context, sources []*pageSource) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		s.countGroups(piecesOfSources(sources))
		for g, err := range s.copyPages(ctx, sources) {
			if err != nil {
				yield(Rows{}, err)
				return
			}
			if !yield(Rows{Piece: g.source, group: g}, nil) {
				return
			}
		}
	}
}

// records yields the rows of the pieces that pass, as records.
func (s *Scanner) records(ctx context.Context, pieces []Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		ended := false // the consumer wants no more
		if s.opts.Schema == Union {
			yield(Rows{}, fault.Unsupported(fault.At{}, "the union of schemas in Arrow records").WithHint("write Parquet"))
			return
		}
		s.countGroups(pieces)
		unmap := mapFew(pieces)
		defer func() {
			if err := unmap(); err != nil && !ended {
				yield(Rows{}, err)
			}
		}()
		way := flightOf(InFlight(pieces)/forRecords, s.opts.Threads, func() int64 { return need(pieces, s.opts.columns) + rowsNeed(pieces) })
		for r, err := range mapTasks(ctx, groupsOf(pieces), way, func() (taskWork, error) { return s.newWorker(pieces, way) }) {
			if !yield(r, err) || err != nil {
				ended = true
				return
			}
		}
	}
}

// rowsNeed returns the most bytes that finding the rows that pass takes: for
// their numbers, and those of the rows to look at.
func rowsNeed(pieces []Piece) (most int64) {
	for _, p := range pieces {
		if f := p.File.parquet(); f != nil {
			for g := p.Lo; g < p.Hi; g++ {
				most = max(most, f.GroupRows(g))
			}
		}
	}
	return 3 * 4 * min(most, rangeRows)
}

func (s *Scanner) newWorker(pieces []Piece, way flight) (taskWork, error) {
	w := &scanWorker{scanner: s, way: way, checks: s.checks(), buf: new(parquet.Buffers)}
	var err error
	if s.opts.Work != nil {
		w.further, err = s.opts.Work()
	}
	return func(ctx context.Context, t task, emit func(arrow.Record) error) error {
		return w.group(ctx, pieces[t.piece], t.group, emit)
	}, err
}

func (s *Scanner) countGroups(pieces []Piece) {
	for _, p := range pieces {
		s.Stats.RowGroups.Add(int64(p.Hi - p.Lo))
	}
}

// PathOf returns how the rows of a file were read: "engine" if pages were copied
// or only keys read, "generic" if Arrow records were made; and why. It is known
// once the scan has begun.
func (s *Scanner) PathOf(f *File) (path, why string) {
	switch {
	case f.Format == RecordBatches:
		return "generic", "the rows are given as Arrow records"
	case f.parquet() == nil:
		return "generic", "the input is Arrow, not Parquet"
	case s.copied[f]:
		return "engine", "pages are copied"
	case s.counted:
		return "engine", "only keys are read"
	}
	return "generic", "the keys are read first, then Arrow records are made of the rows that pass"
}
