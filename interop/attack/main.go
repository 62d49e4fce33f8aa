// Command attack mutates valid files, corrects their lengths and checksums, and
// reads, scans, joins and probes the results.
//
//	cd interop/attack && go run . -kind parquet -count 20000 -seed 1 FILE...
//	cd interop/attack && go run . -kind arrow -count 20000 FILE...
//	cd interop/attack && go run . -kind filter -count 20000
//
// Files that cannot be read unchanged are skipped. A mutated file may be read or
// refused. These are bugs:
//
//   - a panic, even if it was recovered
//   - a run of more than 10 seconds
//   - a heap of more than twice the memory budget
//   - a read error in a file that File.Check accepts
//   - different rows from different ways to read
//   - changed values in a column that was not mutated
//   - a filter that misses a key although no section that decides was mutated
//
// Each bug is printed with the number for -only that reproduces it and, with -keep,
// the name of its file. The exit status is then 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

const (
	budget  = 64 << 20
	allowed = 10 * time.Second
	patient = 20 * time.Second // for readers that ignore their context
)

// mutable is a parsed file.
type mutable interface {
	mutate(rng *rand.Rand) mutation
}

// mutation is a mutated file.
type mutation struct {
	bytes  []byte
	what   string
	column string // the only one that was mutated; empty: unknown
	loses  bool   // a filter may lack keys after the mutation
}

// victim is a file to mutate, with its original content.
type victim struct {
	name string
	from mutable
	try  func(ctx context.Context, n int, path string, m mutation) verdict
}

// verdict is the result of reading a mutated file.
type verdict struct {
	wrong  string // empty: no bug
	refuse error  // nil: it was read
}

type options struct {
	kind   string
	count  int
	seed   uint64
	only   int
	keep   string
	copies string
	files  []string
}

func main() {
	var o options
	flag.StringVar(&o.kind, "kind", "parquet", "parquet, arrow or filter")
	flag.IntVar(&o.count, "count", 1000, "number of mutations")
	flag.Uint64Var(&o.seed, "seed", 1, "of the random numbers")
	flag.IntVar(&o.only, "only", -1, "the one mutation to do")
	flag.StringVar(&o.keep, "keep", "", "directory for files with wrong answers")
	flag.StringVar(&o.copies, "copies", "", "directory for copies of what could be read, N.copy.*, and for what they were made of, N.was.*")
	flag.Parse()
	o.files = flag.Args()
	if err := command(o); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

func command(o options) error {
	dir, err := os.MkdirTemp("", "bloomjoin-attack.")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	debug.SetMemoryLimit(2 * budget) // keeps garbage low
	var victims []victim
	switch o.kind {
	case "parquet":
		victims, err = tableVictims(dir, o.copies, o.files, takeParquet)
	case "arrow":
		victims, err = tableVictims(dir, o.copies, o.files, takeArrow)
	case "filter":
		victims, err = filterVictims(dir)
	default:
		err = fmt.Errorf("no kind %q", o.kind)
	}
	if err != nil {
		return err
	}
	if len(victims) == 0 {
		return errors.New("no file that can be read")
	}
	return attack(o, dir, victims)
}

func attack(o options, dir string, victims []victim) error {
	began, read, wrong := time.Now(), 0, 0
	refused := map[string]int{}
	for n := range o.count {
		if o.only >= 0 && n != o.only {
			continue
		}
		rng := rand.New(rand.NewPCG(o.seed, uint64(n)))
		v := victims[rng.IntN(len(victims))]
		m := v.from.mutate(rng)
		path := filepath.Join(dir, fmt.Sprintf("%d-%s", n, filepath.Base(v.name)))
		if err := os.WriteFile(path, m.bytes, 0o600); err != nil {
			return err
		}
		since := time.Now()
		got := watched(v, n, path, m)
		if d := time.Since(since); d > time.Second {
			fmt.Fprintf(os.Stdout, "slow   %s %d: %s: %s: %.1f s\n", o.kind, n, v.name, m.what, d.Seconds())
		}
		if o.only >= 0 {
			fmt.Fprintf(os.Stdout, "%s: %s: %+v\n", v.name, m.what, got)
		}
		switch {
		case got.wrong != "":
			wrong++
			fmt.Fprintf(os.Stdout, "WRONG  %s %d: %s: %s: %s\n", o.kind, n, v.name, m.what, got.wrong)
			if o.keep != "" {
				if err := os.WriteFile(filepath.Join(o.keep, filepath.Base(path)), m.bytes, 0o600); err != nil {
					return err
				}
			}
		case got.refuse != nil:
			refused[className(got.refuse)]++
		default:
			read++
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stdout, "%s: %d mutations of %d files with seed %d in %.0f s: %d read, %d refused %v, %d wrong\n",
		o.kind, o.count, len(victims), o.seed, time.Since(began).Seconds(), read, o.count-read-wrong, refused, wrong)
	if wrong > 0 {
		return fmt.Errorf("%d wrong answers", wrong)
	}
	return nil
}

// className returns the kind of an error.
func className(err error) string {
	for _, c := range []struct {
		err  error
		name string
	}{{fault.ErrMemory, "memory"}, {fault.ErrCorrupt, "corrupt"}, {fault.ErrUnsupported, "unsupported"}} {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "other"
}

// watched tries a file and watches the time and the heap.
func watched(v victim, n int, path string, m mutation) verdict {
	ctx, cancel := context.WithTimeout(context.Background(), allowed)
	defer cancel()
	base := heap()
	var most atomic.Uint64
	done := make(chan verdict, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- verdict{wrong: fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
			}
		}()
		done <- v.try(ctx, n, path, m)
	}()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	began := time.Now()
	for {
		select {
		case got := <-done:
			switch {
			case got.wrong != "":
			case errors.Is(got.refuse, panics.ErrRecovered):
				got.wrong = fmt.Sprintf("a recovered panic: %v", got.refuse)
			case ctx.Err() != nil:
				got.wrong = fmt.Sprintf("%.1f s: %v", time.Since(began).Seconds(), got.refuse)
			case most.Load() > base+2*budget:
				got.wrong = fmt.Sprintf("%d MiB of heap", (most.Load()-base)>>20)
			}
			return got
		case <-tick.C:
			most.Store(max(most.Load(), heap()))
			if time.Since(began) > patient {
				fmt.Fprintf(os.Stdout, "WRONG  %d: %s: %s: deaf for %v\n", n, v.name, m.what, patient)
				panic("a reader does not end")
			}
		}
	}
}

func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// names returns the keys of a map in order.
func names[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
