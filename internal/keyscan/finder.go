// Package keyscan reads keys of rows, and says which rows have a key that passes.
//
//	Pieces ── Read ──► batches of Keys, for a function of the caller
//	Scanner (filters, checks) ── Finder ─┬─ leaves of Parquet ─┬─► rows that pass, by number
//	                                     └─ Arrow records     ─┘
//
// In come files, and filters or a [Predicate].Check that decides; out go keys, or row numbers,
// ascending within a row group. Statistics and Bloom filters of the files only rule out what
// cannot pass. A key with a NULL passes no filter, except one with NoMatch. A [Scanner] may be
// queried while it runs; a [Finder] belongs to one worker.
package keyscan

import (
	"context"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// Finder finds the rows of a Parquet file that pass all filters. It reads only the
// key columns and must not be used concurrently.
type Finder struct {
	scanner *Scanner
	File    *source.File
	Matches []matchScan // one per filter
	counts  MatchCounts
	where   *rowfilter.Filter // the condition on the file's rows; nil: none
	base    []uint32          // rows of the last range that satisfy it; nil: all
	pruned  bool              // no page was read for the last rows
	strict  bool              // a match other than the first has a cast that may fail on any row
}

// matchScan finds the rows whose key passes one filter.
type matchScan interface {
	// hits returns the rows of some that pass, numbered within the row group, ascending, and how
	// many of some have a NULL in the key. Nil stands for all rows of the range. The slice is
	// valid until the next call.
	hits(ctx context.Context, r tasks.Range, some []uint32) (rows []uint32, nulls int64, err error)
	// entries returns the [Keys].Entries of the last hits, one for each row, in a
	// scan with Pairs.
	entries() []uint32
	// noHits is called instead of hits where no row can be a hit.
	noHits()
	// pruned reports whether the last call found, without reading a page, that
	// the row group has no hit.
	pruned() bool
	// within returns the row ranges of a row group that may have hits; nil: all.
	within(ctx context.Context, group int) (rows.Set, error)
	// compressedKeyBytes returns the compressed bytes of the keys of a row group. ok is false if
	// the condition must be evaluated before the keys: the keys may contain NULLs, or are read as
	// Arrow records.
	compressedKeyBytes(group int) (bytes int64, ok bool)
	// See Finder.size and Finder.shed.
	size() int64
	shed()
}

// Size returns the bytes of memory that are kept between row groups.
func (k *Finder) Size() int64 {
	n := int64(2*cap(k.counts.yes) + cap(k.counts.excluded) + 4*cap(k.base))
	if k.where != nil {
		n += k.where.Size()
	}
	for _, m := range k.Matches {
		n += m.size()
	}
	return n
}

// Shed releases that memory.
func (k *Finder) Shed() {
	k.counts, k.base = MatchCounts{}, nil
	if k.where != nil {
		k.where.Shed()
	}
	for _, m := range k.Matches {
		m.shed()
	}
}

// NewFinder prepares to scan the file. checks has one function per match; nil means that the
// filter alone decides. last, if not nil, is the worker's Finder for its previous file: the new
// one may reuse its memory.
func NewFinder(s *Scanner, f *source.File, buf *parquet.Buffers, checks []Check, last *Finder) (*Finder, error) {
	if last != nil && last.File != nil && f.SharesSchema(last.File) {
		if done, err := last.goOn(f, buf); err != nil || done {
			return last, err
		}
	}
	if err := s.decided(f); err != nil {
		return nil, err
	}
	k := &Finder{scanner: s, File: f}
	if f.Partial() {
		k.where = rowfilter.New(f, buf)
	}
	for i, m := range s.Match {
		if strict, err := m.mayFail(); err != nil {
			return nil, err
		} else if i > 0 && strict {
			k.strict = true
		}
		one, err := s.newMatchScan(f, m, buf, checks[i])
		if err != nil {
			return nil, err
		}
		k.Matches = append(k.Matches, one)
	}
	return k, nil
}

// goOn reuses the Finder, with its memory, for another file of the same schema if all keys are
// leaves. If done is false, it must not be used any more.
func (k *Finder) goOn(f *source.File, buf *parquet.Buffers) (done bool, err error) {
	k.File = nil
	for i, m := range k.Matches {
		l, ok := m.(*LeafScan)
		if !ok {
			return false, nil
		}
		if err := l.goOn(f, k.scanner.Match[i]); err != nil {
			return false, err
		}
	}
	if k.File, k.where, k.base = f, nil, nil; f.Partial() {
		k.where = rowfilter.New(f, buf)
	}
	return true, nil
}

// newMatchScan returns the matchScan that suits the match's key.
func (s *Scanner) newMatchScan(f *source.File, m Predicate, buf *parquet.Buffers, c Check) (matchScan, error) {
	columns, o, err := m.Encoding()
	if err != nil {
		return nil, err
	}
	enc, err := NewEncoder(f.Name(), f.Schema(), columns, o, true)
	if err != nil {
		return nil, err
	}
	keys := &Keys{Batch: new(keys.Batch), Filter: m.Members()}
	leaf, ok := f.Parquet().Leaf(enc.Index())
	if !ok {
		return newRecordScan(f, m, enc.Columns(), keys, c, s.Options.Entries)
	}
	l := &LeafScan{
		leafKeys: leafKeys{
			file: f, columns: columns, leaf: leaf.Keys(columns[0].Cast, o), buf: buf,
			keys: keys, countNulls: s.Options.CountNulls,
		},
		index: enc.Index(), check: c, counts: c != nil, pairs: s.Options.Entries, stats: s.Stats, nullMisfits: m.NullMisfits,
	}
	if c == nil {
		l.check = (*Keys).Probe
	}
	l.work = func(k *Keys) error {
		_, err := l.check(k)
		return err
	}
	return l, l.prune(m)
}

// Scan appends to dst the rows of the range that pass, ascending, and updates the
// statistics.
func (k *Finder) Scan(ctx context.Context, r tasks.Range, dst []uint32) ([]uint32, error) {
	before := len(dst)
	dst, err := k.rows(ctx, r, dst)
	if err != nil {
		return nil, err
	}
	st := k.scanner.Stats
	if r.Lo == 0 && k.pruned && len(dst) == before {
		st.RowGroupsSkipped.Add(1)
	}
	st.RowsIn.Add(k.File.LiveIn(r.Group, r.Lo, r.Hi))
	if !k.scanner.Options.Entries { // otherwise rows multiply
		st.RowsOut.Add(int64(len(dst) - before))
	}
	if k.scanner.Options.Progress != nil {
		k.scanner.Options.Progress(r.Hi - r.Lo)
	}
	return dst, nil
}

// rows appends to dst the rows of the range that satisfy the file's condition and pass
// the filters.
func (k *Finder) rows(ctx context.Context, r tasks.Range, dst []uint32) ([]uint32, error) {
	st := k.scanner.Stats
	if chosen := k.scanner.Options.Rows; chosen != nil {
		st.RowsWhere.Add(r.Hi - r.Lo)
		return chosen(k.File, r.Group, r.Lo, r.Hi, dst), nil
	}
	if k.where == nil {
		st.RowsWhere.Add(r.Hi - r.Lo)
		return k.passing(ctx, r, nil, dst)
	}
	defer func() {
		st.Pages.Add(int64(k.where.Pages))
		st.PagesSkipped.Add(int64(k.where.Skipped))
		k.where.Pages, k.where.Skipped = 0, 0
	}()
	within, err := k.within(ctx, r)
	if err != nil {
		return nil, err
	}
	first, err := k.keyFirst(ctx, r.Group, within)
	if err != nil {
		return nil, err
	}
	if first {
		before := len(dst)
		some, err := k.where.Candidates(ctx, r, within)
		if err != nil {
			return nil, err
		}
		if k.base = some.List(k.base[:0]); int64(len(k.base)) == r.Hi-r.Lo {
			k.base = nil
		}
		k.tentatively(true)
		dst, err = k.passing(ctx, r, k.base, dst)
		if k.tentatively(false); err != nil {
			return nil, err
		}
		rows, err := k.where.Among(ctx, r.Group, slices.Clone(dst[before:]))
		if err == nil {
			err = k.settle(dst[before:], rows)
		}
		st.RowsWhere.Add(int64(len(rows)))
		return append(dst[:before], rows...), err
	}
	rows, all, err := k.where.Rows(ctx, r, within)
	if err != nil {
		return nil, err
	}
	if all {
		k.base = nil
		st.RowsWhere.Add(r.Hi - r.Lo)
		return k.passing(ctx, r, nil, dst)
	}
	k.base = append(k.base[:0], rows...)
	st.RowsWhere.Add(int64(len(rows)))
	if len(rows) == 0 {
		k.base, k.pruned = []uint32{}, k.where.Pages == 0
		for _, m := range k.Matches {
			m.noHits()
		}
		return dst, nil
	}
	return k.passing(ctx, r, k.base, dst)
}

// checked returns the scan of the first match, a leaf, if a check decides; nil: it is another one.
func (k *Finder) checked() *LeafScan {
	if l, ok := k.Matches[0].(*LeafScan); ok && k.scanner.Match[0].Check != nil {
		return l
	}
	return nil
}

// tentatively says that rows that the check lets through may turn out to be deleted, or ends that.
func (k *Finder) tentatively(begin bool) {
	if l := k.checked(); l != nil {
		l.keys.Tentative, l.pairs = begin, begin || k.scanner.Options.Entries
	}
}

// settle reduces the entries of rows that passed to those that are left, and hands them to the check.
func (k *Finder) settle(passed, left []uint32) error {
	l := k.checked()
	if l == nil {
		return nil
	}
	n := 0
	for i, row := range passed {
		if n < len(left) && left[n] == row {
			l.of[n] = l.of[i]
			n++
		}
	}
	if l.of = l.of[:n]; n == 0 {
		return nil
	}
	return l.keys.Settle(l.of)
}

// within returns the rows of a row group that may pass, according to statistics of the key; nil:
// all, also if rows without a key are counted. It returns none if the statistics rule out that a
// row satisfies the condition.
func (k *Finder) within(ctx context.Context, r tasks.Range) (rows.Set, error) {
	if !k.where.Group(r.Group).Has(where.True) {
		return rows.Set{}, nil
	}
	opts := &k.scanner.Options
	if len(k.Matches) != 1 || k.scanner.Match[0].NoMatch || opts.CountNulls || opts.KeepLog {
		return nil, nil
	}
	if err := k.where.Look(ctx, r.Group); err != nil || len(k.where.Possible) == 0 { // then the key's index is not needed
		return nil, err
	}
	return k.Matches[0].within(ctx, r.Group)
}

// keyFirst reports whether the keys of a row group are read before the condition's
// columns, because they are smaller. A Check must not see keys of rows that fail the
// condition, unless it settles those that are not deleted; NULLs and misfits of such rows do not count.
func (k *Finder) keyFirst(ctx context.Context, group int, within rows.Set) (bool, error) {
	if len(k.Matches) == 0 || k.scanner.Options.CountNulls || within != nil && len(within) == 0 {
		return false, nil
	}
	if err := k.where.Look(ctx, group); err != nil {
		return false, err
	}
	keys := int64(0)
	settles := k.scanner.Options.Settles && k.where.OnlyDeleted()
	for i, m := range k.Matches {
		n, ok := m.compressedKeyBytes(group)
		if !ok || k.scanner.Match[i].Check != nil && !settles {
			return false, nil
		}
		if fails, err := k.scanner.Match[i].mayFail(); fails || err != nil || k.scanner.Match[i].NullMisfits {
			return false, err
		}
		keys += n
	}
	cost := k.where.Cost(group)
	return keys < cost || settles && cost > 0, nil
}

// passing appends to dst the rows of the range, or some of them, that pass the filters.
func (k *Finder) passing(ctx context.Context, r tasks.Range, some, dst []uint32) ([]uint32, error) {
	opts := &k.scanner.Options
	if len(k.Matches) == 1 && !k.scanner.Match[0].NoMatch {
		rows, nulls, err := k.Matches[0].hits(ctx, r, some)
		k.scanner.Stats.AddNulls(k.File, r.Group, nulls)
		k.pruned = k.Matches[0].pruned() && k.unread()
		return append(dst, rows...), err
	}
	k.pruned = k.unread()
	if len(k.Matches) == 0 && some != nil {
		return append(dst, some...), nil
	}
	k.counts.Begin(int(r.Hi - r.Lo))
	for i, m := range k.Matches {
		rows, nulls, err := m.hits(ctx, r, some)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			k.scanner.Stats.AddNulls(k.File, r.Group, nulls)
		}
		k.pruned = k.pruned && m.pruned()
		if len(rows) == 0 && !opts.Any && !k.scanner.Match[i].NoMatch && !k.strict {
			return dst, nil // no other filter can let a row through
		}
		k.counts.Add(rows, r.Lo, k.scanner.Match[i].NoMatch)
	}
	before := len(dst)
	dst = Passed(&k.counts, dst, uint32(r.Lo), opts.Any)
	if some != nil {
		dst = append(dst[:before], rows.Common(dst[before:], some)...)
	}
	return dst, nil
}

// unread reports whether no page of the condition's columns was read for the last rows.
func (k *Finder) unread() bool { return k.where == nil || k.where.Pages == 0 }

// Pairs returns the rows of the range that pass with their entries, in a scan with Entries, and
// updates the statistics.
func (k *Finder) Pairs(ctx context.Context, r tasks.Range) (m rows.Matched, err error) {
	if m.Rows, err = k.Scan(ctx, r, nil); err != nil {
		return m, err
	}
	m.Of, m.Entries = slices.Clone(k.base), slices.Clone(k.Matches[0].entries())
	if len(m.Entries) != len(m.Rows) {
		return m, fmt.Errorf("internal error: %d entries for %d rows that pass", len(m.Entries), len(m.Rows))
	}
	return m, nil
}
