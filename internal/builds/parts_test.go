package builds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/storage"
)

// The error of a merge lists everything that is wrong.
func TestMergeListsAllThatIsWrong(t *testing.T) {
	s := parts(t)
	b, _ := s.get("p-6-of-8")
	s.put("cut", b[:len(b)-9])
	s.put("text", []byte("1\n2\n3\n"))
	s.put("empty", nil)
	_, err := MergeFiles(t.Context(), s, []string{"p-0-of-8", "cut", "text", "nowhere", "empty"}, false, filters.Limits{})
	refused(t, "bad headers", err, fault.ErrCorrupt, "cut: ", "text: ", "nowhere: ", "empty: ")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one is missing: %v", err)
	}
	pair, err := MergeFiles(t.Context(), s, []string{"p-1-of-8", "p-4-of-8"}, true, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filters.Save(t.Context(), s, "pair", pair, filters.Options{}); err != nil {
		t.Fatal(err)
	}
	// Most files belong to one build, but the first one to another.
	_, err = MergeFiles(t.Context(), s, []string{
		"o-3-of-8", "p-0-of-8", "pair", "sealed", "q-1-of-4", "p-4-of-8", "p-5-of-8", "p-0-of-8", "p-1-of-8", "r-2-of-8",
	}, false, filters.Limits{})
	refused(t, "everything", err, fault.ErrMismatch,
		"sealed: mismatch: filter: want a partial filter, got a finished one",
		"o-3-of-8: mismatch: build: want ", "as in p-0-of-8",
		"q-1-of-4: mismatch: build", "of 4 shards",
		"r-2-of-8: mismatch: build",
		"p-4-of-8: mismatch: shards: want each shard once, got shard 4 of 8, which is also in pair",
		"p-0-of-8: mismatch: shards: want each shard once, got shard 0 of 8, which is also in p-0-of-8",
		"p-1-of-8: mismatch: shards: want each shard once, got shard 1 of 8, which is also in pair",
		"want all 8, got 4, without 2-3,6-7")
	if n := strings.Count(err.Error(), "\n") + 1; n != 8 {
		t.Errorf("%d lines, want 8:\n%v", n, err)
	}
}

// Long lists are cut short, with the number of omitted entries.
func TestMergeListsAreBounded(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids", span(0, 300))
	opts := Options{Key: "id", FPR: 0.01, Threads: 1}
	names := buildShards(t, s, "p", []string{"ids"}, opts, 100)
	opts.FPR = 0.02
	others := buildShards(t, s, "q", []string{"ids"}, opts, 50)
	var even []string
	for i := 0; i < len(names); i += 2 {
		even = append(even, names[i])
	}
	_, err := MergeFiles(t.Context(), s, even, false, filters.Limits{})
	refused(t, "every second one", err, fault.ErrMismatch, "all 100, got 50, without 1,3,5,", ",39 and 30 more")
	_, err = MergeFiles(t.Context(), s, slices.Concat(names, others), false, filters.Limits{})
	refused(t, "two builds", err, fault.ErrMismatch, "q-0-of-50: ", "q-19-of-50: ", "… and 30 more")
	_, err = MergeFiles(t.Context(), s, slices.Concat(names, names), false, filters.Limits{})
	refused(t, "all twice", err, fault.ErrMismatch, "shard 19 of 100, which is also", "… and 80 more")
	for _, n := range names {
		b, _ := s.get(n)
		s.put(n, b[:100])
	}
	_, err = MergeFiles(t.Context(), s, names, false, filters.Limits{})
	refused(t, "all cut short", err, fault.ErrCorrupt, "p-0-of-100: ", "p-19-of-100: ", "… and 80 more")
	if strings.Count(err.Error(), "\n") != 20 {
		t.Errorf("%v", err)
	}
}

// A faulty program gave the parts the id of another build.
func TestMergeOfABuildThatDiffers(t *testing.T) {
	s := parts(t)
	b, _ := s.get("p-1-of-8")
	for name, change := range map[string]func(f *filters.Filter){
		"rate":        func(f *filters.Filter) { f.Facts().FPRAsked = 0.02 },
		"name":        func(f *filters.Filter) { f.Facts().Key[0].Name = "other" },
		"wish":        func(f *filters.Filter) { f.Facts().Want = filters.Kind(codec.KindExact) },
		"normal form": func(f *filters.Filter) { f.Facts().NormalForm = "2" },
		"room": func(f *filters.Filter) {
			f.Facts().Capacity = filters.Capacity{Keys: 9, Blocks: f.Facts().Params.Blocks}
		},
	} {
		f, err := filters.Decode(bytes.NewReader(b), int64(len(b)), "p", filters.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		change(f)
		s.put("odd", encoded(t, f))
		_, err = MergeFiles(t.Context(), s, []string{"p-0-of-8", "odd"}, true, filters.Limits{})
		refused(t, name, err, fault.ErrMismatch, "odd: ", "filter of the build", "as in p-0-of-8")
	}
}

// Any tree of merges, in any order and on any number of processors, gives the same
// bytes as one process.
func TestMergeTrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, set := range idSets() {
		for _, kind := range set.kinds {
			s := newStore()
			inputs := set.put(t, s)
			opts := set.opts
			opts.Kind, opts.Threads = kind, 1
			whole, _ := build(t, s, inputs, opts)
			names := buildShards(t, s, "part", inputs, opts, 11)
			for range cases.Count(1, 1, 3) {
				procs := 1 + rng.IntN(5)
				before := runtime.GOMAXPROCS(procs)
				f := mergeGroups(t, s, names, rng)
				runtime.GOMAXPROCS(before)
				if !bytes.Equal(encoded(t, f), encoded(t, whole)) {
					t.Errorf("%s, %s, %d processors: another filter: %s of %d keys, want %s of %d", set.name, kind, procs, f.Kind(), f.Facts().Keys, whole.Kind(), whole.Facts().Keys)
				}
			}
		}
	}
}

// mergeGroups merges random groups, some of one part, into larger parts, merges
// these in the same way, and finally merges what remains.
func mergeGroups(t *testing.T, s *memStore, names []string, rng *rand.Rand) *filters.Filter {
	t.Helper()
	for level := 0; len(names) > 4; level++ {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var next []string
		for rest := names; len(rest) > 0; {
			n := min(1+rng.IntN(5), len(rest))
			f, err := MergeFiles(t.Context(), s, rest[:n], true, filters.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("level-%d-%d", level, len(next))
			if _, err := filters.Save(t.Context(), s, name, f, filters.Options{Uncompressed: rng.IntN(2) == 0, Replace: true}); err != nil {
				t.Fatal(err)
			}
			next, rest = append(next, name), rest[n:]
		}
		names = next
	}
	f, err := MergeFiles(t.Context(), s, names, false, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// drowsyStore counts the sources that hold a descriptor, which they do from a read
// until Rest.
type drowsyStore struct {
	*memStore
	awake, most atomic.Int64
	swap        map[string]string // files to read after the first Rest
}

type drowsySource struct {
	storage.Reader
	s    *drowsyStore
	name string
	up   atomic.Bool
}

func (s *drowsyStore) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	src, err := s.memStore.Open(ctx, o)
	return &drowsySource{Reader: src, s: s, name: o.Name}, err
}

func (d *drowsySource) ReadAt(p []byte, off int64) (int, error) {
	if d.up.CompareAndSwap(false, true) {
		n := d.s.awake.Add(1)
		for most := d.s.most.Load(); n > most && !d.s.most.CompareAndSwap(most, n); most = d.s.most.Load() {
		}
	}
	return d.Reader.ReadAt(p, off)
}

func (d *drowsySource) Rest() error {
	if d.up.CompareAndSwap(true, false) {
		d.s.awake.Add(-1)
	}
	if other, ok := d.s.swap[d.name]; ok {
		var err error
		d.Reader, err = d.s.memStore.Open(context.Background(), storage.Object{Name: other})
		return err
	}
	return nil
}

// A merge of hundreds of parts does not hold all files open or all filters in
// memory.
func TestMergeOfManyParts(t *testing.T) {
	for _, kind := range []codec.Kind{codec.KindBloom, codec.KindExact} {
		s := &drowsyStore{memStore: newStore()}
		putColumn(t, s.memStore, "ids", span(0, 2000))
		opts := Options{Key: "id", FPR: 0.01, Kind: kind, Threads: 1}
		names := buildShards(t, s.memStore, "p", []string{"ids"}, opts, 300)
		whole, _ := build(t, s.memStore, []string{"ids"}, opts)
		most := whole.Facts().Params.Bytes()
		if kind == codec.KindExact {
			most = 8 * whole.Exact().Bytes()
		} else if b, _ := s.get(names[0]); true {
			h, err := filters.DecodeHeader(bytes.NewReader(b), int64(len(b)), "p")
			if err != nil {
				t.Fatal(err)
			}
			most = h.PayloadBytes
		}
		f, err := MergeFiles(t.Context(), s, names, false, filters.Limits{MaxBytes: most})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if !bytes.Equal(encoded(t, f), encoded(t, whole)) {
			t.Errorf("%s: another filter", kind)
		}
		if n := s.most.Load(); n > readsAtOnce || n == 0 {
			t.Errorf("%s: %d files are open at a time, want at most %d", kind, n, readsAtOnce)
		}
		if n := s.awake.Load(); n != 0 {
			t.Errorf("%s: %d files stay open", kind, n)
		}
		_, err = MergeFiles(t.Context(), s, names, false, filters.Limits{MaxBytes: most / 8})
		if !errors.Is(err, fault.ErrMemory) && !errors.Is(err, filters.ErrLimit) {
			t.Errorf("%s: over the limit: %v", kind, err)
		}
	}
}

// Sets turn into bits within the limit.
func TestMergeOfExactPartsIsBounded(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids", clusters(60_000, 30, "random", false))
	opts := Options{Key: "id", FPR: 0.01, Threads: 1}
	names := buildShards(t, s, "p", []string{"ids"}, opts, 40)
	first, err := filters.Load(t.Context(), s, names[0], filters.Limits{})
	if err != nil || first.Kind() != filters.KindExact {
		t.Fatalf("the parts are no exact ones, or %v", err)
	}
	f, err := MergeFiles(t.Context(), s, names, false, filters.Limits{})
	if err != nil || f.Kind() != filters.KindBloom {
		t.Fatalf("the whole is exact, or %v", err)
	}
	_, err = MergeFiles(t.Context(), s, names, false, filters.Limits{MaxBytes: first.Facts().Params.Bytes() - 1})
	if !errors.Is(err, fault.ErrMemory) {
		t.Errorf("%v, want an error that is %q", err, fault.ErrMemory)
	}
}

// A pile is the union of the sets that were added, and not much larger.
func TestPile(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for range 20 {
		var sets unionStack
		want := exact.New()
		for range rng.IntN(200) {
			set := exact.New()
			for range rng.IntN(1 << rng.IntN(10)) {
				set.Add([]uint64{rng.Uint64N(20_000)}, false)
			}
			want.Union(set)
			if cost := sets.add(set); cost > want.Cost() {
				t.Fatalf("cost %d, of the union %d", cost, want.Cost())
			}
			n := uint64(0)
			for i, s := range sets {
				if n += s.Len(); i > 0 && 2*s.Len() >= sets[i-1].Len() {
					t.Fatalf("%d members upon %d", s.Len(), sets[i-1].Len())
				}
			}
			if n > 2*want.Len() {
				t.Fatalf("%d members for a union of %d", n, want.Len())
			}
		}
		got := sets.all()
		if got.Len() != want.Len() || len(sets) != 0 {
			t.Fatalf("%d members, want %d", got.Len(), want.Len())
		}
		if got.Difference(want); got.Len() != 0 {
			t.Fatal("other members")
		}
	}
}

// A merge fails if a part changes after its header was checked.
func TestMergeOfAPartThatChanges(t *testing.T) {
	s := &drowsyStore{memStore: parts(t), swap: map[string]string{"p-1-of-8": "o-1-of-8"}}
	_, err := MergeFiles(t.Context(), s, []string{"p-0-of-8", "p-1-of-8"}, true, filters.Limits{})
	refused(t, "a part that changes", err, syscall.ESTALE, "p-1-of-8: the file changed")
}

// Names resolves files, patterns and directories. Names that begin with _ or . are
// not data, and skip applies only to files that were searched for.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	store := storage.Local()
	for _, name := range []string{"a/p-1", "a/p-2", "a/_SUCCESS", "a/.p-3.tmp", "a/b/p-3", "all"} {
		sink, err := store.Create(t.Context(), dir+"/"+name, storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := sink.Commit(false); err != nil {
			t.Fatal(err)
		}
	}
	last := func(name string) bool { return strings.HasSuffix(name, "p-3") }
	for _, c := range []struct {
		names []string
		skip  func(string) bool
		want  string
	}{
		{[]string{"a"}, nil, "a/b/p-3 a/p-1 a/p-2"},
		{[]string{"a"}, last, "a/p-1 a/p-2"},
		{[]string{"a/b/*"}, nil, "a/b/p-3"},
		{[]string{"a/p-*", "all", "a/b/p-3"}, last, "a/p-1 a/p-2 all a/b/p-3"},
	} {
		var names []string
		for _, n := range c.names {
			names = append(names, dir+"/"+n)
		}
		got, err := Names(t.Context(), store, names, c.skip)
		if s := strings.ReplaceAll(strings.Join(got, " "), dir+"/", ""); err != nil || s != c.want {
			t.Errorf("%q: %q, %v; want %q", c.names, s, err, c.want)
		}
	}
	_, err := Names(t.Context(), store, []string{dir + "/x", dir + "/all", dir + "/y*"}, nil)
	refused(t, "no such files", err, fs.ErrNotExist, "/x", "/y*")
}
