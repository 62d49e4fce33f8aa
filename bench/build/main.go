// Command build compares builds of filters from files of up to a billion IDs with
// floors and peers. It runs whole processes in turn.
//
//	cd bench && go run ./build -data DIR                          the cells of up to 100 million IDs
//	cd bench && go run ./build -data DIR -cell int64-1b           one cell; -cell may be repeated, "all" means all
//	cd bench && go run ./build -data DIR -cell all -update        all of them, into ../docs/build.md
//	cd bench && go run ./build -data DIR -quick                   all, a thousandth of the size: does it run?
//
// It needs Linux, Go, and for one peer Python 3 with venv. Data are generated once and
// kept in the -data directory: 0.8 GB for 100 million integers, 2.6 GB for 100 million
// strings, 8 GB for a billion rows.
//
// The exit status is 1 if a filter loses a key, or if its false positives differ from
// the prediction. Missed targets do not count.
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
const document = "../docs/build.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// bench has the values of the flags and the programs to run.
type bench struct {
	data, out string
	rounds    int // 0: the default of the cell
	quick     bool
	program   struct{ ours, floor, gunzip, generate, memory, peers, python string }
}

// Parameters of all builds.
const (
	fpr     = 0.01
	threads = 2
	key     = "id"
)

func command(ctx context.Context, args []string) error {
	var b bench
	var names []string
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.Func("cell", "cell to measure; may be repeated, or all (default: those of up to 100 million keys)", func(s string) error {
		names = append(names, strings.Split(s, ",")...)
		return nil
	})
	list := flags.Bool("list", false, "name the cells, and do nothing")
	makeOnly := flags.Bool("generate", false, "make the data of the cells, and do nothing else")
	update := flags.Bool("update", false, "write what was measured into "+document+" as well")
	flags.BoolVar(&b.quick, "quick", false, "all cells, a thousandth of the size, two rounds: to see that everything runs, not for figures")
	flags.StringVar(&b.data, "data", "", "directory for data and programs, kept from run to run (default: bloomjoin-bench in the user's cache directory)")
	flags.StringVar(&b.out, "out", "", "directory for filters, which are removed (default: that of -data)")
	flags.IntVar(&b.rounds, "rounds", 0, "rounds (default: 5, of the cells of a billion rows 2)")
	flags.StringVar(&b.program.ours, "bloomjoin", "", "our binary (default: built from this checkout)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || b.rounds < 0 {
		return fmt.Errorf("want flags alone; got %q", flags.Args())
	}
	if *update && b.quick {
		return errors.New("-quick measures nothing that the document could have")
	}
	chosen, err := chosenCells(names, b.quick)
	if err != nil {
		return err
	}
	if *list {
		for _, c := range cells() {
			fmt.Fprintf(os.Stdout, "%-16s %s\n", c.name, c.text)
		}
		return nil
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if *makeOnly {
		for _, c := range chosen {
			if _, err := b.dataset(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
	return b.all(ctx, chosen, *update)
}

// prepare builds the programs.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.data, err = race.Store(b.data); err != nil {
		return err
	}
	if b.out == "" {
		b.out = b.data
	}
	own := []struct {
		program     *string
		module, pkg string
	}{
		{&b.program.ours, "..", "./cmd/bloomjoin"}, {&b.program.floor, ".", "./scan/floor"}, {&b.program.gunzip, ".", "./build/gunzip"},
		{&b.program.generate, ".", "./build/generate"}, {&b.program.memory, ".", "./build/memory"}, {&b.program.peers, ".", "./build/peers"},
	}
	for _, p := range own {
		if *p.program != "" {
			continue
		}
		if *p.program, err = race.Build(ctx, b.data, p.module, p.pkg); err != nil {
			return err
		}
	}
	return nil
}

// all measures the cells and prints each when it is complete. A failure in one does
// not stop the others.
func (b *bench) all(ctx context.Context, chosen []cell, update bool) error {
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	place, err := storeOf(b.out)
	if err != nil {
		return err
	}
	machine += " Filters are written " + place + "."
	fmt.Fprintln(os.Stdout, machine)
	var wrong []error
	for _, c := range chosen {
		res, err := c.measure(ctx, b, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
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

// commandFor returns the command that repeats the measurement of a cell.
func (b *bench) commandFor(c cell) string {
	text := "go run ./build -data DIR -cell " + c.name
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
