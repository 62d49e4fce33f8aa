package builds

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// The filter is the same however the bits are filled, and with however little
// memory: for distant keys, for close keys, for strings.
func TestSharing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, ids := range map[string]any{
		"far":     numbers(120_000, func(int) int64 { return int64(rng.Uint64()) }),
		"close":   numbers(120_000, func(int) int64 { return rng.Int64N(1 << 20) }),
		"strings": numbers(120_000, func(int) string { return strconv.FormatUint(rng.Uint64N(200_000), 36) }),
	} {
		s := newStore()
		for i := range 6 {
			switch ids := ids.(type) {
			case []int64:
				putColumn(t, s, "ids"+strconv.Itoa(i), ids[i*20_000:(i+1)*20_000])
			case []string:
				putColumn(t, s, "ids"+strconv.Itoa(i), ids[i*20_000:(i+1)*20_000])
			}
		}
		names := []string{"ids0", "ids1", "ids2", "ids3", "ids4", "ids5"}
		for i, kind := range []codec.Kind{codec.KindAuto, codec.KindBloom} {
			opts := Options{Key: "id", FPR: 0.01, Expect: 12e6, Threads: 1, Kind: kind}
			want, rep := build(t, s, names, opts)
			if rep.Sharing != Alone || rep.Workers != 1 || rep.Passes != 1 {
				t.Fatalf("%s: %+v", name, rep)
			}
			params, _, err := Spec{Capacity: opts.Expect, FPR: opts.FPR, Hash: bloom.Hash{ID: bloom.XXH3}}.size()
			if err != nil {
				t.Fatal(err)
			}
			size, whole := int64(params.Bytes()), encoded(t, want)
			for k, c := range []struct {
				threads int
				memory  int64
				sharing Sharing
				passes  int
			}{
				{5, 0, Ranges, 1},
				{8, 0, Ranges, 1},
				{3, size + 1<<20, Ranges, 1},
				{3, size, Alone, 1},
				{1, size / 2, Alone, 0},
				{4, size / 3, Private, 0},
				{2, size / 7, Private, 0},
				{2, size / 16, Private, 0},
			} {
				if (i+k)%cases.Count(2, 1, 1) != 0 {
					continue
				}
				opts.Threads, opts.Memory = c.threads, c.memory
				got, rep := build(t, s, names, opts)
				if !bytes.Equal(encoded(t, got), whole) {
					t.Errorf("%s, %s, %d threads, %d bytes: another filter", name, kind, c.threads, c.memory)
				}
				if kind == codec.KindBloom && (rep.Sharing != c.sharing && c.passes > 0 || c.passes > 0 && rep.Passes != c.passes) {
					t.Errorf("%s, %d threads, %d bytes: %+v, want %s, %d passes", name, c.threads, c.memory, rep, c.sharing, c.passes)
				}
			}
			opts.Expect, opts.Threads, opts.Memory = 120_000, 3, 0
			if _, rep := build(t, s, names, opts); rep.Sharing != Private || rep.Workers != 3 {
				t.Errorf("%s, small: %+v", name, rep)
			}
		}
	}
}

// Keys whose number is unknown wait in memory or on disk. The filter equals that of
// a build that knew the number.
func TestBacklog(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, line := range map[string]func() string{
		"integers": func() string { return strconv.FormatInt(rng.Int64N(1<<40)-1<<39, 10) },
		"strings":  func() string { return strconv.FormatUint(rng.Uint64N(1<<18), 36) },
	} {
		var b strings.Builder
		n := 350_000 / cases.Count(2, 1, 1)
		for range n {
			b.WriteString(line() + "\n")
		}
		text := b.String()
		open := func() []*source.File {
			o := source.OpenOptions{Text: true, Stdin: strings.NewReader(text), Column: "id"}
			if name == "integers" {
				o.Types = map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}
			}
			files, err := openFiles(t, []string{"-"}, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { source.Close(files) })
			return files
		}
		run := func(opts Options) (*filters.Filter, Report) {
			p, err := NewPlan(open(), opts)
			if err != nil {
				t.Fatal(err)
			}
			f, rep, err := p.Build(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return f, rep
		}
		dir := t.TempDir()
		opts := Options{Key: "id", FPR: 0.01, Threads: 2, Expect: uint64(n), TempDir: dir}
		want, _ := run(opts)
		opts.Expect = 0
		for _, memory := range []int64{0, 1 << 30, int64(8 * n), int64(3 * n)} {
			opts.Memory = memory
			got, rep := run(opts)
			if !bytes.Equal(encoded(t, got), encoded(t, want)) {
				t.Errorf("%s, %d bytes: another filter", name, memory)
			}
			if spills := memory > 0 && memory < 1<<30; (rep.Spilled > 0) != spills {
				t.Errorf("%s, %d bytes: %d on disk", name, memory, rep.Spilled)
			}
			if rep.Spilled > int64(8*n+n/100) { // and the headers of blocks
				t.Errorf("%s: %d bytes of %d keys", name, rep.Spilled, n)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%d files are left, %v", len(left), err)
		}
		opts.TempDir = dir + "/none"
		p, err := NewPlan(open(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Build(t.Context()); err == nil || !strings.Contains(err.Error(), "TempDir") {
			t.Errorf("a directory that is not there: %v", err)
		}
	}
}

// Sets that are each cheaper than a Bloom filter may together be more expensive.
// Their union then becomes the bits that the workers would have shared.
func TestUnionTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	s := newStore()
	ids := numbers(600_000, func(int) int64 { return rng.Int64N(1 << 36) })
	putArrow(t, s, "ids", 200_000, record(t, column{"id", ids}))
	opts := Options{Key: "id", FPR: 0.01, Expect: 40e6, Threads: 1}
	want, _ := build(t, s, []string{"ids"}, opts)
	whole := encoded(t, want)
	if want.Exact() != nil {
		t.Fatal("exact")
	}
	for opts.Threads = 2; opts.Threads <= 4; opts.Threads++ {
		got, rep := build(t, s, []string{"ids"}, opts)
		if rep.Sharing != Ranges {
			t.Errorf("%+v", rep)
		}
		if !bytes.Equal(encoded(t, got), whole) {
			t.Errorf("%d threads: another filter", opts.Threads)
		}
	}
}

// There are no more workers than work for them, and the report has their number.
func TestWorkers(t *testing.T) {
	s := newStore()
	putColumn(t, s, "one", numbers(1000, func(i int) int64 { return int64(i) << 40 }))
	putColumn(t, s, "two", numbers(1000, func(i int) int64 { return int64(i) << 41 }))
	s.put("lines.csv", []byte("id\na\nb\n"))
	for _, c := range []struct {
		inputs  []string
		want    int
		sharing Sharing
	}{
		{[]string{"one"}, 1, Alone},
		{[]string{"one", "two"}, 2, Private},
		{[]string{"lines.csv"}, 1, Alone},
	} {
		_, rep := build(t, s, c.inputs, Options{Key: "id", Threads: 50})
		if rep.Workers != c.want || rep.Sharing != c.sharing {
			t.Errorf("%v: %+v", c.inputs, rep)
		}
	}
}

// Keys waiting in memory go to disk if the shared filter leaves no room for them.
func TestBacklogMakesRoom(t *testing.T) {
	var b strings.Builder
	for i := range 1_100_000 {
		b.WriteString(strconv.Itoa(i) + "x\n")
	}
	text := b.String()
	run := func(opts Options) (*filters.Filter, Report) {
		opts.Key, opts.FPR, opts.Threads, opts.TempDir = "id", 1e-6, 2, t.TempDir()
		files, err := openFiles(t, []string{"-"}, source.OpenOptions{Text: true, Stdin: strings.NewReader(text), Column: "id"})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close(files)
		p, err := NewPlan(files, opts)
		if err != nil {
			t.Fatal(err)
		}
		f, rep, err := p.Build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f, rep
	}
	want, _ := run(Options{})
	for _, memory := range []int64{8 << 20, 9 << 20, 11 << 20}[:cases.Count(1, 3, 3)] {
		if got, rep := run(Options{Memory: memory}); !bytes.Equal(encoded(t, got), encoded(t, want)) || rep.Spilled == 0 {
			t.Errorf("%d bytes: %+v", memory, rep)
		}
	}
}

// A sample recognises distant keys, whether it has duplicates or the keys are in
// order.
func TestFarApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const s = 100_000
	for name, c := range map[string]struct {
		next func(i int) uint64
		n    uint64
		want bool
	}{
		"random":                  {func(int) uint64 { return rng.Uint64() }, 1e9, true},
		"random, few distinct":    {func(int) uint64 { return keys62[rng.IntN(len(keys62))] }, 1e9, true},
		"in order, a gap of 2^32": {func(i int) uint64 { return uint64(i) << 32 }, 1e8, true},
		"a sequence":              {func(i int) uint64 { return uint64(i) }, 1e8, false},
		"a quarter of a sequence": {func(int) uint64 { return rng.Uint64N(400e6) }, 100e6, false},
		"one in 300":              {func(int) uint64 { return rng.Uint64N(3e10) }, 100e6, false},
		"one in 10,000":           {func(int) uint64 { return rng.Uint64N(1e12) }, 100e6, true},
		"a thousand tenants":      {func(int) uint64 { return rng.Uint64N(1000)<<48 | rng.Uint64N(100_000) }, 100e6, false},
		"too few":                 {func(i int) uint64 { return uint64(i%4000) << 40 }, 1e9, false},
	} {
		if got := farApart(numbers(s, c.next), c.n); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

var keys62 = func() []uint64 {
	rng := rand.New(rand.NewPCG(7, 8))
	return numbers(50_000, func(int) uint64 { return rng.Uint64() })
}()

// A builder that is cancelled while it adds the waiting keys ends.
func TestFinishCancelled(t *testing.T) {
	files, err := openFiles(t, []string{"-"}, source.OpenOptions{Text: true, Stdin: strings.NewReader("1\n2\n")})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	p, err := NewPlan(files, Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	w, err := b.Worker()
	if err != nil {
		t.Fatal(err)
	}
	var batch keys.Batch
	plain := []byte{1, 0, 0, 0, 'a'}
	for range blockKeys * 3 {
		batch.SetBytes(plain, 1, 0)
		batch.Len = 1
		if err := w.AddBatch(&batch); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.Finish(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// An ID file that is overwritten while it is read is an error, not a mix of two
// sets.
func TestChangedInputs(t *testing.T) {
	for _, name := range []string{"ids.txt", "ids.csv"} {
		path := filepath.Join(t.TempDir(), name)
		text := strings.Repeat("1234567\n", 400_000)
		if name == "ids.csv" {
			text = "id\n" + text
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files, err := openFiles(t, []string{path}, source.OpenOptions{Text: true})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close(files)
		p, err := NewPlan(files, Options{Key: "id"})
		if err != nil {
			t.Fatal(err)
		}
		var once sync.Once
		p.SetProgress(func(int64) {
			once.Do(func() {
				time.Sleep(20 * time.Millisecond) // a clock tick of the file system
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "7", "8")), 0o600); err != nil {
					t.Error(err)
				}
			})
		})
		if _, _, err := p.Build(t.Context()); !errors.Is(err, syscall.ESTALE) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
