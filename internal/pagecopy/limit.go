package pagecopy

// enough reports whether no further row may follow.
func (e *engine) enough() bool { return e.left != nil && *e.left == 0 }

// unneeded returns a job none of whose rows may follow, and marks it as begun; nil: there is none.
func (e *engine) unneeded() *rangeJob {
	if !e.enough() {
		return nil
	}
	for _, s := range e.open {
		if s.group == nil && s.rows != nil && s.begun < len(s.taken) {
			s.begun = len(s.taken)
			return s
		}
	}
	return nil
}
