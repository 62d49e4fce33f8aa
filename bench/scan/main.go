// Command scan compares semi-joins of Parquet files with other systems. It runs whole
// processes in turn, and compares all outputs.
//
//	cd bench && go run ./scan                         everything, to standard output
//	cd bench && go run ./scan -update                 into ../docs/scan.md
//	cd bench && go run ./scan -quick                  small, in about a minute: does it run?
//	cd bench && go run ./scan -cell base/snappy/1% -contenders ours,polars4,duckdb -rounds 3
//
// It needs Linux, Go, and Python 3 with venv, into which it installs the peers.
// Data are generated once and kept in the -data directory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// document is the file that -update changes, relative to the module's directory.
const document = "../docs/scan.md"

func main() { cells.Main("scan", command) }

// run has the values of the flags.
type run struct {
	rows, scale     int
	rounds, threads int
	out             string
	cells           []cell
	contenders      []contender
	store           store
	tools           tools
}

func command(ctx context.Context, args []string) error {
	var r run
	flags := flag.NewFlagSet("scan", flag.ContinueOnError)
	cells := flags.String("cell", "", "cells to race, SHAPE/CODEC/RATE with *, separated by commas (default: all of the base, the other shapes at 1%)")
	names := flags.String("contenders", "", "who races, separated by commas (default: all)")
	list := flags.Bool("list", false, "name cells and contenders, and do nothing")
	makeOnly := flags.Bool("generate", false, "make the data of the cells, and do nothing else")
	quick := flags.Bool("quick", false, "a small log, two rounds, DuckDB and Polars: to see that everything runs, not for figures")
	update := flags.Bool("update", false, "write the tables into "+document+" as well: those of which all cells were raced")
	flags.StringVar(&r.store.dir, "data", "", "directory for data and programs, kept from run to run (default: bloomjoin-bench in the user's cache directory)")
	flags.StringVar(&r.out, "out", "", "directory for outputs, which are removed (default: that of -data)")
	flags.IntVar(&r.rows, "rows", 20_000_000, "rows of the base")
	flags.IntVar(&r.scale, "scale", 5_000_000, "rows of the other shapes; a tenth of it for the wide one")
	flags.IntVar(&r.rounds, "rounds", 5, "rounds")
	flags.IntVar(&r.threads, "threads", 2, "threads")
	flags.StringVar(&r.tools.ours, "bloomjoin", "", "our binary (default: built from this checkout)")
	flags.StringVar(&r.tools.other, "other", "", "another build of it, to race against: contender other")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || r.rounds < 1 || r.threads < 1 {
		return fmt.Errorf("want flags alone, and a round and a thread at least; got %q", flags.Args())
	}
	if *quick {
		r.rows, r.rounds = 1_000_000, 2
		for name, value := range map[*string]string{cells: "base/*/1%,base/*/10%", names: "ours,duckdb,polars4,floor,floor2"} {
			if *name == "" {
				*name = value
			}
		}
	}
	if *list {
		return listAll()
	}
	var err error
	if r.cells, err = chosenCells(*cells); err != nil {
		return err
	}
	if r.contenders, err = chosenContenders(*names); err != nil {
		return err
	}
	if *update {
		if err := whole(r.cells); err != nil {
			return err
		}
	}
	if err := r.prepare(ctx); err != nil || *makeOnly {
		return err
	}
	if err := r.programs(ctx); err != nil {
		return err
	}
	return r.all(ctx, "go run ./scan"+shown(flags), *update)
}

// shown returns the flags that were set and affect what is measured.
func shown(flags *flag.FlagSet) (text string) {
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "data", "out", "bloomjoin", "other", "update":
		default:
			text += " -" + f.Name
			if value := f.Value.String(); value != "true" {
				text += " '" + value + "'"
			}
		}
	})
	return text
}

func listAll() error {
	for _, c := range everyCell() {
		mark := ""
		if usual(c) {
			mark = ", raced by default"
		}
		fmt.Fprintf(os.Stdout, "%-24s %s%s\n", c, c.shape.text, mark)
	}
	for _, c := range contenders() {
		fmt.Fprintf(os.Stdout, "%-24s %s\n", c.name, strings.Trim(c.text, "*"))
	}
	return nil
}

// prepare creates what is missing: directories, the peers, data.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.store.dir, err = race.Store(r.store.dir); err != nil {
		return err
	}
	if r.out == "" {
		r.out = r.store.dir
	}
	packages := dataPackages()
	for _, c := range r.contenders {
		packages = append(packages, c.packages...)
	}
	if r.store.python, err = race.Environment(ctx, r.store.dir, packages); err != nil {
		return err
	}
	r.tools.python = r.store.python
	for _, c := range r.cells {
		if _, _, err := r.store.log(ctx, c.shape, r.scaleOf(c)); err != nil {
			return err
		}
	}
	return nil
}

// programs builds the measured programs that the flags do not name.
func (r *run) programs(ctx context.Context) (err error) {
	named := func(name string) bool {
		return slices.ContainsFunc(r.contenders, func(c contender) bool { return c.name == name })
	}
	if r.tools.floor, err = race.Build(ctx, r.store.dir, ".", "./scan/floor"); err != nil {
		return err
	}
	if r.tools.ours == "" && named("ours") {
		if r.tools.ours, err = race.Build(ctx, r.store.dir, "..", "./cmd/bloomjoin"); err != nil {
			return err
		}
	}
	if r.tools.other == "" && named("other") {
		return fmt.Errorf("contender other: say with -other PATH which build it is")
	}
	return nil
}

// all measures every cell, prints each table when it is complete, and then the
// summary.
func (r *run) all(ctx context.Context, commandLine string, update bool) error {
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	startup, err := r.startups(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%s\n\n%s\n", machine, startup.Markdown())
	var matrix, others []result
	for _, c := range r.cells {
		res, err := r.race(ctx, c)
		if err != nil {
			return err
		}
		table := r.cellTable(res)
		fmt.Fprintln(os.Stdout, table.Markdown())
		if c.shape.name == base {
			matrix = append(matrix, res)
		} else {
			others = append(others, res)
		}
	}
	var tables []report.Table
	if len(matrix) > 0 {
		tables = append(r.matrix(matrix), r.goals("targets", matrix))
	}
	if len(others) > 0 {
		tables = append(tables, r.goals("shapes", others))
	}
	for _, t := range tables {
		fmt.Fprintf(os.Stdout, "## %s\n\n%s\n", t.Name, t.Markdown())
	}
	if !update {
		return nil
	}
	return file(append(tables, startup), commandLine, machine)
}

// file inserts the tables into the document.
func file(tables []report.Table, commandLine, machine string) error {
	for _, t := range tables {
		if err := report.Update(document, t.Name, t.Filed(commandLine, machine)); err != nil {
			return err
		}
	}
	return nil
}

// startups measures the startup time of the peers, which is part of every figure, and
// names their versions.
func (r *run) startups(ctx context.Context) (report.Table, error) {
	t := report.Table{Name: "startup", Head: []string{"system", "version", "seconds to start", "MiB"}}
	var done []string
	for _, c := range r.contenders {
		if c.kind != peer || slices.Contains(done, c.module) {
			continue
		}
		done = append(done, c.module)
		var walls measure.Samples
		var most int64
		for range 4 { // the first run warms the cache
			u, err := race.Execute(ctx, race.Step{Argv: []string{r.tools.python, "-c", "import " + c.module}})
			if err != nil {
				return t, err
			}
			walls, most = append(walls, u.Wall), max(most, u.Peak)
		}
		name, version, _ := strings.Cut(c.packages[0], "==")
		t.Row(name, version, report.Seconds(walls[1:].Median()), report.MiB(most))
	}
	return t, nil
}

// scaleOf returns the number of rows of a cell's log, before the shape's divisor.
func (r *run) scaleOf(c cell) int {
	if c.shape.name == base {
		return r.rows
	}
	return r.scale
}
