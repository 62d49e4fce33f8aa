package parquet

import (
	"bytes"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
)

const (
	maxSummaries    = 32 // leaves of a file that are summarised
	maxSummaryBound = 32 // bytes of a bound; longer byte arrays are shortened
)

// LeafSummary describes the values of a leaf in all row groups of a file.
type LeafSummary struct {
	Leaf    *Leaf
	FieldID int32 // -1 if there is none
	Nulls   int64 // rows in which the leaf or a struct around it is NULL; -1: unknown
	// Lower and Upper include all values. They are PLAIN encoded, byte arrays
	// without their length. Nil: unknown, or there are no values.
	Lower, Upper []byte
	// ExactLower and ExactUpper are true if the bound is known to be a value of the
	// file.
	ExactLower, ExactUpper bool
}

// summary is a LeafSummary of the row groups written so far.
type summary struct {
	LeafSummary
	bounds bounds
}

// newSummaries returns empty summaries of the first leaves. They leave out lists and
// maps, leaves of other annotated groups, and leaves that share their path with
// others.
func newSummaries(root *Node, leaves []Leaf) (out []summary) {
	var walk func(group *Node)
	walk = func(group *Node) {
		for _, n := range group.Children {
			same := func(other *Node) bool { return other != n && other.Name == n.Name }
			switch {
			case n.Repetition == format.Repeated || len(out) == maxSummaries || slices.ContainsFunc(group.Children, same):
			case n.Leaf >= 0:
				out = append(out, summary{LeafSummary: LeafSummary{Leaf: &leaves[n.Leaf], FieldID: n.FieldID}})
			case n.Logical.Kind == None:
				walk(n)
			}
		}
	}
	walk(root)
	return out
}

// add adds the chunk of a row group. order is that of its statistics.
func (s *summary) add(c *EncodedChunk, order valueOrder) {
	nulls, ok := c.stats.NullCount.Get()
	if !ok {
		nulls = -1
	}
	if s.Nulls >= 0 {
		if s.Nulls += nulls; nulls < 0 {
			s.Nulls = -1
		}
	}
	if nulls == c.entries || s.bounds.broken {
		return
	}
	if !c.stats.MinValue.Valid || !c.stats.MaxValue.Valid {
		s.bounds = bounds{broken: true}
		return
	}
	b := bounds{lo: present(c.stats.MinValue.V), hi: present(c.stats.MaxValue.V)}
	exactLo, exactHi := c.stats.IsMinValueExact.V, c.stats.IsMaxValueExact.V
	if order.by == floats && c.stored == nil { // the flags are not written; only zeros may have been widened
		exactLo, exactHi = !isZero(b.lo), !isZero(b.hi)
	}
	if order.by == bytewise && order.width == 0 && c.stored != nil && !c.stored.f.BoundsCoverEmpty() {
		b.lo, exactLo = []byte{}, false
	}
	s.ExactLower = widens(s.bounds.lo, b.lo, order, 1, s.ExactLower, exactLo)
	s.ExactUpper = widens(s.bounds.hi, b.hi, order, -1, s.ExactUpper, exactHi)
	s.bounds.add(order, b)
}

// isZero reports whether a float is 0 or -0.
func isZero(v []byte) bool {
	for i, c := range v {
		if c != 0 && (i < len(v)-1 || c != 0x80) {
			return false
		}
	}
	return true
}

// widens returns whether the bound is exact once next has been added to it. sign is
// that of comparing the bound with a value outside it.
func widens(bound, next []byte, order valueOrder, sign int, was, is bool) bool {
	if bound == nil {
		return is
	}
	switch c := sign * order.compare(bound, next); {
	case c > 0:
		return is
	case c == 0:
		return was || is
	}
	return was
}

// shortened returns the summary with bounds of a limited size.
func (s *summary) shortened(order valueOrder) LeafSummary {
	l := s.LeafSummary
	lo, hi, wholeLo, wholeHi := order.within(s.bounds, maxSummaryBound)
	l.Lower, l.Upper = bytes.Clone(lo), bytes.Clone(hi)
	l.ExactLower, l.ExactUpper = l.ExactLower && wholeLo, l.ExactUpper && wholeHi
	return l
}

// summarise adds the chunks of a row group to the summaries.
func (w *Writer) summarise(chunks []*EncodedChunk) error {
	if w.summaries == nil { // a run may have prepared very many Writers
		f := &File{Metadata: &FileMetaData{Schema: w.schema}}
		if err := f.buildSchema(fault.At{}); err != nil {
			return err
		}
		w.summaries = newSummaries(f.Root, w.leaves)
	}
	for i := range w.summaries {
		if s := &w.summaries[i]; chunks != nil {
			s.add(chunks[s.Leaf.Index], w.order[s.Leaf.Index])
		}
	}
	return nil
}

// Summaries describes the columns of the file that Close has completed, from the
// statistics in its footer: the first 32 leaves that are not in lists, maps or
// variants. Bounds of floats with a NaN are unknown. It is called at most once, and
// the result is the caller's, so that the Writer does not keep the memory.
func (w *Writer) Summaries() ([]LeafSummary, error) {
	if err := w.summarise(nil); err != nil {
		return nil, err
	}
	var out []LeafSummary
	for i := range w.summaries {
		s := &w.summaries[i]
		out = append(out, s.shortened(w.order[s.Leaf.Index]))
	}
	w.summaries = []summary{}
	return out, nil
}
