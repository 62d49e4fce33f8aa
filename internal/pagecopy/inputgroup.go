package pagecopy

import "github.com/bloomjoin/bloomjoin/internal/tables"

// howCopied is how the chunks of an input row group reach the output.
type howCopied uint8

const (
	undecided howCopied = iota
	// someRows: page by page, into a row group that may have rows of other row groups.
	someRows
	// maxRows: page by page, into a row group of its own. Pages that lose no row stay
	// compressed.
	maxRows
	// wholeRows: no row is dropped or repeated; chunks as they are stored.
	wholeRows
)

const (
	// minCopied is the minimum size of an input row group, in compressed bytes, that
	// gets a row group of its own in an output of several inputs. Otherwise small files
	// would give small row groups.
	minCopied = 8 << 20
	// minOwn replaces minCopied if the output has a single input with several row groups:
	// only tiny ones are merged. (A single row group may have any size.)
	minOwn = 16 << 10
	// keepsMost: a row group that loses at most 1/keepsMost of its rows is copied as
	// maxRows.
	keepsMost = 8
	// maxWaiting is the maximum number of rows with partners to hold until it is
	// known whether any row of a row group multiplies.
	maxWaiting = 8 << 20
)

// inputGroup is a row group of the input, divided into jobs.
type inputGroup struct {
	jobs         []*rangeJob // in order, those that were begun
	total        int         // jobs
	mayCopyWhole bool        // it may get a row group of its own
	oversized    bool        // a job is divided if all of its rows have partners
	hasCondition bool        // the file has a condition, so rows may be dropped
	how          howCopied
	group        *Group // its own
}

// decide decides how the row group is copied. It returns undecided while that depends
// on jobs whose rows are not known. What it decides depends on the rows, never on which
// of them are known first.
func (in *inputGroup) decide(p *tables.Pairs) howCopied {
	if in.how != undecided {
		return in.how
	}
	in.how = in.choose(p)
	return in.how
}

func (in *inputGroup) choose(p *tables.Pairs) howCopied {
	if !in.mayCopyWhole {
		return someRows
	}
	if p != nil && p.KeepLog && p.Joined == nil && p.Unique && !in.oversized && !in.hasCondition {
		return wholeRows
	}
	waiting, known := 0, 0
	for _, s := range in.jobs {
		if s.rows == nil {
			continue
		}
		known++
		if !s.rows.Whole() {
			return in.inPages()
		}
	}
	for _, s := range in.jobs { // in order, so that the sum does not depend on timing
		if s.rows == nil {
			break
		}
		if waiting += len(s.rows.Matched); waiting > maxWaiting {
			return someRows
		}
	}
	if known < in.total {
		return undecided
	}
	return wholeRows
}

// inPages returns how the row group is copied if a row is dropped or repeated.
func (in *inputGroup) inPages() howCopied {
	if in.total > 1 || in.jobs[0].rows.Times != nil {
		return someRows
	}
	s := in.jobs[0].rows
	if all := s.Hi - s.Lo; s.Count >= all-all/keepsMost {
		return maxRows
	}
	return someRows
}
