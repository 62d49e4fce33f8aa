package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/bloomjoin/bloomjoin/bench/internal/answer"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// joined is the report of bloomjoin join --json, see docs/schemas.md.
type joined struct {
	RowsIn    int64  `json:"rows_in"`
	RowsOut   int64  `json:"rows_out"`
	BytesRead int64  `json:"bytes_read"`
	Strategy  string `json:"strategy"`
}

// contest is a measurement of several contenders with one job, and its results.
type contest struct {
	*bench
	name       string
	job        job
	via        string // the endpoint; "": local files
	counted    bool   // the endpoint is a proxy's, which counts
	contenders []contender
	answer     answer.Answer // DuckDB's
	ranges     string        // file of the requests that bloomjoin made
	runs       race.Runs
	served     map[string]measure.Samples // processor seconds of the server, as runs
	said       map[string]joined          // reports of bloomjoin, by the contender's name
	passed     map[string]traffic         // of the last run, by the contender's name
	failed     map[string]string          // the reason, by the contender's name
	wrong      []error                    // failures that are errors
}

func (b *bench) newContest(name string, j job, contenders []contender) *contest {
	return &contest{
		bench: b, name: name, job: j, contenders: contenders, ranges: filepath.Join(b.Out, "ranges.json"),
		runs: race.Runs{}, served: map[string]measure.Samples{}, said: map[string]joined{}, passed: map[string]traffic{}, failed: map[string]string{},
	}
}

// race measures the contenders in rounds. Each round runs all of them in turn, starting
// with a different one. Every answer is compared with DuckDB's, which runs first. A
// contender that fails is not run again.
func (b *bench) race(ctx context.Context, name string, j job, n *network, rounds int, contenders []contender) (r *contest, err error) {
	r = b.newContest(name, j, contenders)
	if err := r.reference(ctx); err != nil {
		return r, err
	}
	if n != nil {
		if err := r.record(ctx, *n); err != nil {
			return r, err
		}
		r.via, r.counted = b.server.at(*n), *n == slow
	}
	return r, r.rounds(ctx, b.RoundsOf(rounds, 1))
}

// rounds runs the contenders n times, but those that fail.
func (r *contest) rounds(ctx context.Context, n int) error {
	for round, who := range race.Rounds(n, r.contenders) {
		if r.failed[who.name] != "" || who.once && round > 0 {
			continue
		}
		err := r.once(ctx, who)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.fails(who, err)
		}
	}
	return nil
}

// reference computes DuckDB's answer, from local files.
func (r *contest) reference(ctx context.Context) error {
	if err := race.Warm(r.job.log, r.job.ids); err != nil {
		return err
	}
	race.Say("%s: the answer", r.name)
	return race.Within(r.Out, func(dir string) error {
		a := attempt{bench: r.bench, job: r.job, from: r.job.log, out: outIn(dir), scratch: dir}
		_, err := race.Execute(ctx, r.bench.reference().step(a))
		if err == nil {
			r.answer, err = answer.Of(ctx, r.program.python, a.out)
		}
		return err
	})
}

// outIn returns the path of an answer.
func outIn(dir string) string { return filepath.Join(dir, "out.parquet") }

// record runs bloomjoin once through a proxy, untimed, so that its requests are known.
func (r *contest) record(ctx context.Context, n network) error {
	r.via, r.counted = r.server.counting, true
	if n == slow {
		r.via = r.server.slow
	}
	race.Say("%s: the requests", r.name)
	if err := r.once(ctx, bloomjoin()); err != nil {
		return err
	}
	clear(r.runs)
	clear(r.served)
	return nil
}

// once runs a contender.
func (r *contest) once(ctx context.Context, who contender) error {
	race.Say("%s: %s", r.name, who.name)
	if r.counted {
		if _, err := passed(ctx, r.via); err != nil { // what came late from the one before
			return err
		}
	}
	from := r.job.log
	if r.via != "" {
		var err error
		if from, err = r.server.url(r.job.log); err != nil {
			return err
		}
	}
	return race.Within(r.Out, func(dir string) error {
		var printed bytes.Buffer
		out := outIn(dir)
		s := who.step(attempt{bench: r.bench, job: r.job, endpoint: r.via, from: from, ranges: r.ranges, out: out, scratch: dir})
		s.Out = &printed
		before := r.serverCPU()
		u, err := execute(ctx, who, s)
		if err != nil {
			return err
		}
		served := r.serverCPU() - before
		if err := r.count(ctx, who); err != nil {
			return err
		}
		if who.kind != bound {
			if u.Size, err = r.check(ctx, who, out, printed.Bytes()); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		r.runs[who.name] = append(r.runs[who.name], u)
		r.served[who.name] = append(r.served[who.name], served)
		return nil
	})
}

// serverCPU returns the processor time of the server so far, 0 for local files.
func (r *contest) serverCPU() float64 {
	if r.via == "" {
		return 0
	}
	return r.server.cpu()
}

// execute runs a process of a contender within its limit.
func execute(ctx context.Context, who contender, s race.Step) (race.Usage, error) {
	if who.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, who.limit, fmt.Errorf("stopped after %v", who.limit))
		defer cancel()
	}
	u, err := race.Execute(ctx, s)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return u, err
}

// count keeps what a contender has made pass the proxy. What bloomjoin fetched is for
// replay.
func (r *contest) count(ctx context.Context, who contender) error {
	if !r.counted {
		return nil
	}
	t, err := passed(ctx, r.via)
	if err != nil {
		return err
	}
	r.passed[who.name] = t
	if who.name != bloomjoin().name {
		return nil
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return os.WriteFile(r.ranges, text, 0o600)
}

// check compares an answer with DuckDB's, and with what bloomjoin reports. It returns
// the size of the answer.
func (r *contest) check(ctx context.Context, who contender, out string, printed []byte) (int64, error) {
	got, err := answer.Of(ctx, r.program.python, out)
	if err == nil {
		err = got.Same(r.answer)
	}
	if err != nil || who.kind != ours {
		return got.Bytes, err
	}
	var says joined
	if err := json.Unmarshal(printed, &says); err != nil {
		return got.Bytes, fmt.Errorf("%w: %s", err, race.Tail(string(printed), 3))
	}
	if says.RowsOut != got.Rows {
		return got.Bytes, fmt.Errorf("it says that it wrote %d rows; there are %d", says.RowsOut, got.Rows)
	}
	r.said[who.name] = says
	return got.Bytes, nil
}

// fails removes a contender from the race. It is an error if it is ours or a bound. A
// peer may be unable to do the job.
func (r *contest) fails(who contender, err error) {
	race.Say("%s: %s fails: %v", r.name, who.name, err)
	r.failed[who.name] = race.Tail(err.Error(), 1)
	delete(r.runs, who.name)
	if who.kind != peer {
		r.wrong = append(r.wrong, fmt.Errorf("%s: %s", who.name, r.failed[who.name]))
	}
}

// table returns all figures of the contenders.
func (r *contest) table() report.Table {
	t := report.Table{Name: r.name, Head: []string{r.name, "median s", "least s", "CPU s", "the server's", "peak MiB", "requests", "MB received", "its time / bloomjoin's"}}
	for _, c := range r.contenders {
		if len(r.runs[c.name]) == 0 {
			t.Row(c.text, "failed", "–", "–", "–", "–", "–", "–", "–")
			continue
		}
		requests, received := r.trafficOf(c.name)
		t.Row(c.text, report.Seconds(r.runs.Wall(c.name)), report.Seconds(r.runs.Least(c.name)), report.Seconds(r.runs.CPU(c.name)),
			report.Seconds(r.served[c.name].Median()), report.MiB(r.runs.Peak(c.name)), requests, received, report.Number(r.over(c.name, "ours")))
	}
	for _, c := range r.contenders {
		if why := r.failed[c.name]; why != "" {
			t.Note("%s: %s.", c.text, why)
		}
	}
	return t
}

// trafficOf renders what a contender has made pass the proxy, if that is known.
func (r *contest) trafficOf(name string) (requests, received string) {
	t := r.passed[name]
	if len(t) == 0 {
		return "–", "–"
	}
	return fmt.Sprint(t.requests()), fmt.Sprintf("%.1f", float64(t.bytes())/1e6)
}

// over returns the median over rounds of the quotient of two contenders' times. Who
// ran once is compared with the first round.
func (r *contest) over(name, unit string) float64 {
	n := min(len(r.runs[name]), len(r.runs[unit]))
	return race.Runs{name: r.runs[name][:n], unit: r.runs[unit][:n]}.Ratio(name, unit)
}

// overLongest returns the median over rounds of the quotient of bloomjoin's time and
// the longest of the others'.
func (r *contest) overLongest(others ...string) float64 {
	var own, longest measure.Samples
	for round, u := range r.runs["ours"] {
		var most float64
		for _, name := range others {
			if round >= len(r.runs[name]) {
				return nan
			}
			most = max(most, r.runs[name][round].Wall)
		}
		own, longest = append(own, u.Wall), append(longest, most)
	}
	if len(own) == 0 {
		return nan
	}
	return own.Over(longest).Median()
}

// processors returns how long the processors need for bloomjoin's work on local files,
// for the requests and for the server's part of these: no join is faster, where the
// server runs on the same machine.
func (r *contest) processors() float64 {
	if len(r.runs["local"]) == 0 || len(r.runs["replay"]) == 0 {
		return nan
	}
	return (r.runs.CPU("local") + r.runs.CPU("replay") + r.served["replay"].Median()) / float64(runtime.GOMAXPROCS(0))
}
