package leaves

import "unsafe"

// Held returns the memory that the store holds: the capacities of its slices.
func (s *Store) Held() (n int64) {
	for i := range s.leaves {
		l := &s.leaves[i]
		n += int64(cap(l.cols)) * int64(unsafe.Sizeof(column{}))
		for j := range l.cols {
			n += l.cols[j].bytes()
		}
	}
	return n
}
