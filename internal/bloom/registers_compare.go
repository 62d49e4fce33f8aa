package bloom

import "math"

// Cardinality is an estimated number of keys with its standard error.
type Cardinality struct {
	Keys   float64
	StdErr float64
}

// Comparison describes how two sets overlap.
type Comparison struct {
	A, B         Cardinality // |A|, |B|
	Union, Both  Cardinality // |A∪B|, |A∩B|
	OnlyA, OnlyB Cardinality // |A\B|, |B\A|
}

// The three disjoint parts of two sets.
const (
	onlyA = iota
	onlyB
	both
	parts
)

// vector has an entry per part; matrix is symmetric.
type (
	vector [parts]float64
	matrix [parts]vector
)

// Compare estimates how the key sets of two sketches overlap. Both sketches must
// use the same hash.
//
// It is the joint maximum-likelihood estimate of Ertl (arXiv:1702.01284, section
// 4): the numbers of keys in A alone, in B alone and in both that make the observed
// pairs of registers most likely. The standard errors follow from the Fisher
// information. For sets of equal size with up to a third in common, |A∩B| has a
// standard error of 0.1 to 0.4 % of |A∪B|; |A| + |B| - |A∪B| would have 0.6 %. It
// grows to 0.8 %, the error of |A| itself, with the overlap.
func (r *Registers) Compare(s *Registers) Comparison {
	counts := pairs(r, s)
	rate := maximize(counts, start(r, s))
	// At zero the information about a part is infinite, yet a part smaller than
	// the share of one register may go unseen. The error is therefore evaluated
	// one such share above the estimate.
	at, seen := rate, max(1, (rate[onlyA]+rate[onlyB]+rate[both])/float64(len(r)))
	for i := range at {
		at[i] += seen
	}
	cov := inverse(information(at))
	for i := range cov {
		// The model also draws the number of keys from a Poisson distribution. Ours
		// is fixed, so subtract that part of the variance.
		cov[i][i] -= at[i]
	}
	estimate := func(of vector) (e Cardinality) {
		var v float64
		for i := range of {
			e.Keys += of[i] * rate[i]
			for j := range of {
				v += of[i] * cov[i][j] * of[j]
			}
		}
		e.StdErr = math.Sqrt(max(v, 0))
		return e
	}
	return Comparison{
		A: estimate(vector{1, 0, 1}), B: estimate(vector{0, 1, 1}),
		Union: estimate(vector{1, 1, 1}), Both: estimate(vector{0, 0, 1}),
		OnlyA: estimate(vector{1, 0, 0}), OnlyB: estimate(vector{0, 1, 0}),
	}
}

// histogram counts pairs of registers by their two values.
type histogram [maxRank + 1][maxRank + 1]float64

func pairs(r, s *Registers) *histogram {
	var h histogram
	for i := range r {
		h[min(r[i], maxRank)][min(s[i], maxRank)]++
	}
	return &h
}

// least is the smallest size considered for a part: practically zero, but with a
// finite logarithm.
const least = 1e-4

// start returns an initial estimate of the parts by inclusion and exclusion.
func start(r, s *Registers) vector {
	u := *r
	u.Merge(s)
	a, b, all := r.Estimate(), s.Estimate(), u.Estimate()
	v := vector{onlyA: all - b, onlyB: all - a, both: a + b - all}
	for i := range v {
		v[i] = max(v[i], all/1000, least)
	}
	return v
}

// maximize finds the most likely parts by Fisher scoring on their logarithms, which
// keeps them positive.
func maximize(counts *histogram, rate vector) vector {
	l := counts.likelihood(rate)
	for range 200 {
		gradient, info := counts.gradient(rate), information(rate)
		for i := range rate { // change of variables to logarithms
			gradient[i] *= rate[i]
			for j := range rate {
				info[i][j] *= rate[i] * rate[j]
			}
			info[i][i] *= 1 + 1e-9
		}
		step := info.solve(gradient)
		moved := false
		for scale := 1.0; scale > 1e-3; scale /= 2 {
			next := rate
			for i := range next {
				d := max(-2, min(2, step[i])) * scale
				next[i] = max(least, rate[i]*math.Exp(d))
			}
			if better := counts.likelihood(next); better > l {
				moved = better > l+1e-9
				rate, l = next, better
				break
			}
		}
		if !moved {
			break
		}
	}
	for i := range rate {
		if rate[i] <= 2*least {
			rate[i] = 0
		}
	}
	return rate
}

// likelihood returns the log-likelihood of the pairs.
func (h *histogram) likelihood(rate vector) (l float64) {
	t := terms(rate)
	for j := range h {
		for k, n := range h[j] {
			if n > 0 {
				p, _ := t.pair(j, k)
				l += n * math.Log(p)
			}
		}
	}
	return l
}

// gradient returns the derivatives of the log-likelihood.
func (h *histogram) gradient(rate vector) (g vector) {
	t := terms(rate)
	for j := range h {
		for k, n := range h[j] {
			if n > 0 {
				_, d := t.pair(j, k)
				for i := range g {
					g[i] += n * d[i]
				}
			}
		}
	}
	return g
}

// information returns the Fisher information of all registers about the parts.
func information(rate vector) (f matrix) {
	t := terms(rate)
	for j := range maxRank + 1 {
		for k := range maxRank + 1 {
			p, d := t.pair(j, k)
			p *= 1 << registerBits
			if p < 1e-30 {
				continue
			}
			for a := range d {
				for b := range d {
					f[a][b] += p * d[a] * d[b]
				}
			}
		}
	}
	return f
}

// term holds the probabilities for one register value. For λ keys (the mean of a
// Poisson distribution), the probability that no key raises a register above k is
// e^(-λ·share), where share = 2^-k/m for m registers.
type term struct {
	share float64
	none  vector // e^(-λ·share) for each part
	some  vector // 1 - none, accurate where it is small
}

type termTable [maxRank + 1]term

func terms(rate vector) *termTable {
	var t termTable
	for k := range t {
		t[k].share = math.Ldexp(1, -registerBits-min(k, maxRank-1))
		for i, n := range rate {
			e := math.Expm1(-n * t[k].share)
			t[k].none[i], t[k].some[i] = 1+e, -e
		}
	}
	return &t
}

// pair returns the probability that a register has value j in A and k in B, and the
// derivatives of its logarithm.
//
// If j < k, no key of both sets reaches k, so keys of B alone reach k and keys of
// all of A reach j. If they are equal, either a key of both sets reaches the value,
// or a key of each set alone does.
func (t *termTable) pair(j, k int) (p float64, d vector) {
	switch {
	case j < k:
		pa, da := t[j].reach(onlyA, both, j)
		pb, db := t[k].reach(onlyB, onlyB, k)
		return pa * pb, vector{onlyA: da, onlyB: db, both: da}
	case j > k:
		pa, da := t[j].reach(onlyA, onlyA, j)
		pb, db := t[k].reach(onlyB, both, k)
		return pa * pb, vector{onlyA: da, onlyB: db, both: db}
	}
	s := &t[k]
	p = 1
	if k <= maxRank-1 { // no value exceeds the largest
		p = s.none[onlyA] * s.none[onlyB] * s.none[both]
		for i := range d {
			d[i] = -s.share
		}
	}
	if k == 0 { // no value is below the smallest
		return p, d
	}
	a, b, x := s.none[onlyA], s.none[onlyB], s.none[both]
	someA, someB := s.either(onlyA), s.either(onlyB)
	reached := someA*someB + a*b*x*s.some[both]
	d[onlyA] += s.share * a * x * s.some[onlyB] / reached
	d[onlyB] += s.share * b * x * s.some[onlyA] / reached
	// 1/a + 1/b - 1, computed without a difference
	d[both] += s.share * x * (a + b*s.some[onlyA]) / reached
	return p * reached, d
}

// either returns the probability that a key of the part or of both sets raises a
// register above the value: 1 - none·none.
func (s *term) either(part int) float64 { return s.some[part] + s.none[part]*s.some[both] }

// reach returns the probability that k is the largest rank of the keys of two
// parts, and the derivative of its logarithm by the size of either. The two parts
// may be the same one.
func (s *term) reach(part, or, k int) (p, d float64) {
	none, some := s.none[part], s.some[part]
	if or != part {
		none, some = none*s.none[or], s.either(part)
	}
	p = 1
	if k <= maxRank-1 {
		p, d = none, -s.share
	}
	if k > 0 {
		p *= some
		d += s.share * none / some
	}
	return p, d
}

// solve returns x with m·x = v, for a positive definite m.
func (m matrix) solve(v vector) (x vector) {
	inv := inverse(m)
	for i := range x {
		for j := range v {
			x[i] += inv[i][j] * v[j]
		}
	}
	return x
}

// inverse inverts a positive definite matrix. It is scaled to a diagonal of ones
// first, so that parts of very different sizes do not lose precision.
func inverse(m matrix) (inv matrix) {
	var s vector
	for i := range s {
		s[i] = 1 / math.Sqrt(m[i][i])
	}
	for i := range m {
		for j := range m {
			m[i][j] *= s[i] * s[j]
		}
	}
	// Cyclic indices give the cofactors their signs.
	minor := func(i, j int) float64 {
		a, b, c, d := (i+1)%3, (i+2)%3, (j+1)%3, (j+2)%3
		return m[a][c]*m[b][d] - m[a][d]*m[b][c]
	}
	det := m[0][0]*minor(0, 0) + m[0][1]*minor(0, 1) + m[0][2]*minor(0, 2)
	for i := range inv {
		for j := range inv {
			inv[i][j] = minor(j, i) / det * s[i] * s[j]
		}
	}
	return inv
}
