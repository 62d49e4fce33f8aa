package prune

import (
	"bytes"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Facts are the trusted statistics of the values of a leaf in a row group or page.
type Facts struct {
	// Least and Most are inclusive bounds of the values other than NULL, in stored
	// form. Both are nil if they are unknown.
	Least, Most []byte
	// Empty reports whether values may be empty byte arrays even if the bounds exclude
	// them: several writers ignore these when they compute the minimum.
	Empty bool
	// NaN reports whether values may be NaN, which is never within the bounds.
	NaN bool
	// NoNulls: surely no value is NULL. AllNulls: surely every value is.
	NoNulls, AllNulls bool
}

// Statistics reads the facts about one leaf of a file that is not repeated. It may be
// used concurrently.
type Statistics struct {
	file     *parquet.File
	leaf     *meta.Leaf
	order    order
	ordered  bool // bounds are in a known order
	believed bool // the writer is trusted
}

// NewStatistics returns the statistics of a leaf whose values have the given Arrow
// type.
func NewStatistics(f *parquet.File, leaf int, t arrow.DataType) *Statistics {
	s := &Statistics{file: f, leaf: &f.Leaves[leaf]}
	s.believed = f.BoundsBelieved(s.leaf)
	if class, err := keys.ClassOf(t); err == nil && s.believed {
		s.order, s.ordered = leafOrder(s.leaf, class)
	}
	return s
}

// leafOrder returns the order in which statistics compare a leaf's values. ok is false
// if it is not defined.
func leafOrder(l *meta.Leaf, class keys.Class) (o order, ok bool) {
	switch {
	case class == keys.Float:
		o.number, o.float, o.size = true, true, floatSize(l)
		return o, o.size > 0
	case keys.OrderOf(class) == keys.ByBytes:
		return newByteOrder(l, class, members{lo: []byte{0}})
	case keys.OrderOf(class) == keys.ByNumber:
		_, ok = o.numbers(l, class)
	}
	return o, ok
}

// Sized reports whether values differ in size, so that each is stored after its size.
func (s *Statistics) Sized() bool { return s.leaf.Type == format.ByteArray }

// Group returns the facts about a row group.
func (s *Statistics) Group(g int) Facts {
	rows := s.file.RowGroups[g].Rows
	st := &s.file.Metadata.RowGroups[g].Columns[s.leaf.Index].MetaData.Statistics
	f := s.bounded(boundOf(st.MinValue), boundOf(st.MaxValue))
	if s.believed {
		s.counted(&f, s.file.Nulls(g, s.leaf.Index), rows)
	}
	return f
}

// bounded returns the facts that follow from bounds; those about NULLs are not set.
func (s *Statistics) bounded(least, most []byte) Facts {
	f := Facts{NoNulls: s.leaf.MaxDef == 0}
	if !s.ordered || least == nil || most == nil || s.order.size == 0 && meta.OpenEnded(most) {
		return f
	}
	a, ok := s.order.bound(least)
	b, fine := s.order.bound(most)
	if !ok || !fine || bytes.Compare(a, b) > 0 { // else the writer used another order
		return f
	}
	f.Least, f.Most = least, most
	f.Empty = s.order.size == 0 && len(least) > 0 && !s.file.Constant(s.leaf.Index)
	f.NaN = s.order.float
	return f
}

// counted adds to f that nulls of rows are NULL. It ignores numbers outside 0 to rows.
func (s *Statistics) counted(f *Facts, nulls, rows int64) {
	switch {
	case rows == 0 || s.leaf.MaxDef == 0:
	case nulls == 0:
		f.NoNulls = true
	case nulls == rows && f.Least == nil:
		f.AllNulls = true
	}
}

// Pages returns the facts about the pages of a row group, with the rows at which they
// begin. It reads only the page index, and returns nil if that is missing or unusable.
func (s *Statistics) Pages(g int) (x *parquet.OffsetIndex, pages []Facts, err error) {
	if !s.believed {
		return nil, nil, nil
	}
	x, ok, err := s.file.OffsetIndex(g, s.leaf.Index)
	var c *parquet.ColumnIndex
	if ok && err == nil {
		c, ok, err = s.file.ColumnIndex(g, s.leaf.Index, x)
	}
	if err != nil || !ok {
		if errors.Is(err, fault.ErrUnsupported) {
			err = nil
		}
		return nil, nil, err
	}
	pages = make([]Facts, len(x.Pages))
	for i, page := range x.Pages {
		rows := x.End(i) - page.FirstRow
		var f Facts
		switch {
		case c.Null[i], len(c.Min[i]) == 0 && len(c.Max[i]) == 0: // missing bounds, see pageApart
			f = s.bounded(nil, nil)
		default:
			f = s.bounded(present(c.Min[i]), present(c.Max[i]))
		}
		if c.NullCounts != nil && (!c.Null[i] || c.NullCounts[i] == rows) {
			s.counted(&f, c.NullCounts[i], rows)
		}
		pages[i] = f
	}
	return x, pages, nil
}
