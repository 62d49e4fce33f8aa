package enc

// GrowTo returns s with length n. Existing elements are kept; new ones are
// undefined.
func GrowTo[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	out := make([]T, n, max(n, 2*cap(s)))
	copy(out, s)
	return out
}

// Reuse returns n undefined elements, in buf's memory if it is large enough.
func Reuse[T any](buf []T, n int) []T {
	if cap(buf) < n {
		return make([]T, n)
	}
	return buf[:n]
}

// Extend adds room for n bytes to b. It returns the extended slice and its new
// part.
func Extend(b []byte, n int) (all, more []byte) {
	from := len(b)
	if cap(b)-from < n {
		b = append(make([]byte, 0, max(from+n, 2*cap(b))), b...)
	}
	all = b[:from+n]
	return all, all[from:]
}
