// Package rows says which rows of a row group go to an output, and with which partners.
//
//	Matched ── Partners.Select ──► Selection ── Rows, Times, Partners ──► a sink: pages or arrays
//
// In come the row numbers that a scan has found, ascending, with an entry of a table for each;
// out comes a [Selection], from which each sink takes what it needs.
package rows

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// None stands for no row where row numbers are expected.
const None = math.MaxUint32

// Partners says which rows of a table are the partners of a log row, given the entry that
// its key has there. It is safe for concurrent use, but for Joined.
type Partners struct {
	// Times returns how many partners an entry has, at least one.
	Times func(entry uint32) int64
	// Unique says that Times is 1 for every entry.
	Unique bool
	// Rows appends the rows of the table that are partners of an entry, in order. Nil: only
	// their number matters.
	Rows func(dst []uint32, entry uint32) []uint32
	// KeepLog keeps log rows without a partner, once.
	KeepLog bool
	// Joined, if not nil, has a bit for each row of a single row group that had a partner so
	// far: the row group is scanned several times, with different partners. KeepLog keeps only
	// rows without one.
	Joined *[]uint64
}

// Matched are the rows of a range that have partners.
type Matched struct {
	Of      []uint32 // rows of the range that satisfy the file's condition; nil: all
	Rows    []uint32 // those with partners, ascending
	Entries []uint32 // the entry of each of Rows
}

// Selection is the rows of a range that go to the output.
type Selection struct {
	Lo, Hi int64    // the range, of the row group
	Rows   []uint32 // of the row group, ascending; nil: all of the range
	Count  int64    // rows of the output
	Kept   int64    // rows of the log that no earlier scan has kept; with partners, once [Partners.Join] was called

	// With partners:
	Matched []uint32 // rows with partners, ascending
	Times   []uint32 // how often each row stands in the output; nil: once
	entries []uint32 // of each of Matched

	once    sync.Once
	partner []uint32 // by row of the output: a row of the table, or None
}

// Of returns the selection of rows of a range that stand once.
func Of(lo, hi int64, chosen []uint32) *Selection {
	s := &Selection{Lo: lo, Hi: hi, Rows: chosen, Count: int64(len(chosen)), Kept: int64(len(chosen))}
	if s.Count == hi-lo {
		s.Rows = nil
	} else if chosen == nil {
		s.Rows = []uint32{}
	}
	return s
}

// Select returns the selection of pairs in a range, given the rows that have partners.
func (p *Partners) Select(lo, hi int64, m Matched) (*Selection, error) {
	s := &Selection{Lo: lo, Hi: hi, Matched: m.Rows, entries: m.Entries, Rows: m.Rows}
	if s.Rows == nil {
		s.Rows = []uint32{} // nil would be all
	}
	switch {
	case p.KeepLog && p.Joined == nil:
		s.Rows = m.Of
	case p.KeepLog:
		s.Rows = p.unjoined(lo, hi, m)
	}
	if int64(len(s.Rows)) == hi-lo {
		s.Rows = nil
	}
	s.Count = int64(s.Len())
	return s, s.repeat(p)
}

// repeat counts the partners of each row.
func (s *Selection) repeat(p *Partners) error {
	at := 0
	for i, e := range s.entries {
		t := p.Times(e)
		if t < 1 || t > math.MaxUint32 {
			return fmt.Errorf("internal error: an entry with %d partners", t)
		}
		if t == 1 {
			continue
		}
		if s.Times == nil {
			s.Times = make([]uint32, s.Len())
			for k := range s.Times {
				s.Times[k] = 1
			}
		}
		switch {
		case s.Rows == nil:
			at = int(s.Matched[i]) - int(s.Lo)
		case len(s.Rows) == len(s.Matched):
			at = i
		default:
			more, _ := slices.BinarySearch(s.Rows[at:], s.Matched[i])
			at += more
		}
		s.Times[at] = uint32(t)
		s.Count += t - 1
	}
	return nil
}

// joined reports whether a row had a partner in an earlier scan.
func (p *Partners) joined(row uint32) bool {
	bits := *p.Joined
	return int(row/64) < len(bits) && bits[row/64]>>(row%64)&1 != 0
}

// Join counts the rows of a selection that no earlier scan has kept. Unless KeepLog is set,
// it records which rows have partners. Calls must not be concurrent.
func (p *Partners) Join(s *Selection) {
	if s.Kept = int64(s.Len()); p.Joined == nil {
		return
	}
	for _, row := range s.Slice(0, s.Len()) {
		if p.joined(row) {
			s.Kept--
		}
	}
	if n := len(s.Matched); n == 0 || p.KeepLog {
		return
	}
	bits := *p.Joined
	for last := s.Matched[len(s.Matched)-1]; len(bits) <= int(last/64); { // the number of rows may not have been known
		bits = append(bits, 0)
	}
	for _, row := range s.Matched {
		bits[row/64] |= 1 << (row % 64)
	}
	*p.Joined = bits
}

// unjoined returns the rows of a range that have a partner now or had none before.
func (p *Partners) unjoined(lo, hi int64, m Matched) []uint32 {
	of, matched := m.Of, m.Rows
	if of == nil {
		of = Range(lo, hi).List(nil)
	}
	rows := make([]uint32, 0, len(of))
	for _, row := range of {
		now := len(matched) > 0 && matched[0] == row
		if now {
			matched = matched[1:]
		}
		if now || !p.joined(row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// Len returns the number of rows of the input.
func (s *Selection) Len() int {
	if s.Rows == nil {
		return int(s.Hi - s.Lo)
	}
	return len(s.Rows)
}

// Whole reports whether each row of the range stands once.
func (s *Selection) Whole() bool { return s.Rows == nil && s.Times == nil }

// List returns the rows, or nil if they are all of the row group's.
func (s *Selection) List(total int64) []uint32 {
	if s.Rows != nil || s.Lo == 0 && s.Hi == total {
		return s.Rows
	}
	return s.Slice(0, s.Len())
}

// Slice returns rows from to to, exclusive, counted within the selection.
func (s *Selection) Slice(from, to int) []uint32 {
	if s.Rows != nil {
		return s.Rows[from:to]
	}
	return Range(s.Lo+int64(from), s.Lo+int64(to)).List(make([]uint32, 0, to-from))
}

// Divided returns the selection in parts of at most most rows of the output. The pairs of
// one row stay together. If there are several parts, they do not say what is Kept.
func (s *Selection) Divided(most int64) []*Selection {
	if s.Count <= most {
		return []*Selection{s}
	}
	var parts []*Selection
	from, count, n := 0, int64(0), s.Len()
	rest := s.Cutter()
	for i := range n {
		t := int64(s.TimesOf(i))
		if count > 0 && count+t > most {
			parts = append(parts, rest.Cut(i-from))
			from, count = i, 0
		}
		count += t
	}
	return append(parts, rest.Cut(n-from))
}

// First returns the selection of the first n rows of the output, at least one. The pairs of a row may
// be cut.
func (s *Selection) First(n int64) *Selection {
	if s.Count <= n {
		return s
	}
	count, i := int64(0), 0
	for ; count < n; i++ {
		count += int64(s.TimesOf(i))
	}
	part := s.Cutter().Cut(i)
	if count > n {
		part.Times = slices.Clone(part.Times)
		part.Times[i-1] -= uint32(count - n)
		part.Count = n
	}
	part.Kept = min(s.Kept, int64(i))
	return part
}

// TimesOf returns how often row i of the selection stands in the output.
func (s *Selection) TimesOf(i int) uint32 {
	if s.Times == nil {
		return 1
	}
	return s.Times[i]
}

// Cutter divides a selection from its first row on. It must not be used concurrently.
type Cutter struct {
	s             *Selection
	from, matched int
}

// Cutter returns a cutter that is at the first row.
func (s *Selection) Cutter() *Cutter { return &Cutter{s: s} }

// Cut returns the next n rows as a selection, which does not say what is Kept unless it has
// all rows.
func (c *Cutter) Cut(n int) *Selection {
	s, from, to := c.s, c.from, c.from+n
	if n == s.Len() {
		c.from = to
		return s
	}
	part := &Selection{Lo: s.Lo, Hi: s.Hi, Rows: s.Slice(from, to), Count: int64(n)}
	if s.Times != nil {
		part.Times, part.Count = s.Times[from:to], 0
		for _, t := range part.Times {
			part.Count += int64(t)
		}
	}
	end := c.matched
	if n > 0 {
		for last := part.Rows[n-1]; end < len(s.Matched) && s.Matched[end] <= last; {
			end++
		}
	}
	part.Matched, part.entries = s.Matched[c.matched:end], s.entries[c.matched:end]
	c.from, c.matched = to, end
	return part
}

// Partners returns the rows of the table beside the rows of the output. It is safe
// for concurrent use.
func (s *Selection) Partners(p *Partners) []uint32 {
	s.once.Do(func() {
		out := make([]uint32, 0, s.Count)
		if s.Rows != nil && len(s.Rows) == len(s.Matched) {
			for _, e := range s.entries {
				out = p.Rows(out, e)
			}
			s.partner = out[:s.Count] // the last row may be cut
			return
		}
		next := 0 // row of the selection
		for i, row := range s.Matched {
			at := int(row) - int(s.Lo)
			if s.Rows != nil {
				more, _ := slices.BinarySearch(s.Rows[next:], row)
				at = next + more
			}
			out = appendNone(out, at-next)
			out = p.Rows(out, s.entries[i])
			next = at + 1
		}
		s.partner = appendNone(out, s.Len()-next)[:s.Count]
	})
	return s.partner
}

func appendNone(dst []uint32, n int) []uint32 {
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	for i := range dst[from:] {
		dst[from+i] = None
	}
	return dst
}

// Pairs returns the number of rows of the output that have a partner.
func (s *Selection) Pairs() int64 { return s.Count - int64(s.Len()-len(s.Matched)) }

// Bytes returns the memory that the selection takes.
func (s *Selection) Bytes() int64 {
	n := int64(cap(s.Rows) + cap(s.Matched) + cap(s.entries) + cap(s.Times))
	if s.entries != nil {
		n += s.Count // of partners, which may be being listed
	}
	return 4 * n
}
