package output

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// fakeFiles makes files with row groups of random sizes, some without row groups.
func fakeFiles(rng *rand.Rand, n int, largest int64) []*source.File {
	files := make([]*source.File, n)
	for i := range files {
		var groups []sourcetest.Group
		for range rng.IntN(12) {
			groups = append(groups, sourcetest.Group{Bytes: rng.Int64N(largest)})
		}
		files[i] = roomtest.Fake(fmt.Sprintf("f%02d", i), groups...)
	}
	return files
}

// Every row group, and every file without row groups, belongs to one worker, and no
// worker's share differs from the mean by more than the largest row group.
func TestSplitIsAPartition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range cases.Count(10, 20, 60) {
		largest := int64(1) << (1 + rng.IntN(50)) // also where products exceed 63 bits
		files := fakeFiles(rng, 1+rng.IntN(20), largest)
		var total, most float64
		for _, f := range files {
			for g := range f.NumGroups() {
				total += float64(f.GroupBytes(g) + 1)
				most = max(most, float64(f.GroupBytes(g)+1))
			}
		}
		for _, of := range []uint32{0, 1, 2, 3, 7, 16, 100, 1000} {
			owner := map[string]uint32{}
			for i := range max(of, 1) {
				load := 0.0
				for _, p := range source.Split(files, dataset.Shard{Index: i, Of: of}) {
					if p.File.NumGroups() == 0 {
						owner[p.File.Name()]++
					}
					for g := p.Lo; g < p.Hi; g++ {
						owner[fmt.Sprint(p.File.Name(), ":", g)]++
						load += float64(p.File.GroupBytes(g) + 1)
					}
				}
				mean := total / float64(max(of, 1))
				if off := load - mean; off > most+20+mean*1e-9 || off < -most-20-mean*1e-9 {
					t.Errorf("round %d: worker %d of %d has %v of %v, off the mean by %v, the largest group has %v", round, i, of, load, total, off, most)
				}
			}
			n := 0
			for _, f := range files {
				n += max(f.NumGroups(), 1)
			}
			if len(owner) != n {
				t.Errorf("round %d: %d workers own %d groups of %d", round, of, len(owner), n)
			}
			for name, times := range owner {
				if times != 1 {
					t.Errorf("round %d: %d of %d workers own %s", round, times, of, name)
				}
			}
		}
	}
}

// No share exceeds 1.2 times the mean if any division in input order achieves that, and
// else the best one's largest share.
func TestSplitIsEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for round := range cases.Count(50, 100, 300) {
		weights := make([]int64, 1+rng.IntN(60))
		for i := range weights {
			weights[i] = 1 + rng.Int64N(1+rng.Int64N(1000))
			if rng.IntN(20) == 0 {
				weights[i] *= 20
			}
		}
		for n := 1; n <= 100; n += 1 + rng.IntN(9) {
			var total, largest int64
			at := 0
			for i := range n {
				lo, hi := source.Divide(weights, dataset.Shard{Index: uint32(i), Of: uint32(n)})
				if lo != at || hi < lo {
					t.Fatalf("round %d: worker %d of %d has %d to %d, want it to begin at %d", round, i, n, lo, hi, at)
				}
				at = hi
				var load int64
				for _, w := range weights[lo:hi] {
					load += w
				}
				total, largest = total+load, max(largest, load)
			}
			if at != len(weights) {
				t.Fatalf("round %d: %d workers have %d of %d weights", round, n, at, len(weights))
			}
			if best := minLargest(weights, n); 5*largest*int64(n) > 6*total && largest > best {
				t.Errorf("round %d: the largest of %d shares has %d, want %d or 1.2 times %d/%d: %v", round, n, largest, best, total, n, weights)
			}
		}
	}
}

// minLargest returns the smallest possible largest share, trying every division.
func minLargest(weights []int64, n int) int64 {
	best := make([]int64, len(weights)+1) // of the weights before each, among the workers so far
	for i, w := range weights {
		best[i+1] = best[i] + w
	}
	for range n - 1 {
		next := make([]int64, len(best))
		for end := range best {
			next[end] = best[end]
			var load int64
			for from := end - 1; from >= 0; from-- {
				load += weights[from]
				next[end] = min(next[end], max(best[from], load))
			}
		}
		best = next
	}
	return best[len(weights)]
}

// Shards are consecutive parts of the input: their pieces, in order, are the whole.
func TestSplitKeepsTheOrder(t *testing.T) {
	files := fakeFiles(rand.New(rand.NewPCG(3, 4)), 9, 1000)
	var whole []string
	for _, p := range source.Split(files, dataset.Shard{}) {
		if !p.Whole() {
			t.Errorf("%s is cut where there is one worker", p.File.Name())
		}
		for g := p.Lo; g < p.Hi; g++ {
			whole = append(whole, fmt.Sprint(p.File.Name(), ":", g))
		}
	}
	for _, of := range []uint32{2, 5, 50} {
		var parts []string
		for i := range of {
			for _, p := range source.Split(files, dataset.Shard{Index: i, Of: of}) {
				for g := p.Lo; g < p.Hi; g++ {
					parts = append(parts, fmt.Sprint(p.File.Name(), ":", g))
				}
			}
		}
		sourcetest.Equal(t, fmt.Sprint(of, " shards"), parts, whole)
	}
}

// Each input of unknown size goes to one worker.
func TestSplitOfUnknownSizes(t *testing.T) {
	files := []*source.File{roomtest.Fake("a", sourcetest.Group{Bytes: -1}), roomtest.Fake("b", sourcetest.Group{Bytes: -1})}
	for _, of := range []uint32{1, 2, 3} {
		n := 0
		for i := range of {
			n += len(source.Split(files, dataset.Shard{Index: i, Of: of}))
		}
		sourcetest.Equal(t, fmt.Sprint(of, " workers own files"), n, 2)
	}
}

func TestParseShard(t *testing.T) {
	for s, want := range map[string]dataset.Shard{"0/1": {Index: 0, Of: 1}, "3/16": {Index: 3, Of: 16}, "1048575/1048576": {Index: 1<<20 - 1, Of: 1 << 20}} {
		got, err := dataset.ParseShard(s)
		if err != nil || got != want || got.String() != s {
			t.Errorf("ParseShard(%q) = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1", "/", "1/", "/2", "2/2", "3/2", "0/0", "-1/2", "1/-2", "a/b", "0/1048577", "1/2/3", " 0/2", "0 /2", "0x1/2", "4294967296/4294967297", "+1/2"} {
		if got, err := dataset.ParseShard(s); err == nil {
			t.Errorf("ParseShard(%q) = %v, want an error", s, got)
		}
	}
	if !(dataset.Shard{}).Whole() || !(dataset.Shard{Index: 0, Of: 1}).Whole() || (dataset.Shard{Index: 0, Of: 2}).Whole() {
		t.Error("who is alone?")
	}
}

// absent are shards that do not exist, and what their error says.
var absent = map[dataset.Shard]string{
	{Index: 3, Of: 3}:                     "shard 3/3: counted from 0: want 0 to 2, got 3",
	{Index: 5, Of: 3}:                     "shard 5/3: counted from 0: want 0 to 2, got 5",
	{Index: 7, Of: 1}:                     "shard 7/1: counted from 0: want 0, got 7",
	{Index: 1, Of: 0}:                     "shard 1/0: counted from 0: want 1 to 1048576 shards, got none",
	{Index: 0, Of: options.MaxShards + 1}: "shard 0/1048577: counted from 0: want at most 1048576 shards, got 1048577",
}

// Whatever reads the pieces of a shard, or takes one, returns an error if it does not
// exist: no row is read in its place.
func TestAbsentShards(t *testing.T) {
	dir := t.TempDir()
	mem := sourcetest.Checked(t)
	rec := sourcetest.Record(t, mem, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(40, func(i int) int64 { return int64(i) })})
	defer rec.Release()
	name := sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 8, rec)
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Mem: mem}}, name)
	in, err := inputs.Find(t.Context(), []string{name}, source.Opening{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	match := dataset.Match{Filter: (*codec.Filter)(roomtest.Between(0, 100)), Key: "id"}
	scanner := func() *keyscan.Scanner {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{match}, Mem: mem}}, files...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	columns, err := tables.NewColumns(files, []string{"id"}, false)
	if err != nil {
		t.Fatal(err)
	}
	end := func(rows iter.Seq2[arraycopy.Rows, error]) (err error) {
		for r, e := range rows {
			if err = e; e == nil {
				t.Error("a row was read")
				r.Record.Release()
			}
		}
		return err
	}
	ctx := t.Context()
	for s, text := range absent {
		for what, call := range map[string]func() error{
			"Map": func() error {
				return end(roomtest.Map(ctx, source.Split(files, s), 1, nil, roomtest.Pass))
			},
			"Scan":  func() error { return end(arraycopy.Scan(ctx, scanner(), source.Split(files, s))) },
			"Count": func() error { return Count(ctx, scanner(), source.Split(files, s)) },
			"ReadKeys": func() error {
				_, _, err := keyscan.Read(ctx, source.Split(files, s), keyscan.ReadOptions{Key: "id"}, func() (func(*keyscan.Keys) error, error) {
					return func(*keyscan.Keys) error { t.Error("keys were read"); return nil }, nil
				})
				return err
			},
			"ReadRows": func() error {
				_, _, err := tables.Read(ctx, source.Split(files, s), columns, tables.ReadOptions{Key: "id"}, func(*tables.Batch) error { t.Error("rows were read"); return nil })
				return err
			},
			"Skippable": func() error { _, err := keyscan.Skippable(ctx, source.Split(files, s), match, 10); return err },
			"Unchanged": func() error { return source.Unchanged(source.Split(files, s)) },
			"WriteScan of pieces": func() error {
				_, err := Destination{Output: Output{Name: filepath.Join(dir, "out.parquet")}}.WriteScan(ctx, scanner(), source.Split(files, s), files, nil)
				return err
			},
			"WriteScan of other pieces": func() error {
				_, err := Destination{Output: Output{Name: filepath.Join(dir, "out.parquet")}}.WriteScan(ctx, scanner(), source.Split(files, dataset.Shard{}), files, &Scans{Each: func(w *ScanWriter) error {
					return w.Scan(ctx, scanner(), nil, source.Split(files, s))
				}})
				return err
			},
			"WriteScan": func() error {
				_, err := Destination{Output: Output{Name: filepath.Join(dir, "out.parquet"), Shard: s}}.WriteScan(ctx, scanner(), source.Split(files, dataset.Shard{}), files, nil)
				return err
			},
			"Write into a directory": func() error {
				out := Destination{Output: Output{Name: filepath.Join(dir, "out") + "/", Shard: s}, Run: &Run{Options: []string{"x"}, Log: files}}
				_, err := out.Write(ctx, nil, func(func(arraycopy.Rows, error) bool) {})
				return err
			},
			"a loop over the row groups": func() (err error) {
				for _, p := range source.Split(files, s) {
					for g := p.Lo; g < p.Hi; g++ {
						for rec, e := range rowfilter.Read(ctx, p.File, g, nil) {
							if err = e; e == nil {
								t.Errorf("got %v", rec)
							}
						}
					}
				}
				return err
			},
			"Map of no files": func() error {
				return end(roomtest.Map(ctx, source.Split(nil, s), 1, nil, roomtest.Pass))
			},
			"Share": func() error { _, err := in.Share(ctx, s); return err },
		} {
			sourcetest.Says(t, what, call(), nil, text)
		}
		if got := sourcetest.Tree(t, dir); slices.ContainsFunc(got, func(name string) bool { return strings.Contains(name, "out") }) {
			t.Errorf("shard %v: something was written: %q", s, got)
		}
		if _, err := dataset.ParseShard(fmt.Sprintf("%d/%d", s.Index, s.Of)); err == nil {
			t.Errorf("ParseShard takes %v", s)
		}
	}
	for _, s := range []dataset.Shard{{}, {Index: 0, Of: 1}, {Index: 2, Of: 3}, {Index: options.MaxShards - 1, Of: options.MaxShards}} {
		if err := source.Unchanged(source.Split(files, s)); err != nil {
			t.Errorf("shard %v: %v", s, err)
		}
	}
}
