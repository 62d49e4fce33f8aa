package keyscan

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// RecordFinder finds the rows of Arrow records that pass all filters, as [Finder] does those
// of a Parquet file. It must not be used concurrently.
type RecordFinder struct {
	scanner *Scanner
	checks  []Check
	file    *source.File  // that matches belong to
	matches []*RecordKeys // one per match
	counts  MatchCounts
	found   []uint32
	rows    []int
}

// NewRecordFinder returns a finder. checks has one function per match; nil means that the
// filter alone decides.
func NewRecordFinder(s *Scanner, checks []Check) *RecordFinder {
	return &RecordFinder{scanner: s, checks: checks}
}

// enter prepares for the records of a file.
func (k *RecordFinder) enter(f *source.File) error {
	if k.file == f {
		return nil
	}
	if err := k.scanner.decided(f); err != nil {
		return err
	}
	k.file, k.matches = f, k.matches[:0]
	for i, m := range k.scanner.Match {
		columns, o, err := m.Encoding()
		if err != nil {
			return err
		}
		if k.checks[i] == nil {
			k.checks[i] = (*Keys).Probe
		}
		keys := &Keys{Batch: new(keys.Batch), Filter: m.Members()}
		k.matches = append(k.matches, &RecordKeys{File: f, Columns: columns, Options: o, Filtered: true, Keys: keys})
	}
	return nil
}

// Pass returns the rows to keep of a record of a row group, ascending. They are valid until
// the next call.
func (k *RecordFinder) Pass(f *source.File, group int, rec arrow.Record) ([]int, error) {
	if err := k.enter(f); err != nil {
		return nil, err
	}
	k.counts.Begin(int(rec.NumRows()))
	for i, m := range k.matches {
		m.Keys.Piece = source.Piece{File: f, Lo: group, Hi: group + 1}
		err := m.Step(rec, Position{}, func() error {
			members, err := k.checks[i](m.Keys)
			if err != nil {
				return err
			}
			if i == 0 {
				k.scanner.Stats.AddNulls(f, group, int64(m.Keys.Batch.Nulls()))
			}
			k.found = k.found[:0]
			for _, h := range members {
				k.found = append(k.found, m.Keys.Batch.Rows[h])
			}
			k.counts.Add(k.found, 0, k.scanner.Match[i].NoMatch)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	k.rows = Passed(&k.counts, k.rows[:0], 0, k.scanner.Options.Any)
	return k.rows, nil
}

// Pairs is [Finder.Pairs] for a record, whose first row has the given number.
func (k *RecordFinder) Pairs(f *source.File, group int, rec arrow.Record, first uint32) (m rows.Matched, err error) {
	passed, err := k.Pass(f, group, rec)
	if err != nil {
		return m, err
	}
	for _, row := range passed {
		m.Rows = append(m.Rows, first+uint32(row))
	}
	if m.Entries = slices.Clone(k.matches[0].Keys.Entries); len(m.Entries) != len(m.Rows) {
		return m, fmt.Errorf("internal error: %d entries for %d rows that pass", len(m.Entries), len(m.Rows))
	}
	return m, nil
}

// RowsNeed returns the maximum number of bytes needed to find the rows of the pieces that pass:
// for their numbers, and those of the rows to examine.
func RowsNeed(pieces []source.Piece) (most int64) {
	for _, p := range pieces {
		if f := p.File.Parquet(); f != nil {
			for g := p.Lo; g < p.Hi; g++ {
				most = max(most, f.GroupRows(g))
			}
		}
	}
	return 3 * 4 * min(most, tasks.RangeRows)
}
