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
	"os"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func main() { cells.Main("join", command) }

// bench has the values of the flags and the programs to run.
type bench struct {
	cells.Flags
	program struct{ generate, scan, python string }
}

// Parameters of all joins.
const (
	threads = 2
	key     = "user_id"
	codec   = "snappy" // but of those that name another one
)

func command(ctx context.Context, args []string) error {
	b := bench{Flags: cells.Flags{Command: "join"}}
	if err := b.Parse(args, nil); err != nil {
		return err
	}
	chosen, err := cells.Choose(allCells(), b.Names, b.Quick)
	if err != nil {
		return err
	}
	if b.List {
		return cells.List(os.Stdout, allCells())
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if b.Generate {
		for _, c := range chosen {
			if _, err := c.data(ctx, &b); err != nil {
				return err
			}
		}
		return nil
	}
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	return cells.Measure(ctx, &b.Flags, machine, chosen, func(ctx context.Context, c cell) (*cells.Result, error) {
		d, err := c.data(ctx, &b)
		if err != nil {
			return nil, err
		}
		return c.measure(ctx, &b, c, d)
	})
}

// prepare builds the programs and installs the peers.
func (b *bench) prepare(ctx context.Context) error {
	err := b.Prepare(ctx, race.Program{Path: &b.program.generate, Module: ".", Package: "./join/generate"},
		race.Program{Path: &b.program.scan, Module: ".", Package: "./scan"})
	if err != nil {
		return err
	}
	b.program.python, err = race.Environment(ctx, b.Data, []string{race.DuckDB, race.Polars, race.Pyarrow, race.Numpy})
	return err
}
