package pagecopy

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// selection is the rows of a range that go to the output.
type selection struct {
	of    tasks.Range
	rows  []uint32 // of the row group, ascending; nil: all of the range
	count int64    // rows of the output
	kept  int64    // rows of the log that no earlier scan has kept; see setKept

	// In a scan with Pairs:
	matched []uint32 // rows with partners, ascending
	entries []uint32 // of each of matched
	times   []uint32 // how often each row stands in the output; nil: once

	once    sync.Once
	partner []uint32 // by row of the output: a row of the table, or leaves.None
}

// selected returns the selection of rows that stand once.
func selected(r tasks.Range, rows []uint32) *selection {
	s := &selection{of: r, rows: rows, count: int64(len(rows))}
	if s.count == r.Hi-r.Lo {
		s.rows = nil
	} else if rows == nil {
		s.rows = []uint32{}
	}
	return s
}

// paired returns the selection of pairs, given the rows that have partners.
func paired(p *Pairs, r tasks.Range, m keyscan.Matched) (*selection, error) {
	s := &selection{of: r, matched: m.Rows, entries: m.Entries, rows: m.Rows}
	if s.rows == nil {
		s.rows = []uint32{} // nil would be all
	}
	switch {
	case p.KeepLog && p.Joined == nil:
		s.rows = m.Of
	case p.KeepLog:
		s.rows = unjoined(p.Joined, r, m)
	}
	if int64(len(s.rows)) == r.Hi-r.Lo {
		s.rows = nil
	}
	matched := s.matched
	n := s.len()
	s.count = int64(n)
	at := 0
	for i, e := range s.entries {
		t := p.Times(e)
		if t < 1 || t > math.MaxUint32 {
			return nil, fmt.Errorf("internal error: an entry with %d partners", t)
		}
		if t == 1 {
			continue
		}
		if s.times == nil {
			s.times = make([]uint32, n)
			for k := range s.times {
				s.times[k] = 1
			}
		}
		switch {
		case s.rows == nil:
			at = int(matched[i]) - int(r.Lo)
		case len(s.rows) == len(matched):
			at = i
		default:
			more, _ := slices.BinarySearch(s.rows[at:], matched[i])
			at += more
		}
		s.times[at] = uint32(t)
		s.count += t - 1
	}
	return s, nil
}

// unjoined returns the rows of a range that have a partner now or had none before.
func unjoined(joined []uint64, r tasks.Range, m keyscan.Matched) []uint32 {
	of, matched := m.Of, m.Rows
	if of == nil {
		of = rowfilter.List(r, r.Hi)
	}
	rows := make([]uint32, 0, len(of))
	for _, row := range of {
		now := len(matched) > 0 && matched[0] == row
		if now {
			matched = matched[1:]
		}
		if now || joined[row/64]>>(row%64)&1 == 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// len returns the number of rows of the input.
func (s *selection) len() int {
	if s.rows == nil {
		return int(s.of.Hi - s.of.Lo)
	}
	return len(s.rows)
}

// whole reports whether each row of the range stands once.
func (s *selection) whole() bool { return s.rows == nil && s.times == nil }

// list returns the rows, or nil if they are all of the row group's.
func (s *selection) list(total int64) []uint32 {
	if s.rows != nil || s.of.Lo == 0 && s.of.Hi == total {
		return s.rows
	}
	return s.span(0, s.len())
}

// span returns rows lo to hi, exclusive, counted within the selection.
func (s *selection) span(lo, hi int) []uint32 {
	if s.rows != nil {
		return s.rows[lo:hi]
	}
	rows := make([]uint32, hi-lo)
	for i := range rows {
		rows[i] = uint32(s.of.Lo) + uint32(lo+i)
	}
	return rows
}

// divided returns the selection in parts of at most most rows of the output. The
// pairs of one row stay together.
func (s *selection) divided(most int64) []*selection {
	if s.count <= most {
		return []*selection{s}
	}
	var parts []*selection
	from, matched := 0, 0
	var count int64
	cut := func(to int) {
		part := &selection{of: s.of, rows: s.span(from, to), count: count}
		if s.times != nil {
			part.times = s.times[from:to]
		}
		end := matched
		for last := part.rows[len(part.rows)-1]; end < len(s.matched) && s.matched[end] <= last; {
			end++
		}
		part.matched, part.entries = s.matched[matched:end], s.entries[matched:end]
		parts = append(parts, part)
		from, matched, count = to, end, 0
	}
	n := s.len()
	for i := range n {
		t := uint32(1)
		if s.times != nil {
			t = s.times[i]
		}
		if count > 0 && count+int64(t) > most {
			cut(i)
		}
		count += int64(t)
	}
	cut(n)
	return parts
}

// partners returns the rows of the table beside the rows of the output. It is safe
// for concurrent use.
func (s *selection) partners(p *Pairs) []uint32 {
	s.once.Do(func() {
		out := make([]uint32, 0, s.count)
		if s.rows != nil && len(s.rows) == len(s.matched) {
			for _, e := range s.entries {
				out = p.Rows(out, e)
			}
			s.partner = out
			return
		}
		next := 0 // row of the selection
		for i, row := range s.matched {
			at := int(row) - int(s.of.Lo)
			if s.rows != nil {
				more, _ := slices.BinarySearch(s.rows[next:], row)
				at = next + more
			}
			out = appendNone(out, at-next)
			out = p.Rows(out, s.entries[i])
			next = at + 1
		}
		s.partner = appendNone(out, s.len()-next)
	})
	return s.partner
}

func appendNone(dst []uint32, n int) []uint32 {
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	for i := range dst[from:] {
		dst[from+i] = leaves.None
	}
	return dst
}

// pairs returns the number of rows of the output that have a partner.
func (s *selection) pairs() int64 { return s.count - int64(s.len()-len(s.matched)) }

// bytes returns the memory that the selection takes.
func (s *selection) bytes() int64 {
	n := int64(cap(s.rows) + cap(s.matched) + cap(s.entries) + cap(s.times))
	if s.entries != nil {
		n += s.count // of partners, which may be being listed
	}
	return 4 * n
}

// setKept counts the rows of the log. joined, if not nil, has those that an earlier scan
// has kept.
func (s *selection) setKept(joined []uint64) {
	s.kept = int64(s.len())
	if joined == nil {
		return
	}
	for _, row := range s.span(0, s.len()) {
		s.kept -= int64(joined[row/64] >> (row % 64) & 1)
	}
}

// join sets the bits of the rows that have partners.
func (s *selection) join(joined []uint64) {
	for _, row := range s.matched {
		joined[row/64] |= 1 << (row % 64)
	}
}
