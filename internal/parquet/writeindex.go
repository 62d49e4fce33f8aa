package parquet

import (
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// maxIndexBound is the number of bytes of a bound in a column index. Longer byte arrays
// are shortened.
const maxIndexBound = 64

// pageIndex holds the contents of a chunk's column index and offset index. Without
// pages, there is neither.
type pageIndex struct {
	pages   []format.PageLocation // offsets from the first data page until shift is called
	columns thriftColumnIndex
	broken  bool // some page's bounds are unknown
	unsure  bool // some page's number of NULLs is unknown
}

// add adds a page with its size in bytes and its first row. nulls is -1 if it is
// not known.
func (x *pageIndex) add(offset int64, size int, row int64, nulls int64, by meta.Order, values int, b meta.Bounds) {
	x.pages = append(x.pages, format.PageLocation{Offset: offset, CompressedPageSize: int32(size), FirstRowIndex: row})
	lo, hi, _, _ := by.Shorten(b, maxIndexBound)
	if !by.Defined() || values > 0 && lo == nil {
		x.broken = true
	}
	if x.broken {
		return
	}
	x.unsure = x.unsure || nulls < 0
	c := &x.columns
	c.NullPages = append(c.NullPages, values == 0)
	c.NullCounts = append(c.NullCounts, nulls)
	c.MinValues = append(c.MinValues, append([]byte{}, lo...))
	c.MaxValues = append(c.MaxValues, append([]byte{}, hi...))
}

// bounded reports whether the chunk gets a column index.
func (x *pageIndex) bounded() bool { return !x.broken && len(x.pages) > 0 }

// encodedIndex is a chunk's column index and offset index in the form in which they
// are written, which takes much less memory. Each may be nil: there is none.
type encodedIndex struct{ bounds, offsets []byte }

func (x *pageIndex) encoded() (e encodedIndex, err error) {
	if x.unsure {
		x.columns.NullCounts = nil
	}
	if x.bounded() {
		if e.bounds, err = thrift.Marshal(new(thrift.CompactProtocol), &x.columns); err != nil {
			return e, fmt.Errorf("encoding a column index: %w", err)
		}
	}
	if len(x.pages) > 0 {
		if e.offsets, err = thrift.Marshal(new(thrift.CompactProtocol), &format.OffsetIndex{PageLocations: x.pages}); err != nil {
			return e, fmt.Errorf("encoding an offset index: %w", err)
		}
	}
	return e, nil
}

// setOrder records whether the pages' bounds ascend or descend, ignoring pages of
// NULLs.
func (x *pageIndex) setOrder(by meta.Order) {
	up, down := true, true
	last := -1
	c := &x.columns
	for i, null := range c.NullPages {
		if null {
			continue
		}
		if last >= 0 {
			lo, hi := by.Compare(c.MinValues[last], c.MinValues[i]), by.Compare(c.MaxValues[last], c.MaxValues[i])
			up = up && lo <= 0 && hi <= 0
			down = down && lo >= 0 && hi >= 0
		}
		last = i
	}
	switch {
	case up:
		c.BoundaryOrder = format.Ascending
	case down:
		c.BoundaryOrder = format.Descending
	default:
		c.BoundaryOrder = format.Unordered
	}
}
