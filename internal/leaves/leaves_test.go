package leaves_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// table is several leaves with the same number of rows.
type table struct {
	of     []meta.Leaf
	models []*model
	rows   int
}

func newTable(t testing.TB, rng *rand.Rand, columns, rows int) *table {
	w := &table{rows: rows}
	for i := range columns {
		m := newModel(t, rng, i, rows)
		w.models, w.of = append(w.models, m), append(w.of, m.leaf)
	}
	return w
}

// block returns the rows [from, to) as a block.
func (w *table) block(t testing.TB, rng *rand.Rand, b *leaves.Builder, from, to int) *leaves.Block {
	t.Helper()
	for i, m := range w.models {
		m.pages(rng, m.rows[from:to], func(p *parquet.Page) {
			if err := b.Add(i, p, m.dict); err != nil {
				t.Fatal(err)
			}
			for _, b := range [][]byte{p.Plain, p.Rep, p.Def} {
				clear(b) // the builder keeps none of it
			}
		})
	}
	out, err := b.Block(to - from)
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() != to-from {
		t.Fatalf("%d rows, want %d", out.Len(), to-from)
	}
	return out
}

// fill fills a store with rows of the table, in blocks, and returns their numbers in
// the table.
func (w *table) fill(t testing.TB, rng *rand.Rand, s *leaves.Store) (stored []int) {
	t.Helper()
	b := leaves.NewBuilder(w.of)
	most := []int{1, 10, 500, 5000}[rng.IntN(4)]
	for from := 0; from < w.rows; {
		to := min(from+1+rng.IntN(most), w.rows)
		block := w.block(t, rng, b, from, to)
		var rows []uint32
		if rng.IntN(2) == 0 {
			rows = []uint32{}
			for r := range block.Len() {
				if rng.IntN(3) == 0 {
					rows = append(rows, uint32(r))
				}
			}
			rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			for _, r := range rows {
				stored = append(stored, from+int(r))
			}
		} else {
			for r := from; r < to; r++ {
				stored = append(stored, r)
			}
		}
		if rng.IntN(2) == 0 {
			block, rows = reread(t, w.of, block, rows), nil
		}
		if err := s.Append(block, rows); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	if s.Len() != len(stored) {
		t.Fatalf("%d rows, want %d", s.Len(), len(stored))
	}
	return stored
}

// reread returns rows of a block as they are after they were stored.
func reread(t testing.TB, of []meta.Leaf, b *leaves.Block, rows []uint32) *leaves.Block {
	t.Helper()
	head := []byte("head")
	stored := b.Append(head, rows)
	if string(stored[:4]) != "head" {
		t.Fatal("Append has changed the bytes before")
	}
	again, err := leaves.Parse(of, stored[4:])
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// checkPages compares the store's pages of random rows with the table's.
func (w *table) checkPages(t testing.TB, rng *rand.Rand, s *leaves.Store, stored []int) {
	t.Helper()
	for i, m := range w.models {
		as := leaves.Shape{Shift: uint8(rng.IntN(3))}
		as.MaxDef = m.leaf.MaxDef + int(as.Shift)
		none := []int{0, 0, 1, 50, 99, 100}[rng.IntN(6)]
		if as.MaxDef == 0 {
			none = 0
		}
		if len(stored) == 0 {
			none = 100
		}
		ordered := rng.IntN(2) == 0
		var rows []uint32
		var want []entry
		for n := range rng.IntN(2*w.rows + 1) {
			if as.MaxDef == 0 && none > 0 {
				break
			}
			if rng.IntN(100) < none {
				rows, want = append(rows, leaves.None), append(want, entry{})
				continue
			}
			r := rng.IntN(len(stored))
			if ordered {
				r = n % len(stored)
			}
			rows = append(rows, uint32(r))
			for _, e := range m.rows[stored[r]] {
				e.def += as.Shift
				want = append(want, e)
			}
		}
		var got []entry
		for p, err := range s.Pages(i, rows, as) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Values == 0 || p.Stored != nil || p.Coded || p.Rep != nil && p.Rep[0] != 0 {
				t.Fatalf("page %+v", p)
			}
			got = append(got, entries(t, &m.leaf, as.MaxDef, p, nil)...)
		}
		if err := sameEntries(got, want); err != nil {
			t.Fatalf("%v %v with %d of 100 NULL, %d of 100 missing, shift %d: %v", m.leaf.Type, m.nodes, m.nulls, none, as.Shift, err)
		}
	}
}

func TestStoreModel(t *testing.T) {
	seeds := uint64(cases.Count(30, 150, 300))
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := newTable(t, rng, rng.IntN(5), []int{0, 1, 9, 300, 3000}[rng.IntN(5)])
		s := leaves.New(w.of, nil)
		stored := w.fill(t, rng, s)
		t.Logf("seed %d: %d columns, %d rows", seed, len(w.of), len(stored))
		w.checkPages(t, rng, s, stored)
	}
}

// TestSegments: rows of several segments, whose first rows have no NULL.
func TestSegments(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newTable(t, rng, 4, 5000)
		var at []int // rows of the table, in the order in which they come
		for _, m := range w.models {
			for i := range m.rows[:2500] {
				if m.leaf.MaxRep == 0 {
					m.rows[i] = row{{def: uint8(m.leaf.MaxDef), value: m.values[i%len(m.values)]}}
				}
			}
		}
		s := leaves.New(w.of, nil)
		b := leaves.NewBuilder(w.of)
		for _, part := range [][2]int{{0, 2500}, {2500, 5000}} {
			block := w.block(t, rng, b, part[0], part[1])
			rows := make([]uint32, 90_000)
			for i := range rows {
				rows[i] = uint32(rng.IntN(block.Len()))
				at = append(at, part[0]+int(rows[i]))
			}
			if err := s.Append(block, rows); err != nil {
				t.Fatal(err)
			}
			if err := s.Append(block, nil); err != nil {
				t.Fatal(err)
			}
			for i := range block.Len() {
				at = append(at, part[0]+i)
			}
		}
		if s.Len() != len(at) {
			t.Fatalf("%d rows, want %d", s.Len(), len(at))
		}
		for range 4 {
			w.checkPages(t, rng, s, at)
		}
	}
}

// TestConcurrentPages: pages of one store on several goroutines.
func TestConcurrentPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	w := newTable(t, rng, 6, 3000)
	s := leaves.New(w.of, nil)
	stored := w.fill(t, rng, s)
	for i := range uint64(4) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(4, i))
			for range 3 {
				w.checkPages(t, rng, s, stored)
			}
		})
	}
}
