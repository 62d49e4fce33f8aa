// Command memory fills a filter with keys in memory and probes it:
//
//	memory [-private] -keys N -threads T -fpr P -outside M
//
// The goroutines fill one filter together, by ranges of its blocks, or with -private
// one each, which are then merged. Generating the keys is not timed. It prints a JSON
// object, see reply.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bloom"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// reply is the output.
type reply struct {
	NS           int64   `json:"ns"` // time to fill the filter
	Bytes        uint64  `json:"bytes"`
	FPRPredicted float64 `json:"fpr_predicted"`
	Probed       uint64  `json:"probed"`
	Hits         uint64  `json:"hits"` // false positives
}

func run(args []string) error {
	flags := flag.NewFlagSet("memory", flag.ContinueOnError)
	n := flags.Uint64("keys", 1e6, "keys of the set")
	threads := flags.Int("threads", 2, "goroutines")
	fpr := flags.Float64("fpr", 0.01, "false-positive rate")
	private := flags.Bool("private", false, "a filter for each goroutine")
	outside := flags.Uint64("outside", 1e5, "other keys to probe")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *n == 0 || *threads < 1 {
		return errors.New("want keys, and a thread at least")
	}
	fill := fillShared
	if *private {
		fill = fillPrivate
	}
	r, err := measured(fill, *n, *threads, *fpr, *outside)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// filler builds a filter from keys.
type filler func(p bloom.Params, keys []uint64, threads int) (*bloom.Filter, error)

func measured(fill filler, n uint64, threads int, fpr float64, outside uint64) (r reply, err error) {
	ids, keys := keyset.Sparse(), make([]uint64, n)
	for i := range keys {
		keys[i] = ids.At(uint64(i))
	}
	params := bloom.Params{Geometry: bloom.GeometryFor(fpr), Hash: bloom.Hash{ID: bloom.XXH3}}
	params.Blocks = params.Geometry.Blocks(n, fpr)
	var f *bloom.Filter
	took := measure.Timed(func() { f, err = fill(params, keys, threads) })
	if err != nil {
		return r, err
	}
	r = reply{NS: took.Nanoseconds(), Bytes: params.Bytes(), FPRPredicted: f.FPR(), Probed: outside}
	sel := make([]uint32, 0, keyset.Batch+1)
	keyset.Batches(keys, func(part []uint64) {
		if found := len(f.ProbeInts(part, sel)); found < len(part) {
			err = fmt.Errorf("%d of %d keys are not found", len(part)-found, len(part))
		}
	})
	for i := range keys[:min(outside, n)] {
		keys[i] = ids.At(n + uint64(i))
	}
	r.Probed = min(outside, n)
	keyset.Batches(keys[:r.Probed], func(part []uint64) { r.Hits += uint64(len(f.ProbeInts(part, sel))) })
	return r, err
}

// The size of a goroutine's buffer for a shared filter, and the number of keys that
// it hashes at a time.
const (
	buffer = 4 << 20
	span   = 4 << 10
)

// fillShared builds one filter. Each goroutine adds its share of the keys, range by
// range of the blocks.
func fillShared(p bloom.Params, keys []uint64, threads int) (*bloom.Filter, error) {
	f, err := bloom.New(p)
	if err != nil {
		return nil, err
	}
	shared := bloom.NewShared(f, buffer)
	var all sync.WaitGroup
	for i := range threads {
		share := keys[len(keys)*i/threads : len(keys)*(i+1)/threads]
		all.Go(func() {
			adder, hashes := shared.Adder(), make([]uint64, span)
			for part := range slices.Chunk(share, span) {
				p.Hash.Sum64(hashes[:len(part)], part)
				adder.Add(hashes[:len(part)])
			}
			adder.Flush()
		})
	}
	all.Wait()
	return f, nil
}

// fillPrivate builds a filter per goroutine from its share of the keys, and merges
// them.
func fillPrivate(p bloom.Params, keys []uint64, threads int) (*bloom.Filter, error) {
	filters, failures := make([]*bloom.Filter, threads), make([]error, threads)
	var all sync.WaitGroup
	for i := range threads {
		share := keys[len(keys)*i/threads : len(keys)*(i+1)/threads]
		all.Go(func() {
			if filters[i], failures[i] = bloom.New(p); failures[i] == nil {
				keyset.Batches(share, keyset.Into(filters[i]))
			}
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	for _, f := range filters[1:] {
		if err := filters[0].Union(f); err != nil {
			return nil, err
		}
	}
	return filters[0], nil
}
