// Command join compares joins of Parquet files with DuckDB and Polars. It runs whole
// processes in turn, and compares each answer with DuckDB's.
//
//	cd bench && go run ./join -data DIR                        all cells but the big one
//	cd bench && go run ./join -data DIR -cell semi-100m        one cell; -cell may be repeated, "all" means all
//	cd bench && go run ./join -data DIR -cell all -update      all of them, into ../docs/join.md
//	cd bench && go run ./join -data DIR -quick                 all, a thousandth of the size: does it run?
//
// It needs Linux, Go, and Python 3 with venv, into which it installs the peers.
// Data are generated once and kept in the -data directory: 13 GB, and 13 GB more for the
// big cell.
//
// The exit status is 1 if an answer differs from DuckDB's, or if a strategy refuses a
// join that it must do. Missed targets do not count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// document is the file that -update changes, relative to the module's directory.
const document = "../docs/join.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "join:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// bench has the values of the flags and the programs to run.
type bench struct {
	data, out string
	rounds    int    // 0: the default of the cell
	smaller   uint64 // divisor of sizes
	program   struct{ ours, generate, scan, python string }
}

// Parameters of all joins.
const (
	threads = 2
	key     = "user_id"
	codec   = "snappy" // but of those that name another one
)

func command(ctx context.Context, args []string) error {
	var b bench
	var names []string
	flags := flag.NewFlagSet("join", flag.ContinueOnError)
	flags.Func("cell", "cell to measure; may be repeated, or all (default: all but the big one)", func(s string) error {
		names = append(names, strings.Split(s, ",")...)
		return nil
	})
	list := flags.Bool("list", false, "name the cells, and do nothing")
	makeOnly := flags.Bool("generate", false, "make the data of the cells, and do nothing else")
	update := flags.Bool("update", false, "write what was measured into "+document+" as well")
	quick := flags.Bool("quick", false, "all cells, a thousandth of the size, one round: to see that everything runs, not for figures")
	flags.Uint64Var(&b.smaller, "smaller", 1, "divide sizes by this: to see that answers are right, not for figures")
	flags.StringVar(&b.data, "data", "", "directory for data and programs, kept from run to run (default: bloomjoin-bench in the user's cache directory)")
	flags.StringVar(&b.out, "out", "", "directory for answers and what waits on disk, which are removed (default: that of -data)")
	flags.IntVar(&b.rounds, "rounds", 0, "rounds (default: as the cell says)")
	flags.StringVar(&b.program.ours, "bloomjoin", "", "our binary (default: built from this checkout)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || b.rounds < 0 || b.smaller < 1 || b.smaller > quickest {
		return fmt.Errorf("want flags alone, and sizes divided by 1 to %d; got %q", quickest, flags.Args())
	}
	if *quick {
		b.smaller, b.rounds = quickest, 1
	}
	if *update && b.smaller > 1 {
		return errors.New("what is smaller measures nothing that the document could have")
	}
	chosen, err := chosenCells(names, *quick)
	if err != nil {
		return err
	}
	if *list {
		for _, c := range cells() {
			fmt.Fprintf(os.Stdout, "%-24s %s\n", c.name, c.text)
		}
		return nil
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if *makeOnly {
		for _, c := range chosen {
			if _, err := c.data(ctx, &b); err != nil {
				return err
			}
		}
		return nil
	}
	return b.all(ctx, chosen, *update)
}

// prepare builds the programs and installs the peers.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.data, err = race.Store(b.data); err != nil {
		return err
	}
	if b.out == "" {
		b.out = b.data
	}
	if b.program.generate, err = race.Build(ctx, b.data, ".", "./join/generate"); err != nil {
		return err
	}
	if b.program.scan, err = race.Build(ctx, b.data, ".", "./scan"); err != nil {
		return err
	}
	if b.program.ours == "" {
		if b.program.ours, err = race.Build(ctx, b.data, "..", "./cmd/bloomjoin"); err != nil {
			return err
		}
	}
	b.program.python, err = race.Environment(ctx, b.data, []string{race.DuckDB, race.Polars, race.Pyarrow, race.Numpy})
	return err
}

// all measures the cells and prints each when it is complete. A failure in one does
// not stop the others.
func (b *bench) all(ctx context.Context, chosen []cell, update bool) error {
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, machine)
	var wrong []error
	for _, c := range chosen {
		res, err := b.measure(ctx, c)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			wrong = append(wrong, fmt.Errorf("%s: %w", c.name, err))
			race.Say("%s: failed", c.name)
			continue
		}
		text := res.markdown()
		fmt.Fprintf(os.Stdout, "\n## %s\n\n%s", c.name, text)
		for _, w := range res.wrong {
			wrong = append(wrong, fmt.Errorf("%s: %w", c.name, w))
		}
		if update && len(res.wrong) == 0 {
			if err := report.Update(document, c.name, report.Filed(b.commandFor(c), machine, text)); err != nil {
				return err
			}
		}
	}
	return errors.Join(wrong...)
}

func (b *bench) measure(ctx context.Context, c cell) (*result, error) {
	d, err := c.data(ctx, b)
	if err != nil {
		return nil, err
	}
	return c.measure(ctx, b, c, d)
}

// commandFor returns the command that repeats the measurement of a cell.
func (b *bench) commandFor(c cell) string {
	text := "go run ./join -data DIR -cell " + c.name
	if b.rounds > 0 {
		text += fmt.Sprintf(" -rounds %d", b.rounds)
	}
	return text
}

// result has the tables of a cell, and its failures.
type result struct {
	tables []report.Table
	wrong  []error
}

func (r *result) markdown() string {
	var texts []string
	for _, t := range r.tables {
		texts = append(texts, t.Markdown())
	}
	return strings.Join(texts, "\n")
}

// chosenCells returns the cells with the given names, in the order of the document.
// No name means all except big ones, or all with -quick.
func chosenCells(names []string, quick bool) ([]cell, error) {
	all := cells()
	if slices.Contains(names, "all") || quick && len(names) == 0 {
		return all, nil
	}
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(c cell) bool { return c.big }), nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c cell) bool { return c.name == name }) {
			return nil, fmt.Errorf("-cell: no %q; -list names all", name)
		}
	}
	return slices.DeleteFunc(all, func(c cell) bool { return !slices.Contains(names, c.name) }), nil
}
