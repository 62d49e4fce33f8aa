package exact

// Index builds the index of at most maxBytes bytes now, before any value is probed.
func (s *Set) Index(maxBytes uint64) {
	s.SetIndexBudget(maxBytes)
	s.index.Store(s.newIndex())
}
