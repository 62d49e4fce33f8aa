package prune

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/rows"
)

// column is a key column that rows can be pruned by.
type column struct {
	leaf  *meta.Leaf
	order order
	set   *exact.Set // the members; nil if only their bounds are known
	bloom bool       // Parquet's Bloom filters of the leaf are reliable
}

// newColumn returns how a key column of a class can be pruned if the members are of
// class of. ok is false if it cannot.
func newColumn(f *parquet.File, l *meta.Leaf, class, of keys.Class, m members) (p column, ok bool) {
	if !f.BoundsBelieved(l) {
		return p, false
	}
	p = column{leaf: l}
	if class == of { // else the leaf stores the members differently
		p.set, p.bloom = m.set, f.Metadata.BloomBelieved(l)
	}
	p.order, ok = newOrder(l, class, of, m)
	return p, ok
}

// rows returns the rows of a row group in which the column may have a member.
func (p *column) rows(g *rowGroup) (rows.Set, error) {
	st := &g.file.Metadata.RowGroups[g.group].Columns[p.leaf.Index].MetaData.Statistics
	least, most := boundOf(st.MinValue), boundOf(st.MaxValue)
	if p.leaf.MaxDef > 0 && least == nil && most == nil && g.file.Nulls(g.group, p.leaf.Index) == g.rows {
		return nil, nil // NULLs only
	}
	if p.order.apart(least, most, p.set) {
		return nil, nil
	}
	if p.set == nil && p.order.covers(least, most) {
		return rows.Range(0, g.rows), nil // so are its pages: no need to read their index
	}
	ranges, err := p.pages(g, p.set)
	if err != nil || len(ranges) == 0 {
		return nil, err
	}
	found, ok, err := p.found(g, least, most)
	if err != nil || !ok {
		return ranges, err
	}
	if found.Len() == 0 {
		return nil, nil
	}
	return p.pages(g, found)
}

// boundOf returns a bound from statistics, or nil if there is none.
func boundOf(b thrift.Null[[]byte]) []byte {
	if !b.Valid {
		return nil
	}
	return present(b.V)
}

// present returns a bound that exists, as a non-nil slice even if it is empty.
func present(b []byte) []byte {
	if b == nil {
		b = []byte{}
	}
	return b
}

// pages returns the pages in which the column may have a member of set or, if set
// is nil, a value between the members' bounds. It returns all rows if there is no
// page index.
func (p *column) pages(g *rowGroup, set *exact.Set) (rows.Set, error) {
	x, err := g.pages(p.leaf.Index)
	if err != nil {
		return nil, err
	}
	if x.columns == nil {
		return rows.Range(0, g.rows), nil
	}
	var ranges rows.Set
	for i, page := range x.offsets.Pages {
		if !p.pageApart(x, i, set) {
			ranges = append(ranges, [2]int64{page.FirstRow, x.offsets.End(i)})
		}
	}
	return slim(ranges), nil
}

// pageApart reports whether page i is certain to have no member. It does not rely
// on an order of the pages.
func (p *column) pageApart(x *pageIndex, i int, set *exact.Set) bool {
	c := x.columns
	if c.Null[i] {
		// parquet-mr also sets this for pages about which it knows nothing; their
		// number of NULLs is missing or wrong.
		return p.leaf.MaxDef > 0 && c.NullCounts != nil && c.NullCounts[i] == x.offsets.End(i)-x.offsets.Pages[i].FirstRow
	}
	least, most := c.Min[i], c.Max[i]
	if len(least) == 0 && len(most) == 0 {
		return false // some writers store missing bounds as empty ones
	}
	return p.order.apart(present(least), present(most), set)
}

const (
	// maxSought is the maximum number of members of an exact set that are looked up
	// in a column chunk's Bloom filter.
	maxSought = 4096
	// bloomShare limits the size of a Bloom filter that is worth reading: the row
	// group must be at least this many times as large.
	bloomShare = 4
)

// found returns the members from least to most (nil: no bound) that Parquet's own
// Bloom filter of the column chunk may contain. ok is false if it was not probed.
func (p *column) found(g *rowGroup, least, most []byte) (_ *exact.Set, ok bool, err error) {
	if p.set == nil || !p.bloom || !worthReading(g, p.leaf.Index) {
		return nil, false, nil
	}
	o := &p.order
	lo, hi, _ := o.clip(least, most)
	sought, few := p.set.Within(o.integer(lo), o.integer(hi), o.signed, maxSought)
	if !few {
		return nil, false, nil
	}
	bits, ok, err := g.file.BloomFilter(g.group, p.leaf.Index)
	if errors.Is(err, fault.ErrUnsupported) {
		return nil, false, nil
	}
	if errors.Is(err, fault.ErrCorrupt) { // the filter only saves reading pages, which are checked by themselves
		if g.doubt != nil {
			g.doubt(fmt.Errorf("%w; the Bloom filter is not used, the column's pages are read", err))
		}
		return nil, false, nil
	}
	if err != nil || !ok {
		return nil, false, err
	}
	hash := bloom.Hash{ID: bloom.XXH64}
	filter, err := bloom.View(bloom.Params{
		Geometry: bloom.Split256, Hash: hash, Blocks: uint64(len(bits)) / bloom.Split256.BlockBytes(),
	}, bits)
	if err != nil {
		return nil, false, nil // the filter cannot be viewed on this machine
	}
	var kept []uint64
	var plain [8]byte
	for _, v := range sought {
		binary.LittleEndian.PutUint64(plain[:], v)
		if filter.Contains(hash.Sum(plain[:o.size])) {
			kept = append(kept, v)
		}
	}
	found := exact.New()
	found.Add(kept, o.signed)
	return found, true, nil
}

// worthReading reports whether, according to the footer, the chunk has a Bloom
// filter that is small compared to the row group.
func worthReading(g *rowGroup, leaf int) bool {
	md := &g.file.Metadata.RowGroups[g.group].Columns[leaf].MetaData
	return md.BloomFilterOffset > 0 &&
		int64(md.BloomFilterLength) <= g.file.RowGroups[g.group].CompressedBytes/bloomShare
}
