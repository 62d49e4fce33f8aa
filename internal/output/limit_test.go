package output

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestLimit: a scan with a limit keeps the first rows that pass, as pages and as records, and counts
// no fewer, in any layout, with any number of workers, and over a network, where
// nothing stays announced.
func TestLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	rows := slices.Concat(roomtest.Clicks(rng, 1500, 0), roomtest.Clicks(rng, 1000, 1500))
	members := ids(1000, 3)
	all := keep(rows, members)
	for i, l := range roomtest.Layouts {
		dir := t.TempDir()
		in := []string{
			roomtest.WriteClicks(t, filepath.Join(dir, "0.parquet"), rows[:1500], l),
			roomtest.WriteClicks(t, filepath.Join(dir, "1.parquet"), rows[1500:], l),
		}
		for j := range cases.Count(2, 4, 8) {
			far := &farFiles{Storage: storage.Local()}
			opts := source.Opening{OpenOptions: source.OpenOptions{Mem: sourcetest.Checked(t)}}
			if j%2 == 1 {
				opts.Store = far
			}
			for _, limit := range []int{1, 1 + rng.IntN(len(all)), len(all), len(all) + 1} {
				what, want := fmt.Sprintf("layout %d, limit %d, far %t", i, limit, j%2 == 1), all[:min(limit, len(all))]
				files := roomtest.Open(t, opts, in...)
				pieces := source.Split(files, dataset.Shard{})
				scanner := func() *keyscan.Scanner {
					match := []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", members...))}}
					s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: match, Limit: int64(limit), Threads: 1 + rng.IntN(4), Mem: sourcetest.Checked(t)}})
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				out := filepath.Join(dir, fmt.Sprint(j, ".", limit, ".parquet"))
				w, err := (Destination{Output: Output{Name: out}, Result: source.ResultExact}).WriteScan(t.Context(), scanner(), pieces, files, nil)
				if err != nil {
					t.Fatal(what, err)
				}
				sourcetest.Equal(t, what+": rows", w.Rows, int64(len(want)))
				sameClicks(t, what, roomtest.ReadClicks(t, out), want)
				n := int64(0)
				for r, err := range arraycopy.Scan(t.Context(), scanner(), pieces) {
					if err != nil {
						t.Fatal(what, err)
					}
					n += r.Record.NumRows()
					r.Record.Release()
				}
				sourcetest.Equal(t, what+": rows of records", n, int64(len(want)))
				s := scanner()
				if err := Count(t.Context(), s, pieces); err != nil || s.Stats.RowsOut.Load() < int64(len(want)) {
					t.Errorf("%s: %d rows are counted, %v", what, s.Stats.RowsOut.Load(), err)
				}
				sourcetest.Equal(t, what+": announcements that are not released", far.open.Load(), 0)
			}
		}
	}
	s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", 1))}}, Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	files := roomtest.Open(t, source.Opening{}, roomtest.WriteClicks(t, filepath.Join(t.TempDir(), "a.parquet"), rows[:10], roomtest.Layouts[0]))
	if _, err := (Destination{Output: Output{Name: t.TempDir() + "/"}, Result: source.ResultExact}).WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil); err == nil {
		t.Error("a limit of a directory is taken")
	}
}
