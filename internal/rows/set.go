package rows

import "slices"

// Set is rows of a row group: ranges of row numbers from and to, exclusive, ascending and
// apart. The zero value is empty.
type Set [][2]int64

// Range returns the set of rows from lo to hi, exclusive.
func Range(lo, hi int64) Set { return Set{{lo, hi}} }

// Add returns the set with rows after all that it has.
func (s Set) Add(lo, hi int64) Set {
	if n := len(s); n > 0 && s[n-1][1] == lo {
		s[n-1][1] = hi
		return s
	}
	return append(s, [2]int64{lo, hi})
}

// All reports whether the set has all rows of a row group of total rows.
func (s Set) All(total int64) bool { return len(s) == 1 && s[0] == [2]int64{0, total} }

// And returns the rows that are in both sets.
func (s Set) And(o Set) (both Set) {
	for len(s) > 0 && len(o) > 0 {
		if lo, hi := max(s[0][0], o[0][0]), min(s[0][1], o[0][1]); lo < hi {
			both = append(both, [2]int64{lo, hi})
		}
		if s[0][1] < o[0][1] {
			s = s[1:]
		} else {
			o = o[1:]
		}
	}
	return both
}

// Minus returns the rows that are not in o.
func (s Set) Minus(o Set) (rest Set) {
	for _, r := range s {
		for len(o) > 0 && o[0][1] <= r[0] {
			o = o[1:]
		}
		for i := 0; r[0] < r[1]; i++ {
			if i == len(o) || o[i][0] >= r[1] {
				rest = append(rest, r)
				break
			}
			if r[0] < o[i][0] {
				rest = append(rest, [2]int64{r[0], o[i][0]})
			}
			r[0] = o[i][1]
		}
	}
	return rest
}

// List appends the numbers of the rows to dst.
func (s Set) List(dst []uint32) []uint32 {
	n := int64(0)
	for _, r := range s {
		n += r[1] - r[0]
	}
	dst = slices.Grow(dst, int(n))
	for _, r := range s {
		for row := r[0]; row < r[1]; row++ {
			dst = append(dst, uint32(row))
		}
	}
	return dst
}

// Of appends the rows of an ascending list that are in the set to dst.
func (s Set) Of(dst, list []uint32) []uint32 {
	for _, row := range list {
		for len(s) > 0 && s[0][1] <= int64(row) {
			s = s[1:]
		}
		if len(s) > 0 && s[0][0] <= int64(row) {
			dst = append(dst, row)
		}
	}
	return dst
}

// Common reduces an ascending list of rows to the rows that another one has, too.
func Common(list, other []uint32) []uint32 {
	both := list[:0]
	for _, row := range list {
		for len(other) > 0 && other[0] < row {
			other = other[1:]
		}
		if len(other) > 0 && other[0] == row {
			both = append(both, row)
		}
	}
	return both
}

// Merged appends the rows of two ascending lists without common rows to dst, ascending.
func Merged(dst, a, b []uint32) []uint32 {
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			dst, a = append(dst, a[0]), a[1:]
		} else {
			dst, b = append(dst, b[0]), b[1:]
		}
	}
	return append(append(dst, a...), b...)
}
