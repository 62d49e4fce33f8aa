package keyscan

import (
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// LeafScan is a matchScan for a key that is one leaf, not repeated. It probes the
// values of each page, and a dictionary only once.
type LeafScan struct {
	leafKeys
	index       []int // the leaf, by its index at each level of the schema
	check       Check
	counts      bool // check counts keys, those of a dictionary after its pages
	stats       *Stats
	nullMisfits bool // a value that does not fit its cast is a NULL

	pairs   bool     // the check sets Keys.Entries
	entry   []bool   // by entry of dict: may be a member
	partner []uint32 // by entry of dict: of Keys.Entries, in a scan with pairs
	bad     []bool   // by entry of dict: does not fit its cast; nil: all do
	nulls   int64    // examined rows of the range without a key
	found   []uint32
	of      []uint32 // in a scan with pairs: an entry for each of found
}

// goOn makes it one for another file of the same schema.
func (l *LeafScan) goOn(f *source.File, m Predicate) error {
	last := l.file.Parquet().File()
	l.file = f
	l.leaf.Values, _ = f.Parquet().Leaf(l.index)
	l.expected, l.at, l.dict, l.bad = nil, 0, nil, nil
	if of := f.Parquet().File(); of.Metadata.CreatedBy == last.Metadata.CreatedBy { // which says whether statistics are believed
		l.pruner = l.pruner.Of(of, f.Doubt)
		return nil
	}
	return l.prune(m)
}

func (l *LeafScan) noHits() { l.found, l.of, l.apart = l.found[:0], l.of[:0], true }

func (l *LeafScan) pruned() bool { return l.apart }

func (l *LeafScan) within(ctx context.Context, group int) (rows.Set, error) {
	ranges, _, err := l.prunedRows(ctx, group)
	return ranges, err
}

func (l *LeafScan) compressedKeyBytes(group int) (bytes int64, ok bool) {
	f := l.file.Parquet().File()
	return f.Metadata.RowGroups[group].Columns[l.Number()].MetaData.TotalCompressedSize, f.Nulls(group, l.Number()) == 0
}

func (l *LeafScan) entries() []uint32 { return l.of }

func (l *LeafScan) size() int64 {
	return l.leafKeys.size() + int64(cap(l.entry)+4*(cap(l.found)+cap(l.partner)+cap(l.of)))
}

func (l *LeafScan) shed() {
	l.leafKeys.shed()
	l.entry, l.partner, l.found, l.of = nil, nil, nil, nil
}

func (l *LeafScan) hits(ctx context.Context, r tasks.Range, some []uint32) (_ []uint32, nulls int64, err error) {
	l.found, l.of, l.nulls, l.dict = l.found[:0], l.of[:0], 0, nil
	l.keys.Piece = source.Piece{File: l.file, Lo: r.Group, Hi: r.Group + 1}
	c, outside, err := l.chunk(ctx, r, some)
	if err != nil || c == nil {
		return nil, outside, err
	}
	defer l.buf.Rest()
	if none, err := l.dictionaryDenies(ctx, c, r.Group); err != nil {
		return nil, 0, err
	} else if none {
		c.SkipCoded()
	}
	err = l.each(ctx, r.Group, c, func(p *parquet.Page) error {
		l.nulls += int64(p.Values - p.NonNull)
		return l.match(p, c.Dictionary())
	})
	if err == nil && l.counts {
		_, err = l.tallied() // misfits have been counted already
	}
	if err != nil {
		return nil, 0, err
	}
	seen, skipped := c.Pages()
	l.stats.Pages.Add(int64(seen))
	l.stats.PagesSkipped.Add(int64(skipped))
	return l.found, l.nulls + outside, nil
}

// match appends the rows of a page that pass.
func (l *LeafScan) match(p *parquet.Page, dict *parquet.Dictionary) error {
	at := &l.keys.place
	at.list()
	if !p.Coded {
		return l.matchPlain(p)
	}
	if err := l.probeDictionary(dict); err != nil {
		return err
	}
	indices := p.Indices[:p.NonNull]
	if l.bad != nil {
		if err := l.misfits(indices); err != nil {
			return err
		}
	}
	for i, e := range indices {
		if l.entry[e] {
			l.found = append(l.found, at.row(uint32(i)))
		}
	}
	if l.pairs {
		for _, e := range indices {
			if l.entry[e] {
				l.of = append(l.of, l.partner[e])
			}
		}
	}
	if l.counts {
		l.tally(p, dict)
	}
	return nil
}

// matchPlain is match for a page without dictionary indices.
func (l *LeafScan) matchPlain(p *parquet.Page) error {
	return l.leaf.Fill(l.keys.Batch, p, func(b *keys.Batch) error {
		if err := Fit(b, l.file.Name(), l.columns, false); err != nil {
			return err
		}
		l.nulls += int64(len(b.Misfits()))
		members, err := l.check(l.keys)
		for _, m := range members {
			l.found = append(l.found, l.keys.place.row(b.Rows[m]))
		}
		if l.pairs {
			l.of = append(l.of, l.keys.Entries[:len(members)]...)
		}
		return err
	})
}

// misfits returns an error if a dictionary entry at indices does not fit its cast
// or, if nullMisfits is set, counts such entries as NULLs.
func (l *LeafScan) misfits(indices []uint32) error {
	for _, e := range indices {
		switch {
		case !l.bad[e]:
		case l.nullMisfits:
			l.nulls++
		default:
			return keys.Misfit(fault.At{File: l.file.Name()}, l.columns, slices.Contains(l.bad, false))
		}
	}
	return nil
}

// dictionaryDenies reports whether the chunk has a dictionary without an entry that
// passes, so that its indices need not be decoded. It returns false if rows are
// counted by key, or if NULLs must be counted.
func (l *LeafScan) dictionaryDenies(ctx context.Context, c *parquet.Chunk, group int) (none bool, err error) {
	f, leaf := l.file.Parquet().File(), l.Number()
	switch {
	case l.counts || f.Nulls(group, leaf) != 0:
		return false, nil
	case f.Remote() && f.LeavesDictionary(group, leaf): // some pages may do without
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

// probeDictionary probes each entry of a dictionary, unless it has done so before.
// The entries have no rows yet.
func (l *LeafScan) probeDictionary(dict *parquet.Dictionary) error {
	if dict == l.dict || dict == nil { // without one, no page has an index
		return nil
	}
	l.dict, l.entry, l.bad = dict, zeroed(l.entry, dict.Len), nil
	if l.counts {
		l.uses = zeroed(l.uses, dict.Len)
	}
	if l.pairs {
		l.partner = zeroed(l.partner, dict.Len)
	}
	return l.leaf.Fill(l.keys.Batch, l.asPage(), func(b *keys.Batch) error {
		if l.counts {
			l.keys.Times = l.uses[:len(b.Rows)]
			defer func() { l.keys.Times = nil }()
		}
		members, err := l.check(l.keys)
		for _, m := range members {
			l.entry[b.Rows[m]] = true
		}
		if l.pairs {
			for i, m := range members {
				l.partner[b.Rows[m]] = l.keys.Entries[i]
			}
		}
		if misfits := b.Misfits(); len(misfits) > 0 {
			l.bad = make([]bool, dict.Len)
			for _, e := range misfits {
				l.bad[e] = true
			}
		}
		return err
	})
}
