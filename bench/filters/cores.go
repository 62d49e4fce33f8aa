package main

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/bloomjoin/bloomjoin/bench/internal/child"
	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
	"github.com/bloomjoin/bloomjoin/bloom"
)

// coresOpened answers "open GEOMETRY KEYS", which makes a filter of that many keys
// at 12 bits per key, and a buffer as large as its bits.
type coresOpened struct {
	Bytes uint64 // of the filter
	Huge  uint64 // bytes of the process in huge pages
}

// coresRound answers "round": the wall time in ns per key, or per read, over all
// goroutines.
type coresRound struct {
	Probe1, Probe2 float64
	Read1, Read2   float64
}

// cores is the state of the child process "cores".
type cores struct {
	filter *bloom.Filter
	probes [2][]uint64
	sels   [2][]uint32
	buf    []uint64
	sum    uint64
}

const (
	coresProbes = 16 << 20 // keys that each goroutine probes per round
	coresReads  = 16 << 20
)

// answer executes a command.
func (c *cores) answer(words []string) (any, error) {
	switch {
	case len(words) == 3 && words[0] == "open":
		var g bloom.Geometry
		var n uint64
		if err := child.Parse(words[1:], (*uint8)(&g), &n); err != nil {
			return nil, err
		}
		*c = cores{}
		if err := c.open(g, n); err != nil {
			return nil, err
		}
		huge, err := hugeBytes()
		return coresOpened{c.filter.Params().Bytes(), huge}, err
	case len(words) == 1 && words[0] == "round" && c.filter != nil:
		return c.round(), nil
	}
	return nil, fmt.Errorf("no command %q", words)
}

func (c *cores) open(g bloom.Geometry, n uint64) (err error) {
	c.filter, err = bloom.New(bloom.Params{Geometry: g, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: n * bitsPerKey / 8 / g.BlockBytes()})
	if err != nil {
		return err
	}
	keyset.Batches(keyset.Set(n), keyset.Into(c.filter))
	c.buf = make([]uint64, c.filter.Params().Bytes()/8)
	if err := measure.AdviseHuge(c.buf); err != nil {
		return err
	}
	for i := range c.buf {
		c.buf[i] = uint64(i)
	}
	// Each goroutine probes its own keys.
	keys := keyset.Probes(2*coresProbes, n)
	c.probes = [2][]uint64{keys[:coresProbes], keys[coresProbes:]}
	c.sels = [2][]uint32{make([]uint32, keyset.Batch), make([]uint32, keyset.Batch)}
	return nil
}

func (c *cores) round() coresRound {
	return coresRound{
		Probe1: wall(1, coresProbes, c.probe),
		Probe2: wall(2, coresProbes, c.probe),
		Read1:  wall(1, coresReads, c.read),
		Read2:  wall(2, coresReads, c.read),
	}
}

// wall returns the wall time per operation when the given number of goroutines run
// them, after an untimed pass.
func wall(goroutines, operations int, fn func(g int)) float64 {
	pass := func() {
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() { fn(g) })
		}
		wg.Wait()
	}
	pass()
	took := measure.Timed(pass)
	return float64(took) / float64(time.Nanosecond) / float64(goroutines*operations)
}

func (c *cores) probe(g int) {
	keyset.Batches(c.probes[g], func(part []uint64) { c.sels[g] = c.filter.ProbeInts(part, c.sels[g][:0]) })
}

// read reads a word from random 64-byte lines. No address depends on a value that
// was read, so the processor can run as many reads at once as it supports.
func (c *cores) read(g int) {
	lines := uint64(len(c.buf)) / 8
	var sum uint64
	for i := range uint64(coresReads) {
		line, _ := bits.Mul64(keyset.Mix(i<<1|uint64(g)), lines)
		sum += c.buf[line*8]
	}
	if g == 0 { // the sink is written by one goroutine only
		c.sum = sum
	}
}

// coresTable compares the gain of probing and of random reads from a second
// goroutine, with and without huge pages.
func coresTable(cfg config) ([]table, error) {
	t := table{name: "cores", head: []string{"filter", "size", "pages", "in huge pages", "probe, 1 goroutine", "probe, 2", "gain",
		"random read, 1", "random read, 2", "gain", "ratio of gains", "≥ 0.9"}}
	for _, n := range cfg.keys(1e5, pick(cfg, uint64(1e8), 1e7)) {
		for _, g := range bloom.Geometries() {
			rows, err := coresRows(g, n, pick(cfg, 7, 3))
			if err != nil {
				return nil, err
			}
			t.rows = append(t.rows, rows...)
		}
	}
	t.note("Times are ns per key or read, of both goroutines together; medians of %d rounds, gains of each round by itself.", pick(cfg, 7, 3))
	return []table{t}, nil
}

// coresRows measures a filter in two new processes, one with huge pages and one
// without. In a process that has run before, the filter might get memory that is
// already in small pages.
func coresRows(g bloom.Geometry, n uint64, rounds int) (rows [][]string, err error) {
	runs := []*coresRun{{pages: "huge", mode: childFlag}, {pages: "small", mode: childSmallPagesFlag}}
	for _, r := range runs {
		if r.program, err = startSelf(r.mode, "cores"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.program.Close()) }()
		if err := r.program.Call(&r.opened, "open", uint8(g), n); err != nil {
			return nil, err
		}
	}
	if huge := runs[1].opened.Huge; huge != 0 {
		return nil, fmt.Errorf("%d bytes in huge pages, want none: the kernel did not do as asked", huge)
	}
	for range rounds {
		for _, r := range runs {
			if err := r.round(); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range runs {
		rows = append(rows, append([]string{g.String(), mib(float64(r.opened.Bytes)), r.pages, mib(float64(r.opened.Huge))}, r.cells()...))
	}
	return rows, nil
}

// coresRun is a configuration, its process, and its rounds.
type coresRun struct {
	pages, mode                  string
	program                      *child.Process
	opened                       coresOpened
	probe1, probe2, read1, read2 measure.Samples
}

func (r *coresRun) round() error {
	var got coresRound
	if err := r.program.Call(&got, "round"); err != nil {
		return err
	}
	r.probe1, r.probe2 = append(r.probe1, got.Probe1), append(r.probe2, got.Probe2)
	r.read1, r.read2 = append(r.read1, got.Read1), append(r.read2, got.Read2)
	return nil
}

func (r *coresRun) cells() []string {
	figure := func(v measure.Samples) string {
		return fmt.Sprintf("%.2f (%.2f–%.2f)", v.Median(), slices.Min(v), slices.Max(v))
	}
	probe, read := r.probe1.Over(r.probe2), r.read1.Over(r.read2)
	ratio := probe.Over(read).Median()
	return []string{
		figure(r.probe1), figure(r.probe2), fmt.Sprintf("%.2f×", probe.Median()),
		figure(r.read1), figure(r.read2), fmt.Sprintf("%.2f×", read.Median()),
		fmt.Sprintf("%.2f", ratio), report.Yes(ratio >= 0.9),
	}
}
