package pagecopy

import (
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// TestInputGroup checks that how a row group is copied depends on the rows of its jobs,
// not on the order in which they become known.
func TestInputGroup(t *testing.T) {
	whole := func() *rows.Selection { return rows.Of(0, 16, slices.Repeat([]uint32{0}, 16)) }
	some := func(n int) *rows.Selection { return rows.Of(0, 16, make([]uint32, n)) }
	repeated := whole()
	repeated.Times = []uint32{2}
	for _, c := range []struct {
		name string
		rows []*rows.Selection
		own  bool
		p    *tables.Pairs
		want howCopied
	}{
		{"whole", []*rows.Selection{whole()}, true, nil, wholeRows},
		{"small", []*rows.Selection{whole()}, false, nil, someRows},
		{"two ranges", []*rows.Selection{whole(), whole()}, true, nil, wholeRows},
		{"a row is lost", []*rows.Selection{whole(), some(15)}, true, nil, someRows},
		{"few rows are lost", []*rows.Selection{some(14)}, true, nil, maxRows},
		{"many rows are lost", []*rows.Selection{some(13)}, true, nil, someRows},
		{"a row is repeated", []*rows.Selection{repeated}, true, nil, someRows},
		{"too many partners", []*rows.Selection{{Hi: 1, Matched: make([]uint32, maxWaiting)}, {Matched: make([]uint32, 1)}}, true, nil, someRows},
	} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			in := &inputGroup{mayCopyWhole: c.own, total: len(c.rows)}
			for range c.rows {
				in.jobs = append(in.jobs, &rangeJob{within: in})
			}
			var got howCopied
			for _, i := range order {
				if i < len(c.rows) {
					in.jobs[i].rows = c.rows[i]
					got = in.decide(c.p)
				}
			}
			if got != c.want {
				t.Errorf("%s, in order %v: %d, want %d", c.name, order, got, c.want)
			}
		}
	}
	in := &inputGroup{mayCopyWhole: true, total: 3, jobs: []*rangeJob{{rows: whole()}}}
	if got := in.decide(nil); got != undecided {
		t.Errorf("one of three ranges is known: %d", got)
	}
	if got := in.decide(&tables.Pairs{Partners: rows.Partners{KeepLog: true, Unique: true}}); got != wholeRows {
		t.Errorf("no row can be lost or repeated: %d", got)
	}
}

// A row group whose rows multiply holds only what is still to be written: the parts of
// a job end one by one, its input row group much later.
func TestKnownLeavesRowsToParts(t *testing.T) {
	times := []int64{600, 600, 1}
	p := partnersOf(times)
	r := tasks.Range{Hi: 3}
	chosen, err := p.Select(r.Lo, r.Hi, rows.Matched{Rows: []uint32{0, 1, 2}, Entries: []uint32{0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	in := &inputGroup{total: 2, mayCopyWhole: true}
	s := newRangeJob(&Source{Leaves: []int{0}}, in, r)
	in.jobs = []*rangeJob{s}
	e := &engine{scanner: &keyscan.Scanner{Options: keyscan.Options{Entries: true}, Stats: new(keyscan.Stats)}, pairs: p, open: []*rangeJob{s}}
	e.known(s, chosen, chosen.Divided(1000))
	if len(e.open) != 2 || slices.Contains(e.open, s) {
		t.Fatalf("%d open jobs, want the two parts", len(e.open))
	}
	if s.rows != nil {
		t.Error("the divided job holds its rows until its row group ends")
	}
	if kept := e.open[0].rows.Kept + e.open[1].rows.Kept; kept != 3 {
		t.Errorf("%d rows of the log are kept, want 3", kept)
	}
	if how := in.decide(p); how != someRows {
		t.Errorf("copied as %d, want %d", how, someRows)
	}
}

// TestLargePartners checks that a job whose rows have one partner each is divided if the
// partners are large, and that its row group is then not copied whole.
func TestLargePartners(t *testing.T) {
	const n = 300
	all, entries, times := make([]uint32, n), make([]uint32, n), make([]int64, n)
	for i := range n {
		all[i], entries[i], times[i] = uint32(i), uint32(i), 1
	}
	p := partnersOf(times)
	p.KeepLog, p.Unique = true, true
	s, err := p.Select(0, n, rows.Matched{Rows: all, Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{scanner: &keyscan.Scanner{Options: keyscan.Options{Entries: true}, Stats: new(keyscan.Stats)}, pairs: p, perRow: 1 << 20}
	in := &inputGroup{total: 1, mayCopyWhole: true, oversized: e.perRow*n > tableBytes}
	job := newRangeJob(&Source{Leaves: []int{0}}, in, tasks.Range{Hi: n})
	in.jobs, e.open = []*rangeJob{job}, []*rangeJob{job}
	if got := in.decide(p); got != undecided {
		t.Errorf("copied as %d before its rows are known", got)
	}
	e.known(job, s, s.Divided(e.maxOf(s)))
	if len(e.open) != 7 { // of 48 MiB
		t.Errorf("%d parts, want 7", len(e.open))
	}
	if got := in.decide(p); got != someRows {
		t.Errorf("copied as %d, want %d", got, someRows)
	}
	if e.perRow = 100; e.maxOf(s) != s.Count {
		t.Error("small partners divide a job")
	}
}

// partnersOf is a model of a table: entry e has times[e] partners.
func partnersOf(times []int64) *tables.Pairs {
	return &tables.Pairs{Partners: rows.Partners{
		Times: func(e uint32) int64 { return times[e] },
		Rows:  func(dst []uint32, e uint32) []uint32 { return append(dst, make([]uint32, times[e])...) },
	}}
}
