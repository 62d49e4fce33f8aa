package parquet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Scans skip rows by what a file says of its values. This file compares that with the
// values. Not compared are claims that no scan relies on: the deprecated bounds min and
// max, size statistics, numbers of distinct values, and lists of encodings.

// What a false claim means for those who rely on it.
const (
	falseNulls  = "conditions such as IS NULL may lose rows"
	falseBounds = "conditions and keys on the column may lose rows"
	falsePages  = "scans that skip pages may lose rows"
)

// ofHeader are the statistics in a page's header.
const ofHeader = "the header's"

// audit compares the claims about a column chunk with its pages.
type audit struct {
	*Chunk
	leaf    *meta.Leaf // as pages and statistics have it
	order   meta.Order // undefined: bounds are not judged
	index   *OffsetIndex
	columns *ColumnIndex
	bloom   *bloom.Filter
	hash    bloom.Hash
	note    func(error)

	listed int // pages of the offset index that were seen
	total  content
	used   []bool // by dictionary entry, in a page
	plain  []byte
}

// content is what a page or chunk holds.
type content struct {
	nulls  int64
	unset  int64 // NULLs of the leaf itself, not of a list around it
	values int64
	meta.Bounds
}

// pageClaims is the part of a page header that decoding does not use.
type pageClaims struct {
	V1 struct {
		Statistics meta.Statistics `thrift:"5,optional"`
	} `thrift:"5,optional"`
	V2 thrift.Null[struct {
		NumRows    int32           `thrift:"3,required"`
		Statistics meta.Statistics `thrift:"8,optional"`
	}] `thrift:"8,optional"`
}

// Audit decodes a column chunk and compares its values with its statistics, those in its page
// headers, its page index and its Bloom filter. It returns the first difference. Those that
// scans allow for, because programs are known to write them, are passed to note instead.
// rowGroup and leaf count from 0. It is safe for concurrent use.
func (f *File) Audit(ctx context.Context, rowGroup, leaf int, note func(error)) (err error) {
	a := audit{Chunk: f.Chunk(rowGroup, leaf), leaf: &f.Leaves[leaf], note: note, hash: bloom.Hash{ID: bloom.XXH64}}
	defer a.Close()
	defer a.recovered(&err)
	if f.Metadata.KnownOrder(a.leaf) {
		a.order = f.Orders()[leaf]
	}
	a.alone, a.header = true, []byte{}
	if err := a.open(); err != nil {
		return err
	}
	for {
		p, err := a.Next(ctx)
		if errors.Is(err, io.EOF) {
			return a.whole()
		}
		if err == nil {
			err = a.page(p)
		}
		if err != nil {
			return err
		}
	}
}

// open reads the page index and the Bloom filter.
func (a *audit) open() error {
	group, leaf := a.at.RowGroup-1, a.leaf.Index
	x, ok, err := a.f.OffsetIndex(group, leaf)
	if a.index = x; err == nil && ok {
		a.columns, _, err = a.f.ColumnIndex(group, leaf, x)
	}
	if err := a.unread(err); err != nil {
		return err
	}
	bits, ok, err := a.f.BloomFilter(group, leaf)
	if err == nil && ok {
		a.bloom, err = bloom.View(bloom.Params{Geometry: bloom.Split256, Hash: a.hash, Blocks: uint64(len(bits)) / bloomBlock}, bits)
	}
	return a.unread(err)
}

// unread passes on an error, but notes what scans do without because it is not supported.
func (a *audit) unread(err error) error {
	if err == nil || !unusable(err) || errors.Is(err, fault.ErrCorrupt) {
		return err
	}
	a.note(fmt.Errorf("%w; it is not used", err))
	return nil
}

// differs returns an error for a claim that scans rely on, and notes others.
func (a *audit) differs(relied bool, page int, what string, want, got any, means string) error {
	at := a.at
	at.Page = page
	if relied {
		return faults.Wanted(faults.Corrupt(at, "%s", what), fmt.Sprintf("%v, as decoded", want), got).WithHint("%s; write the file again", means)
	}
	a.note(fmt.Errorf("%v: %s: want %v, as decoded, got %v; scans do not rely on it", at, what, want, got))
	return nil
}

// page compares the claims about a page.
func (a *audit) page(p *Page) error {
	h, err := a.hold(p)
	if err != nil {
		return err
	}
	var claims pageClaims
	if _, err := meta.Decode(a.header, &claims); err != nil {
		return a.headerFault(err)
	}
	s, v2 := &claims.V1.Statistics, &claims.V2
	if v2.Valid {
		s = &v2.V.Statistics
		if n := v2.V.NumRows; int(n) != p.Rows {
			relied := !a.f.Metadata.FalseRows() && int(n) != p.Values
			if err := a.differs(relied, p.Number, "the header's rows", p.Rows, n, falsePages); err != nil {
				return err
			}
		}
	}
	if a.wide != nil {
		a.wide.statistics(s)
	}
	if err := a.statistics(p.Number, ofHeader, s, &h); err != nil || a.index == nil {
		return err
	}
	i, ok := slices.BinarySearchFunc(a.index.Pages, p.Offset, func(p PageLocation, at int64) int { return cmp.Compare(p.Offset, at) })
	if is := (PageLocation{p.Offset, int32(a.pos - p.Offset), p.FirstRow}); !ok || a.index.Pages[i] != is {
		i = min(i, len(a.index.Pages)-1)
		return a.differs(true, p.Number, "the offset index's offset, size and first row", is, a.index.Pages[i], falsePages)
	}
	if a.listed++; a.columns == nil {
		return nil
	}
	return a.pageIndex(i, p.Number, &h)
}

// pageIndex compares page i of the column index with what the page holds.
func (a *audit) pageIndex(i, page int, h *content) error {
	c := a.columns
	nulls := int64(-1)
	if c.NullCounts != nil {
		nulls = c.NullCounts[i]
	}
	if null := h.values == 0; c.Null[i] != null {
		relied := !c.Null[i] || nulls == h.nulls+h.values // parquet-mr also sets it for pages about which it knows nothing
		if err := a.differs(relied, page, "the column index's NULL page", null, c.Null[i], falseNulls); err != nil {
			return err
		}
	}
	s := meta.Statistics{NullCount: thrift.Null[int64]{V: nulls, Valid: nulls >= 0}}
	if !c.Null[i] && len(c.Min[i])+len(c.Max[i]) > 0 { // some writers store missing bounds as empty ones
		s.MinValue, s.MaxValue = thrift.New(c.Min[i]), thrift.New(c.Max[i])
	}
	return a.statistics(page, "the column index's", &s, h)
}

// whole compares the claims about the chunk after its last page.
func (a *audit) whole() error {
	if a.index != nil && a.listed < len(a.index.Pages) {
		return a.differs(true, 0, "the offset index's pages", a.listed, len(a.index.Pages), falsePages)
	}
	if c := a.columns; c != nil && a.order.Defined() && c.Boundaries != format.Unordered {
		var last meta.Bounds
		for i := range c.Null {
			b := meta.Bounds{Lo: c.Min[i], Hi: c.Max[i]}
			if c.Null[i] || !a.order.Admits(b) {
				continue
			}
			first, next := last, b
			if last = b; c.Boundaries == format.Descending {
				first, next = next, first
			}
			if first.Lo != nil && next.Lo != nil && max(a.order.Compare(first.Lo, next.Lo), a.order.Compare(first.Hi, next.Hi)) > 0 {
				return a.differs(a.f.BoundsBelieved(a.leaf), i+1, "the column index's order of pages", format.Unordered, c.Boundaries, falsePages)
			}
		}
	}
	return a.statistics(0, "the chunk's", &a.md.Statistics, &a.total)
}

// statistics compares statistics with what a page (0: the chunk) holds.
func (a *audit) statistics(page int, whose string, s *meta.Statistics, h *content) error {
	m, n := a.f.Metadata, s.NullCount
	if n.Valid && n.V != h.nulls && (a.leaf.MaxRep == 0 || n.V != h.unset) { // writers differ in what they count for lists
		relied := m.NullsBelieved() && whose != ofHeader // which is copied as it is stored, from whatever writer
		if err := a.differs(relied, page, whose+" number of NULLs", h.nulls, n.V, falseNulls); err != nil {
			return err
		}
	}
	if !a.order.Defined() || h.Lo == nil || h.Broken {
		return nil
	}
	b := h.Bounds // also for a bound that is missing
	if s.MinValue.Valid {
		b.Lo = present(s.MinValue.V)
	}
	if s.MaxValue.Valid {
		b.Hi = present(s.MaxValue.V)
	}
	relied := a.f.BoundsBelieved(a.leaf)
	differs := func(what, means string) error {
		return a.differs(relied, page, whose+what, a.order.Text(h.Bounds), a.order.Text(b), means)
	}
	if !a.order.Admits(b) {
		if a.leaf.IsFloat() && len(b.Lo) == len(b.Hi) {
			return nil // NaN, which readers must ignore
		}
		return differs(" bounds", falseBounds)
	}
	b = a.order.Widen(b)
	lo, hi := a.order.Compare(b.Lo, h.Lo), a.order.Compare(b.Hi, h.Hi)
	switch relied = relied && (lo <= 0 || len(h.Lo) > 0 || !a.order.ByteArrays() || m.BoundsCoverEmpty()); {
	case lo > 0 || hi < 0:
		return differs(" bounds", falseBounds)
	case lo < 0 && s.IsMinValueExact.V || hi > 0 && s.IsMaxValueExact.V:
		return differs(" exact bounds", "answers taken from them are wrong")
	}
	return nil
}

// hold returns what a page holds, and looks its values up in the Bloom filter.
func (a *audit) hold(p *Page) (h content, err error) {
	h = content{values: int64(p.NonNull), nulls: int64(p.Values - p.NonNull)}
	if p.Def != nil {
		h.unset = int64(enc.CountLevels(p.Def, uint8(a.leaf.MaxDef-1)))
	}
	plain, n := p.Plain, p.NonNull
	if p.Coded {
		plain, n = a.entries(p)
	}
	if a.bloom != nil && a.leaf.Type != format.Boolean {
		if err := a.lookUp(p.Number, plain); err != nil {
			return h, err
		}
	}
	if a.leaf.IsFloat() {
		plain = meta.WithoutNaN(plain, a.leaf.Width())
		n = len(plain) / a.leaf.Width()
	}
	if h.Bounds, err = a.order.BoundsOf(plain, n); err != nil {
		return h, a.corrupt(err, "the page's values do not decode")
	}
	t := &a.total
	t.values, t.nulls, t.unset = t.values+h.values, t.nulls+h.nulls, t.unset+h.unset
	t.Add(a.order, h.Bounds)
	return h, nil
}

// entries returns the dictionary entries that a page uses, each once.
func (a *audit) entries(p *Page) (plain []byte, n int) {
	if a.dict == nil {
		return nil, 0
	}
	a.used = append(a.used[:0], make([]bool, a.dict.Len)...)
	var some []uint32
	for _, e := range p.Indices[:p.NonNull] {
		if !a.used[e] {
			a.used[e], some = true, append(some, e)
		}
	}
	a.plain, n = a.dict.AppendValues(a.plain[:0], some, a.leaf.Width(), math.MaxInt)
	return a.plain, n
}

// lookUp returns an error if the Bloom filter lacks one of the values.
func (a *audit) lookUp(page int, plain []byte) (err error) {
	for pos := 0; pos < len(plain); {
		v := plain[pos:min(pos+a.leaf.Width(), len(plain))]
		next := pos + len(v)
		if a.leaf.Type == format.ByteArray {
			if v, next, err = enc.ByteArrayAt(plain, pos); err != nil {
				return a.corrupt(err, "the page's values do not decode")
			}
		}
		if !a.bloom.Contains(a.hash.Sum(v)) {
			return a.differs(a.f.Metadata.BloomBelieved(a.leaf), page, "the Bloom filter", "every value", "one that it lacks", "lookups of keys may lose rows")
		}
		pos = next
	}
	return nil
}
