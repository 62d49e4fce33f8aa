package plan

// Filtering decides during a scan whether to go on probing a filter. One goroutine
// uses it. A nil Filtering always probes.
//
// Probing costs probe nanoseconds for each row and saves lookup nanoseconds for
// each row dropped. Probing stops when it saves less than four fifths of its cost,
// and resumes above five fourths; in between nothing changes. Older rows count
// half at each decision, so that it follows a log that changes. While probing is
// paused, one row group in [filterRetry] is still probed.
type Filtering struct {
	probe, lookup   float64
	rows, passed    float64
	resting         bool
	sinceLastProbed int
}

const (
	filterLeast = 1 << 17 // rows before the first decision
	filterRetry = 16
)

// NewFiltering returns the decision for the model's filter, in front of a table of
// held bytes.
func NewFiltering(m *Model, held float64) *Filtering {
	return &Filtering{probe: ask(m.filterOfIDs()), lookup: m.lookupOne(held)}
}

// Seen records how many rows were probed, and how many of them passed.
func (f *Filtering) Seen(rows, passed int64) {
	if f == nil {
		return
	}
	f.rows += float64(rows)
	f.passed += float64(passed)
	if f.rows < filterLeast {
		return
	}
	saved := f.lookup * (1 - f.passed/f.rows)
	switch {
	case !f.resting && saved < 0.8*f.probe:
		f.resting = true
	case f.resting && saved > 1.25*f.probe:
		f.resting = false
	}
	f.rows, f.passed = f.rows/2, f.passed/2
}

// Ask reports whether to probe the filter for the next row group.
func (f *Filtering) Ask() bool {
	if f == nil {
		return true
	}
	if !f.resting {
		f.sinceLastProbed = 0
		return true
	}
	f.sinceLastProbed++
	if f.sinceLastProbed >= filterRetry {
		f.sinceLastProbed = 0
		return true
	}
	return false
}
