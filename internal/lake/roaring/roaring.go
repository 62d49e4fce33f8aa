// Package roaring reads Roaring bitmaps of 64-bit values in the portable format, in which tables
// say which rows of a file are deleted.
//
//	bytes ── Parse ──► Bitmap ── Without(lo, hi) ──► the other rows, as ranges
//
// The format is that of https://github.com/RoaringBitmap/RoaringFormatSpec, in its extension to 64
// bits. Bitmaps come from anywhere: Parse checks all of one, and allocates nothing for values
// alone. A [Bitmap] keeps the bytes, and few more.
package roaring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sort"

	"github.com/bloomjoin/bloomjoin/internal/rows"
)

// Bitmap is an immutable set of values below 2^63.
type Bitmap struct {
	containers []container // ascending
	count      int64
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
)

var errShort = errors.New("roaring bitmap: it ends early")

// Parse returns the bitmap that b holds from its first to its last byte. b must not be changed
// later.
func Parse(b []byte) (*Bitmap, error) {
	r := &reader{left: b}
	n := r.number(8)
	m := new(Bitmap)
	last := int64(-1)
	for ; n > 0 && r.err == nil; n-- {
		high := int64(r.number(4))
		if r.err == nil && (high <= last || high >= 1<<31) {
			r.err = fmt.Errorf("roaring bitmap: upper half %d after %d", high, last)
		}
		last = high
		m.add(r, high<<32)
	}
	if r.err == nil && len(r.left) > 0 {
		r.err = fmt.Errorf("roaring bitmap: %d bytes too many", len(r.left))
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// add reads a bitmap of 32-bit values, which are added to base.
func (m *Bitmap) add(r *reader, base int64) {
	cookie := r.number(4)
	n, hasRuns := 0, []byte(nil)
	switch {
	case r.err != nil:
	case cookie == plainCookie:
		n = int(min(r.number(4), span+1))
	case cookie&0xffff == runsCookie:
		n = int(cookie>>16) + 1
		hasRuns = r.take((n + 7) / 8)
	default:
		r.err = fmt.Errorf("roaring bitmap: cookie %d", cookie)
	}
	if r.err == nil && n > span {
		r.err = fmt.Errorf("roaring bitmap: more than %d containers", span)
	}
	heads := r.take(4 * n)
	if hasRuns == nil || n >= noOffsets {
		r.take(4 * n) // containers follow one another in any case
	}
	last := -1
	for i := 0; i < n && r.err == nil; i++ {
		high, size := int(binary.LittleEndian.Uint16(heads[4*i:])), int(binary.LittleEndian.Uint16(heads[4*i+2:]))+1
		if high <= last {
			r.err = fmt.Errorf("roaring bitmap: container %d after %d", high, last)
			return
		}
		last = high
		c := container{base: base + int64(high)*span}
		if hasRuns != nil && hasRuns[i/8]>>(i%8)&1 != 0 {
			c.kind = runs
		} else if size > maxArray {
			c.kind = words
		}
		c.read(r, size)
		m.containers, m.count = append(m.containers, c), m.count+int64(size)
	}
}

// read reads a container of size values, and checks it.
func (c *container) read(r *reader, size int) {
	switch c.kind {
	case array:
		c.bytes = r.take(2 * size)
	case words:
		c.bytes = r.take(span / 8)
	case runs:
		c.bytes = r.take(4 * int(r.number(2)))
	}
	if r.err != nil {
		return
	}
	next, got := int64(0), int64(0)
	for lo, hi := range c.ranges {
		if lo < next || lo >= hi || hi > span {
			r.err = fmt.Errorf("roaring bitmap: values from %d to %d after %d", c.base+lo, c.base+hi-1, c.base+next-1)
			return
		}
		next, got = hi, got+hi-lo
	}
	if got != int64(size) {
		r.err = fmt.Errorf("roaring bitmap: a container of %d values, want %d", got, size)
	}
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
			w, v := binary.LittleEndian.Uint64(c.bytes[i:]), int64(8*i)
			for w != 0 {
				lo := bits.TrailingZeros64(w)
				n := bits.TrailingZeros64(^(w >> lo))
				if !yield(v+int64(lo), v+int64(lo+n)) {
					return
				}
				if lo+n == 64 {
					break
				}
				w &^= 1<<(lo+n) - 1
			}
		}
	}
}

// Count returns the number of values.
func (m *Bitmap) Count() int64 { return m.count }

// Bytes returns the memory that the bitmap takes.
func (m *Bitmap) Bytes() int64 {
	n := int64(0)
	for i := range m.containers {
		n += int64(len(m.containers[i].bytes)) + 40
	}
	return n
}

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

// Without returns the numbers from lo to hi, exclusive, that are no values, less lo.
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

// reader takes bytes from the start.
type reader struct {
	left []byte
	err  error
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if r.err == nil && n > len(r.left) {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	b := r.left[:n:n]
	r.left = r.left[n:]
	return b
}

// number returns the next bytes as an integer.
func (r *reader) number(bytes int) (n uint64) {
	for i, b := range r.take(bytes) {
		n |= uint64(b) << (8 * i)
	}
	return n
}
