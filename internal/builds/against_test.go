package builds

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// knownOf opens files of known keys.
func knownOf(t testing.TB, s *memStore, names ...string) []*source.File {
	t.Helper()
	files, err := openFiles(t, names, source.OpenOptions{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close(files) })
	return files
}

// buildAgainst builds a filter against known keys.
func buildAgainst(t testing.TB, s *memStore, ids, known []string, opts Options) (*filters.Filter, Report) {
	t.Helper()
	p, err := plan(t, s, ids, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.SetKnown(knownOf(t, s, known...)); err != nil {
		t.Fatal(err)
	}
	f, rep, err := p.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f, rep
}

// mergeKnown merges partial filters against known keys.
func mergeKnown(t testing.TB, s *memStore, parts []string, known ...string) (*filters.Filter, KnownFigures, error) {
	return MergeAgainst(t.Context(), s, parts, filters.Limits{}, func(f *filters.Filter) (*Known, error) {
		return KnownOf(f, knownOf(t, s, known...), 0)
	})
}

// againstCase is a set of IDs and known keys. in says which known keys pass.
type againstCase struct {
	name       string
	opts       Options
	ids, known any
	in         []bool
}

func againstCases(rng *rand.Rand) []againstCase {
	const ids, known, both = 4000, 30_000, 500
	var ints, knownInts []int64
	var texts, knownTexts, hosts, knownHosts []string
	in, inHosts := make([]bool, known), make([]bool, known)
	for range ids {
		v := int64(rng.Uint64())
		ints, texts = append(ints, v), append(texts, fmt.Sprintf("https://h/%x", uint64(v)))
		hosts = append(hosts, fmt.Sprintf("H%x.example.COM.", uint64(v)))
	}
	for i := range known {
		v := int64(rng.Uint64())
		if in[i] = i%(known/both) == 0; in[i] {
			v = ints[rng.IntN(ids)]
		}
		inHosts[i] = in[i]
		knownInts, knownTexts = append(knownInts, v), append(knownTexts, fmt.Sprintf("HTTPS://H:443/a/../%x#f", uint64(v)))
		knownHosts = append(knownHosts, fmt.Sprintf("http://www%d.h%x.example.com/", rng.IntN(3), uint64(v)))
	}
	return []againstCase{
		{"integers", Options{Key: "id", FPR: 0.02, Kind: codec.KindBloom}, ints, knownInts, in},
		{"integers of any kind", Options{Key: "id", FPR: 0.02}, ints, knownInts, in},
		{"url", Options{Key: "id", FPR: 0.02, Normalize: "url"}, texts, knownTexts, in},
		{"url-host", Options{Key: "id", FPR: 0.02, Normalize: "lower,url-host"}, hosts, knownHosts, inHosts},
	}
}

// No known key passes but those in the set, every ID does, and the filter is the same from
// any number of shards, in any order.
func TestAgainst(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	for _, c := range againstCases(rng) {
		s := newStore()
		putParquet(t, s, "ids", 300, record(t, column{"id", c.ids}))
		putParquet(t, s, "known", 3000, record(t, column{"id", c.known}))
		plain, _ := build(t, s, []string{"ids"}, c.opts)
		f, rep := buildAgainst(t, s, []string{"ids"}, []string{"known"}, c.opts)
		passes := func(f *filters.Filter, values any) []bool {
			mask, err := f.Contains(keys.Array(arrayOf(t, values)), nil)
			if err != nil {
				t.Fatal(err)
			}
			return mask
		}
		if got := passes(f, c.known); !slices.Equal(got, c.in) {
			t.Errorf("%s: other known keys pass", c.name)
		}
		if slices.Contains(passes(f, c.ids), false) {
			t.Errorf("%s: an ID is lost", c.name)
		}
		if f.Facts().BuildID == plain.Facts().BuildID || slices.Equal(passes(plain, c.known), c.in) || f.FPR() != plain.FPR() {
			t.Errorf("%s: the build without known keys is alike", c.name)
		}
		e := f.Facts().Exceptions
		if rep.Known.Keys != 30_000 || rep.Known.InSet == 0 || rep.Known.InSet > 500 || rep.Known.Exceptions != e.Hashes.Len() || e.Known != 30_000 {
			t.Errorf("%s: %+v", c.name, rep.Known)
		}
		want := encoded(t, f)
		for _, n := range []uint32{1, 3, 8} {
			var parts []string
			for i := range n {
				o := c.opts
				o.Shard, o.Threads = dataset.Shard{Index: i, Of: n}, int(1+i%3)
				p, _ := buildAgainst(t, s, []string{"ids"}, []string{"known"}, o)
				parts = append(parts, fmt.Sprintf("part-%d-%d", i, n))
				if _, err := filters.Save(t.Context(), s, parts[i], p, filters.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			if n > 2 { // two of them first
				p, err := MergeFiles(t.Context(), s, parts[1:3], true, filters.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := filters.Save(t.Context(), s, parts[1], p, filters.Options{Replace: true}); err != nil {
					t.Fatal(err)
				}
				parts = slices.Delete(parts, 2, 3)
			}
			m, fig, err := mergeKnown(t, s, parts, "known")
			if err != nil || !bytes.Equal(encoded(t, m), want) || fig != rep.Known {
				t.Errorf("%s: of %d shards: another filter, %+v, error %v", c.name, n, fig, err)
			}
			_, err = MergeFiles(t.Context(), s, parts, false, filters.Limits{})
			refused(t, "without known keys", err, fault.ErrMismatch, "Known", "without known keys")
			_, _, err = mergeKnown(t, s, parts, "ids")
			refused(t, "other known keys", err, fault.ErrMismatch, "known keys", "name the files")
		}
	}
}

// -1 and 2^64-1 share a hash: neither is lost for the other.
func TestAgainstSigns(t *testing.T) {
	s := newStore()
	var ids, known []string
	for i := range 2000 {
		v := i * i * i * 100_000
		ids, known = append(ids, fmt.Sprint(uint64(1<<64-1)-uint64(v))), append(known, fmt.Sprint(-1-v))
	}
	putParquet(t, s, "ids", 100, record(t, column{"id", ids}))
	putParquet(t, s, "known", 100, record(t, column{"id", known}))
	for _, shards := range []uint32{0, 2} {
		opts := Options{Key: "id::uint64", FPR: 0.1, Expect: 1_000_000} // partial filters are exact, the whole is not
		var parts []string
		var f *filters.Filter
		for i := range max(shards, 1) {
			o := opts
			if shards > 0 {
				o.Shard = dataset.Shard{Index: i, Of: shards}
			}
			p, err := plan(t, s, []string{"ids"}, o)
			if err != nil {
				t.Fatal(err)
			}
			p.opts.Key = "id::int64"
			err = p.SetKnown(knownOf(t, s, "known"))
			p.opts.Key = "id::uint64"
			if err != nil {
				t.Fatal(err)
			}
			if f, _, err = p.Build(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !f.Sealed() && f.Kind() != filters.KindExact {
				t.Fatalf("a partial filter of kind %s", f.Kind())
			}
			parts = append(parts, fmt.Sprint("part", shards, i))
			if _, err := filters.Save(t.Context(), s, parts[i], f, filters.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if shards > 0 {
			var err error
			f, _, err = MergeAgainst(t.Context(), s, parts, filters.Limits{}, func(f *filters.Filter) (*Known, error) {
				o, _ := f.KeyOptions()
				return NewKnown(knownOf(t, s, "known"), "id::int64", o, 0)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if f.Kind() != filters.KindBloom {
			t.Fatalf("a filter of kind %s", f.Kind())
		}
		for i := range uint64(2000) {
			if got, err := f.Probe(keys.Uint64s([]uint64{1<<64 - 1 - i*i*i*100_000}), nil); err != nil || len(got) != 1 {
				t.Fatalf("of %d shards: ID %d is lost, error %v", shards, i, err)
			}
		}
	}
}

// The exceptions of a set operation's result are never hashes of its keys.
func TestCombineExceptions(t *testing.T) {
	s := newStore()
	putParquet(t, s, "a", 1000, record(t, column{"id", span(0, 4000)}))
	putParquet(t, s, "b", 1000, record(t, column{"id", span(3000, 9000)}))
	putParquet(t, s, "known", 1000, record(t, column{"id", span(4000, 40_000)}))
	opts := Options{Key: "id", FPR: 0.05, Kind: codec.KindBloom}
	a, _ := buildAgainst(t, s, []string{"a"}, []string{"known"}, opts)
	b, _ := build(t, s, []string{"b"}, opts)
	opts.Kind = codec.KindExact
	x, _ := build(t, s, []string{"b"}, opts)
	opts.Kind, opts.Expect, opts.Room = codec.KindBloom, 20_000, true
	big, _ := buildAgainst(t, s, []string{"a"}, []string{"known"}, opts)
	more, _ := buildAgainst(t, s, []string{"b"}, []string{"known"}, opts)
	for i, operands := range [][]*filters.Filter{{a, b}, {b, a}, {a, x}, {big, more}, {a}} {
		for _, op := range []SetOp{Union, Intersect} {
			f, err := Combine(t.Context(), op, operands...)
			if err != nil {
				refused(t, "union", err, fault.ErrMismatch, "false-positive rate")
				continue
			}
			lo, hi := int64(0), int64(9000)
			if len(operands) == 1 {
				hi = 4000
			} else if op == Intersect {
				lo, hi = 3000, 4000
			}
			for v := lo; v < hi; v++ {
				if !passes(f, v*7919) {
					t.Fatalf("%d: %s: key %d is lost", i, op, v)
				}
			}
			e := f.Facts().Exceptions
			switch {
			case len(operands) == 1:
				if e.Known != 36_000 {
					t.Errorf("the filter itself names %d known keys", e.Known)
				}
			case op == Intersect && e == nil: // its bits may exclude them all
			case e == nil || e.Known != 0 || e.Digest != [32]byte{} || e.Hashes.Len() == 0:
				t.Errorf("%d: %s: exceptions %+v", i, op, e)
			}
		}
	}
	f := filterOf(t, []string{"a.example"}, Options{Key: "id", Normalize: "url-host"})
	g := filterOf(t, []string{"b.example"}, Options{Key: "id", Normalize: "url-host"})
	_, err := Combine(t.Context(), Intersect, f, g)
	refused(t, "intersection", err, fault.ErrUnsupported, "parent domains")
}

func TestAgainstLimits(t *testing.T) {
	s := &suspects{most: 1000}
	if err := s.add([]uint64{5, 5, 7}); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(997) {
		if err := s.add([]uint64{1 << 63 / (i + 1), 5}); err != nil {
			t.Fatal(i, err)
		}
	}
	refused(t, "too many", s.add([]uint64{1, 2, 3, 4}), fault.ErrMemory, "raise Memory", "lower FPR")
	s.hashes = []uint64{1 << 63, 1<<64 - 1, 0, 1 << 63}
	s.index()
	s.mark(0)
	s.mark(1<<64 - 1)
	s.mark(3)
	if got := fmt.Sprint(s.found[0].Load(), s.found[1].Load(), s.found[2].Load(), len(s.found)); got != "true false true 3" {
		t.Error(got)
	}
}
