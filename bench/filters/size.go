package main

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/bloomjoin/bloomjoin/bench/internal/child"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
	"github.com/bloomjoin/bloomjoin/bloom"
)

// processors is the number of goroutines where no time is measured.
func processors() int { return runtime.GOMAXPROCS(0) }

// sizeTable compares the computed size of both geometries with the minimum of any
// filter of that rate, log2(1/p) bits per key.
func sizeTable(config) ([]table, error) {
	const n = 1e8
	t := table{name: "size", head: []string{"false positives", "limit, bytes/key", "split-256", "to the limit", "split-512", "to the limit"}}
	for _, p := range []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6} {
		limit := -math.Log2(p) / 8
		cells := []string{fmt.Sprintf("%.0e", p), fmt.Sprintf("%.3f", limit)}
		for _, g := range bloom.Geometries() {
			bytes := float64(g.BlocksFor(n, p)*g.BlockBytes()) / n
			cells = append(cells, fmt.Sprintf("%.3f", bytes), fmt.Sprintf("%.2f×", bytes/limit))
		}
		t.row(cells...)
	}
	const many, rare = 1e10, 1e-4
	for _, g := range bloom.Geometries() {
		bytes := float64(g.BlocksFor(many, rare) * g.BlockBytes())
		t.note("10 G keys at %.0e take %s in %s (computed); the limit is %s.", rare, gib(bytes), g, gib(many*-math.Log2(rare)/8))
	}
	return []table{t}, nil
}

// largeReply answers "build KEYS RATE PROBES": a filter filled by one goroutine from
// generated keys.
type largeReply struct {
	Bytes       uint64
	Seconds     float64
	Bits        float64 // rate from the bits
	BitsSeconds float64 // time to compute Bits
	Found       uint64  // false positives among the probes
	Peak        uint64  // peak of resident memory, in bytes
	Huge        uint64  // bytes in huge pages at the end
}

func answerLarge(words []string) (any, error) {
	var op string
	var probes uint64
	r := rate{geometry: bloom.Split512}
	if err := child.Parse(words, &op, &r.keys, &r.p, &probes); err != nil {
		return nil, err
	}
	begin := time.Now()
	f, err := r.fill(0)
	if err != nil {
		return nil, err
	}
	reply := largeReply{Bytes: f.Params().Bytes(), Seconds: time.Since(begin).Seconds()}
	begin = time.Now()
	reply.Bits = f.FPR()
	reply.BitsSeconds = time.Since(begin).Seconds()
	reply.Found = falsePositives(f, probes)
	if reply.Peak, err = peak(); err != nil {
		return nil, err
	}
	reply.Huge, err = hugeBytes()
	runtime.KeepAlive(f)
	return reply, err
}

// largeTable measures the build of one large filter.
func largeTable(cfg config) ([]table, error) {
	const p = 1e-4
	n := min(uint64(1e9), cfg.maxKeys)
	probes := pick(cfg, uint64(1e8), 1e7)
	var r largeReply
	if err := once("large", &r, "build", n, p, probes); err != nil {
		return nil, err
	}
	t := table{name: "large", head: []string{report.Count(n) + " keys at 1e-04, split-512", ""}}
	t.row("size", fmt.Sprintf("%s, %.3f bytes/key", gib(float64(r.Bytes)), float64(r.Bytes)/float64(n)))
	t.row("time to make and fill it, one goroutine", fmt.Sprintf("%.1f s, %.1f ns/key", r.Seconds, r.Seconds*1e9/float64(n)))
	t.row("formula", fmt.Sprintf("%.4g", rate{bloom.Split512, n, p}.formula()))
	t.row("by the bits", fmt.Sprintf("%.4g, in %.1f s", r.Bits, r.BitsSeconds))
	t.row("measured", fmt.Sprintf("%.4g, %d of %.0e", float64(r.Found)/float64(probes), r.Found, float64(probes)))
	t.row("within the bound", report.Yes(measure.Plausible(r.Found, probes, r.Bits)))
	t.row("peak resident memory", fmt.Sprintf("%s, %s more than the filter", gib(float64(r.Peak)), mib(float64(r.Peak)-float64(r.Bytes))))
	t.row("in huge pages", gib(float64(r.Huge)))
	return []table{t}, nil
}
