package builds

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// refused fails unless err is of the kind and its text has all of the words.
func refused(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want an error that is %q", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the text lacks %q: %v", what, w, err)
		}
	}
}

// parts returns a store with the filters that the refusals need.
func parts(t *testing.T) *memStore {
	s := newStore()
	rng := rand.New(rand.NewPCG(11, 12))
	putColumn(t, s, "ids", numbers(8000, func(int) int64 { return int64(rng.Uint64()) }))
	putColumn(t, s, "others", numbers(8000, func(int) int64 { return int64(rng.Uint64()) }))
	opts := Options{Key: "id", FPR: 0.01}
	buildShards(t, s, "p", []string{"ids"}, opts, 8)
	buildShards(t, s, "q", []string{"ids"}, opts, 4)
	buildShards(t, s, "o", []string{"others"}, opts, 8)
	opts.FPR = 0.02
	buildShards(t, s, "r", []string{"ids"}, opts, 8)
	sealed, _ := build(t, s, []string{"ids"}, opts)
	if _, err := filters.Save(t.Context(), s, "sealed", sealed, filters.Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMergeRefusals(t *testing.T) {
	s := parts(t)
	all := []string{"p-0-of-8", "p-1-of-8", "p-2-of-8", "p-3-of-8", "p-4-of-8", "p-5-of-8", "p-6-of-8", "p-7-of-8"}
	whole, _ := s.get("p-3-of-8")
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	s.put("flipped", flipped)
	s.put("cut", whole[:len(whole)-9])
	s.put("text", []byte("1\n2\n3\n"))
	pair, err := MergeFiles(t.Context(), s, []string{all[1], all[4]}, true, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filters.Save(t.Context(), s, "pair", pair, filters.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		names []string
		open  bool
		kind  error
		words []string
	}{
		{"some are missing", []string{all[0], all[2], all[3], all[6]}, false, fault.ErrMismatch, []string{"all 8", "4, without 1,4-5,7", "Partial"}},
		{"one is missing", all[1:], false, fault.ErrMismatch, []string{"7, without 0"}},
		{"one of eight", all[7:], false, fault.ErrMismatch, []string{"without 0-6"}},
		{"one twice", append(all[:8:8], all[2]), false, fault.ErrMismatch, []string{"shard 2 of 8, which is also", "p-2-of-8"}},
		{"one twice in a partial merge", []string{all[2], all[2]}, true, fault.ErrMismatch, []string{"shard 2 of 8, which is also", "in p-2-of-8"}},
		{"one twice within a larger part", []string{all[0], "pair", all[4]}, true, fault.ErrMismatch, []string{"p-4-of-8", "shard 4 of 8, which is also", "in pair"}},
		{"other inputs", []string{all[0], "o-1-of-8"}, true, fault.ErrMismatch, []string{"o-1-of-8", "build", "as in p-0-of-8", "same inputs"}},
		{"another rate", []string{all[0], "r-1-of-8"}, true, fault.ErrMismatch, []string{"r-1-of-8", "build", "as in p-0-of-8"}},
		{"another number of shards", []string{all[0], "q-1-of-4"}, true, fault.ErrMismatch, []string{"q-1-of-4", "of 8 shards as in p-0-of-8", "of 4 shards"}},
		{"a sealed one last", []string{all[0], "sealed"}, true, fault.ErrMismatch, []string{"sealed: ", "a partial filter", "Union"}},
		{"a sealed one first", []string{"sealed", all[0]}, false, fault.ErrMismatch, []string{"sealed: ", "a partial filter"}},
		{"a sealed one alone", []string{"sealed"}, false, fault.ErrMismatch, []string{"sealed: "}},
		{"no such file", []string{all[0], "nowhere"}, true, fs.ErrNotExist, []string{"nowhere"}},
		{"a bit flipped", []string{all[0], "flipped"}, true, fault.ErrCorrupt, []string{"flipped"}},
		{"a bit flipped, first", []string{"flipped", all[0]}, true, fault.ErrCorrupt, []string{"flipped"}},
		{"cut short", []string{all[0], "cut"}, true, fault.ErrCorrupt, []string{"cut"}},
		{"no filter", []string{all[0], "text"}, true, fault.ErrCorrupt, []string{"text"}},
	} {
		f, err := MergeFiles(t.Context(), s, c.names, c.open, filters.Limits{})
		if f != nil && err != nil {
			t.Errorf("%s: a filter and an error", c.name)
		}
		refused(t, c.name, err, c.kind, c.words...)
	}
	if _, err := MergeFiles(t.Context(), s, nil, false, filters.Limits{}); err == nil {
		t.Error("nothing was merged into something")
	}
	_, err = MergeFiles(t.Context(), s, all, false, filters.Limits{MaxBytes: 1000})
	refused(t, "limit", err, fault.ErrMemory, "p-0-of-8", "Memory")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := MergeFiles(ctx, s, all, false, filters.Limits{}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a merge that was called off: %v", err)
	}
}

// A partial merge reports the shards it has, whatever the order of its parts.
func TestPartialMergeSaysWhatItHolds(t *testing.T) {
	s := parts(t)
	f, err := MergeFiles(t.Context(), s, []string{"p-6-of-8", "p-0-of-8", "p-3-of-8"}, true, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Sealed() || f.Facts().Partial.Of != 8 || len(f.Facts().Partial.Held) != 3 || f.Facts().Partial.Held[0] != 0 || f.Facts().Partial.Held[1] != 3 || f.Facts().Partial.Held[2] != 6 {
		t.Errorf("holds %+v", f.Facts().Partial)
	}
	again, err := MergeFiles(t.Context(), s, []string{"p-3-of-8", "p-6-of-8", "p-0-of-8"}, true, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encoded(t, f), encoded(t, again)) {
		t.Error("the order of the parts matters")
	}
	if all, err := MergeFiles(t.Context(), s, []string{"p-0-of-8", "p-1-of-8", "p-2-of-8", "p-3-of-8", "p-4-of-8", "p-5-of-8", "p-6-of-8", "p-7-of-8"}, true, filters.Limits{}); err != nil || all.Sealed() {
		t.Errorf("all parts with Partial: %v; want a partial filter that holds all", err)
	}
}

func TestReadAndWrite(t *testing.T) {
	s := parts(t)
	f, err := filters.Load(t.Context(), s, "sealed", filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filters.Save(t.Context(), s, "p-0-of-8", f, filters.Options{}); !errors.Is(err, filters.ErrExists) {
		t.Errorf("writing over another file: %v", err)
	}
	size, err := filters.Save(t.Context(), s, "sealed", f, filters.Options{Replace: true})
	if b, _ := s.get("sealed"); err != nil || size != int64(len(b)) {
		t.Errorf("%d bytes, %v; want %d", size, err, len(b))
	}
	_, err = filters.Load(t.Context(), s, "sealed", filters.Limits{MaxBytes: 100})
	refused(t, "limit", err, filters.ErrLimit, "sealed")
	_, err = filters.Load(t.Context(), s, "nowhere", filters.Limits{})
	refused(t, "no file", err, fs.ErrNotExist, "nowhere")
}

func TestGaps(t *testing.T) {
	for _, c := range []struct {
		held []uint32
		n    uint32
		want string
	}{
		{nil, 1, "0"}, {nil, 3, "0-2"}, {[]uint32{0, 1, 2}, 3, ""}, {[]uint32{1}, 3, "0,2"},
		{[]uint32{0, 5}, 9, "1-4,6-8"}, {[]uint32{2}, 1 << 20, "0-1,3-1048575"},
	} {
		if got := gaps(c.held, c.n); got != c.want {
			t.Errorf("gaps(%v, %d) = %q, want %q", c.held, c.n, got, c.want)
		}
	}
}

// A build of one shard merges like one of several.
func TestOnlyShard(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids", span(0, 1000))
	opts := Options{Key: "id", FPR: 0.01}
	names := buildShards(t, s, "part", []string{"ids"}, opts, 1)
	part, err := filters.Load(t.Context(), s, names[0], filters.Limits{})
	if err != nil || part.Sealed() {
		t.Fatalf("shard 0/1 is sealed, or %v", err)
	}
	got, err := MergeFiles(t.Context(), s, names, false, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := build(t, s, []string{"ids"}, opts)
	if !want.Sealed() || !bytes.Equal(encoded(t, got), encoded(t, want)) {
		t.Error("the merged filter is not that of a build without shards")
	}
}

// A rival that finished in the meantime is accepted if it is the same run, and kept
// otherwise.
func TestWriteBesideARival(t *testing.T) {
	s := newStore()
	even := func(n int) []int64 { return numbers(n, func(i int) int64 { return 2 * int64(i) }) } // compresses well
	f := filterOf(t, even(50_000), Options{Kind: codec.KindExact})
	g := filterOf(t, even(50_001), Options{Kind: codec.KindExact})
	write := func(f *filters.Filter, uncompressed, replace bool) (int64, error) {
		return filters.Save(t.Context(), s, "out", f, filters.Options{Uncompressed: uncompressed, Replace: replace})
	}
	first, err := write(f, false, false)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := s.get("out")
	if n, err := write(f, false, false); err != nil || n != first {
		t.Errorf("the same filter: %d bytes, %v; want %d", n, err, first)
	}
	damaged := bytes.Clone(before)
	damaged[len(damaged)/2] ^= 1
	for name, try := range map[string]func() error{
		"another filter":    func() error { _, err := write(g, false, false); return err },
		"uncompressed":      func() error { _, err := write(f, true, false); return err },
		"a damaged rival":   func() error { s.put("out", damaged); _, err := write(f, false, false); return err },
		"what is no filter": func() error { s.put("out", []byte("x")); _, err := write(f, false, false); return err },
	} {
		s.put("out", before)
		if err := try(); !errors.Is(err, filters.ErrExists) || !strings.Contains(err.Error(), "out: ") || !strings.Contains(err.Error(), "Force") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.put("out", before)
	if n, err := write(f, true, true); err != nil || n == first {
		t.Errorf("replacing: %d bytes, %v", n, err)
	}
	if n, err := write(f, false, false); err != nil || n == first { // the uncompressed form can be mapped, so it is accepted too
		t.Errorf("beside an uncompressed one: %d bytes, %v", n, err)
	}
}
