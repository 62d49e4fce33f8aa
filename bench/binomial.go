package main

import "math"

// tails returns P(X <= k) and P(X >= k) for a binomial X with n trials of
// probability p. Terms are added from k outwards until they are negligible. The
// first is computed with log-gamma, each other from its neighbour, so n may be
// 10^10.
func tails(k, n uint64, p float64) (low, high float64) {
	switch {
	case p <= 0:
		return 1, boolean(k == 0)
	case p >= 1:
		return boolean(k == n), 1
	}
	at := math.Exp(logBinomial(k, n, p))
	odds := p / (1 - p)
	// The tail without the mean is summed; the other is its complement.
	if float64(k) < float64(n)*p {
		term := at
		for i := k; ; i-- {
			low += term
			if i == 0 || term < low*1e-17 {
				break
			}
			term *= float64(i) / (float64(n-i+1) * odds)
		}
		return low, 1 - low + at
	}
	term := at
	for i := k; ; i++ {
		high += term
		if i == n || term < high*1e-17 {
			break
		}
		term *= float64(n-i) * odds / float64(i+1)
	}
	return 1 - high + at, high
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// logBinomial returns the logarithm of P(X = k).
func logBinomial(k, n uint64, p float64) float64 {
	return logChoose(float64(n), float64(k)) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
}

// logChoose returns the natural logarithm of the binomial coefficient n over k.
func logChoose(n, k float64) float64 {
	lg := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	return lg(n) - lg(k) - lg(n-k)
}

// confidence is the probability that a correct prediction passes Plausible.
const confidence = 0.999

// Plausible reports whether k false positives among n probes are within the
// two-sided bound around the predicted rate p: neither tail has a probability below
// (1 - confidence) / 2.
func Plausible(k, n uint64, p float64) bool {
	low, high := tails(k, n, p)
	return math.Min(low, high) >= (1-confidence)/2
}
