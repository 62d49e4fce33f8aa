package ring

import (
	"fmt"
	"math"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// Params determine a ring.
type Params struct {
	Slots  int           `json:"slots"`
	Width  time.Duration `json:"width_ns"` // of a slot; 0: rows have no times
	Jump   int64         `json:"jump"`     // most slots that a row may be ahead of the newest one; 0: any number
	Expect uint64        `json:"expect"`   // distinct keys in a window
	FPR    float64       `json:"fpr"`      // of a row, whatever the number of slots
	Blocks uint64        `json:"blocks"`   // of each slot's filter
}

// Window is what a ring should do.
type Window struct {
	Window, Jump time.Duration
	Slots        int
	Expect       uint64
	FPR          float64
}

// Plan returns the parameters of a ring, and an error if there is no such ring. Each of n slots
// gets the rate p for which 1-(1-p)^n is the rate of a row.
func Plan(w Window) (p Params, err error) {
	p = Params{Slots: w.Slots, Expect: w.Expect, FPR: w.FPR}
	switch {
	case w.Slots < 1 || w.Slots > MostSlots:
		return p, faults.Unsupported(fault.At{}, "{Slots %d}: want 1 to %d", w.Slots, MostSlots)
	case !(w.FPR > 0 && w.FPR < 1):
		return p, fmt.Errorf("FPR %v: want more than 0 and less than 1", w.FPR)
	case w.Expect == 0 || w.Expect > 1<<48:
		return p, fmt.Errorf("%d keys expected in a window: want 1 to 2^48", w.Expect)
	case w.Window < 0 || w.Jump < 0:
		return p, fmt.Errorf("a window of %v, a jump of %v: want no negative ones", w.Window, w.Jump)
	case w.Window == 0 && w.Slots > 1:
		return p, fmt.Errorf("%d slots without a window: want one slot", w.Slots)
	case w.Window > 0 && (w.Window < time.Duration(w.Slots)*time.Microsecond || w.Window%time.Duration(w.Slots) != 0):
		return p, fmt.Errorf("a window of %v: want one that %d slots divide into whole nanoseconds, at least 1,000 each", w.Window, w.Slots)
	}
	p.Width = w.Window / time.Duration(w.Slots)
	if w.Jump > 0 {
		p.Jump = int64((w.Jump-1)/p.Width) + 1 // no row within Jump is refused
	}
	_, ways := p.layout()
	n := uint64(w.Slots)
	p.Blocks = bloom.Split512.BlocksFor((w.Expect+n*ways-1)/(n*ways), -math.Expm1(math.Log1p(-w.FPR)/float64(n)))
	return p, nil
}

// layout returns how many bytes the bits of all slots take at one position, and how many filters
// each slot has: as many as use these bytes best.
func (p Params) layout() (width, ways uint64) {
	n, used := uint64(p.Slots), 0.0
	for w := (n + 7) / 8; w <= 8; w++ {
		if u := float64(8*w/n*n) / float64(8*w); u > used {
			width, ways, used = w, 8*w/n, u
		}
	}
	return width, ways
}

// Bytes returns the size of the ring's bits in memory.
func (p Params) Bytes() uint64 {
	width, _ := p.layout()
	return p.Blocks*blockBits*width + pad
}

// Fits returns an error if the bits take more than a number of bytes; 0: no limit.
func (p Params) Fits(most uint64) error {
	if most == 0 || p.Bytes() <= most {
		return nil
	}
	return faults.Errorf("%w: filters for %d keys, at a rate of %g: want at most %s, got %s (raise {Memory} or {FPR}, or lower {Expect})",
		fault.ErrMemory, p.Expect, p.FPR, show.Size(int64(min(most, math.MaxInt64))), show.Size(int64(p.Bytes())))
}

// rate returns the probability of a false positive in any of the slots, given their numbers of
// keys. Each way of a slot has its share of them.
func rate(blocks, ways uint64, counts []uint64) float64 {
	none := 0.0 // logarithm of the probability that there is none
	for _, n := range counts {
		none += math.Log1p(-bloom.Split512.FPR(blocks, (n+ways-1)/ways))
	}
	return -math.Expm1(none)
}
