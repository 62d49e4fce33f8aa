package builds

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// idSet is an ID set in files, to be built in every division.
type idSet struct {
	name  string
	opts  Options
	kinds []codec.Kind
	put   func(t *testing.T, s *memStore) []string // returns the inputs
}

var (
	anyKind   = []codec.Kind{codec.KindAuto, codec.KindBloom, codec.KindExact}
	bloomOnly = []codec.Kind{codec.KindAuto, codec.KindBloom}
)

// rows and groupRows give 14 row groups: fewer than 16 shards.
const (
	setRows   = 4_200
	groupRows = 300
)

func idSets() []idSet {
	one := func(values func(rng *rand.Rand) any) func(*testing.T, *memStore) []string {
		return func(t *testing.T, s *memStore) []string {
			rec := record(t, column{"id", values(rand.New(rand.NewPCG(1, 2)))})
			defer rec.Release()
			putParquet(t, s, "ids.parquet", groupRows, rec)
			return []string{"ids.parquet"}
		}
	}
	return []idSet{
		{"dense", Options{Key: "id"}, anyKind, one(func(*rand.Rand) any {
			return numbers(setRows, func(i int) int64 { return int64(i) + 100_000 })
		})},
		{"sparse", Options{Key: "id", FPR: 0.01}, anyKind, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(int) int64 { return int64(rng.Uint64()) })
		})},
		{"negative", Options{Key: "id"}, anyKind, one(func(*rand.Rand) any {
			return numbers(setRows, func(i int) int64 { return -int64(i) * 3 })
		})},
		{"beyond int64", Options{Key: "id"}, anyKind, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(i int) uint64 { return math.MaxUint64 - uint64(i)*rng.Uint64N(9) })
		})},
		{"duplicates and NULLs", Options{Key: "id", FPR: 0.001}, anyKind, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(i int) any {
				if i%7 == 0 || i/groupRows == 3 { // a row group of only NULLs
					return nil
				}
				return int64(rng.Uint64N(1000)) - 500
			})
		})},
		{"no rows", Options{Key: "id"}, anyKind, one(func(*rand.Rand) any { return []int64{} })},
		{"NULLs only", Options{Key: "id"}, anyKind, one(func(*rand.Rand) any {
			return numbers(40, func(int) any { return nil })
		})},
		{"strings", Options{Key: "id", FPR: 0.02}, bloomOnly, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(int) string { return fmt.Sprintf("user-%d", rng.Uint64N(5000)) })
		})},
		{"small limit", Options{Key: "id", MaxSize: 8 << 10}, anyKind, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(int) int64 { return int64(rng.Uint64N(1 << 40)) })
		})},
		{"blocks of 512 bits at 1 %", Options{Key: "id", FPR: 0.01, Geometry: codecbloom.Geometry(bloom.Split512)}, anyKind, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(int) int64 { return int64(rng.Uint64N(1 << 40)) })
		})},
		{"registers", Options{Key: "id", FPR: 1e-12}, anyKind, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(int) int64 { return int64(rng.Uint64N(1 << 40)) })
		})},
		{"registers and blocks of 256 bits", Options{Key: "id", FPR: 1e-9, Geometry: codecbloom.Geometry(bloom.Split256)}, bloomOnly, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(int) string { return fmt.Sprintf("user-%d", rng.Uint64N(5000)) })
		})},
		{"room", Options{Key: "id", FPR: 0.01, Expect: 20_000, Room: true}, anyKind, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(int) int64 { return int64(rng.Uint64N(1 << 40)) })
		})},
		{"room that is too small", Options{Key: "id", FPR: 0.001, Expect: 900, Room: true}, anyKind, one(func(rng *rand.Rand) any {
			return numbers(setRows, func(int) int64 { return int64(rng.Uint64N(1 << 20)) })
		})},
		{"composite", Options{Key: "n,s", FPR: 0.01}, bloomOnly, func(t *testing.T, s *memStore) []string {
			rec := record(t,
				column{"s", numbers(setRows, func(i int) string { return strings.Repeat("x", i%5) })},
				column{"n", numbers(setRows, func(i int) any {
					if i%11 == 0 {
						return nil
					}
					return int64(i % 4000)
				})})
			defer rec.Release()
			putParquet(t, s, "ids.parquet", groupRows, rec)
			return []string{"ids.parquet"}
		}},
		{"files of several types and formats", Options{Key: "id"}, anyKind, func(t *testing.T, s *memStore) []string {
			a := record(t, column{"id", numbers(3000, func(i int) int32 { return int32(i) - 1500 })})
			defer a.Release()
			b := record(t, column{"other", numbers(3000, func(i int) string { return "x" })},
				column{"id", numbers(3000, func(i int) uint64 { return math.MaxUint64 - uint64(i) })})
			defer b.Release()
			c := record(t, column{"id", []int64{}})
			defer c.Release()
			putParquet(t, s, "a.parquet", 1000, a)
			putArrow(t, s, "b.arrow", 700, b)
			putParquet(t, s, "c.parquet", 1000, c)
			return []string{"c.parquet", "b.arrow", "a.parquet"}
		}},
		{"text with a capacity", Options{Key: "id", Expect: 4000}, bloomOnly, func(t *testing.T, s *memStore) []string {
			var csv, lines strings.Builder
			csv.WriteString("name,id\n")
			for i := range 1500 {
				fmt.Fprintf(&csv, "n%d,%d\n", i, i*i)
				fmt.Fprintf(&lines, "%d\n", i)
			}
			s.put("a.csv", []byte(csv.String()))
			s.put("b.txt", []byte(lines.String()))
			return []string{"a.csv", "b.txt"}
		}},
	}
}

// However the work is divided, the result is the same file.
func TestDivisionDoesNotMatter(t *testing.T) {
	for _, set := range idSets() {
		for _, kind := range set.kinds {
			t.Run(fmt.Sprintf("%s/%s", set.name, kind), func(t *testing.T) {
				t.Parallel()
				divide(t, set, kind)
			})
		}
	}
}

func divide(t *testing.T, set idSet, kind codec.Kind) {
	s := newStore()
	inputs := set.put(t, s)
	opts := set.opts
	opts.Kind, opts.Threads = kind, 1
	whole, rep := build(t, s, inputs, opts)
	want := encoded(t, whole)
	if !whole.Sealed() {
		t.Fatal("one process makes a partial filter")
	}
	if kind == codec.KindBloom && whole.Kind() != filters.KindBloom || kind == codec.KindExact && whole.Kind() != filters.KindExact {
		t.Fatalf("asked for %s, got %s", kind, whole.Kind())
	}
	if rep.Keys != whole.Facts().Keys || rep.Rows != int64(rep.Keys)+rep.KeysNull || rep.Distinct > rep.Keys {
		t.Fatalf("report %+v of a filter with %d keys", rep, whole.Facts().Keys)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, threads := range []int{1, 8} {
		opts.Threads = threads
		if f, again := build(t, s, inputs, opts); !bytes.Equal(encoded(t, f), want) {
			t.Errorf("%d threads: another filter: %s of %d keys, want %s of %d", threads, f.Kind(), f.Facts().Keys, whole.Kind(), whole.Facts().Keys)
		} else if again.Seconds, again.Sharing, again.Workers = rep.Seconds, rep.Sharing, rep.Workers; again != rep {
			t.Errorf("%d threads: report %+v, want %+v", threads, again, rep)
		}
		for _, n := range map[int][]uint32{1: {2, 7}, 8: {3, 16}}[threads] {
			names := buildShards(t, s, fmt.Sprint("part", threads), inputs, opts, n)
			for range 2 {
				rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				f, err := MergeFiles(t.Context(), s, names, false, filters.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(encoded(t, f), want) {
					t.Errorf("%d threads, %d shards: another filter: %s of %d keys, want %s of %d", threads, n, f.Kind(), f.Facts().Keys, whole.Kind(), whole.Facts().Keys)
				}
			}
			if f := mergeTree(t, s, names, rng); !bytes.Equal(encoded(t, f), want) {
				t.Errorf("%d threads, %d shards, merged as a tree: another filter: %s of %d keys, want %s of %d", threads, n, f.Kind(), f.Facts().Keys, whole.Kind(), whole.Facts().Keys)
			}
		}
	}
}

// If an exact set and a Bloom filter cost nearly the same, some parts of a set may
// be on one side and the whole on the other. The decision must still be the same.
func TestKindAtTheTippingPoint(t *testing.T) {
	kinds := map[filters.Kind]int{}
	// Unless all run, each set at each rate is interleaved or not, in turn.
	for i, perContainer := range []int{1, 38, 46, 80, 150, 600} {
		for k, shape := range []string{"run", "even", "random"} {
			for l, fpr := range []float64{0.01, 0.0001} {
				for m, interleaved := range []bool{false, true} {
					if (i+k+l+m)%cases.Count(4, 2, 1) != 0 {
						continue
					}
					s := newStore()
					ids := clusters(6000, perContainer, shape, interleaved)
					rec := record(t, column{"id", ids})
					putParquet(t, s, "ids", 500, rec)
					rec.Release()
					kinds[sameKind(t, s, Options{Key: "id", FPR: fpr}, fmt.Sprintf("%d in a container, %s, fpr %v, interleaved %v", perContainer, shape, fpr, interleaved))]++
				}
			}
		}
	}
	if least := cases.Count(3, 5, 10); kinds[filters.KindBloom] < least || kinds[filters.KindExact] < least {
		t.Errorf("the sets do not lie around the tipping point: %v", kinds)
	}
}

// clusters returns n integers, perContainer of them in each block of 2^16.
func clusters(n, perContainer int, shape string, interleaved bool) []int64 {
	rng := rand.New(rand.NewPCG(5, 6))
	out := make([]int64, n)
	containers := (n + perContainer - 1) / perContainer
	for i := range out {
		c, j := i/perContainer, i%perContainer
		if interleaved {
			c, j = i%containers, i/containers
		}
		low := j
		switch shape {
		case "even":
			low = j * (65536 / perContainer)
		case "random":
			low = rng.IntN(65536)
		}
		out[i] = int64(c)<<16 | int64(low)
	}
	return out
}

func sameKind(t *testing.T, s *memStore, opts Options, name string) filters.Kind {
	t.Helper()
	opts.Threads = 1
	whole, _ := build(t, s, []string{"ids"}, opts)
	want := encoded(t, whole)
	opts.Threads = 4
	if f, _ := build(t, s, []string{"ids"}, opts); !bytes.Equal(encoded(t, f), want) {
		t.Errorf("%s: %s with one thread, %s with four", name, whole.Kind(), f.Kind())
	}
	for _, n := range []uint32{2, 5} {
		names := buildShards(t, s, "part", []string{"ids"}, opts, n)
		f, err := MergeFiles(t.Context(), s, names, false, filters.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encoded(t, f), want) {
			t.Errorf("%s: %s in one process, %s of %d shards", name, whole.Kind(), f.Kind(), n)
		}
	}
	return whole.Kind()
}
