package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

type kind int

const (
	ours   kind = iota
	goPeer      // another library in Go
	peer        // another system
	bound       // a floor: a lower bound that makes no filter
)

// contender is a way to build a filter from a cell's IDs.
type contender struct {
	name, text string
	kind       kind
	step       func(out string) race.Step
	as         string // form of the logs to probe
}

// contest is a measurement of several contenders in a cell, with its results.
type contest struct {
	*bench
	cell       cell
	paths      paths
	contenders []contender
	runs       race.Runs
	built      map[string]built // reports of bloomjoin, by the contender's name
	rates      map[string]rate
	wrong      []error
}

// race measures the contenders in rounds. Each round runs all of them in turn, starting
// with a different one. bloomjoin must build the same filter in every round; that of
// the first round is probed.
func (b *bench) race(ctx context.Context, c cell, p paths, contenders []contender) (*contest, error) {
	r := &contest{bench: b, cell: c, paths: p, contenders: contenders, runs: race.Runs{}, built: map[string]built{}, rates: map[string]rate{}}
	for _, who := range race.Rounds(b.roundsOf(c), contenders) {
		if err := r.once(ctx, who); err != nil {
			return r, fmt.Errorf("%s: %w", who.name, err)
		}
	}
	return r, nil
}

// roundsOf returns at least two rounds by default, since builds of the same must be equal.
func (b *bench) roundsOf(c cell) int {
	if c.Big {
		return b.RoundsOf(2, 2)
	}
	return b.RoundsOf(5, 2)
}

// once runs a contender.
func (r *contest) once(ctx context.Context, who contender) error {
	race.Say("%s: %s", r.cell.Name, who.name)
	return race.Within(r.Out, func(dir string) error {
		out := filepath.Join(dir, "filter.bjf")
		if who.kind == ours {
			return r.build(ctx, who, out)
		}
		u, err := race.Execute(ctx, who.step(out))
		r.runs[who.name] = append(r.runs[who.name], u)
		return err
	})
}

// build runs bloomjoin and checks the filter that it builds.
func (r *contest) build(ctx context.Context, who contender, out string) error {
	var now built
	u, err := answered(ctx, who.step(out), &now)
	if err != nil {
		return err
	}
	r.runs[who.name] = append(r.runs[who.name], u)
	if want := r.keys(); now.Keys != want {
		return fmt.Errorf("%d keys were read, want %d", now.Keys, want)
	}
	before, again := r.built[who.name]
	if again {
		if before.Digest != now.Digest {
			return fmt.Errorf("two builds of the same made different filters, %s and %s", before.Digest, now.Digest)
		}
		return nil
	}
	r.built[who.name] = now
	rate, err := r.probe(ctx, out, r.paths, who.as)
	if err != nil {
		return err
	}
	r.rates[who.name] = rate
	if err := rate.err(); err != nil {
		r.wrong = append(r.wrong, fmt.Errorf("%s: %w", who.name, err))
	}
	return nil
}

// keys returns the number of rows that the contenders read.
func (r *contest) keys() uint64 { return r.Scaled(r.cell.set.rows) }

// speed returns a contender's speed in million keys per second.
func (r *contest) speed(name string) float64 { return float64(r.keys()) / r.runs.Wall(name) / 1e6 }

// table returns all figures of the contenders, bloomjoin first, with times relative to
// its time.
func (r *contest) table() report.Table {
	first := r.contenders[0].name
	t := report.Table{Name: r.cell.Name, Head: []string{report.Count(r.keys()) + " keys", "median s", "least s", "M keys/s", "CPU s", "peak MiB", "filter MiB", "its time / bloomjoin's"}}
	for _, c := range r.contenders {
		size := "–"
		if made, ok := r.built[c.name]; ok {
			size = fmt.Sprintf("%.1f, %s", float64(made.MemoryBytes)/(1<<20), made.Kind)
		}
		t.Row(c.text, report.Seconds(r.runs.Wall(c.name)), report.Seconds(r.runs.Least(c.name)), fmt.Sprintf("%.1f", r.speed(c.name)),
			report.Seconds(r.runs.CPU(c.name)), report.MiB(r.runs.Peak(c.name)), size, report.Number(r.runs.Ratio(c.name, first)))
	}
	t.Note("%d rounds, %d threads.", len(r.runs[first]), threads)
	for _, c := range r.contenders {
		if made := r.built[c.name]; made.Sharing != "" {
			t.Note("%s, as it says: sharing: %s; passes over the IDs: %d; spilled: %.1f MB.", c.text, made.Sharing, made.Passes, float64(made.SpilledBytes)/1e6)
		}
	}
	return t
}

// atLeast adds a target with a lower limit for a figure. Without a target, only the
// figure is shown.
func atLeast(t *report.Table, what, unit string, got, want float64) {
	wanted, met := "–", "–"
	if want > 0 {
		wanted, met = fmt.Sprintf("≥ %g%s", want, unit), report.Yes(got >= want)
	}
	t.Row(what, fmt.Sprintf("%.1f%s", got, unit), wanted, met)
}

// fastestGo adds the comparison with the fastest Go peer.
func (r *contest) fastestGo(t *report.Table, want float64) {
	var names []string
	for _, c := range r.contenders {
		if c.kind == goPeer {
			names = append(names, c.name)
		}
	}
	best := r.runs.Fastest(names)
	if best == "" {
		return
	}
	text := r.contenders[slices.IndexFunc(r.contenders, func(c contender) bool { return c.name == best })].text
	atLeast(t, "time of the fastest in Go ("+text+") / bloomjoin's", " ×", r.runs.Ratio(best, r.contenders[0].name), want)
}

// peak adds the target for memory: at most 1.3 times the filter plus 256 MiB.
func (r *contest) peak(t *report.Table, name string) {
	limit := 1.3*float64(r.built[name].MemoryBytes) + 256<<20
	got := r.runs.Peak(name)
	t.Row("peak memory", report.MiB(got)+" MiB", fmt.Sprintf("≤ %s MiB (1.3 × filter + 256 MiB)", report.MiB(int64(limit))), report.Met(float64(got), limit))
}

// peers returns other libraries as contenders, with the same files.
func (r *bench) peers(ids string, names ...[3]string) (all []contender) {
	for _, n := range names {
		argv := []string{r.program.peers, "-filter", n[0], "-reader", n[1], "-threads", fmt.Sprint(threads), "-fpr", fmt.Sprint(fpr), ids}
		all = append(all, contender{name: n[0] + "-" + n[1], text: n[2], kind: goPeer, step: func(string) race.Step { return race.Step{Argv: argv} }})
	}
	return all
}

// floor returns the contender that only decompresses pages.
func (b *bench) floor(ids string) contender {
	return contender{name: "floor", text: "*floor: decompress*", kind: bound, step: func(string) race.Step {
		return race.Step{Argv: []string{b.program.floor, "-threads", fmt.Sprint(threads), "-columns", key, ids}}
	}}
}

// peerReply is the output of command peers.
type peerReply struct {
	Version string
	Bytes   uint64
	Probed  uint64
	Hits    uint64
}

// equals returns a sentence about the peers' filters: version, size, and false
// positives.
func (r *contest) equals(ctx context.Context, t *report.Table, log string) error {
	for _, c := range r.contenders {
		if c.kind != goPeer {
			continue
		}
		s := c.step("")
		s.Argv = slices.Insert(slices.Clone(s.Argv), len(s.Argv)-1, "-probe", log)
		var reply peerReply
		if _, err := answered(ctx, s, &reply); err != nil {
			return err
		}
		if reply.Probed == 0 {
			return fmt.Errorf("%s: nothing was probed", s)
		}
		t.Note("%s (%s): %.1f MiB, %.2f %% false positives.", c.text, reply.Version, float64(reply.Bytes)/(1<<20), 100*float64(reply.Hits)/float64(reply.Probed))
	}
	return nil
}
