package rows

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// partnersOf is a model of a table: entry e has partners e*10, e*10+1, and so on.
func partnersOf(times []int64) *Partners {
	return &Partners{
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
func outputOf(s *Selection, p *Partners, total int64) (out []outputRow) {
	rows := s.List(total)
	if rows == nil {
		for row := range total {
			rows = append(rows, uint32(row))
		}
	}
	var log []uint32
	for i, row := range rows {
		n := uint32(1)
		if s.Times != nil {
			n = s.Times[i]
		}
		for range n {
			log = append(log, row)
		}
	}
	for i, partner := range s.Partners(p) {
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
		hi := lo + 1 + rng.Int64N(total-lo)
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
			p.Joined = &[]uint64{rng.Uint64()}
		}
		var m Matched
		if rng.IntN(2) == 0 { // some rows fail a condition
			m.Of = []uint32{}
		}
		var want []outputRow
		for row := uint32(lo); row < uint32(hi); row++ {
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
			} else if p.KeepLog && (p.Joined == nil || (*p.Joined)[0]>>row&1 == 0) {
				want = append(want, outputRow{row, None})
			}
		}
		s, err := p.Select(lo, hi, m)
		if err != nil {
			t.Fatal(err)
		}
		if s.Count != int64(len(want)) || s.Whole() != (len(want) == int(hi-lo) && s.Times == nil && s.Len() == len(want)) {
			t.Fatalf("count %d, whole %t: want %d rows", s.Count, s.Whole(), len(want))
		}
		var divided []outputRow
		limit := 1 + rng.Int64N(20)
		for _, part := range s.Divided(limit) {
			got := outputOf(part, p, total)
			if part.Count != int64(len(got)) || part.Len() > 1 && part.Count > limit {
				t.Fatalf("a part of %d rows, said to be %d, of at most %d", len(got), part.Count, limit)
			}
			divided = append(divided, got...)
		}
		if got := outputOf(s, p, total); !slices.Equal(got, want) || !slices.Equal(divided, want) {
			t.Fatalf("range %d to %d, rows %v, entries %v, times %v:\ngot     %v\ndivided %v\nwant    %v", lo, hi, m.Rows, m.Entries, times, got, divided, want)
		}
	}
}

// TestSelected checks that no row and all rows are told apart.
func TestSelected(t *testing.T) {
	for _, rows := range [][]uint32{nil, {}, {4}, {3, 4, 5}} {
		s := Of(3, 6, rows)
		if s.Len() != len(rows) || s.Count != int64(len(rows)) || s.Whole() != (len(rows) == 3) {
			t.Errorf("%v: %d rows, whole %t", rows, s.Len(), s.Whole())
		}
		if got := s.List(10); !slices.Equal(got, rows) {
			t.Errorf("%v: lists %v", rows, got)
		}
	}
	if s, err := partnersOf(nil).Select(3, 6, Matched{}); err != nil || s.Count != 0 || s.Whole() {
		t.Errorf("no row has a partner: %d rows, whole %t, error %v", s.Count, s.Whole(), err)
	}
}

// TestPortions compares what is kept of a row group that is scanned several times, each time
// with other partners, with a model. The row group ends anywhere in a word of the bit set,
// whose length may not have been known, and is scanned range by range.
func TestPortions(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, total := range []int64{1, 2, 63, 64, 65, 127, 128, 129, 190, 192, 321} {
		for round := range 20 {
			joined := make([]uint64, []int64{0, 1, total/64 + 1}[rng.IntN(3)])
			portions := 1 + rng.IntN(4)
			has := func(row int64, portion int) bool { return (int(row)*7+portion*round)%11 < 2+int(row)%64/62*5 }
			if round == 0 { // every row has a partner, in the first portion alone
				has = func(_ int64, portion int) bool { return portion == 0 }
			}
			met := map[uint32]bool{}
			kept := int64(0)
			for n := range portions {
				p := partnersOf([]int64{1})
				p.Joined, p.KeepLog = &joined, n == portions-1
				for lo := int64(0); lo < total; {
					hi := min(lo+1+rng.Int64N(100), total)
					var m Matched
					var want []uint32
					for row := lo; row < hi; row++ {
						if has(row, n) {
							m.Rows, m.Entries = append(m.Rows, uint32(row)), append(m.Entries, 0)
						}
						if has(row, n) || p.KeepLog && !met[uint32(row)] {
							want = append(want, uint32(row))
						}
					}
					s, err := p.Select(lo, hi, m)
					if err != nil {
						t.Fatal(err)
					}
					if got := s.Slice(0, s.Len()); !slices.Equal(got, want) {
						t.Fatalf("%d rows, portion %d of %d: rows %v, want %v", total, n, portions, got, want)
					}
					p.Join(s)
					kept += s.Kept
					for _, row := range m.Rows {
						met[row] = true
					}
					lo = hi
				}
			}
			if kept != total {
				t.Fatalf("%d rows in %d portions: %d were kept", total, portions, kept)
			}
		}
	}
}
