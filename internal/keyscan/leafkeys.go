package keyscan

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// leafKeys reads the keys of a column that is one leaf of a Parquet file and not
// repeated. It must not be used concurrently.
type leafKeys struct {
	file       *source.File
	columns    []keys.Column // the key's, for errors
	leaf       *arrowparquet.LeafKeys
	buf        *parquet.Buffers
	pruner     *prune.Pruner     // nil: every row is examined
	countNulls bool              // pages whose NULLs are unknown are read
	ids        bool              // a value that is not an ID is an error
	keys       *Keys             // handed on
	work       func(*Keys) error // receives the keys

	expected *narrowed // of the next range, if it was found before

	at     int      // the row group that the following belong to, counted from 1; 0: none
	inside rows.Set // rows of it that may have a member
	beside int64    // others that are known to have no key; -1: unknown

	apart  bool     // the row group cannot have a member
	ranges []uint32 // rows to examine
	there  []uint32 // entries of a page that have a value
	plain  []byte   // values of dictionary entries
	dict   *parquet.Dictionary
	uses   []uint32 // by entry of dict: rows
}

// prune makes the reader skip everything that cannot hold a member of the match's
// filter.
func (l *leafKeys) prune(m Predicate) (err error) {
	l.pruner, err = m.pruner(l.file)
	return err
}

// size returns the bytes of memory that are kept between row groups.
func (l *leafKeys) size() int64 {
	return int64(4*(cap(l.ranges)+cap(l.there)+cap(l.uses)) + cap(l.plain))
}

// shed releases that memory.
func (l *leafKeys) shed() { l.ranges, l.there, l.uses, l.plain, l.dict = nil, nil, nil, nil, nil }

// Number is the leaf's number in the file.
func (l *leafKeys) Number() int { return l.leaf.Values.Index() }

// chunk opens the leaf's column chunk for those of some rows of a range that may hold a
// member; nil: of all its rows. It returns nil if there are none. outside counts rows
// elsewhere in the row group that are known to have no key.
func (l *leafKeys) chunk(ctx context.Context, r tasks.Range, some []uint32) (c *parquet.Chunk, outside int64, err error) {
	n := l.expected
	if n == nil {
		if n, err = l.narrow(ctx, r, some != nil); err != nil {
			return nil, 0, err
		}
	}
	l.expected, l.apart = nil, n.none
	l.ranges = l.ranges[:0]
	switch {
	case some != nil && n.all:
		l.ranges = append(l.ranges, some...)
	case some != nil:
		l.ranges = n.spans.Of(l.ranges, some)
	case !n.all:
		l.ranges = n.spans.List(l.ranges)
	}
	if len(l.ranges) == 0 && (some != nil || !n.all) {
		n.release()
		return nil, n.nulls, nil
	}
	c = l.file.Parquet().File().ChunkIn(l.buf, r.Group, l.Number())
	if n.ahead != nil {
		c.Expect(n.ahead)
	}
	if len(l.ranges) > 0 {
		c.Select(l.ranges)
	}
	return c, n.nulls, nil
}

// prunedRows returns the rows of a row group that may hold a member, and how many of the
// others are known to have no key; -1: unknown.
func (l *leafKeys) prunedRows(ctx context.Context, group int) (_ rows.Set, nulls int64, err error) {
	if l.at != group+1 {
		l.at, l.inside, l.beside = 0, rows.Range(0, l.file.GroupRows(group)), 0
		if l.pruner != nil {
			if l.inside, l.beside, err = l.pruner.Rows(ctx, group); err != nil {
				return nil, 0, err
			}
		}
		if l.inside == nil {
			l.inside = rows.Set{}
		}
		l.at = group + 1
	}
	return l.inside, l.beside, nil
}

// narrow determines which rows of a range must be read; failing reports that some of them
// fail the file's condition. NULLs elsewhere are counted with the first rows of the row
// group.
func (l *leafKeys) narrow(ctx context.Context, r tasks.Range, failing bool) (*narrowed, error) {
	total := l.file.GroupRows(r.Group)
	ranges, nulls, err := l.prunedRows(ctx, r.Group)
	if err != nil {
		return nil, err
	}
	whole := r.Lo == 0 && r.Hi == total
	failing = failing || l.file.Partial() && !whole // so may rows elsewhere
	if l.countNulls && (nulls < 0 || nulls > 0 && failing) {
		ranges = rows.Range(0, total)
	}
	if nulls < 0 || r.Lo > 0 || failing {
		nulls = 0
	}
	n := &narrowed{none: len(ranges) == 0, nulls: nulls}
	if n.all = whole && ranges.All(total); !n.all {
		n.spans = ranges.And(r.Set(total))
	}
	return n, nil
}

// each calls fn with the pages of a row group's chunk that contain rows to examine.
func (l *leafKeys) each(ctx context.Context, group int, c *parquet.Chunk, fn func(p *parquet.Page) error) error {
	whole, done := len(l.ranges) == 0, 0
	for {
		p, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at := l.placeOf(p)
		if !whole {
			for int64(l.ranges[done]) < p.FirstRow { // in a page that was skipped
				done++
			}
			at.rows = l.ranges[done:]
			done += p.Values
		}
		l.keys.place = at
		if err := fn(p); err != nil {
			return source.InGroup(err, l.file, group)
		}
	}
}

// placeOf returns the place of a page whose entries are consecutive rows.
func (l *leafKeys) placeOf(p *parquet.Page) Position {
	at := Position{first: uint32(p.FirstRow)}
	if p.NonNull < p.Values {
		at.nulls, at.buf = p, &l.there
		at.full = uint8(l.file.Parquet().File().Leaves[l.Number()].MaxDef)
	}
	return at
}

// values passes on the key of every row, or of some rows.
func (l *leafKeys) values(ctx context.Context, r tasks.Range, some []uint32) (rows, nulls int64, err error) {
	rows = r.Rows(some)
	c, outside, err := l.chunk(ctx, r, some)
	if err != nil || c == nil {
		return rows, outside, err
	}
	defer l.buf.Rest()
	nulls = outside
	err = l.each(ctx, r.Group, c, func(p *parquet.Page) error {
		n, err := l.page(p, c.Dictionary())
		nulls += n
		return err
	})
	return rows, nulls, err
}

// firstPage passes on the keys of the first page of a row group.
func (l *leafKeys) firstPage(ctx context.Context, r tasks.Range, _ []uint32) (rows, nulls int64, err error) {
	defer l.buf.Rest()
	c := l.file.Parquet().File().ChunkIn(l.buf, r.Group, l.Number())
	p, err := c.Next(ctx)
	if errors.Is(err, io.EOF) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	nulls, err = l.page(p, c.Dictionary())
	return int64(p.Values), nulls, source.InGroup(err, l.file, r.Group)
}

// page passes on the keys of a page in steps, because a page may be large, and a
// few bytes of indices may represent any number of bytes.
func (l *leafKeys) page(p *parquet.Page, dict *parquet.Dictionary) (nulls int64, err error) {
	if p.NonNull == 0 || l.leaf.Bits() {
		return l.step(p)
	}
	indices, plain, width := p.Indices, p.Plain, l.leaf.Width()
	without := p.Values - p.NonNull
	for left := p.NonNull; left > 0; {
		var n int
		var some []byte
		if p.Coded {
			l.plain, n = dict.AppendValues(l.plain[:0], indices[:left], width, stepBytes)
			indices, some = indices[n:], l.plain
		} else {
			some, n = firstValues(plain, left, width)
			plain = plain[len(some):]
		}
		more, err := l.step(&parquet.Page{Number: p.Number, Values: n + without, NonNull: n, Plain: some})
		if err != nil {
			return 0, err
		}
		nulls += more
		left, without = left-n, 0
	}
	return nulls, nil
}

// stepBytes is the approximate number of bytes of keys that are passed on at once,
// small enough for the second-level cache.
const stepBytes = 256 << 10

// firstValues returns the bytes of the first of n PLAIN values: about stepBytes, or
// one value if that is larger. width is the size of a value, or 0 for byte arrays.
func firstValues(plain []byte, n, width int) (some []byte, values int) {
	if width > 0 {
		n = min(n, max(stepBytes/width, 1))
		return plain[:n*width], n
	}
	end := 0
	for values < n && end < stepBytes {
		end += 4 + int(binary.LittleEndian.Uint32(plain[end:]))
		values++
	}
	return plain[:end], values
}

// step passes on the keys of a page without dictionary indices.
func (l *leafKeys) step(p *parquet.Page) (nulls int64, err error) {
	err = l.leaf.Fill(l.keys.Batch, p, func(b *keys.Batch) error {
		if err := Fit(b, l.file.Name(), l.columns, l.ids); err != nil {
			return err
		}
		b.Len = p.Values
		nulls = int64(b.Nulls())
		return l.work(l.keys)
	})
	return nulls, err
}

// entries passes on the keys of dictionary pages once, with their number of rows,
// and those of other pages row by row.
func (l *leafKeys) entries(ctx context.Context, r tasks.Range, some []uint32) (rows, nulls int64, err error) {
	rows = r.Rows(some)
	c, outside, err := l.chunk(ctx, r, some)
	if err != nil || c == nil {
		return rows, outside, err
	}
	defer l.buf.Rest()
	l.dict, nulls = nil, outside
	err = l.each(ctx, r.Group, c, func(p *parquet.Page) error {
		if p.Coded {
			nulls += int64(p.Values - p.NonNull)
			l.tally(p, c.Dictionary())
			return nil
		}
		n, err := l.page(p, nil)
		nulls += n
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	misfits, err := l.tallied()
	return rows, nulls + misfits, source.InGroup(err, l.file, r.Group)
}

// tally counts the rows of a page by dictionary entry.
func (l *leafKeys) tally(p *parquet.Page, dict *parquet.Dictionary) {
	if dict != l.dict {
		l.dict, l.uses = dict, zeroed(l.uses, dict.Len)
	}
	for _, e := range p.Indices[:p.NonNull] {
		l.uses[e]++
	}
}

// tallied passes on the entries of the dictionary with their numbers of rows.
// misfits counts rows whose value does not fit its cast, if such values are NULL.
func (l *leafKeys) tallied() (misfits int64, err error) {
	if l.dict == nil {
		return 0, nil
	}
	err = l.leaf.Fill(l.keys.Batch, l.asPage(), func(b *keys.Batch) error {
		b.Keep(func(e uint32) bool { return l.uses[e] > 0 })
		if err := Fit(b, l.file.Name(), l.columns, l.ids); err != nil {
			return err
		}
		for _, e := range b.Misfits() {
			misfits += int64(l.uses[e])
		}
		for i, e := range b.Rows { // an entry that is not a key has no position
			l.uses[i] = l.uses[e]
		}
		l.keys.Times = l.uses[:len(b.Rows)]
		defer func() { l.keys.Times = nil }()
		return l.work(l.keys)
	})
	return misfits, err
}

// asPage returns the dictionary's entries as if they were the values of a page.
func (l *leafKeys) asPage() *parquet.Page {
	return &parquet.Page{Values: l.dict.Len, NonNull: l.dict.Len, Plain: l.dict.Plain}
}
