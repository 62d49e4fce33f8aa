package joins_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// keySets is a log and IDs as keys; noKey is a NULL.
type keySets struct {
	name      string
	log, ids  []int64
	text      bool
	files     int // of the log
	groupRows int // of the log
}

const noKey = math.MinInt64

// allKeySets returns logs of some 150,000 rows and IDs, distributed in all the ways
// that are known to mislead estimates.
func allKeySets() []keySets {
	const rows = 150_000
	r := rand.New(rand.NewPCG(7, 1))
	fill := func(n int, f func(i int) int64) []int64 {
		out := make([]int64, n)
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	uniform := fill(rows, func(int) int64 { return r.Int64N(25_000) })
	some := func(share float64, of int64) (ids []int64) {
		for k := range of {
			if r.Float64() < share {
				ids = append(ids, k)
			}
		}
		r.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
		return ids
	}
	distinct := func(keys []int64) []int64 {
		d := slices.Clone(keys)
		slices.Sort(d)
		return slices.Compact(d)
	}
	zipf := rand.NewZipf(r, 1.2, 1, 1_000_000)
	sorted := slices.Sorted(slices.Values(uniform))
	heavy := fill(rows, func(int) int64 {
		if r.Float64() < 0.3 {
			return 77
		}
		return r.Int64N(100_000)
	})
	repeated := slices.Concat(some(0.1, 25_000), some(0.1, 25_000))
	for _, k := range some(0.01, 25_000) {
		for range r.IntN(20) {
			repeated = append(repeated, k)
		}
	}
	hollow := func(keys []int64, share float64) []int64 {
		return fill(len(keys), func(i int) int64 {
			if r.Float64() < share {
				return noKey
			}
			return keys[i]
		})
	}
	return []keySets{
		{name: "uniform", log: uniform, ids: some(0.02, 30_000)},
		{name: "zipf", log: fill(rows, func(int) int64 { return int64(zipf.Uint64()) }), ids: some(0.05, 1_000_000)},
		{name: "clustered", log: sorted, ids: fill(2000, func(i int) int64 { return int64(10_000 + i) })},
		{name: "clustered, no IDs in order", log: sorted, ids: some(0.03, 25_000)},
		{name: "disjoint", log: uniform, ids: fill(20_000, func(i int) int64 { return int64(1_000_000 + i) })},
		{name: "equal", log: uniform, ids: distinct(uniform)},
		{name: "subset", log: uniform, ids: slices.DeleteFunc(distinct(uniform), func(k int64) bool { return k%3 == 0 })},
		{name: "duplicate IDs", log: uniform, ids: repeated},
		{name: "heavy key", log: heavy, ids: append(some(0.01, 100_000), 77)},
		{name: "heavy key without ID", log: heavy, ids: slices.DeleteFunc(some(0.01, 100_000), func(k int64) bool { return k == 77 })},
		{name: "strings", log: uniform, ids: some(0.1, 30_000), text: true},
		{name: "NULLs", log: hollow(uniform, 0.2), ids: hollow(some(0.1, 30_000), 0.3)},
		{name: "small files", log: uniform, ids: some(0.02, 30_000), files: 150, groupRows: 700},
		{name: "sorted row groups", log: inGroups(uniform, 10_000), ids: fill(5000, func(i int) int64 { return int64(22_000 + i) })},
	}
}

// inGroups sorts every n consecutive keys.
func inGroups(keys []int64, n int) []int64 {
	out := slices.Clone(keys)
	for lo := 0; lo < len(out); lo += n {
		slices.Sort(out[lo:min(lo+n, len(out))])
	}
	return out
}

// record makes a table of the keys and their numbers.
func (d *keySets) record(keys []int64) arrow.Record {
	numbers, rows := array.NewInt64Builder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	for i, k := range keys {
		rows.Append(int64(i))
		switch {
		case k == noKey && d.text:
			texts.AppendNull()
		case k == noKey:
			numbers.AppendNull()
		case d.text:
			texts.Append("user-" + strconv.FormatInt(k*7919, 36))
		default:
			numbers.Append(k)
		}
	}
	key := numbers.NewArray()
	if d.text {
		key = texts.NewArray() // both are Arrow arrays
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: key.DataType(), Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	return array.NewRecord(schema, []arrow.Array{key, rows.NewArray()}, int64(len(keys)))
}

// write writes keys as files of the log or IDs.
func (d *keySets) write(t testing.TB, keys []int64, files, groupRows int, format dataset.Format) string {
	t.Helper()
	dir, rec := t.TempDir(), d.record(keys)
	defer rec.Release()
	for f := range files {
		lo, hi := int64(f*len(keys)/files), int64((f+1)*len(keys)/files)
		part := rec.NewSlice(lo, hi)
		writeFile(t, filepath.Join(dir, fmt.Sprintf("%04d.%s", f, format)), part, groupRows, format)
		part.Release()
	}
	return dir
}

// truth computes the join's figures with a map.
func (d *keySets) truth() (selectivity, pairs, distinct float64) {
	ids := map[int64]int{}
	for _, k := range d.ids {
		if k != noKey {
			ids[k]++
		}
	}
	seen := map[int64]bool{}
	for _, k := range d.log {
		if k == noKey {
			continue
		}
		seen[k] = true
		if n := ids[k]; n > 0 {
			selectivity++
			pairs += float64(n)
		}
	}
	return selectivity / float64(len(d.log)), pairs, float64(len(seen))
}

func inside(e *plan.Estimate, truth float64) bool {
	return e != nil && e.Low <= e.Value && e.Value <= e.High && truth >= e.Low*(1-1e-9) && truth <= e.High*(1+1e-9)
}

// TestEstimates compares plans with the true figures, for samples of several sizes:
// these must be within the bounds, and equal to the estimate if everything was read.
func TestEstimates(t *testing.T) {
	if cases.Race {
		t.Skip("a statistic of many runs, which the race detector makes ten times as slow")
	}
	samples := []struct {
		name string
		opts joins.PlanOptions
	}{
		{"all", joins.PlanOptions{}},
		{"256 x 256", joins.Sampled(256, 256, 0)},
		{"64 x 256", joins.Sampled(64, 256, 0)},
		{"16 x 512", joins.Sampled(16, 512, 0)},
		{"64 x 256, IDs too", joins.Sampled(64, 256, 1000)},
	}
	for _, d := range allKeySets() {
		t.Run(d.name, func(t *testing.T) {
			selectivity, pairs, distinct := d.truth()
			format := dataset.Parquet
			log := open(t, partition.OpenOptions{}, d.write(t, d.log, max(d.files, 3), max(d.groupRows, 10_000), format))
			ids := open(t, partition.OpenOptions{}, d.write(t, d.ids, 1, 1000, format))
			for _, s := range samples {
				j, err := join.New(ids, log, join.Options{On: "k", Type: join.Inner})
				if err != nil {
					t.Fatal(err)
				}
				p, err := room(j).Plan(context.Background(), s.opts)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%-18s selectivity %.5f: %.5f (%.5f to %.5f); rows %.0f: %.0f (%.0f to %.0f, sketch %.0f ± %.0f); keys %.0f: %.0f (%.0f to %.0f)",
					s.name, selectivity, p.Selectivity.Value, p.Selectivity.Low, p.Selectivity.High,
					pairs, p.JoinRows.Value, p.JoinRows.Low, p.JoinRows.High, p.Sketch.Rows, p.Sketch.Error, distinct, p.Log.Distinct.Value, p.Log.Distinct.Low, p.Log.Distinct.High)
				if !inside(p.Selectivity, selectivity) {
					t.Errorf("%s: selectivity %.5f is not within %+v", s.name, selectivity, *p.Selectivity)
				}
				if !inside(p.JoinRows, pairs) {
					t.Errorf("%s: %.0f rows are not within %+v", s.name, pairs, *p.JoinRows)
				}
				if !inside(p.Log.Distinct, distinct) {
					t.Errorf("%s: %.0f keys are not within %+v", s.name, distinct, *p.Log.Distinct)
				}
				if p.Sampled.LogAll && p.Sampled.IDsAll {
					if math.Abs(p.Selectivity.Value-selectivity) > 1e-9 || math.Abs(p.JoinRows.Value-pairs) > 1e-6*pairs || p.JoinRows.Low != p.JoinRows.High {
						t.Errorf("%s: all was read, and yet %+v, %+v", s.name, *p.Selectivity, *p.JoinRows)
					}
					if p.Sketch.Rows < pairs || p.Sketch.Rows > pairs+p.Sketch.Error {
						t.Errorf("%s: count-min %+v of %.0f rows", s.name, *p.Sketch, pairs)
					}
				} else if s.name == "all" {
					t.Errorf("%s: sampled %+v", s.name, p.Sampled)
				}
			}
		})
	}
}
