package partition

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// divided cuts the pieces of a scan into stages at random: between row groups,
// and within them. Each has the filter that matchOf makes for it.
func divided(rng *rand.Rand, matchOf func(Piece, [2]int64) []Match) func(context.Context, []Piece) iter.Seq2[Stage, error] {
	return func(_ context.Context, pieces []Piece) iter.Seq2[Stage, error] {
		return func(yield func(Stage, error) bool) {
			for _, p := range pieces {
				for g := p.Lo; g < p.Hi; {
					one := Piece{File: p.File, Lo: g, Hi: g + 1 + rng.IntN(p.Hi-g)}
					if rng.IntN(2) == 0 {
						if !yield(Stage{Pieces: []Piece{one}, Match: matchOf(one, [2]int64{})}, nil) {
							return
						}
						g = one.Hi
						continue
					}
					one.Hi = g + 1
					n := p.File.GroupRows(g)
					for lo := int64(0); lo < n; {
						hi := min(n, lo+1+rng.Int64N(n))
						if !yield(Stage{Pieces: []Piece{one}, Rows: [2]int64{lo, hi}, Match: matchOf(one, [2]int64{lo, hi})}, nil) {
							return
						}
						lo = hi
					}
					g++
				}
			}
		}
	}
}

// However a scan is divided into stages, the same rows come out, in the same
// order, as pages and as records, into one file and into several.
func TestStages(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	rows := slices.Concat(clicks(rng, 1500, 0), clicks(rng, 1000, 1500))
	members := ids(1000, 3)
	want := keep(rows, members)
	for i, l := range layouts {
		dir := t.TempDir()
		in := []string{
			writeClicks(t, filepath.Join(dir, "in", "0.parquet"), rows[:1500], l),
			writeClicks(t, filepath.Join(dir, "in", "1.parquet"), rows[1500:], l),
		}
		for j := range 4 {
			what := fmt.Sprint("layout ", i, ", division ", j)
			match := []Match{{Filter: exactOf("id", members...)}}
			opts := ScanOptions{Match: match, Threads: 1 + j, Stages: divided(rng, func(Piece, [2]int64) []Match { return match })}
			out := filepath.Join(dir, fmt.Sprint("out", j, ".parquet"))
			stats, err := copyTo(t.Context(), t, opts, Output{Name: out}, in...)
			if err != nil {
				t.Fatal(what, err)
			}
			sameClicks(t, what, readClicks(t, out), want)
			equal(t, what+": rows in and out", []int64{stats.RowsIn.Load(), stats.RowsOut.Load()}, []int64{2500, int64(len(want))})

			parts := filepath.Join(dir, fmt.Sprint("parts", j)) + "/"
			if _, err := copyTo(t.Context(), t, opts, Output{Name: parts}, in...); err != nil {
				t.Fatal(what, err)
			}
			both := slices.Concat(readClicks(t, parts+"0.parquet"), readClicks(t, parts+"1.parquet"))
			sameClicks(t, what+", directory", both, want)
		}
	}
}

// Each stage has its own filter, which no row of another is held against.
func TestStagesHaveTheirOwnFilters(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	rows := clicks(rng, 3000, 0)
	dir := t.TempDir()
	in := writeClicks(t, filepath.Join(dir, "in.parquet"), rows, layouts[0])
	files, err := Open(t.Context(), []string{in}, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer Close(files)
	starts := []int64{0}
	for g := range files[0].NumGroups() {
		starts = append(starts, starts[g]+files[0].GroupRows(g))
	}
	var want []click
	stages := divided(rng, func(p Piece, within [2]int64) []Match {
		lo, hi := starts[p.Lo], starts[p.Hi]
		if within != [2]int64{} {
			lo, hi = starts[p.Lo]+within[0], starts[p.Lo]+within[1]
		}
		members := ids(1000, int64(1+rng.IntN(9)))
		want = append(want, keep(rows[lo:hi], members)...)
		return []Match{{Filter: exactOf("id", members...)}}
	})
	opts := ScanOptions{Match: []Match{{Filter: exactOf("id", 1)}}, Threads: 3, Stages: stages}
	out := filepath.Join(dir, "out.parquet")
	if _, err := copyTo(t.Context(), t, opts, Output{Name: out}, in); err != nil {
		t.Fatal(err)
	}
	sameClicks(t, "stages", readClicks(t, out), want)
}

// A stage of row groups that are not the scan's is an error.
func TestStageOutside(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(9, 10))
	in := writeClicks(t, filepath.Join(dir, "in.parquet"), clicks(rng, 100, 0), layouts[0])
	match := []Match{{Filter: exactOf("id", 1)}}
	stages := func(_ context.Context, pieces []Piece) iter.Seq2[Stage, error] {
		return func(yield func(Stage, error) bool) {
			p := pieces[0]
			p.Hi++
			yield(Stage{Pieces: []Piece{p}, Match: match}, nil)
		}
	}
	if _, err := copyTo(t.Context(), t, ScanOptions{Match: match, Stages: stages}, Output{Name: filepath.Join(dir, "out.parquet")}, in); err == nil {
		t.Error("no error")
	}
}
