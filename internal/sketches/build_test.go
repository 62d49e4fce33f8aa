package sketches

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/countmin"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
)

var small = countmin.Params{Width: 200, Depth: 3}

// log is a log with users from -50 on, some NULL, and bytes; truth has their rows and bytes.
type log struct {
	names       []string
	rows, bytes map[int64]uint64
}

func newLog(t testing.TB) log {
	t.Helper()
	l := log{rows: map[int64]uint64{}, bytes: map[int64]uint64{}}
	r := rand.New(rand.NewPCG(4, 2))
	zipf := rand.NewZipf(r, 1.3, 1, 5000)
	dir := t.TempDir()
	for i, name := range []string{"a.parquet", "b.parquet", "c.arrow"} {
		var users, bytes []any
		var names []string
		for range 4000 - i*1000 {
			user, weight := int64(zipf.Uint64())-50, r.IntN(1000)
			bytes, names = append(bytes, weight), append(names, fmt.Sprintf("u%d", user))
			if r.IntN(20) == 0 {
				users = append(users, nil)
				continue
			}
			users = append(users, int(user))
			l.rows[user]++
			l.bytes[user] += uint64(weight)
		}
		rec := sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: users}, sourcetest.Col{Name: "bytes", Values: bytes}, sourcetest.Col{Name: "name", Values: names})
		l.names = append(l.names, sourcetest.Write(t, filepath.Join(dir, name), 700, rec))
	}
	return l
}

// built returns the sketch of a shard of files.
func built(t testing.TB, spec Spec, o Options, names ...string) (*Sketch, error) {
	t.Helper()
	s, _, err := counted(t, spec, o, names...)
	return s, err
}

func counted(t testing.TB, spec Spec, o Options, names ...string) (*Sketch, Report, error) {
	t.Helper()
	plan, err := planOf(t, spec, o, names...)
	if err != nil {
		return nil, Report{}, err
	}
	return Build(t.Context(), plan, spec, o)
}

func planOf(t testing.TB, spec Spec, o Options, names ...string) (*builds.Plan, error) {
	t.Helper()
	opening := source.Opening{}
	opening.Text = true
	return builds.NewPlan(roomtest.Open(t, opening, names...), spec.PlanOptions(builds.Options{Shard: o.Shard}))
}

func must(t testing.TB, s *Sketch, err error) *Sketch {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func file(t testing.TB, s *Sketch) []byte {
	t.Helper()
	store := teststore.NewMemory()
	n, id, err := s.Save(t.Context(), store, "file", false)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := s.Digest(); err != nil || id != want {
		t.Fatalf("digest %x, %v; want %x", id, err, want)
	}
	b, ok := store.Get("file")
	if !ok || int64(len(b)) != n {
		t.Fatal(ok, len(b), n)
	}
	return b
}

// estimates returns the estimates of integers.
func estimates(t testing.TB, s *Sketch, ids ...int64) (out []uint64) {
	t.Helper()
	o, err := s.KeyOptions()
	if err != nil {
		t.Fatal(err)
	}
	err = keys.NewValueEncoder(o).Encode(keys.Int64s(ids), func(_ int, b *keys.Batch) error {
		out = append(out, s.Estimate(b)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Sketches count rows or weights, whatever the threads and shards: their files are equal byte for
// byte, and estimates are those of a map, or more.
func TestBuild(t *testing.T) {
	l := newLog(t)
	for _, weight := range []string{"", "bytes"} {
		for _, ranges := range []bool{false, true} {
			spec := Spec{Key: "user", Weight: weight, Params: small, Ranges: ranges}
			truth := l.rows
			if weight != "" {
				truth = l.bytes
			}
			s, rep, err := counted(t, spec, Options{Threads: 1}, l.names...)
			must(t, s, err)
			if rep.Rows != 9000 || uint64(rep.Rows-rep.KeysNull) != s.rows || rep.KeysNull == 0 {
				t.Errorf("report %+v, rows with a key %d", rep, s.rows)
			}
			total := uint64(0)
			for user, w := range truth {
				total += w
				if got := estimates(t, s, user)[0]; got < w || got > w+20*s.Bound(1) {
					t.Errorf("key %d: %d, want %d", user, got, w)
				}
			}
			if total != s.Total() {
				t.Errorf("total %d, want %d", s.Total(), total)
			}
			want := file(t, s)
			whole, err := built(t, spec, Options{Threads: 4}, l.names...)
			if !bytes.Equal(file(t, must(t, whole, err)), want) {
				t.Error("4 threads make another file than 1")
			}
			for _, of := range []uint32{1, 2, 7} {
				checkShards(t, spec, of, want, l.names)
			}
		}
	}
}

// checkShards merges the shards of a build, in memory and in files, at once and in two steps.
func checkShards(t *testing.T, spec Spec, of uint32, want []byte, inputs []string) {
	t.Helper()
	store := teststore.NewMemory()
	var parts []*Sketch
	var names []string
	for i := range of {
		s, err := built(t, spec, Options{Shard: dataset.Shard{Index: i, Of: of}}, inputs...)
		parts = append(parts, must(t, s, err))
		name := fmt.Sprint("part", i)
		if _, _, err := s.Save(t.Context(), store, name, false); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	merged, err := Merge(names, parts, false, false)
	if !bytes.Equal(file(t, must(t, merged, err)), want) {
		t.Errorf("%d shards make another file", of)
	}
	some := (of + 1) / 2
	more, err := Merge(names[:some], parts[:some], true, false)
	if _, _, err := must(t, more, err).Save(t.Context(), store, "some", false); err != nil {
		t.Fatal(err)
	}
	merged, err = MergeFiles(t.Context(), store, append([]string{"some"}, names[some:]...), false, false, 0)
	if !bytes.Equal(file(t, must(t, merged, err)), want) {
		t.Errorf("%d shards make another file in two steps", of)
	}
	if of == 1 {
		return
	}
	_, err = MergeFiles(t.Context(), store, names[1:], false, false, 0)
	sourcetest.Says(t, "a shard is missing", err, fault.ErrMismatch, "shards: want all", "without 0", "sketch")
	_, err = MergeFiles(t.Context(), store, append(names, names[0]), false, false, 0)
	sourcetest.Says(t, "a shard twice", err, fault.ErrMismatch, "part0: ", "each shard once")
	_, err = MergeFiles(t.Context(), store, names, false, true, 0)
	sourcetest.Says(t, "a union of partial ones", err, fault.ErrMismatch, "a finished sketch", "a partial one")
	other := spec
	other.Params.Width++
	s, err := built(t, other, Options{Shard: dataset.Shard{Index: 0, Of: of}}, inputs...)
	if _, _, err := must(t, s, err).Save(t.Context(), store, "other", false); err != nil {
		t.Fatal(err)
	}
	_, err = MergeFiles(t.Context(), store, append([]string{"other"}, names[1:]...), true, false, 0)
	if of == 2 {
		sourcetest.Says(t, "another build", err, fault.ErrMismatch, "part1: ", "build: want")
	} else {
		sourcetest.Says(t, "another build", err, fault.ErrMismatch, "other: ", "build: want")
	}
	if err := parts[0].Usable(fault.At{}); err == nil {
		t.Error("a partial sketch is usable")
	}
}

// The union of finished sketches is that of all rows; those that count otherwise are refused.
func TestUnion(t *testing.T) {
	l := newLog(t)
	spec := Spec{Key: "user", Params: small}
	var of []*Sketch
	for _, name := range l.names {
		s, err := built(t, spec, Options{}, name)
		of = append(of, must(t, s, err))
	}
	sum, err := Merge(l.names, of, false, true)
	must(t, sum, err)
	whole, err := built(t, spec, Options{}, l.names...)
	if must(t, whole, err); !slices.Equal(sum.table.Counters(), whole.table.Counters()) || sum.rows != whole.rows {
		t.Error("the union is another sketch than that of all files")
	}
	for what, c := range map[string]struct {
		spec Spec
		want []string
	}{
		"wider":   {Spec{Key: "user", Params: countmin.Params{Width: 201, Depth: 3}}, []string{"second: ", "counters: want 3 rows of 200, as in first", "got 3 rows of 201 (", "Epsilon and Delta"}},
		"class":   {Spec{Key: "name", Params: small}, []string{"second: ", "key class: want integer as in first, got bytes"}},
		"weights": {Spec{Key: "user", Weight: "bytes", Params: small}, []string{"counters: want 3 rows of 200, as in first, got 3 rows of 200 of weights", "Weight and Range"}},
		"ranges":  {Spec{Key: "user", Ranges: true, Params: small}, []string{"as in first, got 3 rows of 200, and ranges"}},
	} {
		s, err := built(t, c.spec, Options{}, l.names[0])
		must(t, s, err)
		_, err = Merge([]string{"first", "second"}, []*Sketch{of[0], s}, false, true)
		sourcetest.Says(t, what, err, fault.ErrMismatch, c.want...)
		_, _, err = Product(of[0], s, [2]string{"first", "second"})
		if what == "wider" || what == "class" {
			sourcetest.Says(t, what, err, fault.ErrMismatch, c.want...)
		} else if err != nil {
			t.Errorf("product with %s: %v", what, err)
		}
	}
}

// A product of two sketches bounds the rows of the join.
func TestProduct(t *testing.T) {
	l := newLog(t)
	spec := Spec{Key: "user", Params: countmin.Params{Width: 1 << 16, Depth: 4}}
	a, err := built(t, spec, Options{}, l.names[0])
	must(t, a, err)
	b, err := built(t, spec, Options{}, l.names...)
	must(t, b, err)
	weighted := spec
	weighted.Weight = "bytes"
	c, err := built(t, weighted, Options{}, l.names...)
	must(t, c, err)
	inA := newCounts(t, l.names[0])
	var rows, sum uint64
	for user, n := range inA {
		rows, sum = rows+n*l.rows[user], sum+n*l.bytes[user]
	}
	for _, q := range []struct {
		of   *Sketch
		want uint64
	}{{b, rows}, {c, sum}} {
		most, bound, err := Product(a, q.of, [2]string{"a", "b"})
		if err != nil || most < q.want || most > q.want+bound {
			t.Errorf("%d, error %d, %v; want %d", most, bound, err, q.want)
		}
	}
}

// newCounts counts the users of a file, without any sketch.
func newCounts(t *testing.T, name string) map[int64]uint64 {
	rows, _ := sourcetest.Contents(t, name)
	out := map[int64]uint64{}
	for _, row := range rows {
		var user int64
		if n, _ := fmt.Sscanf(strings.TrimLeft(row, "[{( "), "%d", &user); n == 1 {
			out[user]++
		}
	}
	return out
}

// The second pass finds exactly the heavy keys with their exact weights, and refuses other inputs.
func TestHeavyIn(t *testing.T) {
	l := newLog(t)
	for _, spec := range []Spec{{Key: "user", Params: small}, {Key: "user", Weight: "bytes", Params: small}, {Key: "user", Params: countmin.Params{Width: 2, Depth: 1}}} {
		s, err := built(t, spec, Options{}, l.names...)
		must(t, s, err)
		truth := l.rows
		if spec.Weight != "" {
			truth = l.bytes
		}
		for _, phi := range []float64{0.3, 0.01, 0.001} {
			plan, err := planOf(t, spec, Options{}, l.names...)
			if err != nil {
				t.Fatal(err)
			}
			found, rep, err := s.HeavyIn(t.Context(), plan, phi, Options{Threads: 3})
			if err != nil || rep.Rows != 9000 {
				t.Fatal(err, rep)
			}
			want := map[string]uint64{}
			for user, w := range truth {
				if float64(w) >= phi*float64(s.Total()) {
					want[fmt.Sprint(user)] = w
				}
			}
			if len(found) != len(want) || float64(len(found)) > 1/phi || !slices.IsSortedFunc(found, byWeight) {
				t.Errorf("%d of %d keys", len(found), len(want))
			}
			for _, h := range found {
				if want[h.Key] != h.Weight {
					t.Errorf("%s: %d, want %d", h.Key, h.Weight, want[h.Key])
				}
			}
			if _, _, err = s.HeavyIn(t.Context(), plan, phi, Options{Memory: 10}); err == nil && len(found) == 0 {
				continue
			}
			sourcetest.Says(t, "no memory", err, fault.ErrMemory, "keys that may be heavy")
		}
		plan, err := planOf(t, spec, Options{}, l.names[:2]...)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.HeavyIn(t.Context(), plan, 0.1, Options{})
		sourcetest.Says(t, "other inputs", err, fault.ErrMismatch, "inputs", "those of the sketch")
	}
}

// Heavy keys and ranges from the sketch alone.
func TestRanges(t *testing.T) {
	l := newLog(t)
	spec := Spec{Key: "user", Params: countmin.Params{Width: 3000, Depth: 4}, Ranges: true}
	s, err := built(t, spec, Options{}, l.names...)
	must(t, s, err)
	o, err := s.KeyOptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, ends := range [][]int64{{-50, -1}, {-50, 5000}, {-20, 3}, {0, 0}, {7, 90}, {9, 8}, {-9000, -8000}} {
		want := uint64(0)
		for user, n := range l.rows {
			if user >= ends[0] && user <= ends[1] {
				want += n
			}
		}
		err := keys.NewValueEncoder(o).Encode(keys.Int64s(ends), func(_ int, b *keys.Batch) error {
			most, nodes, err := s.Within(b)
			if err != nil || most < want || most > want+s.Bound(nodes) {
				t.Errorf("%v: %d from %d intervals, want %d; %v", ends, most, nodes, want, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.Heavy(0.02)
	if err != nil || len(found) < 3 || found[0].Key != "-50" || found[0].Weight < l.rows[-50] {
		t.Errorf("%v, %v", found, err)
	}
	_, err = s.Heavy(1e-9)
	sourcetest.Says(t, "a small share", err, fault.ErrMismatch, "more than the sketch's ε")
	without, err := built(t, Spec{Key: "user", Params: small}, Options{}, l.names...)
	must(t, without, err)
	_, err = without.Heavy(0.1)
	sourcetest.Says(t, "no ranges", err, fault.ErrMismatch, "one with ranges", "integer without ranges")
	_, err = built(t, Spec{Key: "name", Params: small, Ranges: true}, Options{}, l.names...)
	sourcetest.Says(t, "ranges of text", err, fault.ErrUnsupported, "ranges of keys")
}

// Weights that cannot be added up are errors with their place, and no value in the text.
func TestWeights(t *testing.T) {
	for what, c := range map[string]struct {
		weights any
		want    []string
	}{
		"negative": {[]any{1, -424242, 3}, []string{"x.parquet: ", "column w", "0 or more", "a negative number"}},
		"text":     {[]string{"1", "2", "3"}, []string{"column w", "a column of integers", "Weight COL::int64"}},
		"overflow": {[]int64{math.MaxInt64, math.MaxInt64, 2}, []string{"column w", "more than 2^64-1"}},
	} {
		rec := sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "k", Values: []int64{1, 2, 3}}, sourcetest.Col{Name: "w", Values: c.weights})
		name := sourcetest.Write(t, filepath.Join(t.TempDir(), "x.parquet"), 10, rec)
		_, err := built(t, Spec{Key: "k", Weight: "w", Params: small}, Options{}, name)
		sourcetest.Says(t, what, err, nil, c.want...)
		if err != nil && strings.Contains(err.Error(), "424242") {
			t.Errorf("a value in %v", err)
		}
	}
	rec := sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "k", Values: []any{1, nil, 1, 1, nil}}, sourcetest.Col{Name: "w", Values: []any{5, nil, 6, nil, 8}})
	name := sourcetest.Write(t, filepath.Join(t.TempDir(), "x.parquet"), 10, rec)
	s, rep, err := counted(t, Spec{Key: "k", Weight: "w", Params: small}, Options{}, name)
	if must(t, s, err); s.Total() != 11 || estimates(t, s, 1)[0] != 11 || s.rows != 2 || rep.KeysNull != 3 {
		t.Errorf("NULLs of keys and weights: total %d, %+v", s.Total(), rep)
	}
	csv := sourcetest.Put(t, filepath.Join(t.TempDir(), "x.csv"), "k,w\na,5\nb,6\na,7\n")
	s, err = built(t, Spec{Key: "k", Weight: "w::int64", Params: small}, Options{}, csv)
	if must(t, s, err); s.Total() != 18 || s.rows != 3 {
		t.Errorf("text: total %d", s.Total())
	}
	_, err = built(t, Spec{Key: "k", Params: small}, Options{Memory: 100}, csv)
	sourcetest.Says(t, "no memory", err, fault.ErrMemory, "counters", "raise Memory")
}

// A sketch over an existing file, over itself, and with an ended context: the file is whole or as
// it was.
func TestSave(t *testing.T) {
	l := newLog(t)
	s, err := built(t, Spec{Key: "user", Params: small}, Options{}, l.names[0])
	must(t, s, err)
	other, err := built(t, Spec{Key: "user", Params: small}, Options{}, l.names[1])
	must(t, other, err)
	store := teststore.NewMemory()
	for _, c := range []struct {
		of      *Sketch
		replace bool
		fails   bool
	}{{s, false, false}, {s, false, false}, {other, false, true}, {other, true, false}} {
		if _, _, err := c.of.Save(t.Context(), store, "x.bjs", c.replace); (err != nil) != c.fails {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Save(ended, store, "y.bjs", false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if names := store.Names(); len(names) != 1 {
		t.Errorf("%q are stored", names)
	}
	got, err := Load(t.Context(), store, "x.bjs", 0)
	if must(t, got, err); !bytes.Equal(file(t, got), file(t, other)) {
		t.Error("another sketch came back")
	}
	if _, err := Load(t.Context(), store, "x.bjs", 100); !errors.Is(err, fault.ErrMemory) {
		t.Errorf("over the budget: %v", err)
	}
	b, err := os.ReadFile(l.names[0])
	if err != nil {
		t.Fatal(err)
	}
	store.Put("rows.parquet", b)
	_, err = Load(t.Context(), store, "rows.parquet", 0)
	sourcetest.Says(t, "rows", err, fault.ErrCorrupt, "want that of a bloomjoin sketch", "a Parquet file")
}
