package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

type planFlags struct {
	joinFlags
	network, scan string
	workers, runs int
}

func (c *cli) planCmd() *cobra.Command {
	var o planFlags
	cmd := &cobra.Command{
		Use:   "plan --ids IDS --on LOGCOL[=IDCOL][,...] [flags] LOGS...",
		Short: "Estimate a join: rows, strategy, cost, and what a filter saves",
		Long:  `Estimate a join without doing it: how many rows have an ID, which strategy join takes and why, what each costs, and what a filter saves in a distributed join. It reads all IDs' keys and a sample of the log's. Bounds hold with a confidence of 99 %.`,
		Example: `  bloomjoin plan --ids users.parquet --on user_id logs/
  bloomjoin plan --ids airports.csv --on origin=iata --type inner flights/
  bloomjoin plan --ids users.parquet --on user_id --workers 200 logs/`,
		Annotations: flags.Help("plan", "ids on", "type where columns filter fpr ids-format key-type files-from include exclude network scan-speed workers sample"),
		Args:        o.inputs.Arguments("LOGS"),
		RunE:        withFlags(c.plan, &o),
	}
	f := cmd.Flags()
	o.addInput(f)
	flags.Group(f, flags.GroupInput)

	o.addKeys(f)
	flags.Group(f, flags.GroupKeys)

	o.addJoin(f)
	f.Var(&o.layout.Columns, "columns", columnsHelp)
	o.layout.AddInt96(f)
	flags.Group(f, flags.GroupJoin)

	f.StringVar(&o.network, "network", "10Gbit/s", "`SPEED` how fast a worker receives, as 500MB/s")
	f.StringVar(&o.scan, "scan-speed", "1GB/s", "`SPEED` how fast it joins that")
	f.IntVar(&o.workers, "workers", 1, "`N` number of workers that get the filter")
	f.IntVar(&o.runs, "sample", 512, "`N` runs of 2,048 log rows to look at")
	flags.Group(f, flags.GroupPlan)
	c.completeJoin(cmd, &o.joinFlags)
	return cmd
}

// planReport is the JSON report of plan.
type planReport struct {
	session.Head
	*joins.Plan
}

func (c *cli) plan(cmd *cobra.Command, o *planFlags, args []string) (err error) {
	ctx, r := cmd.Context(), c.newRun("plan")
	defer faults.Join(&err, r.close)
	if err := flags.CheckRate(cmd, o.fpr); err != nil {
		return err
	}
	if o.workers < 1 {
		return flags.Usagef("--workers %d: want 1 or more", o.workers)
	}
	if o.runs < 2 {
		return flags.Usagef("--sample %d: want 2 or more", o.runs)
	}
	if slices.Contains(args, "-") {
		return flags.Usagef("-: plan reads a sample of the log before the join reads all of it, and standard input can be read once (write the stream to a file first)")
	}
	if err := o.hasIDs(cmd, args); err != nil {
		return err
	}
	o.estimates, o.layout.MissingKey = true, "error"
	r.layout = &o.layout
	var open source.Opening
	opts, err := c.joinOptions(ctx, &o.joinFlags, &open, new(output.Destination))
	if err != nil {
		return err
	}
	r.shard = opts.Shard
	by := joins.PlanOptions{Workers: o.workers, Runs: o.runs}
	if by.Network, err = parseSpeed(o.network); err != nil {
		return flags.Usagef("--network: %w", err)
	}
	if by.Scan, err = parseSpeed(o.scan); err != nil {
		return flags.Usagef("--scan-speed: %w", err)
	}
	openLogs := source.Opening{OpenOptions: source.OpenOptions{Int96Nanos: open.Int96Nanos, OtherNames: o.logNames}}
	if err := cmp.Or(o.inputs.Fill(&openLogs), o.where.Fill(&openLogs, &o.keys)); err != nil {
		return err
	}
	if err := r.joinFiles(cmd, &o.joinFlags, &opts, open, openLogs, args); err != nil {
		return err
	}
	if err := r.openOwn(ctx); err != nil {
		return err
	}
	opts.Pieces = r.own
	j, err := joins.New(r.ids, r.files, opts)
	if err != nil {
		return err
	}
	p, err := j.Plan(ctx, by)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.Report(planReport{c.NewHead("plan", r.start), p}, "")
	}
	if c.Shard != "" {
		c.describe("shard %s of the log:", c.Shard)
	}
	return printPlan(words.Printable{Writer: c.Stdout}, p)
}

// planned is a plan with the actual figures, in the JSON report of join.
type planned struct {
	*joins.Plan
	Actual actual `json:"actual"`
}

// actual has the actual values of a plan's estimates.
type actual struct {
	Strategy    joins.Strategy `json:"strategy"`
	Selectivity float64        `json:"selectivity"`
	JoinRows    *int64         `json:"join_rows,omitempty"` // if the answer has a row per pair
	Seconds     float64        `json:"seconds"`
}

// comparePlan returns a join's plan with the actual figures; nil if there was none.
func (c *cli) comparePlan(typ string, start time.Time, rep joins.Report) *planned {
	if rep.Plan == nil {
		return nil
	}
	p := &planned{Plan: rep.Plan, Actual: actual{Strategy: rep.Strategy, Seconds: time.Since(start).Seconds()}}
	if rep.RowsIn > 0 {
		p.Actual.Selectivity = float64(rep.RowsMatched) / float64(rep.RowsIn)
	}
	if joins.Type(typ) == joins.Inner {
		p.Actual.JoinRows = &rep.RowsOut
	}
	return p
}

// sayPlanned prints what was planned and what happened.
func (c *cli) sayPlanned(p *planned) {
	c.Say("  planned as %s, since %s", p.Strategy, p.Why)
	for _, s := range p.Strategies {
		if s.Strategy == p.Actual.Strategy {
			c.Say("  %s expected to take %.2g s, and %s; it took %.2g s", s.Strategy, s.Seconds, words.Bytes(s.MemoryBytes), p.Actual.Seconds)
		}
	}
	if p.Selectivity != nil {
		c.Say("  rows with an ID: %s expected, %s found", within(*p.Selectivity, share), share(p.Actual.Selectivity))
	}
	if p.JoinRows != nil && p.Actual.JoinRows != nil {
		c.Say("  pairs: %s expected, %s found", within(*p.JoinRows, whole), words.Count(*p.Actual.JoinRows))
	}
}

// parseSpeed parses a speed such as 10Gbit/s or 500MB/s, in bytes per second.
func parseSpeed(s string) (float64, error) {
	size, unit := strings.TrimSuffix(s, "/s"), 1.0
	if bits, ok := strings.CutSuffix(size, "bit"); ok {
		size, unit = bits+"B", 8
	}
	n, err := flags.ParseSize(size)
	if err != nil {
		return 0, fmt.Errorf("speed %q: want one such as 10Gbit/s or 500MB/s", s)
	}
	return float64(n) / unit, nil
}

// printPlan prints a plan for people.
func printPlan(out io.Writer, p *joins.Plan) error {
	var b strings.Builder
	if err := layOut(&b, p); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func layOut(out io.Writer, p *joins.Plan) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("log", "%s", sideOf(p.Log))
	line("IDs", "%s", sideOf(p.IDs))
	printEstimates(line, p)
	if f := p.Filter; f != nil {
		kind := fmt.Sprintf("false positives %s", share(f.FPR))
		if f.Exact {
			kind = "exact"
		}
		line("filter", "%s, %s", words.Bytes(f.Bytes), kind)
		if b := f.Best; b.Workers > 0 {
			line("best --fpr", "%s (%s) for %s at %s/s each, joining %s/s", share(b.FPR), words.Bytes(b.Bytes), words.Things(b.Workers, "worker"), words.Bytes(int64(b.Network)), words.Bytes(int64(b.ScanSpeed)))
		}
	}
	if s := p.Shuffled; s != nil {
		line("bytes to join", "%s of the log without a filter, %s with it", words.Bytes(s.BytesWithout), words.Bytes(s.Bytes))
	}
	if s := p.Skips; s != nil && s.Groups > 0 {
		line("can be skipped", "%s of %s row groups, %s of %s pages of the key, by the range of the IDs", words.Count(s.GroupsSkipped), words.Count(s.Groups), words.Count(s.PagesSkipped), words.Count(s.Pages))
	}
	if e := p.BreakEven; e.Worth {
		line("filtering", "worth it: it pays while fewer than %s of the rows have an ID", share(e.Selectivity))
	} else {
		line("filtering", "not worth it: it pays only while fewer than %s of the rows have an ID", share(e.Selectivity))
	}
	line("strategy", "%s: %s", p.Strategy, p.Why)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\n\tstrategy\tseconds\tmemory\tspilled\t")
	for _, s := range p.Strategies {
		mark := ""
		if s.Strategy == p.Strategy {
			mark = "*"
		}
		fmt.Fprintf(w, "%s\t%s\t%.3g\t%s\t%s\t%s\n", mark, s.Strategy, s.Seconds, words.Bytes(s.MemoryBytes), words.Bytes(s.SpilledBytes), s.Why)
	}
	if len(p.Advice) > 0 {
		fmt.Fprintln(w)
	}
	for _, a := range p.Advice {
		fmt.Fprintln(w, a)
	}
	return w.Flush()
}

// printEstimates prints the estimates from a sample.
func printEstimates(line func(name, format string, args ...any), p *joins.Plan) {
	if p.Selectivity == nil {
		line("sample", "none")
		return
	}
	s := p.Sampled
	rows, ids := "all rows", "all IDs"
	if !s.LogAll {
		rows = fmt.Sprintf("%s rows in %s", words.Count(s.LogRows), words.Things(s.LogRuns, "run"))
	}
	if !s.IDsAll {
		ids = fmt.Sprintf("%s of the IDs in %s", words.Count(s.IDRows), words.Things(s.IDRuns, "run"))
	}
	line("sample", "%s of the log, %s", rows, ids)
	line("rows with an ID", "%s", within(*p.Selectivity, share))
	line("pairs", "%s", within(*p.JoinRows, whole))
}

// sideOf returns a description of one side.
func sideOf(s joins.Side) string {
	out := "rows not counted"
	if s.Rows.Value >= 0 {
		out = within(s.Rows, whole) + " rows"
	}
	out += " in " + words.Things(s.Files, "file")
	if s.Bytes >= 0 {
		out += fmt.Sprintf(", %s decompressed", words.Bytes(s.Bytes))
	}
	if s.Distinct != nil {
		out += ", " + within(*s.Distinct, whole) + " keys"
	}
	return out
}

// within returns an estimate with its bounds.
func within(e joins.Estimate, render func(float64) string) string {
	value, low, high := render(e.Value), render(e.Low), render(e.High)
	if low == high {
		return value
	}
	return fmt.Sprintf("about %s (%s to %s)", value, low, high)
}

func whole(v float64) string { return words.Count(int64(math.Round(v))) }

// share returns a fraction in percent.
func share(v float64) string { return strconv.FormatFloat(100*v, 'g', 3, 64) + " %" }
