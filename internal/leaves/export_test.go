package leaves

import "unsafe"

// Held returns the memory that the store holds: the capacities of its slices.
func (s *Store) Held() (n int64) {
	for i := range s.leaves {
		cols := s.leaves[i]
		n += int64(cap(cols)) * int64(unsafe.Sizeof(column{}))
		for j := range cols {
			n += cols[j].bytes()
		}
	}
	return n
}
