package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/bloomjoin/bloomjoin/fault"
)

// This file decides which of an input's statistics and indexes hold for a copy of a
// chunk or a page, and checks them as far as that is possible without decoding
// values. What is in doubt is left out: it only saves readers work.

// statistics returns the statistics of the copy. Its bounds are in the given order;
// if that is undefined, it has none. Distinct counts are left out, because many
// writers estimate them.
func (k *chunkWalk) statistics(order valueOrder) (s Statistics) {
	in := &k.md.Statistics
	nulls := k.nulls
	if n := in.NullCount; nulls < 0 && n.Valid && n.V >= 0 && n.V <= k.md.NumValues && nullsBelieved(k.f.Metadata.CreatedBy) {
		nulls = n.V
	}
	if nulls >= 0 {
		s.NullCount = thrift.New(nulls)
	}
	b := k.chunkBounds(order)
	if b.lo == nil || nulls == k.md.NumValues {
		return s
	}
	lo, hi, wholeLo, wholeHi := order.within(b, maxChunkBound)
	if lo == nil {
		return s
	}
	s.MinValue, s.MaxValue = thrift.New(bytes.Clone(lo)), thrift.New(bytes.Clone(hi))
	if s.IsMinValueExact = in.IsMinValueExact; !wholeLo || len(lo) != len(in.MinValue.V) {
		s.IsMinValueExact = thrift.New(false)
	}
	if s.IsMaxValueExact = in.IsMaxValueExact; !wholeHi {
		s.IsMaxValueExact = thrift.New(false)
	}
	return s
}

// chunkBounds returns the bounds in the chunk's statistics, or none if they are
// missing or wrong in the given order.
func (c *Chunk) chunkBounds(order valueOrder) bounds {
	s := &c.md.Statistics
	if !s.MinValue.Valid || !s.MaxValue.Valid {
		return bounds{}
	}
	b := bounds{lo: present(s.MinValue.V), hi: present(s.MaxValue.V)}
	if !order.admits(b) {
		return bounds{}
	}
	return c.f.covering(b, order)
}

// covering returns bounds that hold empty values as well, if the file's writer may have
// left them out: the copy names another writer, whose bounds readers take at their word.
func (f *File) covering(b bounds, order valueOrder) bounds {
	if len(b.lo) > 0 && order.by == bytewise && order.width == 0 && !f.BoundsCoverEmpty() {
		b.lo = []byte{}
	}
	return b
}

// present returns b, never nil: an empty bound is a bound.
func present(b []byte) []byte {
	if b == nil {
		b = []byte{}
	}
	return b
}

// admits reports whether b has values that the order can compare, the smallest
// first.
func (o valueOrder) admits(b bounds) bool {
	fits := func(v []byte) bool {
		switch o.by {
		case booleans:
			return len(v) == 1 && v[0] <= 1
		case integers:
			return len(v) == o.width
		case floats:
			return len(v) == o.width && !isNaN(v)
		case bytewise:
			return o.width == 0 || len(v) == o.width
		case bigEndianInt:
			return len(v) > 0 && (o.width == 0 || len(v) == o.width)
		}
		return false
	}
	return fits(b.lo) && fits(b.hi) && o.compare(b.lo, b.hi) <= 0
}

// isNaN reports whether v is a float of 2, 4 or 8 bytes that is not a number.
func isNaN(v []byte) bool {
	switch len(v) {
	case 2:
		return binary.LittleEndian.Uint16(v)&math.MaxInt16 > 0x7c00
	case 4:
		return binary.LittleEndian.Uint32(v)&math.MaxInt32 > 0x7f800000
	}
	return binary.LittleEndian.Uint64(v)&math.MaxInt64 > 0x7ff0000000000000
}

// claim returns what the index says about page i, whose header is known: its bounds
// and its number of NULLs, -1 if not known. ok is false if that is impossible.
func (ci *ColumnIndex) claim(i int, p pageFacts, order valueOrder) (b bounds, nulls int64, ok bool) {
	nulls = p.nulls
	if ci.NullCounts != nil && ci.NullCounts[i] >= 0 {
		n := ci.NullCounts[i]
		if nulls >= 0 && n != nulls || n > p.entries {
			return b, nulls, false
		}
		nulls = n
	}
	if ci.Null[i] {
		return b, nulls, nulls == p.entries // parquet-mr also sets this for pages about which it knows nothing
	}
	b = bounds{lo: present(ci.Min[i]), hi: present(ci.Max[i])}
	ok = nulls < p.entries && order.admits(b)
	return b, nulls, ok && len(b.lo)+len(b.hi) > 0 // some writers store missing bounds as empty ones
}

// index returns the page index of the copy: the pages as they were walked, with the
// bounds of the input's column index if these are in the given order and possible.
// If rows of pages are not known, they are those of the input's offset index;
// without one, the copy has no index.
func (k *chunkWalk) index(order valueOrder) (x pageIndex, err error) {
	given, columns, err := k.indexes(order)
	if err != nil || given != nil && !k.fits(given) {
		given, columns = nil, nil
	}
	if err != nil && !unusable(err) {
		return x, err
	}
	if x.broken = columns == nil; k.unknown && given == nil {
		return x, nil
	}
	for i, p := range k.pages {
		if given != nil {
			p.row = given.Pages[i].FirstRow
		}
		var b bounds
		values := 1
		if columns != nil {
			var ok bool
			if b, p.nulls, ok = columns.claim(i, p.pageFacts, order); !ok {
				x.broken = true
			} else if columns.Null[i] {
				values = 0
			}
			b = k.f.covering(b, order)
		}
		x.add(p.at-k.pages[0].at, int(p.size), p.row, p.nulls, order, values, b)
	}
	if x.broken {
		x.columns = thriftColumnIndex{}
	}
	x.setOrder(order)
	return x, nil
}

// indexes returns the chunk's offset index and, if the order is defined, its column
// index; nil: there is none.
func (c *Chunk) indexes(order valueOrder) (x *OffsetIndex, columns *ColumnIndex, err error) {
	group, leaf := c.at.RowGroup-1, c.leaf.Index
	x, ok, err := c.f.OffsetIndex(group, leaf)
	if err != nil || !ok || order.by == unordered {
		return x, nil, err
	}
	columns, _, err = c.f.ColumnIndex(group, leaf, x)
	if err != nil && unusable(err) {
		columns, err = nil, nil
	}
	return x, columns, err
}

// fits reports whether the offset index lists exactly the pages that were walked.
func (k *chunkWalk) fits(x *OffsetIndex) bool {
	if len(x.Pages) != len(k.pages) {
		return false
	}
	for i, p := range k.pages {
		if g := x.Pages[i]; g.Offset != p.at || int64(g.Size) != p.size || !k.unknown && g.FirstRow != p.row {
			return false
		}
	}
	return true
}

// believedOrder returns the order of the bounds that the file has for the leaf, if
// it is the given one, and undefined if they are not to be believed.
func (f *File) believedOrder(l *Leaf, order valueOrder) valueOrder {
	if order != orderOf(l) || !f.BoundsBelieved(l) || l.isFloat() && !f.boundsCoverNaN() {
		return valueOrder{}
	}
	return order
}

// unusable reports whether err says that an optional part of a file is damaged or
// has an unknown form.
func unusable(err error) bool {
	return errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsupported)
}
