package keyscan

import "slices"

// MatchCounts combines the results of several filters for the same rows.
type MatchCounts struct {
	yes      []int16 // filters that the row passed
	excluded []byte  // 1 for rows that a filter with NoMatch drops
	need     int16   // filters that were probed, without those with NoMatch
}

// Begin starts with n rows.
func (v *MatchCounts) Begin(n int) {
	v.yes, v.excluded, v.need = zeroed(v.yes, n), zeroed(v.excluded, n), 0
}

// Add counts the rows that passed a filter. They are numbered from first.
func (v *MatchCounts) Add(rows []uint32, first int64, noMatch bool) {
	if noMatch {
		for _, r := range rows {
			v.excluded[int64(r)-first] = 1
		}
		return
	}
	v.need++
	for _, r := range rows {
		v.yes[int64(r)-first]++
	}
}

// Passed appends the rows to keep to dst, numbered from first: those that passed
// all filters or, with anyOf, one of them, and that no filter drops.
func Passed[T int | uint32](v *MatchCounts, dst []T, first T, anyOf bool) []T {
	need := v.need
	if anyOf {
		need = min(need, 1)
	}
	drop, left := v.excluded, len(v.yes)
	for row, n := range v.yes {
		drop[row] |= byte(uint16(n-need) >> 15) // below need
		left -= int(drop[row])
	}
	// Every row is written, over the one before if that is dropped: which are, no processor predicts.
	n := len(dst)
	dst = slices.Grow(dst, left+1)[:n+left+1]
	for row, no := range drop {
		dst[n] = first + T(row)
		n += 1 - int(no)
	}
	return dst[:n]
}

// zeroed returns n zeros, in the memory of s if it suffices.
func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
