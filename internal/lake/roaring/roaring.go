// Package roaring reads Roaring bitmaps of 64-bit values in the portable format, in which tables
// say which rows of a file are deleted.
//
//	bytes ── Parse ──► Bitmap ── Without(lo, hi) ──► the other rows, as ranges
//
// The format is that of https://github.com/RoaringBitmap/RoaringFormatSpec, in its extension to 64
// bits. Bitmaps come from anywhere: Parse checks all of one, and allocates nothing for values
// alone. A [Bitmap] keeps the bytes.
package roaring

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/rows"
)

// Limit is more than any value: what follows a container is a number, too.
const Limit = math.MaxInt32 << 32

// Bitmap is an immutable set of values from 0 to Limit.
type Bitmap struct {
	containers []container // ascending
	count      int64
	own        int64 // bytes of values that were not parsed
}

// container has the values of a bitmap whose upper bits are the same.
type container struct {
	base  int64 // the least value that it may have
	kind  kind
	bytes []byte
}

type kind uint8

const (
	array kind = iota // of values, ascending
	words             // a bit for each value
	runs              // of first values, and the numbers of those that follow
)

const (
	span     = 1 << 16 // values of a container
	maxArray = 4096    // values of an array; more are words

	plainCookie = 12346 // no container has runs
	runsCookie  = 12347 // some have, and their number stands in the upper half
	noOffsets   = 4     // with runs, fewer containers have no offsets

	containerBytes = 40 // in memory, without its values
)

var errShort = errors.New("roaring bitmap: it ends early")

// Parse returns the bitmap that b holds from its first to its last byte. b must not be changed
// later.
func Parse(b []byte) (*Bitmap, error) {
	c := &cursor.Cursor{Rest: b}
	m := new(Bitmap)
	last := int64(-1)
	for n := c.U64(); n > 0; n-- {
		high := int64(c.U32())
		if !c.Short && (high <= last || high >= Limit>>32) {
			return nil, fmt.Errorf("roaring bitmap: upper half %d after %d", high, last)
		}
		last = high
		if err := m.add(c, high<<32); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Short:
		return nil, errShort
	case len(c.Rest) > 0:
		return nil, fmt.Errorf("roaring bitmap: %d bytes too many", len(c.Rest))
	}
	return m, nil
}

// add reads a bitmap of 32-bit values, which are added to base.
func (m *Bitmap) add(c *cursor.Cursor, base int64) error {
	var n uint64
	var hasRuns []byte
	switch cookie := c.U32(); {
	case c.Short:
		return errShort
	case cookie == plainCookie:
		n = uint64(c.U32())
	case cookie&0xffff == runsCookie:
		n = uint64(cookie>>16) + 1
		hasRuns = c.Take((n + 7) / 8)
	default:
		return fmt.Errorf("roaring bitmap: cookie %d", cookie)
	}
	if n > span {
		return fmt.Errorf("roaring bitmap: more than %d containers", span)
	}
	heads := c.Take(4 * n)
	if hasRuns == nil || n >= noOffsets {
		c.Take(4 * n) // containers follow one another in any case
	}
	if c.Short {
		return errShort
	}
	last := -1
	for i := range n {
		high, size := int(binary.LittleEndian.Uint16(heads[4*i:])), int(binary.LittleEndian.Uint16(heads[4*i+2:]))+1
		if high <= last {
			return fmt.Errorf("roaring bitmap: container %d after %d", high, last)
		}
		last = high
		of := container{base: base + int64(high)*span}
		if hasRuns != nil && hasRuns[i/8]>>(i%8)&1 != 0 {
			of.kind = runs
		} else if size > maxArray {
			of.kind = words
		}
		if err := of.read(c, size); err != nil {
			return err
		}
		m.containers, m.count = append(m.containers, of), m.count+int64(size)
	}
	return nil
}

// read reads a container of size values, and checks it.
func (c *container) read(from *cursor.Cursor, size int) error {
	switch c.kind {
	case array:
		c.bytes = from.Take(2 * uint64(size))
	case words:
		c.bytes = from.Take(span / 8)
	case runs:
		c.bytes = from.Take(4 * uint64(from.U16()))
	}
	if from.Short {
		return errShort
	}
	next, got := int64(0), int64(0)
	for lo, hi := range c.ranges {
		if lo < next || lo >= hi || hi > span {
			return fmt.Errorf("roaring bitmap: values from %d to %d after %d", c.base+lo, c.base+hi-1, c.base+next-1)
		}
		next, got = hi, got+hi-lo
	}
	if got != int64(size) {
		return fmt.Errorf("roaring bitmap: a container of %d values, want %d", got, size)
	}
	return nil
}

// ranges yields the values, without base, as ranges from and to, exclusive. Values that follow
// each other need not be in one range.
func (c *container) ranges(yield func(lo, hi int64) bool) {
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint16(c.bytes[i:])) }
	switch c.kind {
	case array:
		for i := 0; i < len(c.bytes); i += 2 {
			if v := at(i); !yield(v, v+1) {
				return
			}
		}
	case runs:
		for i := 0; i < len(c.bytes); i += 4 {
			if v := at(i); !yield(v, v+at(i+2)+1) {
				return
			}
		}
	case words:
		for i := 0; i < len(c.bytes); i += 8 {
			for w, v := binary.LittleEndian.Uint64(c.bytes[i:]), int64(8*i); w != 0; {
				lo := bits.TrailingZeros64(w)
				end := lo + bits.TrailingZeros64(^(w >> lo))
				if !yield(v+int64(lo), v+int64(end)) {
					return
				}
				w &= math.MaxUint64 << end
			}
		}
	}
}

// Of returns the bitmap of values from 0 to Limit, which it sorts. Each counts once.
func Of(values []int64) *Bitmap {
	slices.Sort(values)
	m := new(Bitmap)
	for len(values) > 0 {
		c := container{base: values[0] &^ (span - 1)}
		for ; len(values) > 0 && values[0] < c.base+span; values = values[1:] {
			c.bytes = binary.LittleEndian.AppendUint16(c.bytes, uint16(values[0]))
		}
		m.containers = append(m.containers, c)
	}
	return Union(m)
}

// Union returns the bitmap of the values of all bitmaps, in memory of its own.
func Union(maps ...*Bitmap) *Bitmap {
	var all []container
	for _, m := range maps {
		all = append(all, m.containers...)
	}
	slices.SortFunc(all, func(a, b container) int { return cmp.Compare(a.base, b.base) })
	m, set := new(Bitmap), container{bytes: make([]byte, span/8), kind: words}
	for i, of := range all {
		for lo, hi := range of.ranges {
			for ; lo < hi; lo++ {
				set.bytes[lo/8] |= 1 << (lo % 8)
			}
		}
		if i+1 < len(all) && all[i+1].base == of.base {
			continue
		}
		c, before := container{base: of.base}, m.count
		for lo, hi := range set.ranges {
			m.count += hi - lo
			for ; lo < hi && len(c.bytes) <= 2*maxArray; lo++ {
				c.bytes = binary.LittleEndian.AppendUint16(c.bytes, uint16(lo))
			}
		}
		if m.count-before > maxArray {
			c.kind, c.bytes = words, slices.Clone(set.bytes)
		}
		m.containers, m.own = append(m.containers, c), m.own+int64(cap(c.bytes))
		clear(set.bytes)
	}
	return m
}

// Count returns the number of values.
func (m *Bitmap) Count() int64 { return m.count }

// Bytes returns the memory that the bitmap takes beside the bytes that were parsed.
func (m *Bitmap) Bytes() int64 { return int64(len(m.containers))*containerBytes + m.own }

// End returns the number after the largest value; 0: there is none.
func (m *Bitmap) End() (end int64) {
	if n := len(m.containers); n > 0 {
		c := &m.containers[n-1]
		for _, hi := range c.ranges {
			end = c.base + hi
		}
	}
	return end
}

// Without returns the numbers from lo to hi, exclusive, that the bitmap does not have, relative to lo.
func (m *Bitmap) Without(lo, hi int64) (rest rows.Set) {
	first := sort.Search(len(m.containers), func(i int) bool { return m.containers[i].base+span > lo })
	next := lo
	for i := first; i < len(m.containers) && m.containers[i].base < hi; i++ {
		c := &m.containers[i]
		for from, to := range c.ranges {
			from, to = max(c.base+from, lo), min(c.base+to, hi)
			if from >= to {
				continue
			}
			if next < from {
				rest = rest.Add(next-lo, from-lo)
			}
			next = to
		}
	}
	if next < hi {
		rest = rest.Add(next-lo, hi-lo)
	}
	return rest
}

// CountIn returns the number of values from lo to hi, exclusive.
func (m *Bitmap) CountIn(lo, hi int64) int64 {
	n := max(hi-lo, 0)
	for _, r := range m.Without(lo, hi) {
		n -= r[1] - r[0]
	}
	return n
}
