package joins

import (
	"math/rand/v2"
	"testing"
)

// TestPortionModel compares what a portion knows of its rows with a model, for row groups that
// end anywhere in a word of the bit set. Rows at both ends of words have IDs more often.
func TestPortionModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, rows := range []int{1, 2, 63, 64, 65, 127, 128, 129, 190, 192, 321} {
		for round := range 20 {
			words := make([]uint64, []int{0, 1, rows/64 + 1}[rng.IntN(3)]) // the number of rows may be unknown
			portions := 1 + rng.IntN(4)
			has := func(row, portion int) bool { return (row*7+portion*round)%11 < 2+row%64/62*5 }
			if round == 0 { // every row has an ID, in the first portion alone
				has = func(_, portion int) bool { return portion == 0 }
			}
			met, out := make([]bool, rows), 0
			for n := range portions {
				p := &portion{last: n == portions-1, joined: &words}
				if p.counts() != p.last {
					t.Fatalf("portion %d of %d counts rows: %v", n, portions, p.counts())
				}
				for at := 0; at < rows; {
					batch := min(1+rng.IntN(100), rows-at)
					for row := range batch {
						if has(at+row, n) {
							if first := p.join(row); first == met[at+row] {
								t.Fatalf("%d rows, portion %d of %d: row %d has its first ID: %v", rows, n, portions, at+row, first)
							}
							met[at+row] = true
							continue
						}
						want := p.last && !met[at+row]
						if got := p.unmatched(row); got != want {
							t.Fatalf("%d rows, portion %d of %d: row %d has no ID at all: %v, want %v", rows, n, portions, at+row, got, want)
						}
						if want {
							out++
						}
					}
					p.pass(batch)
					at += batch
				}
			}
			none := 0
			for _, m := range met {
				if !m {
					none++
				}
			}
			if out > none || round == 0 && none > 0 {
				t.Fatalf("%d rows in %d portions: %d are without an ID, want %d", rows, portions, out, none)
			}
		}
	}
	var all *portion
	all.pass(5)
	for range 2 { // the first time changes nothing
		if !all.join(3) || !all.unmatched(3) || !all.counts() {
			t.Error("a row of all IDs at once depends on others")
		}
	}
}
