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
	"os"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func main() { cells.Main("build", command) }

// bench has the values of the flags and the programs to run.
type bench struct {
	cells.Flags
	program struct{ floor, gunzip, generate, memory, peers, python string }
}

// Parameters of all builds.
const (
	fpr     = 0.01
	threads = 2
	key     = "id"
)

func command(ctx context.Context, args []string) error {
	b := bench{Flags: cells.Flags{Command: "build"}}
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
			if _, err := b.dataset(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	place, err := storeOf(b.Out)
	if err != nil {
		return err
	}
	return cells.Measure(ctx, &b.Flags, machine+" Filters are written "+place+".", chosen, func(ctx context.Context, c cell) (*cells.Result, error) {
		return c.measure(ctx, &b, c)
	})
}

// prepare builds the programs.
func (b *bench) prepare(ctx context.Context) error {
	p := &b.program
	return b.Prepare(ctx,
		race.Program{Path: &p.floor, Module: ".", Package: "./scan/floor"}, race.Program{Path: &p.gunzip, Module: ".", Package: "./build/gunzip"},
		race.Program{Path: &p.generate, Module: ".", Package: "./build/generate"}, race.Program{Path: &p.memory, Module: ".", Package: "./build/memory"},
		race.Program{Path: &p.peers, Module: ".", Package: "./build/peers"})
}
