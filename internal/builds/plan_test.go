package builds

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

func TestMain(m *testing.M) {
	cases.CollectRarely()
	goleak.VerifyTestMain(m)
}

// With skipping of bad lines, a build of text is a different build; one of Parquet
// files is not. The filter equals that of the good lines.
func TestSkipBad(t *testing.T) {
	s := newStore()
	putColumn(t, s, "p.parquet", span(0, 100))
	bad, good := "id\n", "id\n"
	for i := range 5000 {
		bad += strconv.Itoa(i) + "\n"
		good += strconv.Itoa(i) + "\n"
		if i%50 == 0 {
			bad += "x\n1,2\n\n"
		}
	}
	s.put("bad.csv", []byte(bad))
	s.put("good.csv", []byte(good))
	open := func(name string, skip bool) (*Plan, []*source.File) {
		files, err := openFiles(t, []string{name}, source.OpenOptions{
			Store:   s,
			Text:    true,
			SkipBad: skip,
			Types:   map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { source.Close(files) })
		p, err := NewPlan(files, Options{Key: "id", Kind: codec.KindExact})
		if err != nil {
			t.Fatal(err)
		}
		return p, files
	}
	for name, same := range map[string]bool{"p.parquet": true, "good.csv": false, "bad.csv": false} {
		strict, _ := open(name, false)
		lenient, _ := open(name, true)
		if (strict.BuildID == lenient.BuildID) != same {
			t.Errorf("%s: the same build id: %v", name, !same)
		}
	}
	strict, _ := open("bad.csv", false)
	if _, _, err := strict.Build(t.Context()); !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "bad.csv: line 3: column id") {
		t.Errorf("%v", err)
	}
	lenient, files := open("bad.csv", true)
	clean, _ := open("good.csv", true)
	a, rep, err := lenient.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := clean.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	both := a.Exact().Clone()
	both.Union(b.Exact())
	if rep.Rows != 5000 || a.Exact().Len() != 5000 || b.Exact().Len() != 5000 || both.Len() != 5000 {
		t.Errorf("%d rows, %d and %d keys, %d in all", rep.Rows, a.Exact().Len(), b.Exact().Len(), both.Len())
	}
	if n, first, _ := files[0].BadLines(); n != 200 || !slices.Equal(first[:4], []int{3, 4, 56, 57}) || len(first) != 20 {
		t.Errorf("%d bad lines, %v", n, first)
	}
}

// A build is identified by its inputs and options, not by time and place.
func TestBuildID(t *testing.T) {
	content := newStore()
	putColumn(t, content, "a", span(0, 100))
	putColumn(t, content, "b", span(100, 200))
	a, _ := content.get("a")
	b, _ := content.get("b")
	// dir writes files to a new directory and returns their names.
	dir := func(files map[string][]byte) []string {
		root := t.TempDir()
		var names []string
		for name, data := range files {
			path := filepath.Join(root, name)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			names = append(names, path)
		}
		slices.Sort(names)
		return names
	}
	id := func(names []string, opts Options) [32]byte {
		files, err := openFiles(t, names, source.OpenOptions{Text: true})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close(files)
		p, err := NewPlan(files, opts)
		if err != nil {
			t.Fatal(err)
		}
		return p.BuildID
	}
	both := map[string][]byte{"a.parquet": a, "b.parquet": b}
	base := Options{Key: "id", FPR: 0.01}
	want := id(dir(both), base)
	if want == [32]byte{} {
		t.Fatal("no build id")
	}

	same := map[string]func() [32]byte{
		"another directory": func() [32]byte { return id(dir(both), base) },
		"other times": func() [32]byte {
			names := dir(both)
			for _, n := range names {
				if err := os.Chtimes(n, time.Unix(1, 0), time.Unix(2, 0)); err != nil {
					t.Fatal(err)
				}
			}
			return id(names, base)
		},
		"other order": func() [32]byte {
			names := dir(both)
			slices.Reverse(names)
			return id(names, base)
		},
		"the directory": func() [32]byte { return id([]string{filepath.Dir(dir(both)[0])}, base) },
		"a shard": func() [32]byte {
			o := base
			o.Shard = dataset.Shard{Index: 3, Of: 16}
			return id(dir(both), o)
		},
		"threads and memory": func() [32]byte {
			o := base
			o.Threads, o.Memory = 9, 1<<40
			return id(dir(both), o)
		},
	}
	for name, got := range same {
		if got() != want {
			t.Errorf("%s changes the build id", name)
		}
	}

	seen := map[[32]byte]string{want: "the first"}
	differ := func(name string, got [32]byte) {
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the build id of %s", name, other)
		}
		seen[got] = name
	}
	differ("other content", id(dir(map[string][]byte{"a.parquet": a, "b.parquet": a}), base))
	differ("fewer files", id(dir(map[string][]byte{"a.parquet": a}), base))
	differ("other names", id(dir(map[string][]byte{"a.parquet": a, "c.parquet": b}), base))
	differ("names the other way round", id(dir(map[string][]byte{"a.parquet": b, "b.parquet": a}), base))
	differ("another rate", id(dir(both), Options{Key: "id", FPR: 0.02}))
	differ("a size", id(dir(both), Options{Key: "id", MaxSize: 4096}))
	differ("another size", id(dir(both), Options{Key: "id", MaxSize: 8192}))
	differ("the default rate", id(dir(both), Options{Key: "id"}))
	differ("a capacity", id(dir(both), Options{Key: "id", FPR: 0.01, Expect: 1000}))
	differ("bloom", id(dir(both), Options{Key: "id", FPR: 0.01, Kind: codec.KindBloom}))
	differ("exact", id(dir(both), Options{Key: "id", FPR: 0.01, Kind: codec.KindExact}))
	differ("a key twice", id(dir(both), Options{Key: "id,id", FPR: 0.01}))

	// Text has no footer; a change in the middle that keeps the size matters.
	text := []byte("n,id\n" + strings.Repeat("1,2\n", 100_000))
	changed := slices.Clone(text)
	changed[len(text)/2&^3+1] = '9'
	opts := Options{Key: "id", Expect: 10}
	differ("text", id(dir(map[string][]byte{"a.csv": text}), opts))
	differ("text changed in the middle", id(dir(map[string][]byte{"a.csv": changed}), opts))
	opts.Key = "n"
	differ("another key", id(dir(map[string][]byte{"a.csv": text}), opts))
}

func TestStandardInput(t *testing.T) {
	open := func(r io.Reader) []*source.File {
		files, err := openFiles(t, []string{"-"}, source.OpenOptions{Text: true, Stdin: r})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { source.Close(files) })
		return files
	}
	p, err := NewPlan(open(strings.NewReader("a\nb\na\n")), Options{Key: "id", Threads: 8})
	if err != nil {
		t.Fatal(err)
	}
	if p.BuildID != [32]byte{} {
		t.Error("standard input has an identity")
	}
	f, rep, err := p.Build(t.Context())
	if err != nil || rep.Rows != 3 || rep.Keys != 3 || rep.Distinct != 2 || !f.Sealed() {
		t.Errorf("%+v, %v", rep, err)
	}
	if passed(t, f, []string{"a", "b"}) != 2 {
		t.Error("a member is missing")
	}
	for _, capacity := range []uint64{0, 100} {
		_, err = NewPlan(open(strings.NewReader("a\n")), Options{Key: "id", Expect: capacity, Shard: dataset.Shard{Index: 0, Of: 2}})
		refused(t, "a shard of standard input", err, ErrUncounted, "standard input")
	}
}

// Inputs with an unknown number of rows give a filter of the right size, the same
// for every number of threads.
func TestUnsizedInputs(t *testing.T) {
	s := newStore()
	var names []string
	for i := range 5 {
		var b strings.Builder
		b.WriteString("id\n")
		for j := range 4000 {
			b.WriteString(strconv.Itoa(i*3000+j) + "\n")
		}
		name := "ids" + strconv.Itoa(i) + ".csv"
		s.put(name, []byte(b.String()))
		names = append(names, name)
	}
	want, rep := build(t, s, names, Options{Key: "id", FPR: 0.01, Threads: 1})
	if rep.Rows != 20_000 || want.FPR() > 0.0103 || want.Facts().Params.Blocks > 1440 {
		t.Errorf("%+v, %d blocks, rate %v", rep, want.Facts().Params.Blocks, want.FPR())
	}
	got, _ := build(t, s, names, Options{Key: "id", FPR: 0.01, Threads: 8})
	if string(encoded(t, got)) != string(encoded(t, want)) {
		t.Error("the number of threads matters")
	}
	sized, _ := build(t, s, names, Options{Key: "id", FPR: 0.01, Expect: 20_000})
	if string(bitsOf(sized.Bloom())) != string(bitsOf(want.Bloom())) {
		t.Error("the bits are not those of a build that knew the number of keys")
	}
	_, err := plan(t, s, names, Options{Key: "id", Shard: dataset.Shard{Index: 1, Of: 3}})
	refused(t, "a shard of inputs without a size", err, ErrUncounted, "ids0.csv", "Expect")
}

func TestMemoryBudget(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids", span(0, 1000))
	opts := Options{Key: "id", Expect: 10_000_000, FPR: 0.01, Threads: 8, Kind: codec.KindBloom}
	p, err := plan(t, s, []string{"ids"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	params, _, err := p.Spec.size()
	if err != nil {
		t.Fatal(err)
	}
	size := int64(params.Bytes())
	for _, c := range []struct {
		memory  int64
		workers int
	}{{0, 8}, {100 * size, 8}, {8 * size, 8}, {8*size - 1, 8}, {size + 1<<20, 4}, {size + 1<<18, 1}, {size, 1}} {
		opts.Memory = c.memory
		p, err := plan(t, s, []string{"ids"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.NewBuilder(t.Context())
		if err != nil || b.Workers() != c.workers {
			t.Errorf("%d bytes for filters of %d: %v workers, %v; want %d", c.memory, size, b.Workers(), err, c.workers)
		}
	}
	opts.Memory, opts.Shard = size-1, dataset.Shard{Index: 0, Of: 1}
	if p, err = plan(t, s, []string{"ids"}, opts); err != nil {
		t.Fatal(err)
	}
	_, _, err = p.Build(t.Context())
	if err == nil {
		t.Fatal("a partial filter larger than the budget was built")
	}
	for _, w := range []string{"Memory", "FPR", "MaxSize", show.Size(size)} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the text lacks %q: %v", w, err)
		}
	}
}

func TestPlanRefusals(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ints.parquet", []int64{1})
	putColumn(t, s, "strs.parquet", []string{"1"})
	s.put("ids.csv", []byte("id,x\n1,2\n"))
	for _, c := range []struct {
		name   string
		inputs []string
		opts   Options
		kind   error
		words  []string
	}{
		{"unlike classes", []string{"ints.parquet", "strs.parquet"}, Options{Key: "id"}, fault.ErrMismatch,
			[]string{"ints.parquet", "strs.parquet", "integer", "text or binary"}},
		{"text beside integers", []string{"ints.parquet", "ids.csv"}, Options{Key: "id"}, fault.ErrMismatch,
			[]string{"ints.parquet", "ids.csv", "integer", "text or binary", "id::int64"}},
		{"no such column", []string{"ints.parquet"}, Options{Key: "ids"}, nil, []string{"ints.parquet", "(there "}},
		{"no such column in the second", []string{"ids.csv", "strs.parquet"}, Options{Key: "x"}, nil, []string{"strs.parquet", `no column "x"`}},
		{"a rate and a size", []string{"ints.parquet"}, Options{Key: "id", FPR: 0.1, MaxSize: 100}, nil, []string{"want one of the two"}},
		{"a rate of 1", []string{"ints.parquet"}, Options{Key: "id", FPR: 1}, nil, []string{"rate 1"}},
		{"a negative rate", []string{"ints.parquet"}, Options{Key: "id", FPR: -0.1}, nil, []string{"rate -0.1"}},
		{"a rate that is no number", []string{"ints.parquet"}, Options{Key: "id", FPR: nan()}, nil, []string{"rate NaN"}},
		{"exact strings", []string{"strs.parquet"}, Options{Key: "id", Kind: codec.KindExact}, fault.ErrUnsupported, []string{"Kind bloom"}},
		{"exact pairs", []string{"ints.parquet"}, Options{Key: "id,id", Kind: codec.KindExact}, fault.ErrUnsupported, nil},
		{"no key", []string{"ints.parquet"}, Options{}, nil, nil},
	} {
		_, err := plan(t, s, c.inputs, c.opts)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		kind := c.kind
		if kind == nil {
			kind = err
		}
		refused(t, c.name, err, kind, c.words...)
	}
	p, err := plan(t, s, []string{"ints.parquet"}, Options{Key: "id", MaxSize: 31})
	if err == nil {
		_, _, err = p.Build(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "at most 31 bytes") {
		t.Errorf("a filter of less than a block: %v", err)
	}
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}

// The same text read as another type may give other keys of the same class, such as
// 0.1. Builds of the two are not "already done" for each other, and their shards do
// not merge.
func TestIDTellsHowTextIsRead(t *testing.T) {
	s := newStore()
	s.put("ids.csv", []byte("id\n0.1\n"))
	seen := map[[32]byte]string{}
	for range 2 {
		for _, as := range []arrow.DataType{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String} {
			files, err := openFiles(t, []string{"ids.csv"}, source.OpenOptions{Store: s, Text: true, Types: map[string]arrow.DataType{"id": as}})
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPlan(files, Options{Key: "id"})
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[p.BuildID]; ok && other != as.String() {
				t.Errorf("one build id of %s and %s", other, as)
			}
			seen[p.BuildID] = as.String()
			if err := source.Close(files); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d build ids", len(seen))
	}
}

// More keys than the largest filter allows are refused before any is read.
func TestTooManyKeys(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids", span(0, 10))
	for _, opts := range []Options{
		{Key: "id", Expect: 1e15},
		{Key: "id", Expect: math.MaxUint64, FPR: 0.5},
		{Key: "id", Expect: 1e12, FPR: 1e-4, Kind: codec.KindBloom},
	} {
		p, err := plan(t, s, []string{"ids"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = p.Build(t.Context())
		refused(t, "too many keys", err, fault.ErrUnsupported, "MaxSize", "Expect")
	}
}
