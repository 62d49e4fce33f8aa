package pagecopy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// partnersOf is a model of a table: entry e has partners e*10, e*10+1, and so on.
func partnersOf(times []int64) *Pairs {
	return &Pairs{
		Times: func(e uint32) int64 { return times[e] },
		Rows: func(dst []uint32, e uint32) []uint32 {
			for i := range times[e] {
				dst = append(dst, e*10+uint32(i))
			}
			return dst
		},
	}
}

// outputRow is a row of the output: a row of the input and one of the table.
type outputRow struct{ row, partner uint32 }

// outputOf lists the rows that a selection gives, as leaf tasks use it.
func outputOf(s *selection, p *Pairs, total int64) (out []outputRow) {
	rows := s.list(total)
	if rows == nil {
		for row := range total {
			rows = append(rows, uint32(row))
		}
	}
	var log []uint32
	for i, row := range rows {
		n := uint32(1)
		if s.times != nil {
			n = s.times[i]
		}
		for range n {
			log = append(log, row)
		}
	}
	for i, partner := range s.partners(p) {
		out = append(out, outputRow{log[i], partner})
	}
	return out
}

// TestSelection compares selections of random pairs, whole and divided, with a list
// of pairs that is made row by row.
func TestSelection(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		total := int64(1 + rng.IntN(40))
		lo := rng.Int64N(total)
		r := tasks.Range{Lo: lo, Hi: lo + 1 + rng.Int64N(total-lo)}
		share, most := rng.Float64(), int64(1+rng.IntN(4))
		if rng.IntN(4) == 0 {
			share = 1 // every row has a partner
		}
		times := make([]int64, 5)
		for i := range times {
			times[i] = 1 + rng.Int64N(most)
		}
		p := partnersOf(times)
		p.KeepLog = rng.IntN(2) == 0
		if p.KeepLog && rng.IntN(2) == 0 {
			p.Joined = []uint64{rng.Uint64()}
		}
		var m keyscan.Matched
		if rng.IntN(2) == 0 { // some rows fail a condition
			m.Of = []uint32{}
		}
		var want []outputRow
		for row := uint32(r.Lo); row < uint32(r.Hi); row++ {
			if m.Of != nil {
				if rng.IntN(4) == 0 {
					continue
				}
				m.Of = append(m.Of, row)
			}
			if rng.Float64() < share {
				e := uint32(rng.IntN(len(times)))
				m.Rows, m.Entries = append(m.Rows, row), append(m.Entries, e)
				for i := range times[e] {
					want = append(want, outputRow{row, e*10 + uint32(i)})
				}
			} else if p.KeepLog && (p.Joined == nil || p.Joined[0]>>row&1 == 0) {
				want = append(want, outputRow{row, leaves.None})
			}
		}
		s, err := paired(p, r, m)
		if err != nil {
			t.Fatal(err)
		}
		if s.count != int64(len(want)) || s.whole() != (len(want) == int(r.Hi-r.Lo) && s.times == nil && s.len() == len(want)) {
			t.Fatalf("count %d, whole %t: want %d rows", s.count, s.whole(), len(want))
		}
		var divided []outputRow
		limit := 1 + rng.Int64N(20)
		for _, part := range s.divided(limit) {
			got := outputOf(part, p, total)
			if part.count != int64(len(got)) || part.len() > 1 && part.count > limit {
				t.Fatalf("a part of %d rows, said to be %d, of at most %d", len(got), part.count, limit)
			}
			divided = append(divided, got...)
		}
		if got := outputOf(s, p, total); !slices.Equal(got, want) || !slices.Equal(divided, want) {
			t.Fatalf("range %v, rows %v, entries %v, times %v:\ngot     %v\ndivided %v\nwant    %v", r, m.Rows, m.Entries, times, got, divided, want)
		}
	}
}

// TestSelected checks that no row and all rows are told apart.
func TestSelected(t *testing.T) {
	r := tasks.Range{Lo: 3, Hi: 6}
	for _, rows := range [][]uint32{nil, {}, {4}, {3, 4, 5}} {
		s := selected(r, rows)
		if s.len() != len(rows) || s.count != int64(len(rows)) || s.whole() != (len(rows) == 3) {
			t.Errorf("%v: %d rows, whole %t", rows, s.len(), s.whole())
		}
		if got := s.list(10); !slices.Equal(got, rows) {
			t.Errorf("%v: lists %v", rows, got)
		}
	}
	if s, err := paired(partnersOf(nil), r, keyscan.Matched{}); err != nil || s.count != 0 || s.whole() {
		t.Errorf("no row has a partner: %d rows, whole %t, error %v", s.count, s.whole(), err)
	}
}

// TestInputGroup checks that how a row group is copied depends on the rows of its jobs,
// not on the order in which they become known.
func TestInputGroup(t *testing.T) {
	whole := func() *selection { return selected(tasks.Range{Hi: 16}, slices.Repeat([]uint32{0}, 16)) }
	some := func(n int) *selection { return selected(tasks.Range{Hi: 16}, make([]uint32, n)) }
	repeated := whole()
	repeated.times = []uint32{2}
	for _, c := range []struct {
		name string
		rows []*selection
		own  bool
		p    *Pairs
		want howCopied
	}{
		{"whole", []*selection{whole()}, true, nil, wholeRows},
		{"small", []*selection{whole()}, false, nil, someRows},
		{"two ranges", []*selection{whole(), whole()}, true, nil, wholeRows},
		{"a row is lost", []*selection{whole(), some(15)}, true, nil, someRows},
		{"few rows are lost", []*selection{some(14)}, true, nil, maxRows},
		{"many rows are lost", []*selection{some(13)}, true, nil, someRows},
		{"a row is repeated", []*selection{repeated}, true, nil, someRows},
		{"too many partners", []*selection{{of: tasks.Range{Hi: 1}, matched: make([]uint32, maxWaiting)}, {matched: make([]uint32, 1)}}, true, nil, someRows},
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
	if got := in.decide(&Pairs{KeepLog: true, Unique: true}); got != wholeRows {
		t.Errorf("no row can be lost or repeated: %d", got)
	}
}

// A row group whose rows multiply holds only what is still to be written: the parts of
// a job end one by one, its input row group much later.
func TestKnownLeavesRowsToParts(t *testing.T) {
	times := []int64{600, 600, 1}
	p := partnersOf(times)
	r := tasks.Range{Hi: 3}
	rows, err := paired(p, r, keyscan.Matched{Rows: []uint32{0, 1, 2}, Entries: []uint32{0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	in := &inputGroup{total: 2, mayCopyWhole: true}
	s := newRangeJob(&Source{Leaves: []int{0}}, in, r)
	in.jobs = []*rangeJob{s}
	e := &engine{scanner: &keyscan.Scanner{Options: keyscan.Options{Entries: true}, Stats: new(keyscan.Stats)}, pairs: p, open: []*rangeJob{s}}
	e.known(s, rows, rows.divided(1000))
	if len(e.open) != 2 || slices.Contains(e.open, s) {
		t.Fatalf("%d open jobs, want the two parts", len(e.open))
	}
	if s.rows != nil {
		t.Error("the divided job holds its rows until its row group ends")
	}
	if how := in.decide(p); how != someRows {
		t.Errorf("copied as %d, want %d", how, someRows)
	}
}

// TestLargePartners checks that a job whose rows stand once is divided if its partners
// are large, and that its row group is then not copied whole.
func TestLargePartners(t *testing.T) {
	const n = 300
	rows, entries, times := make([]uint32, n), make([]uint32, n), make([]int64, n)
	for i := range n {
		rows[i], entries[i], times[i] = uint32(i), uint32(i), 1
	}
	p := partnersOf(times)
	p.KeepLog, p.Unique = true, true
	s, err := paired(p, tasks.Range{Hi: n}, keyscan.Matched{Rows: rows, Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{scanner: &keyscan.Scanner{Options: keyscan.Options{Entries: true}, Stats: new(keyscan.Stats)}, pairs: p, perRow: 1 << 20}
	in := &inputGroup{total: 1, mayCopyWhole: true, oversized: e.perRow*n > tableBytes}
	job := newRangeJob(&Source{Leaves: []int{0}}, in, s.of)
	in.jobs, e.open = []*rangeJob{job}, []*rangeJob{job}
	if got := in.decide(p); got != undecided {
		t.Errorf("copied as %d before its rows are known", got)
	}
	e.known(job, s, s.divided(e.maxOf(s)))
	if len(e.open) != 7 { // of 48 MiB
		t.Errorf("%d parts, want 7", len(e.open))
	}
	if got := in.decide(p); got != someRows {
		t.Errorf("copied as %d, want %d", got, someRows)
	}
	if e.perRow = 100; e.maxOf(s) != s.count {
		t.Error("small partners divide a job")
	}
}
