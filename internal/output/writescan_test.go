package output

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// scanInParts opens the output, scans random ranges of row groups of the pieces into it
// one after the other, each with the filter that matchOf returns for it, and closes it.
func scanInParts(t *testing.T, rng *rand.Rand, threads int, out Destination, matchOf func(source.Piece) []dataset.Match, names ...string) (rowsIn, rowsOut int64) {
	t.Helper()
	ctx := t.Context()
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Mem: sourcetest.Checked(t)}}, names...)
	pieces := source.Split(files, dataset.Shard{})
	scanner := func(m []dataset.Match) *keyscan.Scanner {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: m, Threads: threads, Mem: sourcetest.Checked(t)}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	out.Result = source.ResultExact
	written, err := out.WriteScan(ctx, scanner(matchOf(pieces[0])), pieces, files, &Scans{Each: func(w *ScanWriter) error {
		scan := func(s *keyscan.Scanner, pieces []source.Piece) error { return w.Scan(ctx, s, nil, pieces) }
		for _, p := range pieces {
			for g := p.Lo; g < p.Hi; {
				one := source.Piece{File: p.File, Lo: g, Hi: g + 1 + rng.IntN(p.Hi-g)}
				s := scanner(matchOf(one))
				if err := scan(s, []source.Piece{one}); err != nil {
					return err
				}
				rowsIn, rowsOut = rowsIn+s.Stats.RowsIn.Load(), rowsOut+s.Stats.RowsOut.Load()
				g = one.Hi
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "rows written", written.Rows, rowsOut)
	return rowsIn, rowsOut
}

// However a scan is divided, the same rows come out in the same order, as pages and as
// records, into one file and into several.
func TestScansIntoOneOutput(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	rows := slices.Concat(roomtest.Clicks(rng, 1500, 0), roomtest.Clicks(rng, 1000, 1500))
	members := ids(1000, 3)
	want := keep(rows, members)
	for i, l := range roomtest.Layouts {
		dir := t.TempDir()
		in := []string{
			roomtest.WriteClicks(t, filepath.Join(dir, "in", "0.parquet"), rows[:1500], l),
			roomtest.WriteClicks(t, filepath.Join(dir, "in", "1.parquet"), rows[1500:], l),
		}
		var bytes []byte // of the first division
		for j := range cases.Count(2, 3, 4) {
			what := fmt.Sprint("layout ", i, ", division ", j)
			match := func(source.Piece) []dataset.Match {
				return []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", members...))}}
			}
			out := filepath.Join(dir, fmt.Sprint("out", j, ".parquet"))
			rowsIn, rowsOut := scanInParts(t, rng, 1+j, Destination{Output: Output{Name: out}}, match, in...)
			sameClicks(t, what, roomtest.ReadClicks(t, out), want)
			written, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if bytes == nil {
				bytes = written
			}
			sourcetest.Equal(t, what+": bytes as of another division", string(written) == string(bytes), true)
			sourcetest.Equal(t, what+": rows in and out", []int64{rowsIn, rowsOut}, []int64{2500, int64(len(want))})

			parts := filepath.Join(dir, fmt.Sprint("parts", j)) + "/"
			scanInParts(t, rng, 1+j, Destination{Output: Output{Name: parts}}, match, in...)
			both := slices.Concat(roomtest.ReadClicks(t, parts+"0.parquet"), roomtest.ReadClicks(t, parts+"1.parquet"))
			sameClicks(t, what+", directory", both, want)

			records := filepath.Join(dir, fmt.Sprint("out", j, ".arrow"))
			_, n := scanInParts(t, rng, 1+j, Destination{Output: Output{Name: records}}, match, in...)
			sourcetest.Equal(t, what+": records", n, int64(len(want)))
		}
	}
}

// Each scan has its own filter, which is not applied to the rows of others.
func TestScansHaveTheirOwnFilters(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	rows := roomtest.Clicks(rng, 3000, 0)
	dir := t.TempDir()
	in := roomtest.WriteClicks(t, filepath.Join(dir, "in.parquet"), rows, roomtest.Layouts[0])
	f := roomtest.Open(t, source.Opening{}, in)[0]
	starts := []int64{0}
	for g := range f.NumGroups() {
		starts = append(starts, starts[g]+f.GroupRows(g))
	}
	var want []roomtest.Click
	opened := false
	out := filepath.Join(dir, "out.parquet")
	scanInParts(t, rng, 3, Destination{Output: Output{Name: out}}, func(p source.Piece) []dataset.Match {
		if !opened { // the first call is for the output
			opened = true
			return []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", 1))}}
		}
		members := ids(1000, int64(1+rng.IntN(9)))
		want = append(want, keep(rows[starts[p.Lo]:starts[p.Hi]], members)...)
		return []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", members...))}}
	}, in)
	sameClicks(t, "scans", roomtest.ReadClicks(t, out), want)
}

// After scans of other row groups than the output's, scans with other columns, or an
// abort, nothing is left.
func TestScanOutside(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(9, 10))
	in := roomtest.WriteClicks(t, filepath.Join(dir, "in.parquet"), roomtest.Clicks(rng, 100, 0), roomtest.Layouts[0])
	files := roomtest.Open(t, source.Opening{}, in)
	pieces := source.Split(files, dataset.Shard{})
	all := []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", ids(1000, 1)...))}}
	scanner := func(columns ...string) *keyscan.Scanner {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: all, Columns: columns}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, name := range []string{"out.parquet", "parts/"} {
		for _, how := range []string{"outside", "columns", "aborted", "canceled", "ignored"} {
			ctx, cancel := context.WithCancel(t.Context())
			opened := false
			_, err := Destination{Output: Output{Name: dir + "/" + name}, Result: source.ResultExact}.WriteScan(ctx, scanner(), pieces, files, &Scans{Each: func(w *ScanWriter) error {
				scan := func(s *keyscan.Scanner, pieces []source.Piece) error { return w.Scan(ctx, s, nil, pieces) }
				opened = true
				p := pieces[0]
				switch how {
				case "outside":
					p.Hi++
					return scan(scanner(), []source.Piece{p})
				case "ignored":
					p.Hi++
					_ = scan(scanner(), []source.Piece{p})
					return nil
				case "columns":
					return scan(scanner("id"), pieces)
				case "canceled":
					cancel()
					return scan(scanner(), pieces)
				}
				if err := scan(scanner(), pieces); err != nil {
					t.Fatal(err)
				}
				return errAborted
			}})
			if err == nil || !opened {
				t.Errorf("%s, %s: %v, opened: %v", name, how, err, opened)
			}
			cancel()
			if left, _ := filepath.Glob(filepath.Join(dir, "*out*")); len(left) > 0 {
				t.Errorf("%s, %s: left %v", name, how, left)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "parts", "*")); len(left) > 0 {
				t.Errorf("%s, %s: left %v", name, how, left)
			}
		}
	}
}
