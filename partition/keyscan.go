package partition

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/key"
)

// stretch is a range of rows of one row group of a Parquet file.
type stretch struct {
	group  int
	lo, hi int64
}

// keyScan finds the rows of a Parquet file that pass all filters, reading
// nothing but the key columns. One goroutine uses it.
type keyScan struct {
	scanner *Scanner
	file    *File
	matches []matchScan // one for each filter
	votes   []int16     // filters that let a row through
	barred  []bool      // rows that an exclusion drops
	pruned  bool        // no page was read for the last rows
	strict  bool        // a match but the first has a cast that may fail, on any row
}

// matchScan finds the rows whose key one filter lets through.
type matchScan interface {
	// hits returns the rows of the stretch, numbered within the row group,
	// ascending, and how many of its rows have a NULL in the key. The slice is
	// good until the next call.
	hits(ctx context.Context, s stretch) (rows []uint32, nulls int64, err error)
	// pruned reports whether the last call knew without reading a page that
	// the row group has no hit.
	pruned() bool
	// size and shed are those of keyScan.
	size() int64
	shed()
}

// size returns how many bytes of memory the scan keeps from one row group to the
// next.
func (k *keyScan) size() int64 {
	n := int64(2*cap(k.votes) + cap(k.barred))
	for _, m := range k.matches {
		n += m.size()
	}
	return n
}

// shed lets go of that memory.
func (k *keyScan) shed() {
	k.votes, k.barred = nil, nil
	for _, m := range k.matches {
		m.shed()
	}
}

// newKeyScan prepares to scan the file. verifiers has one for each match, or
// nil.
func newKeyScan(s *Scanner, f *File, buf *parquet.Buffers, verifiers []Verifier) (*keyScan, error) {
	k := &keyScan{scanner: s, file: f}
	for i, m := range s.opts.Match {
		if strict, err := m.mayFail(); err != nil {
			return nil, err
		} else if i > 0 && strict {
			k.strict = true
		}
		prober, err := NewProber(f.Name, f.Schema(), m)
		if err != nil {
			return nil, err
		}
		v := verifiers[i]
		leaf, ok := f.parquet().Leaf(prober.enc.Index())
		if !ok {
			k.matches = append(k.matches, newRecordScan(f, m, prober, v))
			continue
		}
		l, err := newLeafScan(f, leaf, m, v)
		if err != nil {
			return nil, err
		}
		if l.pruner, err = newPruner(f.parquet().File(), f.Schema(), m); l.pruner != nil {
			l.pruner.doubt = f.doubts.add
		}
		if err != nil {
			return nil, err
		}
		l.buf, l.stats, l.countNulls = buf, s.Stats, s.opts.CountNulls
		k.matches = append(k.matches, l)
	}
	return k, nil
}

// scan appends to dst the rows of the stretch that pass, ascending, and counts.
func (k *keyScan) scan(ctx context.Context, s stretch, dst []uint32) ([]uint32, error) {
	before := len(dst)
	dst, err := k.rows(ctx, s, dst)
	if err != nil {
		return nil, err
	}
	st := k.scanner.Stats
	if s.lo == 0 && k.pruned && len(dst) == before {
		st.RowGroupsSkipped.Add(1)
	}
	st.RowsIn.Add(s.hi - s.lo)
	st.RowsOut.Add(int64(len(dst) - before))
	if k.scanner.opts.Progress != nil {
		k.scanner.opts.Progress(s.hi - s.lo)
	}
	return dst, nil
}

func (k *keyScan) rows(ctx context.Context, s stretch, dst []uint32) ([]uint32, error) {
	opts := &k.scanner.opts
	if len(k.matches) == 1 && !opts.Match[0].NoMatch {
		rows, nulls, err := k.matches[0].hits(ctx, s)
		k.scanner.Stats.KeysNull.Add(nulls)
		k.pruned = k.matches[0].pruned()
		return append(dst, rows...), err
	}
	k.pruned = true
	n := int(s.hi - s.lo)
	k.votes = zeroed(k.votes, n)
	k.barred = zeroed(k.barred, n)
	need := int16(0)
	for i, m := range k.matches {
		rows, nulls, err := m.hits(ctx, s)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			k.scanner.Stats.KeysNull.Add(nulls)
		}
		k.pruned = k.pruned && m.pruned()
		if len(rows) == 0 && !opts.Any && !opts.Match[i].NoMatch && !k.strict {
			return dst, nil // whatever the others say
		}
		if opts.Match[i].NoMatch {
			for _, r := range rows {
				k.barred[int64(r)-s.lo] = true
			}
			continue
		}
		need++
		for _, r := range rows {
			k.votes[int64(r)-s.lo]++
		}
	}
	if opts.Any {
		need = min(need, 1)
	}
	for i, v := range k.votes {
		if v >= need && !k.barred[i] {
			dst = append(dst, uint32(s.lo+int64(i)))
		}
	}
	return dst, nil
}

func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// leafScan is a matchScan of a key that is one leaf, not repeated: it goes
// through the leaf's pages, and probes what each holds, a dictionary once.
type leafScan struct {
	file     *File
	columns  []key.Column // the key's, for errors
	leaf     *keyLeaf
	prober   *Prober // of the leaf's schema
	pruner   *pruner
	verifier Verifier
	buf      *parquet.Buffers
	stats    *ScanStats

	countNulls  bool // what is not known to be NULL or not is read
	nullMisfits bool // a value that does not fit its cast is a NULL

	dict  *parquet.Dictionary // that entry and uses are about
	entry []bool              // by entry: lets rows through
	uses  []uint32            // by entry: rows, if there is a verifier
	bad   []bool              // by entry: does not fit its cast; nil: all do
	nulls int64               // rows of the stretch without a key, among those looked at

	none    bool     // the row group cannot have a hit
	ranges  []uint32 // rows to look at
	found   []uint32
	there   []uint32 // entries of a page that have a value
	members []uint32
}

func newLeafScan(f *File, leaf arrowparquet.LeafValues, m Match, v Verifier) (*leafScan, error) {
	columns, err := m.KeyColumns()
	if err != nil {
		return nil, err
	}
	options, err := m.options()
	if err != nil {
		return nil, err
	}
	l := &leafScan{file: f, columns: columns, leaf: newKeyLeaf(f, leaf, columns[0].Cast, options), verifier: v, nullMisfits: m.NullMisfits}
	m.Key = l.leaf.column.String()
	l.prober, err = NewProber(f.Name, l.leaf.schema, m)
	return l, err
}

func (l *leafScan) hits(ctx context.Context, s stretch) (_ []uint32, nulls int64, err error) {
	l.found, l.nulls = l.found[:0], 0
	all, outside, err := l.narrow(ctx, s)
	if err != nil || !all && len(l.ranges) == 0 {
		return nil, outside, err
	}
	defer l.buf.Rest()
	c := l.file.parquet().File().ChunkIn(l.buf, s.group, l.leaf.values.Index())
	if !all {
		c.Select(l.ranges)
	}
	if none, err := l.dictionaryDenies(ctx, c, s.group); err != nil {
		return nil, 0, err
	} else if none {
		c.SkipCoded()
	}
	done := 0 // of l.ranges
	for {
		p, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		rows := l.ranges[done:]
		if !all {
			for int64(rows[0]) < p.FirstRow { // in a page that was skipped
				rows = rows[1:]
				done++
			}
			done += p.Values
		}
		if err := l.page(p, c.Dictionary(), all, rows); err != nil {
			return nil, 0, inGroup(err, l.file, s.group)
		}
		l.nulls += int64(p.Values - p.NonNull)
	}
	if err := l.countEntries(); err != nil {
		return nil, 0, err
	}
	seen, skipped := c.Pages()
	l.stats.Pages.Add(int64(seen))
	l.stats.PagesSkipped.Add(int64(skipped))
	return l.found, l.nulls + outside, nil
}

func (l *leafScan) pruned() bool { return l.none }

func (l *leafScan) size() int64 {
	return int64(cap(l.entry) + 4*(cap(l.uses)+cap(l.ranges)+cap(l.found)+cap(l.there)+cap(l.members)))
}

func (l *leafScan) shed() {
	l.dict, l.entry, l.uses = nil, nil, nil
	l.ranges, l.found, l.there, l.members = nil, nil, nil, nil
}

// narrow finds out which rows of the stretch have to be looked at: all of the
// row group, or l.ranges. nulls counts rows elsewhere, in the row group that
// the stretch begins, that are known to have no key.
func (l *leafScan) narrow(ctx context.Context, s stretch) (all bool, nulls int64, err error) {
	total := l.file.GroupRows(s.group)
	ranges := [][2]int64{{0, total}}
	if l.pruner != nil {
		if ranges, nulls, err = l.pruner.rows(ctx, s.group); err != nil {
			return false, 0, err
		}
		if nulls < 0 && l.countNulls {
			ranges = [][2]int64{{0, total}}
		}
		if nulls < 0 || s.lo > 0 {
			nulls = 0 // unknown, or counted with the row group's first stretch
		}
	}
	l.none = len(ranges) == 0
	if len(ranges) == 1 && ranges[0] == [2]int64{0, total} && s.lo == 0 && s.hi == total {
		return true, nulls, nil
	}
	l.ranges = l.ranges[:0]
	for _, r := range ranges {
		for row := max(r[0], s.lo); row < min(r[1], s.hi); row++ {
			l.ranges = append(l.ranges, uint32(row))
		}
	}
	return false, nulls, nil
}

// page appends the rows of a page that the filter lets through. rows are those
// of its entries, unless it is whole.
func (l *leafScan) page(p *parquet.Page, dict *parquet.Dictionary, whole bool, rows []uint32) error {
	full := p.Values
	there := []uint32(nil) // nil: all
	if p.NonNull < full {
		there = l.withValue(p)
	}
	row := func(i uint32) uint32 { // of value i
		if there != nil {
			i = there[i]
		}
		if whole {
			return uint32(p.FirstRow) + i
		}
		return rows[i]
	}
	if p.Coded {
		if err := l.probeDictionary(dict); err != nil {
			return err
		}
		if l.bad != nil {
			if err := l.misfits(p.Indices[:p.NonNull]); err != nil {
				return err
			}
		}
		for i, e := range p.Indices[:p.NonNull] {
			if l.entry[e] {
				l.found = append(l.found, row(uint32(i)))
			}
		}
		if l.verifier != nil {
			for _, e := range p.Indices[:p.NonNull] {
				l.uses[e]++
			}
		}
		return nil
	}
	return l.withKeys(p, func(k *key.Batch, hits []uint32) error {
		if err := k.Fit(fault.At{File: l.file.Name}, l.columns); err != nil {
			return err
		}
		l.nulls += int64(len(k.Misfits()))
		if members := l.verified(k, hits); l.verifier != nil {
			if err := l.verifier.Count(k, hits, members, nil); err != nil {
				return err
			}
			hits = members
		}
		for _, h := range hits {
			l.found = append(l.found, row(k.Rows[h]))
		}
		return nil
	})
}

// misfits returns an error if one of the dictionary's entries at indices does
// not fit its cast, or counts those as NULLs.
func (l *leafScan) misfits(indices []uint32) error {
	for _, e := range indices {
		switch {
		case !l.bad[e]:
		case l.nullMisfits:
			l.nulls++
		default:
			return key.Misfit(fault.At{File: l.file.Name}, l.columns)
		}
	}
	return nil
}

// verified returns those of hits that are members, as far as anybody can tell.
func (l *leafScan) verified(k *key.Batch, hits []uint32) []uint32 {
	if l.verifier == nil {
		return hits
	}
	l.members = append(l.members[:0], hits...)
	return l.verifier.Verify(k, l.members)
}

// withValue lists the entries of the page that are not NULL.
func (l *leafScan) withValue(p *parquet.Page) []uint32 {
	full := uint8(l.file.parquet().File().Leaves[l.leaf.values.Index()].MaxDef)
	l.there = l.there[:0]
	for i, d := range p.Def {
		if d == full {
			l.there = append(l.there, uint32(i))
		}
	}
	if l.there == nil {
		l.there = []uint32{}
	}
	return l.there
}

// withKeys calls f with the keys of a page that is not coded, and those that
// the filter lets through, which are good until f returns.
func (l *leafScan) withKeys(p *parquet.Page, f func(k *key.Batch, hits []uint32) error) error {
	return l.leaf.fill(&l.prober.Keys, p, func(k *key.Batch) error {
		hits, err := l.prober.probeKeys(l.verifier != nil && !l.verifier.Filter())
		if err != nil {
			return err
		}
		return f(k, hits)
	})
}

// dictionaryDenies reports whether the chunk has a dictionary of which no entry
// passes, so that nothing coded by it needs to be decoded: unless somebody wants
// to count rows by key, or NULLs.
func (l *leafScan) dictionaryDenies(ctx context.Context, c *parquet.Chunk, group int) (none bool, err error) {
	l.dict = nil
	f, leaf := l.file.parquet().File(), l.leaf.values.Index()
	nulls := f.Metadata.RowGroups[group].Columns[leaf].MetaData.Statistics.NullCount
	if l.verifier != nil || f.Leaves[leaf].MaxDef > 0 && !(nulls.Valid && nulls.V == 0) {
		return false, nil
	}
	d, err := c.ReadDictionary(ctx)
	if err != nil || d == nil {
		return false, err
	}
	if err := l.probeDictionary(d); err != nil {
		return false, err
	}
	return !slices.Contains(l.entry, true) && l.bad == nil, nil
}

// probeDictionary probes each entry of a dictionary, unless that was done.
func (l *leafScan) probeDictionary(dict *parquet.Dictionary) error {
	if dict == l.dict || dict == nil { // without one, no page has an index
		return nil
	}
	l.dict, l.entry, l.bad = dict, zeroed(l.entry, dict.Len), nil
	if l.verifier != nil {
		l.uses = zeroed(l.uses, dict.Len)
	}
	return l.withKeys(l.asPage(), func(k *key.Batch, hits []uint32) error {
		for _, h := range l.verified(k, hits) {
			l.entry[k.Rows[h]] = true
		}
		if misfits := k.Misfits(); len(misfits) > 0 {
			l.bad = make([]bool, dict.Len)
			for _, e := range misfits {
				l.bad[e] = true
			}
		}
		return nil
	})
}

// asPage returns the dictionary's entries as if they were a page's values.
func (l *leafScan) asPage() *parquet.Page {
	return &parquet.Page{Values: l.dict.Len, NonNull: l.dict.Len, Plain: l.dict.Plain}
}

// countEntries tells the verifier how many rows have each entry of the
// dictionary.
func (l *leafScan) countEntries() error {
	if l.dict == nil || l.verifier == nil {
		return nil
	}
	return l.withKeys(l.asPage(), func(k *key.Batch, hits []uint32) error {
		k.Keep(func(e uint32) bool { return l.uses[e] > 0 })
		for i, e := range k.Rows { // of an entry that is no key, none are counted
			l.uses[i] = l.uses[e]
		}
		return l.verifier.Count(k, hits, l.verified(k, hits), l.uses[:len(k.Rows)])
	})
}

// recordScan is a matchScan of a key of any shape, by way of Arrow records.
type recordScan struct {
	file     *File
	from     *arrowparquet.Parquet // its reader
	match    Match
	prober   *Prober // nil before the first record
	columns  []int
	verifier Verifier
	rows     []uint32 // of the stretch
	found    []uint32
	members  []uint32
}

// keyBatches is how many record batches of keys what may be in flight would hold.
const keyBatches = 64

func newRecordScan(f *File, m Match, p *Prober, v Verifier) *recordScan {
	from := f.parquet()
	if f.inFlight > 0 {
		from = from.InBatches(max(f.inFlight/keyBatches, leastBatch))
	}
	return &recordScan{file: f, from: from, match: m, columns: p.Columns(), verifier: v}
}

func (r *recordScan) pruned() bool { return false }

func (r *recordScan) size() int64 { return int64(4 * (cap(r.rows) + cap(r.found) + cap(r.members))) }

func (r *recordScan) shed() { r.rows, r.found, r.members = nil, nil, nil }

func (r *recordScan) hits(ctx context.Context, s stretch) (_ []uint32, nulls int64, err error) {
	r.found, r.rows = r.found[:0], r.rows[:0]
	for row := s.lo; row < s.hi; row++ {
		r.rows = append(r.rows, uint32(row))
	}
	first := s.lo
	ctx = parquet.WithTurn(ctx, nil)
	for rec, err := range r.from.ReadKeys(ctx, s.group, r.columns, r.rows) {
		if err != nil {
			return nil, 0, err
		}
		n, err := r.record(rec, first)
		if err != nil {
			return nil, 0, inGroup(err, r.file, s.group)
		}
		nulls += n
		first += rec.NumRows()
	}
	return r.found, nulls, nil
}

// record appends the rows of a record that pass. The first one has the given
// number in the row group.
func (r *recordScan) record(rec arrow.Record, first int64) (nulls int64, err error) {
	if r.prober == nil {
		if r.prober, err = NewProber(r.file.Name, rec.Schema(), r.match); err != nil {
			return 0, err
		}
	}
	hits, err := r.prober.probe(rec, r.verifier != nil && !r.verifier.Filter())
	if err != nil {
		return 0, err
	}
	k := &r.prober.Keys
	if r.verifier != nil {
		r.members = r.verifier.Verify(k, append(r.members[:0], hits...))
		if err := r.verifier.Count(k, hits, r.members, nil); err != nil {
			return 0, err
		}
		hits = r.members
	}
	for _, h := range hits {
		r.found = append(r.found, uint32(first)+k.Rows[h])
	}
	return int64(k.Nulls()), nil
}
