// Command memory measures the peak memory of bloomjoin by verb, strategy, --memory
// and --threads, and compares it with --memory.
//
//	cd bench && go run ./memory -data DIR              the whole grid
//	cd bench && go run ./memory -data DIR -update      the same, into ../docs/memory.md
//	cd bench && go run ./memory -data DIR -rows 300000 -budgets 64 -threads 2    does it run?
//
// It needs Linux and Go. The peak is the highest sum of RssAnon and RssShmem in
// /proc/PID/status, polled every 2 ms. Mapped pages of the inputs do not count, since
// the system reclaims them when necessary. The exit status is 1 if a run fails, or if
// its peak exceeds 1.15 times a budget of 128 MiB or more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

const document = "../docs/memory.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// slack is the allowed ratio of peak to --memory, for budgets of held bytes or more.
const (
	slack = 1.15
	held  = 128 << 20
)

// way is a row of the table: a verb and its flags.
type way struct {
	name string
	args []string // before the common flags; the log or the IDs come last
	ids  bool     // the input is the ID file, not the log
}

// grid is the set of measurements.
type grid struct {
	program, dir     string
	log, ids, filter string
	rows             int
	budgets, threads []int // budgets in MiB
}

func (g *grid) ways() []way {
	ways := []way{
		{"build", []string{"build", "--key", key}, true},
		{"scan", []string{"scan", "--filter", g.filter}, false},
	}
	join := func(typ, strategy string) {
		args := []string{"join", "--ids", g.ids, "--on", key, "--type", typ, "--strategy", strategy}
		ways = append(ways, way{"join " + typ + ", " + strategy, args, false})
	}
	join("anti", "auto") // keeps the most rows
	for _, typ := range []string{"semi", "full"} {
		for _, strategy := range []string{"auto", "lookup", "broadcast", "reverse", "shuffle"} {
			join(typ, strategy)
		}
	}
	return ways
}

func command(ctx context.Context, args []string) (err error) {
	g := grid{}
	flags := flag.NewFlagSet("memory", flag.ContinueOnError)
	data := flags.String("data", "", "directory for data and programs, kept from run to run (default: bloomjoin-bench in the user's cache directory)")
	update := flags.Bool("update", false, "write what was measured into "+document+" as well")
	only := flags.String("only", "", "measure the lines whose name has this text")
	budgets := flags.String("budgets", "64,128,256,512", "--memory in MiB")
	threads := flags.String("threads", "1,2,4,16", "--threads")
	flags.IntVar(&g.rows, "rows", 5_000_000, "rows of the log; the IDs are half as many")
	flags.StringVar(&g.program, "bloomjoin", "", "our binary (default: built from this checkout)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if g.budgets, err = numbers(*budgets); err != nil {
		return err
	}
	if g.threads, err = numbers(*threads); err != nil {
		return err
	}
	if g.dir, err = race.Store(*data); err != nil {
		return err
	}
	if err := g.prepare(ctx); err != nil {
		return err
	}
	t, wrong := g.measure(ctx, *only)
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, t.Markdown())
	if *update && ctx.Err() == nil {
		if err := report.Update(document, "peaks", t.Filed(fmt.Sprintf("go run ./memory -data DIR -rows %d -budgets %s -threads %s", g.rows, *budgets, *threads), machine)); err != nil {
			return err
		}
	}
	return errors.Join(wrong...)
}

func numbers(list string) (all []int, err error) {
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q: want numbers from 1 on, separated by commas", list)
		}
		all = append(all, n)
	}
	return all, nil
}

// prepare builds the program, the data and the scan's filter.
func (g *grid) prepare(ctx context.Context) (err error) {
	if g.program == "" {
		if g.program, err = race.Build(ctx, g.dir, "..", "./cmd/bloomjoin"); err != nil {
			return err
		}
	}
	dir := filepath.Join(g.dir, fmt.Sprintf("memory-%d.v1", g.rows))
	g.log, g.ids = filepath.Join(dir, "log.parquet"), filepath.Join(dir, "ids.parquet")
	if err := race.Make(dir, func(begun string) error { return generate(begun, g.rows) }); err != nil {
		return err
	}
	g.filter = filepath.Join(g.dir, fmt.Sprintf("memory-%d.bjf", g.rows))
	if err := os.Remove(g.filter); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return exec.CommandContext(ctx, g.program, "build", "--quiet", "--key", key, "-o", g.filter, g.ids).Run()
}

// measure runs every cell and returns the failures.
func (g *grid) measure(ctx context.Context, only string) (t report.Table, wrong []error) {
	t = report.Table{Name: "peaks", Head: []string{"", "threads"}}
	for _, b := range g.budgets {
		t.Head = append(t.Head, fmt.Sprintf("%d MiB", b))
	}
	for _, w := range g.ways() {
		if !strings.Contains(w.name, only) {
			continue
		}
		for _, threads := range g.threads {
			row := []string{w.name, fmt.Sprint(threads)}
			for _, budget := range g.budgets {
				cell, err := g.cell(ctx, w, threads, int64(budget)<<20)
				if err != nil {
					wrong = append(wrong, fmt.Errorf("%s, %d threads, %d MiB: %w", w.name, threads, budget, err))
				}
				row = append(row, cell)
				race.Say("%s, %d threads, %d MiB: %s", w.name, threads, budget, cell)
				if ctx.Err() != nil {
					return t, append(wrong, ctx.Err())
				}
			}
			t.Row(row...)
		}
	}
	t.Note("Peak of anonymous and shared memory in MiB. –: refused, since the strategy needs more than tables may take.")
	return t, wrong
}

// cell runs one process and returns its peak for the table.
func (g *grid) cell(ctx context.Context, w way, threads int, budget int64) (string, error) {
	out := filepath.Join(g.dir, "memory-out")
	if w.ids {
		out += ".bjf"
	} else {
		out += ".parquet"
	}
	defer func() { _ = os.Remove(out) }()
	args := append(w.args[:len(w.args):len(w.args)], "--quiet", "--threads", fmt.Sprint(threads), "--memory", fmt.Sprint(budget), "-o", out)
	input := g.log
	if w.ids {
		input = g.ids
	}
	peak, said, err := run(ctx, g.program, append(args, input)...)
	if err != nil && strings.Contains(said, "over the memory budget") && !strings.HasSuffix(w.name, "auto") && !strings.HasSuffix(w.name, "shuffle") {
		return "–", nil
	}
	if err != nil {
		return "failed", fmt.Errorf("%w: %s", err, said)
	}
	if budget >= held && float64(peak) > slack*float64(budget) {
		err = fmt.Errorf("a peak of %s MiB", report.MiB(peak))
	}
	return report.MiB(peak), err
}

// run runs a process and returns its peak in bytes.
func run(ctx context.Context, program string, args ...string) (peak int64, said string, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return peak, strings.TrimSpace(stderr.String()), err
		case <-time.After(2 * time.Millisecond):
			peak = max(peak, resident(cmd.Process.Pid))
		}
	}
}

// resident returns the anonymous and shared memory of a process in bytes; 0 after
// its end.
func resident(pid int) (bytes int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for _, line := range strings.Split(string(status), "\n") {
		name, value, _ := strings.Cut(line, ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64); err == nil {
			bytes += n << 10
		}
	}
	return bytes
}
