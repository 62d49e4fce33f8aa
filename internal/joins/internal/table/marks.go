package table

import (
	"errors"
	"math/bits"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Marks records which members of an exact set the log has, with one bit for each
// integer between the least and the greatest. It is safe for concurrent use.
type Marks struct {
	least uint64 // in two's complement
	words []uint32
}

// ErrTooFarApart says that marks would take too many bits.
var ErrTooFarApart = errors.New("they are too far apart for a bit for each integer between the smallest and the largest")

// MarksPerMember bounds the bits for each member of a set that is not dense.
const MarksPerMember = 64

// MostSpan returns the greatest difference between members of a set of n for which there
// are marks.
func MostSpan(n uint64) float64 {
	return min(float64(None-1), max(1<<23, MarksPerMember*float64(n)))
}

// NewMarks returns marks for the members of a set, on an account. The error is
// [ErrTooFarApart] or wraps [fault.ErrMemory].
func NewMarks(set *exact.Set, of *budget.Account) (*Marks, error) {
	lo, below, ok := set.Least()
	if !ok {
		return &Marks{}, nil
	}
	hi, negative, _ := set.Greatest()
	span := hi - lo
	if below && !negative && hi>>63 != 0 || float64(span) > MostSpan(set.Len()) {
		return nil, ErrTooFarApart
	}
	m := &Marks{least: lo}
	n := int64(span/32 + 1)
	if err := of.Share("marks of the IDs").Take(4 * n); err != nil {
		return nil, err
	}
	m.words = make([]uint32, n)
	return m, nil
}

// Entry returns the number of a member.
func (m *Marks) Entry(v uint64) uint32 { return uint32(v - m.least) }

// Mark records that the log has a member.
func (m *Marks) Mark(e uint32) {
	w, bit := &m.words[e/32], uint32(1)<<(e%32)
	if atomic.LoadUint32(w)&bit == 0 { // most marks are repetitions: avoid the write
		atomic.OrUint32(w, bit)
	}
}

// Marked reports whether Mark was called for a member.
func (m *Marks) Marked(e uint32) bool { return m.words[e/32]>>(e%32)&1 != 0 }

// Reset removes all marks.
func (m *Marks) Reset() { clear(m.words) }

// Count returns the number of marked members.
func (m *Marks) Count() (n int64) {
	for _, w := range m.words {
		n += int64(bits.OnesCount32(w))
	}
	return n
}

// Find is [Side.Find] for a set: every key that passes an exact filter is a member.
func (m *Marks) Find(k *keys.Batch, hits, found, entries []uint32) (_, of []uint32) {
	values, _ := k.Ints()
	entries = entries[:0]
	for _, h := range hits {
		entries = append(entries, m.Entry(values[h]))
	}
	return append(found[:0], hits...), entries
}
