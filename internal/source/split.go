package source

import (
	"math/bits"
	"sort"

	"github.com/bloomjoin/bloomjoin/dataset"
)

// Split returns the pieces of the files that belong to the shard. It divides the
// row groups of all files, in order, among the workers by bytes. Every row group
// belongs to exactly one worker. The division depends on the files' sizes alone, so
// each worker computes its own. A file without row groups belongs to the worker of
// the row groups around it.
//
// The largest share is at most 1.2 times the mean if any division in this order
// achieves that; otherwise it is as small as possible.
//
// For a shard that does not exist, such as 4/4, Split returns a piece of a File that
// stands for no input. Everything that reads this piece or its File returns an error.
func Split(files []*File, s dataset.Shard) []Piece {
	if err := CheckShard(s); err != nil {
		return []Piece{noPiece(s, err)}
	}
	var weights []int64
	for _, f := range files {
		if f == nil {
			return []Piece{{}} // which nothing takes
		}
		weights = AppendWeights(weights, f.NumGroups(), f.GroupBytes)
	}
	lo, hi := Divide(weights, s)
	var pieces []Piece
	at := 0
	for _, f := range files {
		if from, to, ok := Overlap(at, f.NumGroups(), lo, hi); ok {
			pieces = append(pieces, Piece{File: f, Lo: from, Hi: to})
		}
		at += max(f.NumGroups(), 1)
	}
	return pieces
}

// AppendWeights appends the weights of a file's row groups for divide: their bytes,
// and one for each, so that empty ones count too. A file without row groups counts as
// an empty one.
func AppendWeights(weights []int64, groups int, bytes func(int) int64) []int64 {
	if groups == 0 {
		return append(weights, 1)
	}
	for g := range groups {
		weights = append(weights, max(bytes(g), -1)+1)
	}
	return weights
}

// Overlap returns the row groups of a file within the range from lo to hi of all weights. The
// file's weights begin at index at. ok is false if the file is not in the range.
func Overlap(at, groups, lo, hi int) (from, to int, ok bool) {
	from, to = max(lo-at, 0), min(hi-at, max(groups, 1))
	if from >= to {
		return 0, 0, false
	}
	return from, min(to, groups), true
}

// Divide returns the range of weights, from lo to hi exclusive, of a shard. Each worker has an
// equal part of the total. A weight belongs to the worker whose part has its middle, unless that
// worker would get more than the limit.
func Divide(weights []int64, s dataset.Shard) (lo, hi int) {
	if s.Whole() {
		return 0, len(weights)
	}
	d := newDivision(weights, int(s.Of))
	return d.share(int(s.Index))
}

// ByMiddles reports whether Divide gives each weight to the worker that Owner returns, by the total
// and the largest of the weights alone. By the middles, a worker gets at most total/n + largest + 2
// in whole numbers: the first and the last weight stand out by half of theirs. If that is within
// the limit, reach ends no range before its middle, and firsts, by induction from the end, begins
// none after it.
func ByMiddles(total, largest uint64, n uint32) bool {
	of := uint64(max(n, 1))
	return total < MaxWeight && largest < MaxWeight && total/of+largest+2 <= 6*total/(5*of)
}

// Owner returns the worker of n whose equal part of the total has the middle of a weight, which
// follows weights of the given sum.
func Owner(before, weight, total uint64, n uint32) uint32 {
	high, low := bits.Mul64(before+weight/2, uint64(n))
	owner, _ := bits.Div64(high, low, max(total, 1))
	return uint32(min(owner, uint64(n-1)))
}

// division divides weights among n workers, in order.
type division struct {
	n     int
	sums  []uint64 // of the weights before each, and of all
	limit uint64   // of a worker's sum
}

// MaxWeight is the largest sum of weights that is divided exactly.
const MaxWeight = 1 << 61

func newDivision(weights []int64, n int) *division {
	d := &division{n: n, sums: make([]uint64, len(weights)+1)}
	var total, largest uint64
	for i, w := range weights {
		largest = max(largest, uint64(w))
		total = min(total+uint64(w), MaxWeight)
		d.sums[i+1] = total
	}
	mean := total / uint64(n)
	if d.limit = (6 * total) / (5 * uint64(n)); d.feasible(d.limit) {
		return d
	}
	// The division by middles alone stays within the mean and the largest weight.
	low, high := max(d.limit+1, largest), mean+largest+2
	for low < high {
		if m := low + (high-low)/2; d.feasible(m) {
			high = m
		} else {
			low = m + 1
		}
	}
	d.limit = low
	return d
}

// feasible reports whether n workers suffice if none gets more than the limit.
func (d *division) feasible(limit uint64) bool {
	at := 0
	for range d.n {
		if at = d.reach(at, limit); at == len(d.sums)-1 {
			return true
		}
	}
	return false
}

// reach returns the end of the longest range from at on whose sum is within the limit.
func (d *division) reach(at int, limit uint64) int {
	last, step := len(d.sums)-1, 1
	fits := func(end int) bool { return d.sums[end]-d.sums[at] <= limit }
	for at+step <= last && fits(at+step) {
		step *= 2
	}
	from, to := at+step/2, min(at+step-1, last)
	return from + sort.Search(to-from, func(i int) bool { return !fits(from + i + 1) })
}

// share returns the range of a worker.
func (d *division) share(worker int) (lo, hi int) {
	first := d.firsts()
	for i := 1; i <= worker+1; i++ {
		lo, hi = hi, min(max(d.middle(i), first[i]), d.reach(hi, d.limit))
	}
	return lo, hi
}

// firsts returns, for each worker and the end, where its range must not begin earlier
// so that it and those after it suffice for the rest.
func (d *division) firsts() []int {
	first := make([]int, d.n+1)
	at := len(d.sums) - 1
	for i := d.n; i >= 0; i-- {
		first[i] = at
		least := d.sums[at] - min(d.sums[at], d.limit)
		at = sort.Search(at, func(k int) bool { return d.sums[k] >= least })
	}
	return first
}

// middle returns where the range of a worker begins by the middles of the weights.
func (d *division) middle(worker int) int {
	last := len(d.sums) - 1
	if worker == d.n {
		return last
	}
	return sort.Search(last, func(k int) bool {
		return int(Owner(d.sums[k], d.sums[k+1]-d.sums[k], d.sums[last], uint32(d.n))) >= worker
	})
}

// Nth returns total·i/n.
func Nth(i, n int, total int64) int64 {
	hi, lo := bits.Mul64(uint64(total), uint64(i))
	q, _ := bits.Div64(hi, lo, uint64(n))
	return int64(q)
}
