package dedups

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/ring"
)

// Late says what happens to rows that cannot be judged: those older than all slots, too far in
// the future, or without a time.
type Late string

const (
	Keep   Late = "keep"
	Drop   Late = "drop"
	Refuse Late = "error"
)

// Counts are figures about the rows so far.
type Counts struct {
	RowsIn     int64 `json:"rows_in"`
	Duplicates int64 `json:"duplicates"` // dropped
	Late       int64 `json:"late"`
	Ahead      int64 `json:"ahead"`
	KeysNull   int64 `json:"keys_null"`
	TimesNull  int64 `json:"times_null"`
	Unjudged   int64 `json:"unjudged_dropped"` // late, ahead or without a time, and dropped

	units  units
	first  int64 // slot
	timed  bool  // first is known
	spread bool  // there are others
}

// units counts integers by the coarsest unit that makes them a time from 1970 to 2100: s, ms, us
// or ns. The last number counts those that no unit does.
type units [5]int64

func (u *units) count(n uint64, negative bool) {
	of := 0
	for before := uint64(4_102_444_800); of < 4 && (negative || n >= before); before *= 1000 {
		of++
	}
	u[of]++
}

// Doubt returns what is odd about times that are integers of a unit, and the unit that would
// fit, if there is one: their median is outside of the years 1970 to 2100, or all are in one slot
// and a coarser unit puts the median into these years, too.
func (c *Counts) Doubt(unit time.Duration) (what, fits string) {
	names := [...]string{"s", "ms", "us", "ns", ""}
	of, below, all := 0, c.units[0], int64(0)
	for _, n := range c.units {
		all += n
	}
	for ; of < 4 && below*2 <= all; below += c.units[of] {
		of++
	}
	switch given := slices.Index([]time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond}, unit); {
	case all == 0:
	case of > given:
		return "half of the times or more are outside of the years 1970 to 2100", names[of]
	case of < given && !c.spread:
		return "all times are in one part of the window", names[of]
	}
	return "", ""
}

// add counts rows, and appends those to drop. With Refuse, the error names a row that cannot be
// judged.
func (c *Counts) add(rows *Rows, late Late, verdicts []ring.Verdict, drop []int) ([]int, error) {
	for i, n := range rows.Units {
		c.units[i] += n
	}
	for i, v := range verdicts {
		if !c.timed {
			c.first, c.timed = rows.Slots[i], true
		}
		c.spread = c.spread || rows.Slots[i] != c.first
		switch v {
		case ring.Seen:
			c.Duplicates++
			drop = append(drop, int(rows.At[i]))
			continue
		case ring.Fresh:
			continue
		case ring.Late:
			c.Late++
		case ring.Ahead:
			c.Ahead++
		}
		if late == Refuse {
			return nil, c.refuse(int(rows.At[i]), map[ring.Verdict]string{ring.Late: "older than all slots", ring.Ahead: "further ahead than {MaxJump}"}[v])
		}
		if late == Drop {
			c.Unjudged++
			drop = append(drop, int(rows.At[i]))
		}
	}
	if n := len(rows.NoTime); n > 0 {
		c.TimesNull += int64(n)
		switch late {
		case Refuse:
			return nil, c.refuse(rows.NoTime[0], "without a time")
		case Drop:
			c.Unjudged += int64(n)
			drop = append(drop, rows.NoTime...)
			slices.Sort(drop)
		}
	}
	c.RowsIn += int64(rows.Len)
	c.KeysNull += int64(rows.NoKey)
	return drop, nil
}

func (c *Counts) refuse(row int, what string) error {
	e := faults.Mismatch(fault.At{}, "", "a time within the window", fmt.Sprintf("row %d of the input", c.RowsIn+int64(row)+1))
	return faults.About(e, "a row %s", fault.Text(what)).WithHint("{Late keep} lets such rows pass")
}

// Judge drops rows by a ring alone: all duplicates, and others at the ring's false-positive rate.
type Judge struct {
	Counts
	Ring     *ring.Ring
	Late     Late
	Expected float64 // how many rows were wrongly dropped, by the ring's rate
	Sample   *Sample // nil: none
	Rate     float64 // the highest so far

	verdicts []ring.Verdict
}

// Missed reports whether rows were wrongly dropped at a rate that exceeds one by half: as many as
// expected by the ring's fill, or as found in the sample, less 3 standard errors.
func (j *Judge) Missed(fpr float64) bool {
	wrong := j.Expected
	if s := j.Sample; s != nil {
		wrong = max(wrong, s.estimate-3*math.Sqrt(s.variance+s.estimate))
	}
	return wrong > 1.5*fpr*(float64(j.RowsIn-j.Duplicates)+wrong)
}

// Drop appends the rows to drop, ascending.
func (j *Judge) Drop(rows *Rows, drop []int) ([]int, error) {
	j.verdicts = j.verdicts[:0]
	// The rate and the sample follow the ring step by step.
	const step = 1 << 12
	for lo := 0; lo < len(rows.At); lo += step {
		hi := min(lo+step, len(rows.At))
		before := j.Ring.Recorded()
		j.verdicts = j.Ring.Judge(rows.Hashes[lo:hi], rows.Slots[lo:hi], j.verdicts)
		fresh := 0
		for _, v := range j.verdicts[lo:hi] {
			if v == ring.Fresh {
				fresh++
			}
		}
		p := j.Ring.Rate()
		if before > 0 && p < 1 {
			j.Expected += float64(fresh) * p / (1 - p)
		}
		j.Rate = max(j.Rate, p)
	}
	if j.Sample != nil {
		j.Sample.add(rows, j.verdicts)
	}
	return j.Counts.add(rows, j.Late, j.verdicts, drop)
}

// Estimated bytes of a key in a sample, and the largest number of keys.
const (
	sampleBytes = 40
	mostSampled = 1 << 20
)

// Sample keeps the hashes of one key in 2^k, to find how many rows of these were wrongly
// dropped. k grows with the number of keys.
type Sample struct {
	clock    ring.Clock
	most     int // keys
	k        int
	passed   map[uint64]int64 // by hash: the slot of the row that passed last
	estimate float64          // of all rows that were wrongly dropped
	variance float64          // of the estimate
}

// NewSample returns an empty sample, which takes about a quarter of a number of bytes, or less;
// 0: no limit.
func NewSample(p ring.Params, memory int64) *Sample {
	s := &Sample{clock: p.Clock(), most: mostSampled, passed: map[uint64]int64{}}
	if memory > 0 {
		s.most = int(min(mostSampled, max(memory/4/sampleBytes, 1)))
	}
	return s
}

// Wrong returns the estimated number of rows that were wrongly dropped, its standard error, and
// one in how many keys the sample has now. Each row that was found counts for the keys of the
// sample at that time (Horvitz and Thompson, 1952).
func (s *Sample) Wrong() (n, deviation float64, oneIn uint64) {
	return s.estimate, math.Sqrt(s.variance), 1 << s.k
}

// mixed returns bits that the filters do not use together.
func mixed(h uint64) uint64 {
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h ^ h>>32
}

func (s *Sample) in(h uint64) bool { return bits.LeadingZeros64(mixed(h)) >= s.k }

func (s *Sample) add(rows *Rows, verdicts []ring.Verdict) {
	for i, v := range verdicts {
		slot, h := rows.Slots[i], rows.Hashes[i]
		s.clock.Place(slot)
		if v != ring.Fresh && v != ring.Seen || !s.in(h) {
			continue
		}
		if v == ring.Fresh {
			s.passed[h] = slot
			if len(s.passed) > s.most {
				s.shrink()
			}
			continue
		}
		if at, ok := s.passed[h]; !ok || !s.clock.Holds(at) {
			weight := math.Ldexp(1, s.k)
			s.estimate += weight
			s.variance += weight * (weight - 1)
			s.passed[h] = slot // so that its duplicates do not count
		}
	}
}

// shrink forgets keys that are no longer in the window and, if that is not half, samples fewer.
func (s *Sample) shrink() {
	for h, slot := range s.passed {
		if !s.clock.Holds(slot) {
			delete(s.passed, h)
		}
	}
	for len(s.passed) > s.most/2 {
		s.k++
		for h := range s.passed {
			if !s.in(h) {
				delete(s.passed, h)
			}
		}
	}
}
