package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/child"
	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

const bitsPerKey = 12

// minTimed is the lowest number of keys in a timed run. Small sets are filled
// several times, so that each run takes more than a few milliseconds.
const minTimed = 16 << 20

// speedReply is the answer of the measuring programs, see reply in speed.
type speedReply struct {
	Names    []string
	Versions []string
	NS       int64
	Count    uint64
	Hits     uint64
	Bytes    uint64
}

// entrant is a filter in a child process.
type entrant struct {
	name    string // in the child
	label   string // in the table
	program *child.Process
	ours    bool // this project's filter with assembly
	goRival bool
	floor   bool                       // not a filter: random memory access
	add     map[uint64]measure.Samples // by number of keys: ns per key in each round
	probe   map[uint64]measure.Samples
	bytes   map[uint64]uint64
	fpr     map[uint64]float64
}

// speedTables measures add and probe of all filters, in rounds with one run of each
// filter.
func speedTables(cfg config) (tables []table, err error) {
	dir, err := os.MkdirTemp("", "bloomjoin-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sizes := cfg.keys(1e6, 1e7, 1e8)
	if len(sizes) == 0 {
		return nil, errors.New("-max-keys leaves out all sizes; the least is 1000000")
	}
	var f field
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.enterAll(dir); err != nil {
		return nil, err
	}
	all := f.entrants
	for _, n := range sizes {
		if err := race(all, n, rounds(cfg, n)); err != nil {
			return nil, err
		}
	}
	tables = []table{
		speedTable("add", all, sizes, func(e *entrant) map[uint64]measure.Samples { return e.add }),
		speedTable("probe", all, sizes, func(e *entrant) map[uint64]measure.Samples { return e.probe }),
		workTable(all, sizes),
		targetsTable(all, sizes),
	}
	rounds := fmt.Sprintf("Median (least–greatest) of the rounds: %d, of the largest set %d.", rounds(cfg, 1e6), rounds(cfg, 1e8))
	for i := range 2 {
		tables[i].notes = append(append(tables[i].notes, rounds), f.notes...)
	}
	return tables, nil
}

func rounds(cfg config, n uint64) int {
	if n > 1e7 {
		return pick(cfg, 5, 1)
	}
	return pick(cfg, 11, 3)
}

// field has all entrants and their programs.
type field struct {
	entrants []*entrant
	programs []*child.Process
	notes    []string
}

// enter starts a program and adds its filters, which set completes.
func (f *field) enter(program string, set func(e *entrant, version string) error) error {
	p, err := child.Start(program)
	if err != nil {
		return err
	}
	f.programs = append(f.programs, p)
	var reply speedReply
	if err := p.Call(&reply, "names"); err != nil {
		return err
	}
	for i, name := range reply.Names {
		e := &entrant{name: name, program: p, add: map[uint64]measure.Samples{}, probe: map[uint64]measure.Samples{},
			bytes: map[uint64]uint64{}, fpr: map[uint64]float64{}}
		version := ""
		if i < len(reply.Versions) {
			version = reply.Versions[i]
		}
		if err := set(e, version); err != nil {
			return err
		}
		f.entrants = append(f.entrants, e)
	}
	return nil
}

// enterAll builds all programs into dir and starts them.
func (f *field) enterAll(dir string) error {
	program, err := buildSpeed(dir, "")
	if err != nil {
		return err
	}
	if err := f.enter(program, func(e *entrant, version string) error {
		e.floor = e.name == "memory"
		e.ours = version == "" && !e.floor
		e.goRival = version != ""
		e.label = strings.TrimSpace(e.name + " " + version)
		if e.ours {
			e.label = "**" + e.name + "**"
		}
		if e.floor {
			e.label = "*memory: a random line for each key*"
		}
		return nil
	}); err != nil {
		return err
	}
	if program, err = buildSpeed(dir, "purego"); err != nil {
		return err
	}
	if err := f.enter(program, func(e *entrant, _ string) error {
		e.label = e.name + ", portable Go"
		return nil
	}); err != nil {
		return err
	}
	program, err = buildRust(dir)
	if errors.Is(err, errNoCargo) {
		f.notes = append(f.notes, "Filters in Rust are left out: "+err.Error()+".")
		return nil
	}
	if err != nil {
		return err
	}
	return f.enter(program, func(e *entrant, _ string) error {
		version, err := crateVersion(e.name)
		e.label = fmt.Sprintf("%s %s (Rust)", e.name, version)
		return err
	})
}

// close stops the programs.
func (f *field) close() error {
	var errs []error
	for _, p := range f.programs {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// race measures all filters of n keys.
func race(all []*entrant, n uint64, rounds int) error {
	probes := uint64(minTimed)
	runs := (minTimed + n - 1) / n
	told := map[*child.Process]bool{}
	for _, e := range all {
		if !told[e.program] {
			told[e.program] = true
			if err := e.program.Call(&speedReply{}, "keys", n, bitsPerKey, probes, runs); err != nil {
				return err
			}
		}
	}
	in := keyset.Members(probes, n)
	for range rounds {
		for _, e := range all {
			var r speedReply
			if err := e.program.Call(&r, "add", e.name); err != nil {
				return err
			}
			e.add[n] = append(e.add[n], float64(r.NS)/float64(r.Count))
		}
		for _, e := range all {
			var r speedReply
			if err := e.program.Call(&r, "probe", e.name); err != nil {
				return err
			}
			if r.Hits < in {
				return fmt.Errorf("%s: %d keys found, of %d that are there", e.label, r.Hits, in)
			}
			e.probe[n] = append(e.probe[n], float64(r.NS)/float64(r.Count))
			e.bytes[n] = r.Bytes
			e.fpr[n] = float64(r.Hits-in) / float64(probes-in)
		}
	}
	return nil
}

// speedTable returns the table of one operation.
func speedTable(name string, all []*entrant, sizes []uint64, of func(*entrant) map[uint64]measure.Samples) table {
	t := table{name: name, head: []string{"ns/key"}}
	for _, n := range sizes {
		t.head = append(t.head, report.Count(n)+" keys")
	}
	for _, e := range all {
		cells := []string{e.label}
		for _, n := range sizes {
			s := of(e)[n]
			cells = append(cells, fmt.Sprintf("%.1f (%.1f–%.1f)", s.Median(), slices.Min(s), slices.Max(s)))
		}
		t.row(cells...)
	}
	for _, e := range all {
		if !e.ours {
			continue
		}
		cells := []string{"next best in Go / " + e.name}
		for _, n := range sizes {
			rival := best(all, n, of)
			cells = append(cells, fmt.Sprintf("%.2f× (%s)", of(rival)[n].Over(of(e)[n]).Median(), rival.name))
		}
		t.row(cells...)
	}
	floor := all[slices.IndexFunc(all, func(e *entrant) bool { return e.floor })]
	for _, e := range all {
		if !e.ours {
			continue
		}
		cells := []string{e.name + " / memory"}
		for _, n := range sizes {
			cells = append(cells, fmt.Sprintf("%.2f×", of(e)[n].Over(of(floor)[n]).Median()))
		}
		t.row(cells...)
	}
	return t
}

// best returns the fastest other Go filter, by median.
func best(all []*entrant, n uint64, of func(*entrant) map[uint64]measure.Samples) *entrant {
	var found *entrant
	least := math.Inf(1)
	for _, e := range all {
		if m := of(e)[n].Median(); e.goRival && m < least {
			found, least = e, m
		}
	}
	return found
}

// workTable shows whether the filters do the same work.
func workTable(all []*entrant, sizes []uint64) table {
	t := table{name: "work", head: []string{"bits/key, false positives"}}
	for _, n := range sizes {
		t.head = append(t.head, report.Count(n)+" keys")
	}
	for _, e := range all {
		if e.floor {
			continue
		}
		cells := []string{e.label}
		for _, n := range sizes {
			cells = append(cells, fmt.Sprintf("%.1f, %.2f %%", float64(e.bytes[n])*8/float64(n), e.fpr[n]*100))
		}
		t.row(cells...)
	}
	return t
}

// target is the wanted speed, in multiples of the fastest other Go filter.
func target(op string, n uint64) float64 {
	if op == "add" && n < 1e7 {
		return 1.3
	}
	return 2
}

func targetsTable(all []*entrant, sizes []uint64) table {
	t := table{name: "targets", head: []string{"filter", "operation", "keys", "next best in Go", "ratio", "target", "met"}}
	ops := []struct {
		name string
		of   func(*entrant) map[uint64]measure.Samples
	}{
		{"add", func(e *entrant) map[uint64]measure.Samples { return e.add }},
		{"probe", func(e *entrant) map[uint64]measure.Samples { return e.probe }},
	}
	for _, e := range all {
		if !e.ours {
			continue
		}
		for _, op := range ops {
			for _, n := range sizes {
				rival, want := best(all, n, op.of), target(op.name, n)
				ratio := op.of(rival)[n].Over(op.of(e)[n]).Median()
				t.row(e.name, op.name, report.Count(n), rival.name, fmt.Sprintf("%.2f", ratio), fmt.Sprintf("≥ %.1f", want), report.Yes(ratio >= want))
			}
		}
	}
	return t
}
