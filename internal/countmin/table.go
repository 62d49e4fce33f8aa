// Package countmin counts how often each of many keys occurs, in fixed memory: the count-min
// sketch. In go 64-bit keys, usually hashes, with weights; out come upper bounds on the weight
// of a key, of a range of keys (see [Ranges]), and of the inner product of two sketches.
//
// A [Table] has d rows of w counters. Each row adds a key's weight to one of its counters,
// chosen by a hash function of its own, so no counter is below the weight of any of its keys.
// The tables are linear: the table of two multisets is the sum of their tables, counter by
// counter, however the keys were divided and in whatever order they came.
//
// Source: G. Cormode and S. Muthukrishnan, "An improved data stream summary: the count-min
// sketch and its applications", J. Algorithms 55, 2005.
package countmin

import (
	"errors"
	"math"
	"math/bits"
)

// Params is the size of a table. Only tables of equal parameters and seed can be added or multiplied.
type Params struct {
	Width uint64 // counters in a row, 1 to MaxWidth
	Depth uint32 // rows, 1 to MaxDepth
}

// Limits of parameters: 8 GiB in a row, and a probability of e^-64 of a false bound.
const (
	MaxWidth = 1 << 30
	MaxDepth = 64
)

// ParamsFor returns the parameters for which an estimate exceeds the weight by more than
// epsilon times the total with a probability of at most delta: w = ⌈e/ε⌉, d = ⌈ln 1/δ⌉. ok is
// false unless both are between 0 and 1 and the table has at most MaxWidth columns and MaxDepth
// rows.
func ParamsFor(epsilon, delta float64) (p Params, ok bool) {
	if !(epsilon > 0 && epsilon < 1 && delta > 0 && delta < 1) {
		return p, false
	}
	w, d := math.Ceil(math.E/epsilon), math.Ceil(-math.Log(delta))
	if w > MaxWidth || d > MaxDepth {
		return p, false
	}
	return Params{Width: uint64(w), Depth: uint32(d)}, true
}

// Epsilon returns e/w: the bound of an estimate's error as a share of the total.
func (p Params) Epsilon() float64 { return math.E / float64(p.Width) }

// Delta returns e^-d: the probability that an estimate exceeds its bound, at most.
func (p Params) Delta() float64 { return math.Exp(-float64(p.Depth)) }

// Bytes returns the size of a table's counters.
func (p Params) Bytes() uint64 { return 8 * p.Width * uint64(p.Depth) }

// ErrOverflow means that the total weight exceeds 2^64-1.
var ErrOverflow = errors.New("the weights add up to more than 2^64-1")

// Table is a count-min sketch. Methods that only read may run concurrently; Add and Merge need
// exclusive access.
type Table struct {
	params   Params
	rows     []row
	counters []uint64 // row after row
	total    uint64
}

// row is a hash function: h(x) = the upper 64 bits of a·x + b mod 2^128, with another b for
// negative keys. For random a and b the values of any two keys are independent and uniform, so
// that they share one of w counters with probability 1/w, up to w/2^64.
//
// Source: M. Dietzfelbinger, "Universal hashing and k-wise independent random variables via
// integer arithmetic without primes", STACS 1996.
type row struct {
	aHigh, aLow uint64
	bHigh, bLow [2]uint64
}

// NewTable returns an empty table. Tables with the same parameters and seed have the same hash
// functions; those of different seeds are independent. The parameters must be within the
// limits.
func NewTable(p Params, seed uint64) *Table {
	t := &Table{params: p, rows: make([]row, p.Depth), counters: make([]uint64, p.Width*uint64(p.Depth))}
	next := func() uint64 { // splitmix64
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	for i := range t.rows {
		t.rows[i] = row{next(), next(), [2]uint64{next(), next()}, [2]uint64{next(), next()}}
	}
	return t
}

// at returns the counter of a key in the row, out of width.
func (r *row) at(x uint64, negative bool, width uint64) uint64 {
	sign := 0
	if negative {
		sign = 1
	}
	high, low := bits.Mul64(r.aLow, x)
	_, carry := bits.Add64(low, r.bLow[sign], 0)
	h, _ := bits.Add64(high+r.aHigh*x, r.bHigh[sign], carry)
	column, _ := bits.Mul64(h, width)
	return column
}

// Total returns the weight of all keys.
func (t *Table) Total() uint64 { return t.total }

// Add adds weight to a key. A negative key differs from the one with the same bits that is not.
// The error is ErrOverflow; the table is then unchanged.
func (t *Table) Add(x uint64, negative bool, weight uint64) error {
	total, over := bits.Add64(t.total, weight, 0)
	if over != 0 {
		return ErrOverflow
	}
	t.total = total // no counter exceeds it
	counters := t.counters
	for i := range t.rows {
		counters[t.rows[i].at(x, negative, t.params.Width)] += weight
		counters = counters[t.params.Width:]
	}
	return nil
}

// Estimate returns the least counter of the key: at least its weight.
func (t *Table) Estimate(x uint64, negative bool) uint64 {
	least, counters := t.total, t.counters
	for i := range t.rows {
		least = min(least, counters[t.rows[i].at(x, negative, t.params.Width)])
		counters = counters[t.params.Width:]
	}
	return least
}

// Product returns the least inner product of two rows of counters, as 128 bits: at least the
// sum over all keys of the product of their weights in both tables and, with probability
// 1-δ, at most ε times the product of the totals above it (section 4.2 of the paper). The
// tables must be equal in parameters and seed.
func (t *Table) Product(u *Table) (high, low uint64) {
	w := int(t.params.Width)
	for i := range t.rows {
		var h, l uint64
		b := u.counters[i*w : (i+1)*w]
		for j, a := range t.counters[i*w : (i+1)*w] {
			ph, pl := bits.Mul64(a, b[j])
			var carry uint64
			l, carry = bits.Add64(l, pl, 0)
			h, _ = bits.Add64(h, ph, carry) // at most the product of the totals
		}
		if i == 0 || h < high || h == high && l < low {
			high, low = h, l
		}
	}
	return high, low
}

// Merge adds all weights of u, a table of the same parameters and seed. The error is
// ErrOverflow; the table is then unchanged.
func (t *Table) Merge(u *Table) error {
	total, over := bits.Add64(t.total, u.total, 0)
	if over != 0 {
		return ErrOverflow
	}
	t.total = total
	for i, c := range u.counters {
		t.counters[i] += c
	}
	return nil
}

// Counters returns the table's own counters, row after row: a file's writer reads them, and its
// reader sets them and then calls SetTotal.
func (t *Table) Counters() []uint64 { return t.counters }

// SetTotal sets the total of a table whose counters were set. ok is false if a row does not
// add up to it: then the counters are not those of a table.
func (t *Table) SetTotal(total uint64) (ok bool) {
	t.total = total
	for row := t.counters; len(row) > 0; row = row[t.params.Width:] {
		if sum, fits := sumOf(row[:t.params.Width]); !fits || sum != total {
			return false
		}
	}
	return true
}

// sumOf returns the sum of counters, and whether it fits 64 bits.
func sumOf(counters []uint64) (sum uint64, fits bool) {
	for _, c := range counters {
		var over uint64
		if sum, over = bits.Add64(sum, c, 0); over != 0 {
			return 0, false
		}
	}
	return sum, true
}
