package builds

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// given builds a filter of values. Several workers add them concurrently, each a
// part of the rows.
func given(t testing.TB, o Options, workers int, n int, values func(lo, hi int) keys.Values) (*filters.Filter, Report) {
	t.Helper()
	b, err := NewBuilder(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			w, err := b.Worker()
			if err == nil {
				err = w.Add(values(n*i/workers, n*(i+1)/workers))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f, rep, err := b.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f, rep
}

// shuffled returns the integers below n, multiplied by step, in shuffled order.
func shuffled(n int, step int64) []int64 {
	ids := numbers(n, func(i int) int64 { return (int64(i) - int64(n)/2) * step })
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// Except for the build id, a filter from values has the same bytes as one from
// files with the same keys, for every kind, class, set of options and number of
// workers and shards.
func TestBuilderAsFromFiles(t *testing.T) {
	const n = 30_000
	ids := shuffled(n, 7919)
	dense := shuffled(n, 1)
	words := numbers(n, func(i int) string { return fmt.Sprintf(" User%d ", i%(n/2)) })
	uuids := numbers(n, func(i int) (u [16]byte) { copy(u[:], fmt.Sprintf("%016d", i)); return u })
	texts := numbers(n, func(i int) string { return fmt.Sprintf("{%x}", uuids[i]) })
	raw := numbers(n, func(i int) []byte { return []byte(words[i]) })
	ints := func(v []int64) func(lo, hi int) keys.Values {
		return func(lo, hi int) keys.Values { return keys.Int64s(v[lo:hi]) }
	}
	for _, c := range []struct {
		name    string
		columns []column
		opts    Options
		classes []string
		values  func(lo, hi int) keys.Values
	}{
		{"integers", []column{{"k", ids}}, Options{Key: "k"}, []string{"integer"}, ints(ids)},
		{"dense integers", []column{{"k", dense}}, Options{Key: "k"}, []string{"integer"}, ints(dense)},
		{"exact by wish", []column{{"k", ids}}, Options{Key: "k", Kind: codec.KindExact}, []string{"integer"}, ints(ids)},
		{"bits by wish, with a capacity", []column{{"k", dense}}, Options{Key: "k", Kind: codec.KindBloom, Expect: 2 * n, FPR: 0.001}, []string{"integer"}, ints(dense)},
		{"room", []column{{"k", ids}}, Options{Key: "k", Room: true, Expect: 3 * n, Kind: codec.KindBloom}, []string{"integer"}, ints(ids)},
		{"a size, no range, a seed", []column{{"k", ids}}, Options{Key: "k", MaxSize: 30_000, NoKeyRange: true, Seed: 7, Kind: codec.KindBloom}, []string{"integer"}, ints(ids)},
		{"strings under a rule", []column{{"k", words}}, Options{Key: "k", Normalize: "lower,trim"}, []string{"bytes"}, func(lo, hi int) keys.Values { return keys.Strings(words[lo:hi]) }},
		{"bytes", []column{{"k", words}}, Options{Key: "k"}, []string{"bytes"}, func(lo, hi int) keys.Values { return keys.ByteSlices(raw[lo:hi]) }},
		{"UUIDs", []column{{"k", texts}}, Options{Key: "k", Normalize: "uuid"}, []string{"fixed[16]"}, func(lo, hi int) keys.Values { return keys.UUIDs(uuids[lo:hi]) }},
		{"composite", []column{{"k", ids}, {"s", words}}, Options{Key: "k,s"}, []string{"integer", "bytes"}, func(lo, hi int) keys.Values {
			return keys.Columns(keys.Int64s(ids[lo:hi]), keys.Strings(words[lo:hi]))
		}},
	} {
		s := newStore()
		rec := record(t, c.columns...)
		putParquet(t, s, "ids", n/4, rec)
		rec.Release()
		want, wantRep := build(t, s, []string{"ids"}, c.opts)
		o := c.opts
		o.Classes, o.Identity = c.classes, []byte("these")
		for _, workers := range []int{1, 4} {
			o.Threads = workers
			for _, capacity := range []uint64{c.opts.Expect, max(c.opts.Expect, n)} { // n is what a build from files uses
				o.Expect = capacity
				f, rep := given(t, o, workers, n, c.values)
				if id := f.Facts().BuildID; id == want.Facts().BuildID || id == [32]byte{} {
					t.Errorf("%s: build id %x", c.name, id)
				}
				f.Facts().BuildID = want.Facts().BuildID
				if !bytes.Equal(encoded(t, f), encoded(t, want)) || rep.Rows != wantRep.Rows || rep.Keys != wantRep.Keys || rep.KeysNull != 0 {
					t.Errorf("%s, %d workers, capacity %d: another file than from files: %s and %s", c.name, workers, capacity, f.Kind(), want.Kind())
				}
			}
		}
		// Shards in memory, merged at once and in steps.
		o.Expect = max(c.opts.Expect, n)
		var parts []*filters.Filter
		for i := range uint32(5) {
			o.Shard = dataset.Shard{Index: i, Of: 5}
			lo := int(i) * n / 5
			f, _ := given(t, o, 2, n/5, func(a, b int) keys.Values { return c.values(lo+a, lo+b) })
			parts = append(parts, f)
		}
		before := encoded(t, parts[0])
		all, err := Merge(t.Context(), parts, false)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		some, err := Merge(t.Context(), []*filters.Filter{parts[4], parts[1], parts[2]}, true)
		if err != nil || some.Sealed() || !slices.Equal(some.Facts().Partial.Held, []uint32{1, 2, 4}) {
			t.Fatalf("%s: %v", c.name, err)
		}
		steps, err := Merge(t.Context(), []*filters.Filter{parts[3], some, parts[0]}, false)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !bytes.Equal(before, encoded(t, parts[0])) {
			t.Errorf("%s: a merge changed what it merged", c.name)
		}
		if !bytes.Equal(encoded(t, steps), encoded(t, all)) {
			t.Errorf("%s: a merge in steps comes to another file", c.name)
		}
		all.Facts().BuildID = want.Facts().BuildID
		if !bytes.Equal(encoded(t, all), encoded(t, want)) {
			t.Errorf("%s: merged partial filters come to another file than one build from files", c.name)
		}
	}
}

// Options that no filter can meet are refused before a key is added.
func TestBuilderRefuses(t *testing.T) {
	shard := dataset.Shard{Index: 1, Of: 4}
	for what, c := range map[string]struct {
		o    Options
		kind error
		text string
	}{
		"no key":                 {Options{}, nil, "column name"},
		"no type":                {Options{Key: "user"}, nil, "user::int64"},
		"fewer classes":          {Options{Key: "a,b", Classes: []string{"integer"}}, fault.ErrMismatch, "want 2, got 1"},
		"a class that is none":   {Options{Key: "a", Classes: []string{"number"}}, fault.ErrUnsupported, `"number"`},
		"no class":               {Options{Key: "a", Classes: []string{"null"}}, fault.ErrUnsupported, `"null"`},
		"a rule for integers":    {Options{Key: "a::int64", Normalize: "trim"}, fault.ErrUnsupported, "trim"},
		"an unknown rule":        {Options{Key: "a::int64", Normalize: "upper"}, nil, "upper"},
		"exact text":             {Options{Key: "a::string", Kind: codec.KindExact}, fault.ErrUnsupported, "exact"},
		"a rate and a size":      {Options{Key: "a::int64", FPR: 0.1, MaxSize: 100}, nil, "one of the two"},
		"room without capacity":  {Options{Key: "a::int64", Room: true}, nil, "capacity"},
		"a shard of none":        {Options{Key: "a::int64", Shard: dataset.Shard{Index: 4, Of: 4}}, nil, "shard 4/4: counted from 0: want 0 to 3, got 4"},
		"a shard of too many":    {Options{Key: "a::int64", Shard: dataset.Shard{Of: options.MaxShards + 1}}, nil, "want at most 1048576 shards"},
		"a shard of no number":   {Options{Key: "a::int64", Shard: dataset.Shard{Index: 1}}, nil, "shard 1/0: counted from 0"},
		"an unknown kind":        {Options{Key: "a::int64", Kind: 9}, nil, "Kind: want auto (0), bloom (1), exact (2) or counting (4), got 9"},
		"an unknown geometry":    {Options{Key: "a::int64", Geometry: 9}, fault.ErrUnsupported, "geometry 9"},
		"a rate above one":       {Options{Key: "a::int64", FPR: 2}, nil, "false-positive rate 2"},
		"a rate below zero":      {Options{Key: "a::int64", FPR: -1}, nil, "false-positive rate -1"},
		"less than no thread":    {Options{Key: "a::int64", Threads: -1}, nil, "Threads: want 0 (GOMAXPROCS) or more, got -1"},
		"less than no memory":    {Options{Key: "a::int64", Memory: -1}, nil, "Memory: want 0 (no limit) or more, got -1"},
		"a shard, unsized":       {Options{Key: "a::int64", Shard: shard, Identity: []byte{1}}, ErrUncounted, "Expect"},
		"a shard of who knows":   {Options{Key: "a::int64", Shard: shard, Expect: 10}, nil, "Options.Identity"},
		"more than the memory":   {Options{Key: "a::string", Expect: 1e9, Memory: 1 << 20}, fault.ErrMemory, "budget"},
		"a rate below any other": {Options{Key: "a::string", Expect: 1e12, FPR: 1e-12}, fault.ErrUnsupported, "rate"},
	} {
		_, err := NewBuilder(c.o)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", what, err, c.text)
		}
	}
}

// Nothing can be added once Finish or Close was called, not even rows without a key.
func TestNothingAfterTheEnd(t *testing.T) {
	nulls := array.NewInt64Builder(memory.DefaultAllocator)
	nulls.AppendNull()
	null := nulls.NewArray()
	defer null.Release()
	finish := func(b *Builder) error { _, _, err := b.Finish(t.Context()); return err }
	for _, o := range []Options{{Key: "k::int64"}, {Key: "k::int64", Expect: 10}, {Key: "k::int64", Expect: 10, Kind: codec.KindBloom}} {
		for how, end := range map[string]func(*Builder) error{"Finish": finish, "Close": (*Builder).Close} {
			b, err := NewBuilder(o)
			if err != nil {
				t.Fatal(err)
			}
			w, err := b.Worker()
			if err == nil {
				err = cmp.Or(w.Add(keys.Int64s([]int64{1})), end(b))
			}
			if err != nil {
				t.Fatal(err)
			}
			for what, call := range map[string]func() error{
				"Add":           func() error { return w.Add(keys.Int64s([]int64{2})) },
				"Add of a NULL": func() error { return w.Add(keys.Array(null)) },
				"Add of no row": func() error { return w.Add(keys.Int64s(nil)) },
				"AddBatch":      func() error { return w.AddBatch(new(keys.Batch)) },
				"Worker":        func() error { _, err := b.Worker(); return err },
				"Finish":        func() error { return finish(b) },
			} {
				if err := call(); !errors.Is(err, errDone) {
					t.Errorf("%+v: %s after %s: %v, want %v", o, what, how, err, errDone)
				}
			}
			if err := cmp.Or(b.Close(), b.Close()); err != nil {
				t.Errorf("Close after %s: %v", how, err)
			}
		}
	}
}

// Values that no function of the package has made say so.
func TestZeroValues(t *testing.T) {
	ctx := t.Context()
	b, err := NewBuilder(Options{Key: "k::int64"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	w, err := b.Worker()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		call func() error
		want string
	}{
		"Builder.Worker":     {func() error { _, err := new(Builder).Worker(); return err }, errNoBuilder.Error()},
		"Builder.Finish":     {func() error { _, _, err := new(Builder).Finish(ctx); return err }, errNoBuilder.Error()},
		"Worker.Add":         {func() error { return new(Worker).Add(keys.Int64s([]int64{1})) }, errNoWorker.Error()},
		"Worker.AddBatch":    {func() error { return new(Worker).AddBatch(new(keys.Batch)) }, errNoWorker.Error()},
		"AddBatch(nil)":      {func() error { return w.AddBatch(nil) }, "the batch of keys is nil"},
		"Add(Values{})":      {func() error { return w.Add(keys.Values{}) }, "want 1, got 0"},
		"Add(Array(nil))":    {func() error { return w.Add(keys.Array(nil)) }, "want an array, got nil"},
		"Plan.Build":         {func() error { _, _, err := new(Plan).Build(ctx); return err }, errNoPlan.Error()},
		"Plan.NewBuilder":    {func() error { _, err := new(Plan).NewBuilder(ctx); return err }, errNoPlan.Error()},
		"nil Plan":           {func() error { _, _, err := (*Plan)(nil).Build(ctx); return err }, errNoPlan.Error()},
		"NewPlan(nil)":       {func() error { _, err := NewPlan(nil, Options{Key: "k"}); return err }, "no files of IDs"},
		"NewPlan of nothing": {func() error { _, err := NewPlan([]*source.File{}, Options{Key: "k"}); return err }, "no files of IDs"},
		"NewPlanOf(nil)": {func() error {
			_, err := NewPlanOf(ctx, nil, Options{Key: "k"})
			return err
		}, "no list of inputs"},
		"NewPlanOf(zero)": {func() error {
			_, err := NewPlanOf(ctx, new(inputs.List), Options{Key: "k"})
			return err
		}, "no list of inputs"},
		"a nil file": {func() error { _, err := NewPlan([]*source.File{nil}, Options{Key: "k"}); return err }, "IDs: file 1 of 1"},
	} {
		err := c.call()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		if strings.HasPrefix(what, "NewPlan") && !errors.Is(err, storage.ErrNoFiles) {
			t.Errorf("%s: %v does not wrap storage.ErrNoFiles", what, err)
		}
	}
	if err := new(Builder).Close(); err != nil || new(Builder).Workers() != 0 {
		t.Errorf("Close: %v", err)
	}
	if err := w.AddBatch(new(keys.Batch)); err != nil {
		t.Errorf("a batch without rows: %v", err)
	}
	if s := (Spec{}).String(); s != " ()" || len((Spec{Classes: []string{"integer"}}).Header().Facts().Key) != 0 {
		t.Errorf("Spec: %q", s)
	}
}

// A nil context panics where it is passed, before a goroutine is started.
func TestNilContext(t *testing.T) {
	var none context.Context
	s := newStore()
	putColumn(t, s, "ids.parquet", span(0, 10))
	p, err := plan(t, s, []string{"ids.parquet"}, Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBuilder(Options{Key: "k::int64"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for what, call := range map[string]func(){
		"Plan.Build":      func() { _, _, _ = p.Build(none) },
		"Plan.NewBuilder": func() { _, _ = p.NewBuilder(none) },
		"Builder.Finish":  func() { _, _, _ = b.Finish(none) },
		"NewPlanOf":       func() { _, _ = NewPlanOf(none, nil, Options{Key: "k"}) },
	} {
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.Contains(r, "nil context") {
					t.Errorf("%s: the panic is %v", what, r)
				}
			}()
			call()
		}()
	}
	if _, _, err := b.Finish(t.Context()); err != nil {
		t.Errorf("the builder has ended: %v", err)
	}
}

// A plan of files refuses the options that a plan of values refuses, and a shard of a
// list is checked before a file is opened.
func TestPlanRefuses(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids.parquet", span(0, 10))
	open := source.Opening{OpenOptions: source.OpenOptions{Store: s}}
	inputs, err := inputs.Find(t.Context(), []string{"ids.parquet"}, open, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer inputs.Close()
	list := inputs.With(open)
	for want, o := range map[string]Options{
		"shard 4/4: counted from 0: want 0 to 3": {Shard: dataset.Shard{Index: 4, Of: 4}},
		"shard 7/1: counted from 0: want 0":      {Shard: dataset.Shard{Index: 7, Of: 1}},
		"shard 1/0: counted from 0":              {Shard: dataset.Shard{Index: 1}},
		"Threads: want 0":                        {Threads: -1},
		"Memory: want 0":                         {Memory: -1},
		"Kind: want":                             {Kind: 9},
	} {
		o.Key = "id"
		_, files := plan(t, s, []string{"ids.parquet"}, o)
		p, inputs := NewPlanOf(t.Context(), list, o)
		if inputs == nil {
			p.Close()
		}
		for _, err := range []error{files, inputs} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	// The share of a worker may be empty.
	p, err := NewPlanOf(t.Context(), list, Options{Key: "id", Shard: dataset.Shard{Index: 98, Of: 99}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if f, rep, err := p.Build(t.Context()); err != nil || rep.Rows != 0 || f.Sealed() {
		t.Errorf("an empty share: %v, %v", rep, err)
	}
}

// A value that the filter would reject is an error, and a NULL is not a key.
func TestWorkerAdd(t *testing.T) {
	floats := array.NewFloat64Builder(memory.DefaultAllocator)
	floats.AppendValues([]float64{1, 2}, nil)
	floats.AppendNull()
	whole := floats.NewArray()
	defer whole.Release()
	floats.AppendValues([]float64{1, 2, 2.5}, nil)
	broken := floats.NewArray()
	defer broken.Release()
	for what, c := range map[string]struct {
		o    Options
		v    keys.Values
		kind error
		text string
	}{
		"text":        {Options{Key: "a::int64"}, keys.Strings([]string{"1"}), fault.ErrMismatch, "want integer, got text"},
		"two columns": {Options{Key: "a::int64"}, keys.Columns(keys.Int64s(nil), keys.Int64s(nil)), fault.ErrMismatch, "want 1, got 2"},
		"a fraction":  {Options{Key: "a::int64"}, keys.Array(broken), fault.ErrMismatch, "value of row 2"},
		"no UUID":     {Options{Key: "a::string", Normalize: "uuid"}, keys.Strings([]string{"x"}), keys.ErrNoUUID, "UUID"},
		"too large":   {Options{Key: "a::float64"}, keys.Int64s([]int64{math.MaxInt64}), fault.ErrMismatch, "value of row 0"},
	} {
		b, err := NewBuilder(c.o)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		w, err := b.Worker()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(c.v); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", what, err, c.text)
		}
		var ints keys.Batch
		ints.SetInts(make([]byte, 8), 1, 8, true)
		if err := w.AddBatch(&ints); (err == nil) != (c.o.Key == "a::int64") {
			t.Errorf("%s: a batch of integers: %v", what, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	f, rep := given(t, Options{Key: "a::int64"}, 1, 3, func(lo, hi int) keys.Values { return keys.Array(whole) })
	if sel, err := f.Probe(keys.Int64s([]int64{2, 3, 1}), nil); err != nil || fmt.Sprint(sel) != "[0 2]" || rep.Rows != 3 || rep.KeysNull != 1 || rep.Distinct != 2 {
		t.Errorf("%v of %+v, error %v", sel, rep, err)
	}
	none, rep := given(t, Options{Key: "a::int64"}, 1, 0, func(lo, hi int) keys.Values { return keys.Int64s(nil) })
	if sel, err := none.Probe(keys.Int64s([]int64{0}), nil); err != nil || len(sel) > 0 || rep.Rows != 0 || !none.Sealed() {
		t.Errorf("a filter of nothing has %v, error %v", sel, err)
	}
}

// If their number is unknown, keys that exceed the budget wait on disk.
func TestBuilderWaits(t *testing.T) {
	ids := shuffled(400_000, 7919)
	o := Options{Key: "a::int64", Kind: codec.KindBloom, Threads: 2, TempDir: t.TempDir()}
	free, rep := given(t, o, 2, len(ids), func(lo, hi int) keys.Values { return keys.Int64s(ids[lo:hi]) })
	if rep.Spilled != 0 {
		t.Errorf("%d bytes on disk without a budget", rep.Spilled)
	}
	o.Memory = 2 << 20
	tight, rep := given(t, o, 2, len(ids), func(lo, hi int) keys.Values { return keys.Int64s(ids[lo:hi]) })
	if rep.Spilled == 0 || !bytes.Equal(encoded(t, free), encoded(t, tight)) {
		t.Errorf("%d bytes on disk in a budget of %d", rep.Spilled, o.Memory)
	}
}

// A merge in memory follows the same rules as a merge of files.
func TestMergeRefuses(t *testing.T) {
	part := func(name string, i, of uint32, change func(*Options)) *filters.Filter {
		o := Options{Key: "a::int64", Expect: 1000, Shard: dataset.Shard{Index: i, Of: of}, Identity: []byte(name)}
		if change != nil {
			change(&o)
		}
		f, _ := given(t, o, 1, 10, func(lo, hi int) keys.Values {
			return keys.Int64s(numbers(10, func(j int) int64 { return int64(i)*100 + int64(j) }))
		})
		return f
	}
	a0, a1 := part("a", 0, 2, nil), part("a", 1, 2, nil)
	sealed, err := Merge(t.Context(), []*filters.Filter{a1, a0}, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sealed.Contains(keys.Uint64s([]uint64{3, 50, 109}), nil); err != nil || fmt.Sprint(got) != "[true false true]" {
		t.Errorf("%v, error %v", got, err)
	}
	for what, c := range map[string]struct {
		filters []*filters.Filter
		text    string
	}{
		"none":           {nil, "no filter"},
		"nil":            {[]*filters.Filter{a0, nil}, "filter 2"},
		"a header":       {[]*filters.Filter{a0, a1.Header()}, "filter 2"},
		"other keys":     {[]*filters.Filter{a0, part("b", 1, 2, nil)}, "filter 2"},
		"other options":  {[]*filters.Filter{a0, part("a", 1, 2, func(o *Options) { o.FPR = 0.1 })}, "built from the same inputs with the same options"},
		"other shards":   {[]*filters.Filter{a0, part("a", 1, 3, nil)}, "of 2 shards"},
		"twice":          {[]*filters.Filter{a0, a1, a0}, "shard 0 of 2, which is also in filter 1"},
		"fewer than all": {[]*filters.Filter{a1}, "without 0"},
		"a sealed one":   {[]*filters.Filter{a0, sealed}, "a finished one"},
	} {
		if _, err := Merge(t.Context(), c.filters, false); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", what, err, c.text)
		}
	}
}

// Set operations in memory give the same results as those on files.
func TestCombineInMemory(t *testing.T) {
	s := newStore()
	var operands []*filters.Filter
	var names []string
	for i, o := range []Options{{Kind: codec.KindExact}, {Kind: codec.KindExact}, {Kind: codec.KindBloom}, {Kind: codec.KindBloom}} {
		o.Key, o.Expect, o.Room, o.FPR = "a::int64", 50_000, i >= 2, 0.001
		ids := numbers(9000, func(j int) int64 { return int64(i*3000 + j) })
		f, _ := given(t, o, 2, len(ids), func(lo, hi int) keys.Values { return keys.Int64s(ids[lo:hi]) })
		operands, names = append(operands, f), append(names, fmt.Sprint("f", i))
		if _, err := filters.Save(t.Context(), s, names[i], f, filters.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	var before [][]byte
	for _, f := range operands {
		before = append(before, encoded(t, f))
	}
	for _, op := range []SetOp{Union, Intersect, Difference} {
		for _, r := range [][2]int{{0, 2}, {1, 3}, {2, 4}, {0, 4}} {
			want, wantErr := CombineFiles(t.Context(), s, op, names[r[0]:r[1]], filters.Limits{})
			got, err := Combine(t.Context(), op, operands[r[0]:r[1]]...)
			if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(encoded(t, got), encoded(t, want)) {
				t.Errorf("%s of %v: other than that of files, errors %v and %v", op, r, err, wantErr)
			}
		}
	}
	for i, f := range operands {
		if !bytes.Equal(before[i], encoded(t, f)) {
			t.Errorf("filter %d was changed", i)
		}
	}
	if _, err := Combine(t.Context(), Difference, operands[0]); err == nil {
		t.Error("a difference of one filter")
	}
}

// A builder that is finished or closed answers with an error, and what its workers
// are given changes nothing.
func TestBuilderEnds(t *testing.T) {
	ctx := t.Context()
	for _, capacity := range []uint64{0, 100} {
		for _, close := range []bool{false, true} {
			b, err := NewBuilder(Options{Key: "id::int64", Expect: capacity})
			if err != nil {
				t.Fatal(err)
			}
			var workers []*Worker
			for range 2 {
				w, err := b.Worker()
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Add(keys.Int64s([]int64{1, 2, 3})); err != nil {
					t.Fatal(err)
				}
				workers = append(workers, w)
			}
			if close {
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				f, _, err := b.Finish(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range workers {
					if err := w.Add(keys.Int64s([]int64{9})); !errors.Is(err, errDone) {
						t.Errorf("capacity %d: Add after Finish: want errDone, got %v", capacity, err)
					}
				}
				if f.Facts().Keys != 6 {
					t.Errorf("capacity %d: want 6 keys, got %d", capacity, f.Facts().Keys)
				}
			}
			if _, _, err := b.Finish(ctx); !errors.Is(err, errDone) {
				t.Errorf("capacity %d, close %v: Finish: want errDone, got %v", capacity, close, err)
			}
			if _, err := b.Worker(); !errors.Is(err, errDone) {
				t.Errorf("capacity %d, close %v: Worker: want errDone, got %v", capacity, close, err)
			}
			if err := b.Close(); err != nil {
				t.Errorf("capacity %d, close %v: Close: %v", capacity, close, err)
			}
		}
	}
}

// Finish with a context that has ended is an error, however few keys there are.
func TestFinishEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, capacity := range []uint64{0, 100} {
		for range 50 { // a select between two ready channels takes either
			b, err := NewBuilder(Options{Key: "id::int64", Expect: capacity})
			if err != nil {
				t.Fatal(err)
			}
			w, err := b.Worker()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Add(keys.Int64s([]int64{1})); err != nil {
				t.Fatal(err)
			}
			if _, _, err := b.Finish(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("capacity %d: want an error that wraps context.Canceled, got %v", capacity, err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
