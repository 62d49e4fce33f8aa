// Command peers builds a Bloom filter from Parquet files with other Go libraries, as
// their users would.
//
//	peers -filter parquet-go|bits-and-blooms|arrow-go|none [-reader arrow-go|pages|rows] [-threads N] [-fpr P] [-probe LOG] DIRECTORY
//
// Each thread takes row groups and fills its own filter. The filters are then merged.
// With -probe the keys of a log are looked up in the result. It prints a JSON object,
// see reply.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func main() {
	r, err := run(os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// reply is the output.
type reply struct {
	Version string `json:"version"` // of the filter's module, or without one of the reader's
	Keys    uint64 `json:"keys"`
	Bytes   uint64 `json:"bytes"`  // size of the filter
	Probed  uint64 `json:"probed"` // keys of the log
	Hits    uint64 `json:"hits"`   // keys found
}

func run(args []string) (r reply, err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	name := flags.String("filter", "none", "parquet-go, bits-and-blooms, arrow-go, or none: only read")
	by := flags.String("reader", "arrow-go", "arrow-go, pages (parquet-go's, by value) or rows (its generic reader)")
	threads := flags.Int("threads", 2, "goroutines")
	fpr := flags.Float64("fpr", 0.01, "false-positive rate")
	probe := flags.String("probe", "", "log whose keys to look up")
	if err := flags.Parse(args); err != nil {
		return r, err
	}
	if flags.NArg() != 1 || *threads < 1 {
		return r, errors.New("want a directory, and a thread at least")
	}
	paths, err := filepath.Glob(filepath.Join(flags.Arg(0), "*.parquet"))
	if err != nil || len(paths) == 0 {
		return r, fmt.Errorf("%s: no Parquet files (%w)", flags.Arg(0), err)
	}
	read, ok := readers[*by]
	if !ok {
		return r, fmt.Errorf("-reader: no %q", *by)
	}
	k, ok := kinds[*name]
	if !ok {
		return r, fmt.Errorf("-filter: no %q", *name)
	}
	f, n, err := fill(read, paths, *threads, func(keys uint64) func() filter { return k.maker(keys, *fpr) })
	if err != nil {
		return r, err
	}
	r = reply{Keys: n, Bytes: f.bytes()}
	if *probe != "" {
		if r.Probed, r.Hits, err = probed(f, read, *probe); err != nil {
			return r, err
		}
	}
	r.Version, err = report.Version(k.module)
	return r, err
}

// piece is a row group.
type piece struct {
	path  string
	group int
}

// list returns the row groups of all files.
func list(read reader, paths []string) (pieces []piece, rows uint64, err error) {
	for _, path := range paths {
		groups, n, err := read.footer(path)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		for g := range groups {
			pieces = append(pieces, piece{path, g})
		}
		rows += uint64(n)
	}
	return pieces, rows, nil
}

// fill reads all row groups into one filter per thread, and merges the filters.
func fill(read reader, paths []string, threads int, maker func(keys uint64) func() filter) (filter, uint64, error) {
	pieces, rows, err := list(read, paths)
	if err != nil {
		return nil, 0, err
	}
	var next, added atomic.Int64
	var all errgroup.Group
	filters, fresh := make([]filter, threads), maker(rows)
	for i := range filters {
		filters[i] = fresh()
		all.Go(func() error {
			for {
				at := int(next.Add(1)) - 1
				if at >= len(pieces) {
					return nil
				}
				err := read.read(pieces[at], func(b batch) {
					filters[i].add(b)
					added.Add(int64(b.len()))
				})
				if err != nil {
					return fmt.Errorf("%s: row group %d: %w", pieces[at].path, pieces[at].group, err)
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		return nil, 0, err
	}
	if n := uint64(added.Load()); n != rows {
		return nil, 0, fmt.Errorf("%d keys read, of %d rows", n, rows)
	}
	for _, f := range filters[1:] {
		if err := filters[0].merge(f); err != nil {
			return nil, 0, err
		}
	}
	return filters[0], rows, nil
}

// probed returns the number of keys in a log, and how many are found.
func probed(f filter, read reader, path string) (n, hits uint64, err error) {
	pieces, _, err := list(read, []string{path})
	if err != nil {
		return 0, 0, err
	}
	for _, p := range pieces {
		err := read.read(p, func(b batch) {
			n += uint64(b.len())
			hits += f.count(b)
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return n, hits, nil
}
