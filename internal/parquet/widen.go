package parquet

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// A view may give a leaf a wider type than the file stores. A Chunk decodes such a leaf as it is
// stored, and converts its pages and dictionary before it returns them. The statistics of its
// chunks are converted with the footer, its column indexes when they are read.

// widening converts values of a leaf to a wider type.
type widening struct {
	from meta.Leaf // with the type that is stored, else as in the view
	to   *meta.Leaf
}

// newWidening returns the conversion from a stored leaf to one of a view. It is nil if values are
// stored alike.
func newWidening(from, to *meta.Leaf) (*widening, error) {
	if from.Type == to.Type && from.TypeLength == to.TypeLength {
		return nil, nil
	}
	a, b := from.Logical, to.Logical
	decimals := a.Kind == meta.Decimal && b.Kind == meta.Decimal && a.Scale == b.Scale
	number := func(l meta.Logical) bool { return l.Kind == meta.None || l.Kind == meta.Int && l.Signed }
	ok := decimals || number(a) && number(b)
	switch to.Type {
	case format.Int64:
		ok = ok && from.Type == format.Int32
	case format.Double:
		ok = ok && from.Type == format.Float
	case format.FixedLenByteArray:
		ok = decimals && from.Width() > 0 && from.Width() < to.TypeLength
	default:
		ok = false
	}
	if !ok {
		return nil, fmt.Errorf("column %s: no conversion of %v to %v", to.Dotted, from.Type, to.Type)
	}
	w := &widening{*to, to}
	w.from.Type, w.from.TypeLength, w.from.Logical = from.Type, from.TypeLength, from.Logical
	return w, nil
}

// widened returns the conversion of a leaf, nil if it has none.
func (f *File) widened(leaf int) *widening {
	if leaf >= len(f.wider) {
		return nil
	}
	return f.wider[leaf]
}

// plain converts values, in dst's memory if it is large enough. ok is false if they take too much.
func (w *widening) plain(dst, src []byte) (_ []byte, ok bool) {
	width, wide := w.from.Width(), w.to.Width()
	n := len(src) / width
	if n > enc.MaxPageSize/wide {
		return nil, false
	}
	dst = enc.Reuse(dst, n*wide)
	switch w.to.Type {
	case format.Int64:
		for i := range n {
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(int32(binary.LittleEndian.Uint32(src[4*i:]))))
		}
	case format.Double:
		enc.Doubles(dst, src)
	default:
		for i := range n {
			v := dst[i*wide : (i+1)*wide]
			number := v[wide-width:]
			copy(number, src[i*width:])
			if w.from.Type != format.FixedLenByteArray {
				slices.Reverse(number)
			}
			enc.Fill(v[:wide-width], byte(int8(number[0])>>7))
		}
	}
	return dst, true
}

// bound converts a bound. It returns nil for one that is no value of the stored type, which could
// otherwise be taken for one of the wider type.
func (w *widening) bound(b []byte) []byte {
	if len(b) != w.from.Width() {
		return nil
	}
	b, _ = w.plain(nil, b)
	return b
}

// statistics converts the bounds in statistics.
func (w *widening) statistics(s *meta.Statistics) {
	s.MinValue.V, s.MaxValue.V = w.bound(s.MinValue.V), w.bound(s.MaxValue.V)
	s.MinValue.Valid, s.MaxValue.Valid = s.MinValue.V != nil, s.MaxValue.V != nil
}

// chunk changes what the footer says of a chunk. Its Bloom filter has hashes of other values.
func (w *widening) chunk(md *meta.ColumnMetaData) {
	w.statistics(&md.Statistics)
	md.Type, md.BloomFilterOffset = w.to.Type, 0
	times := int64((w.to.Width()-1)/w.from.Width() + 1)
	md.TotalUncompressedSize = min(md.TotalUncompressedSize, math.MaxInt64/times) * times
}

// finish converts the values of a decoded page, if they have a wider type. It first charges for
// those whose size is known only now.
func (c *Chunk) finish(ctx context.Context, h *meta.PageHeader) error {
	if err := c.chargeShared(ctx, h); err != nil || c.wide == nil {
		return err
	}
	p := &c.page
	if p.Stored = nil; p.Coded {
		return nil
	}
	plain, ok := c.wide.plain(c.buf.wide, p.Plain)
	if !ok {
		return c.expands()
	}
	c.buf.wide, p.Plain, p.Encoding = plain, plain, format.Plain
	return nil
}

// expands returns the error for values that take too much memory.
func (c *Chunk) expands() error {
	return faults.Unsupported(c.here(), "page too large: its values take more than %s", show.Size(enc.MaxPageSize)).
		WithHint("write the file again with smaller pages, as of 1 MiB")
}

// wideBytes returns the memory of n values of a page in a wider type.
func (c *Chunk) wideBytes(n int32, e format.Encoding) int64 {
	if c.wide == nil || isCoded(e) {
		return 0
	}
	return int64(max(n, 0)) * int64(c.wide.to.Width())
}
