// Command stores measures joins of logs in an object store, and conditions on rows, as
// whole processes: bloomjoin beside itself with local files, beside the time that its
// requests need, and beside Polars, chdb and DuckDB. It compares each answer with
// DuckDB's.
//
//	cd bench && go run ./stores -data DIR                            all cells
//	cd bench && go run ./stores -data DIR -cell bytes                one cell; -cell may be repeated
//	cd bench && go run ./stores -data DIR -update                    all of them, into ../docs/stores.md and ../docs/where.md
//	cd bench && go run ./stores -data DIR -quick                     all, a thousandth of the size: does it run?
//
// It needs Linux, Go, and Python 3 with venv, into which it installs the peers. The
// object store is versitygw, which -gateway or BLOOMJOIN_S3GW names; without it, the
// cells that need it are skipped. Data are generated once and kept in the -data
// directory: 11 GB.
//
// The exit status is 1 if an answer differs from DuckDB's, or if bloomjoin fails.
// Missed targets do not count, nor do peers that fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stores:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// bench has the values of the flags, the programs to run, and the server.
type bench struct {
	data, out string
	quick     bool
	rounds    int    // 0: the default of the cell
	smaller   uint64 // divisor of sizes
	gateway   string // versitygw; "": none
	server    *server
	program   struct {
		ours, scan, proxy, needed, replay, python string
		chdb                                      bool   // python has it
		httpfs                                    string // a Python with DuckDB and its httpfs; "": none
		noChdb, noHTTPFS                          string // why
	}
}

// Parameters of all joins.
const (
	threads = 2
	key     = "user_id"
)

// noGateway says why cells are skipped.
const noGateway = "no object store: -gateway and BLOOMJOIN_S3GW name no versitygw (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)"

func command(ctx context.Context, args []string) error {
	var b bench
	var names []string
	flags := flag.NewFlagSet("stores", flag.ContinueOnError)
	flags.Func("cell", "cell to measure; may be repeated (default: all)", func(s string) error {
		names = append(names, strings.Split(s, ",")...)
		return nil
	})
	list := flags.Bool("list", false, "name the cells, and do nothing")
	makeOnly := flags.Bool("generate", false, "make the data of the cells, and do nothing else")
	update := flags.Bool("update", false, "write what was measured into "+storesPage+" and "+wherePage+" as well")
	flags.BoolVar(&b.quick, "quick", false, "a thousandth of the size, one round, no peers but DuckDB and Polars: to see that everything runs, not for figures")
	flags.Uint64Var(&b.smaller, "smaller", 1, "divide sizes by this: to see that answers are right, not for figures")
	flags.StringVar(&b.data, "data", "", "directory for data and programs, kept from run to run (default: bloomjoin-bench in the user's cache directory)")
	flags.StringVar(&b.out, "out", "", "directory for answers and what waits on disk, which are removed (default: that of -data)")
	flags.IntVar(&b.rounds, "n", 0, "rounds (default: as the cell says)")
	flags.StringVar(&b.gateway, "gateway", os.Getenv("BLOOMJOIN_S3GW"), "versitygw")
	flags.StringVar(&b.program.ours, "bloomjoin", "", "our binary (default: built from this checkout)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || b.rounds < 0 || b.smaller < 1 || b.smaller > quickest {
		return fmt.Errorf("want flags alone, and sizes divided by 1 to %d; got %q", quickest, flags.Args())
	}
	if b.quick {
		b.smaller, b.rounds = quickest, 1
	}
	if *update && b.smaller > 1 {
		return errors.New("what is smaller measures nothing that the documents could have")
	}
	chosen, err := chosenCells(names)
	if err != nil {
		return err
	}
	if *list {
		for _, c := range chosen {
			fmt.Fprintf(os.Stdout, "%-16s %s\n", c.name, c.text)
		}
		return nil
	}
	if b.gateway == "" {
		if chosen, err = b.withoutGateway(chosen, len(names) > 0); err != nil {
			return err
		}
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if *makeOnly {
		for _, c := range chosen {
			if _, err := c.layout.data(ctx, &b); err != nil {
				return err
			}
		}
		return nil
	}
	return b.all(ctx, chosen, *update)
}

// chosenCells returns the cells with the given names, in the order of the documents. No
// name means all.
func chosenCells(names []string) ([]cell, error) {
	all := cells()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c cell) bool { return c.name == name }) {
			return nil, fmt.Errorf("-cell: no %q; -list names all", name)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(c cell) bool { return !slices.Contains(names, c.name) }), nil
}

// withoutGateway leaves out the cells that need the server. It is an error if they were
// named.
func (b *bench) withoutGateway(chosen []cell, named bool) (rest []cell, err error) {
	var skipped []string
	for _, c := range chosen {
		if c.remote {
			skipped = append(skipped, c.name)
		} else {
			rest = append(rest, c)
		}
	}
	if named && len(skipped) > 0 {
		return nil, errors.New(noGateway)
	}
	if len(skipped) > 0 {
		race.Say("skipped: %s: %s", strings.Join(skipped, ", "), noGateway)
	}
	return rest, nil
}

// prepare builds the programs and installs the peers.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.data, err = race.Store(b.data); err != nil {
		return err
	}
	if b.out == "" {
		b.out = b.data
	}
	for _, p := range []struct {
		program     *string
		module, pkg string
	}{
		{&b.program.ours, "..", "./cmd/bloomjoin"}, {&b.program.scan, ".", "./scan"}, {&b.program.proxy, ".", "./slowproxy"},
		{&b.program.needed, ".", "./stores/needed"}, {&b.program.replay, ".", "./stores/replay"},
	} {
		if *p.program == "" {
			if *p.program, err = race.Build(ctx, b.data, p.module, p.pkg); err != nil {
				return err
			}
		}
	}
	if b.program.python, err = race.Environment(ctx, b.data, []string{race.DuckDB, race.Polars, race.Pyarrow, race.Numpy}); err != nil {
		return err
	}
	return b.morePeers(ctx)
}

// morePeers installs the peers that measurements can do without.
func (b *bench) morePeers(ctx context.Context) error {
	p := &b.program
	if b.quick || b.gateway == "" {
		p.noChdb, p.noHTTPFS = "not with -quick", "not with -quick"
		return nil
	}
	if _, err := race.Environment(ctx, b.data, []string{race.Chdb}); err != nil {
		p.noChdb = race.Tail(err.Error(), 1)
	} else {
		p.chdb = true
	}
	var err error
	if p.httpfs, err = race.Environment(ctx, filepath.Join(b.data, "httpfs"), []string{httpfsDuckDB, httpfs}); err != nil {
		p.httpfs, p.noHTTPFS = "", race.Tail(err.Error(), 1)
	}
	return ctx.Err()
}

// all measures the cells and prints each when it is complete. A failure in one does
// not stop the others.
func (b *bench) all(ctx context.Context, chosen []cell, update bool) error {
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, machine)
	if b.gateway != "" {
		if b.server, err = serve(ctx, b.gateway, b.program.proxy, b.root()); err != nil {
			return err
		}
		defer b.server.close()
	}
	var wrong []error
	for _, c := range chosen {
		res, err := b.measure(ctx, c)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			wrong = append(wrong, fmt.Errorf("%s: %w", c.name, err))
			race.Say("%s: failed: %v", c.name, err)
			continue
		}
		text := res.markdown()
		fmt.Fprintf(os.Stdout, "\n## %s\n\n%s", c.name, text)
		wrong = append(wrong, res.wrong...)
		if update && len(res.wrong) == 0 {
			if err := report.Update(c.document, c.name, report.Filed(b.commandFor(c), machine, text)); err != nil {
				return err
			}
		}
	}
	return errors.Join(wrong...)
}

func (b *bench) measure(ctx context.Context, c cell) (*result, error) {
	d, err := c.layout.data(ctx, b)
	if err != nil {
		return nil, err
	}
	return c.measure(ctx, b, c, d)
}

// commandFor returns the command that repeats the measurement of a cell.
func (b *bench) commandFor(c cell) string {
	text := "go run ./stores -data DIR -cell " + c.name
	if b.rounds > 0 {
		text += fmt.Sprintf(" -n %d", b.rounds)
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
