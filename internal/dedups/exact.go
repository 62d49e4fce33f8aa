package dedups

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// Rows are dropped exactly in several readings of the input.
//
//	Suspects   a ring that records every row finds all keys that may have duplicates
//	Exact      compares these keys themselves, and finds the rows that are duplicates
//
// A ring that records every row sees each duplicate, and some other rows as well. So the suspects
// include all keys that have duplicates. If the keys exceed the budget, they are divided among
// rounds by hash, and each round reads the input.

// Estimated bytes of an entry, beside the key.
const (
	suspectBytes = 32
	entryBytes   = 64
)

// ErrFull means that the keys of a round exceed the budget: more rounds are needed.
var ErrFull = fmt.Errorf("%w: keys that may have duplicates", fault.ErrMemory)

// Suspects are the hashes of keys that may have duplicates.
type Suspects struct {
	ring     *ring.Ring
	most     int64 // bytes; 0: no limit
	hashes   map[uint64]struct{}
	verdicts []ring.Verdict
	rows     int64
	bytes    int64 // of keys
}

// NewSuspects returns a reading that finds suspects with an empty ring. They may take most bytes.
func NewSuspects(r *ring.Ring, most int64) *Suspects {
	r.All = true
	return &Suspects{ring: r, most: most, hashes: map[uint64]struct{}{}}
}

// Add reads rows.
func (s *Suspects) Add(rows *Rows) error {
	s.verdicts = s.ring.Judge(rows.Hashes, rows.Slots, s.verdicts[:0])
	for i, v := range s.verdicts {
		if v == ring.Seen {
			s.hashes[rows.Hashes[i]] = struct{}{}
		}
	}
	s.rows += int64(len(rows.At))
	s.bytes += rows.Bytes
	if need := s.Bytes(); s.most > 0 && need > s.most {
		return faults.Errorf("%w: %d keys that may have duplicates: want at most %s, got %s (raise {Memory}, or {Expect} if there are more keys)",
			fault.ErrMemory, len(s.hashes), show.Size(s.most), show.Size(need))
	}
	return nil
}

// End releases the ring, and returns in how many rounds the keys probably fit in most bytes.
func (s *Suspects) End(most int64) (rounds uint64) {
	s.ring = nil
	if most <= 0 || s.rows == 0 {
		return 1
	}
	return uint64(int64(len(s.hashes))*(s.bytes/s.rows+entryBytes)/most) + 1
}

// Len returns the number of suspects.
func (s *Suspects) Len() int { return len(s.hashes) }

// Bytes returns the memory that they take.
func (s *Suspects) Bytes() int64 { return int64(len(s.hashes)) * suspectBytes }

// Exact decides about the keys of one round.
type Exact struct {
	Counts
	suspects *Suspects
	late     Late
	clock    ring.Clock
	round    uint64
	rounds   uint64
	most     int64
	held     int64
	passed   map[string]int64 // by key: the slot of the row that passed last
	verdicts []ring.Verdict
}

// NewExact returns round number round of some. Its keys may take most bytes; 0: no limit.
func (s *Suspects) NewExact(p ring.Params, late Late, round, rounds uint64, most int64) *Exact {
	return &Exact{suspects: s, late: late, clock: p.Clock(), round: round, rounds: rounds, most: most, passed: map[string]int64{}}
}

// Wants reports whether the round needs the key with a hash. It may be called concurrently.
func (e *Exact) Wants(h uint64) bool {
	_, suspected := e.suspects.hashes[h]
	return suspected && mixed(h)%e.rounds == e.round
}

// Drop appends the rows to drop, ascending: of this round's keys, and in each round those that
// cannot be judged. The error is ErrFull if the keys exceed the budget.
func (e *Exact) Drop(rows *Rows, drop []int) ([]int, error) {
	e.verdicts = e.verdicts[:0]
	for i := range rows.At {
		v, _ := e.clock.Place(rows.Slots[i])
		if v == ring.Fresh && e.Wants(rows.Hashes[i]) {
			key := rows.Exact[i]
			at, before := e.passed[string(key)]
			if before && e.clock.Holds(at) {
				v = ring.Seen
			} else {
				e.passed[string(key)] = rows.Slots[i]
			}
			if !before {
				e.held += int64(len(key)) + entryBytes
			}
		}
		e.verdicts = append(e.verdicts, v)
	}
	if e.most > 0 && e.held > e.most {
		return nil, ErrFull
	}
	return e.Counts.add(rows, e.late, e.verdicts, drop)
}
