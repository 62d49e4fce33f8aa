// Command bench races bloomjoin beside other tools, as whole processes, and writes
// RESULTS.md:
//
//	go run .                        all tables, printed
//	go run . -table semi,build      some of them
//	go run . -update                into results/, RESULTS.md and results.svg
//	go run . -quick                 tiny, to see that everything runs; answers are verified
//
// README.md says how it measures, and how to add a cell.
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
	"time"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// options are the flags of the command.
type options struct {
	h                           Harness
	tables                      string
	list, update, dirty, render bool
}

func command(args []string) error {
	if len(args) > 1 && tools[args[0]] != nil {
		return tools[args[0]](args[1:])
	}
	var o options
	if err := o.parse(args); err != nil {
		return err
	}
	if o.list {
		for _, t := range Tables() {
			fmt.Fprintf(os.Stdout, "%-14s %s\n", t.Name, t.Title)
		}
		return nil
	}
	if o.render {
		return Render()
	}
	chosen, err := choose(Tables(), o.tables, o.h.large)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.h.ctx = ctx
	origin, err := o.origin(ctx)
	if err != nil {
		return err
	}
	if err := o.h.Prepare(); err != nil {
		return err
	}
	defer o.h.Close()
	return o.measure(chosen, origin)
}

func (o *options) parse(args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.tables, "table", "", "tables to measure, separated by commas (default: all; with -large also the large ones)")
	flags.BoolVar(&o.list, "list", false, "print the tables' names")
	flags.BoolVar(&o.update, "update", false, "write results/, "+document+" and "+image)
	flags.BoolVar(&o.dirty, "dirty", false, "let -update measure a checkout with uncommitted changes; the document says so")
	flags.BoolVar(&o.render, "render", false, "write "+document+" and "+image+" from results/, without measuring")
	flags.BoolVar(&o.h.quick, "quick", false, "tiny data, one round: does everything run?")
	flags.BoolVar(&o.h.large, "large", false, "also tables that take hours, 100 GB of disk and 20 GB of memory")
	flags.IntVar(&o.h.rounds, "rounds", 0, "rounds of every cell (default: as the tables say)")
	flags.StringVar(&o.h.dir, "data", "", "directory that keeps data and programs (default: bloomjoin-bench in the user's cache directory)")
	flags.StringVar(&o.h.python, "python", "", "Python with the packages (default: a virtual environment in -data)")
	flags.StringVar(&o.h.ours, "bloomjoin", "", "our command (default: built from this checkout)")
	without := flags.String("without", "", "tools to leave out, as chdb,httpfs, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("want flags, got %q", flags.Args())
	}
	if *without != "" {
		o.h.without = strings.Split(*without, ",")
	}
	if o.update && (o.h.quick || *without != "" || o.h.ours != "") {
		return errors.New("-update: with -quick, -without or -bloomjoin, figures are not for the document")
	}
	return nil
}

// choose returns the tables with these names, separated by commas; none means all but
// the large ones, or all.
func choose(all []*Table, names string, large bool) (chosen []*Table, err error) {
	if names == "" {
		return slices.DeleteFunc(all, func(t *Table) bool { return t.Large && !large }), nil
	}
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(all, func(t *Table) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no table %q; -list names them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// origin says where results come from. It refuses results for the document from a
// checkout with changes.
func (o *options) origin(ctx context.Context) (origin Origin, err error) {
	if !o.update {
		return origin, nil
	}
	commit, changed, err := Commit(ctx)
	if err != nil {
		return origin, err
	}
	if changed != "" && !o.dirty {
		return origin, fmt.Errorf("-update: uncommitted changes (commit them, or say -dirty):\n%s", changed)
	}
	machine, err := Machine()
	return Origin{Commit: commit, Changed: changed != "", Date: time.Now().UTC().Format(time.DateOnly), Machine: machine}, err
}

// measure measures tables. A failure of one does not stop the others.
func (o *options) measure(chosen []*Table, origin Origin) error {
	var failures []error
	for _, t := range chosen {
		begin := time.Now()
		m, err := o.h.Measure(t)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", t.Name, err))
			if o.h.ctx.Err() != nil {
				break
			}
			continue
		}
		say("%s: %.0f s", t.Name, time.Since(begin).Seconds())
		m.Origin = origin
		if o.update {
			failures = append(failures, m.Save())
		}
		fmt.Fprintf(os.Stdout, "%s\n", m.Markdown(t))
	}
	if o.update {
		failures = append(failures, Render())
	}
	return errors.Join(failures...)
}

// Measure measures a table.
func (h *Harness) Measure(t *Table) (m Measurement, err error) {
	m = Measurement{Table: t.Name}
	if t.Grid != nil {
		grid, err := t.Grid(h)
		m.Grid = &grid
		return m, err
	}
	for _, c := range t.Cells {
		results, err := h.Race(t, c)
		if err != nil {
			return m, fmt.Errorf("%s: %w", c.Name, err)
		}
		m.Cells = append(m.Cells, Measured{Name: c.Name, Results: results})
	}
	m.Versions = h.versions(t)
	return m, nil
}
