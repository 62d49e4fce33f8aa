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
	"os"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func main() { cells.Main("stores", command) }

// bench has the values of the flags, the programs to run, and the server.
type bench struct {
	cells.Flags
	gateway string // versitygw; "": none
	server  *server
	program struct {
		scan, proxy, needed, replay, python string
		chdb                                bool   // python has it
		httpfs                              string // a Python with DuckDB and its httpfs; "": none
		noChdb, noHTTPFS                    string // why
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
	b := bench{Flags: cells.Flags{Command: "stores"}}
	err := b.Parse(args, func(flags *flag.FlagSet) {
		flags.StringVar(&b.gateway, "gateway", os.Getenv("BLOOMJOIN_S3GW"), "versitygw")
	})
	if err != nil {
		return err
	}
	chosen, err := cells.Choose(allCells(), b.Names, b.Quick)
	if err != nil {
		return err
	}
	if b.List {
		return cells.List(os.Stdout, allCells())
	}
	if b.gateway == "" {
		if chosen, err = b.withoutGateway(chosen, len(b.Names) > 0); err != nil {
			return err
		}
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if b.Generate {
		for _, c := range chosen {
			if _, err := c.layout.data(ctx, &b); err != nil {
				return err
			}
		}
		return nil
	}
	return b.all(ctx, chosen)
}

// withoutGateway leaves out the cells that need the server. It is an error if they were
// named.
func (b *bench) withoutGateway(chosen []cell, named bool) (rest []cell, err error) {
	var skipped []string
	for _, c := range chosen {
		if c.remote {
			skipped = append(skipped, c.Name)
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
func (b *bench) prepare(ctx context.Context) error {
	p := &b.program
	err := b.Prepare(ctx,
		race.Program{Path: &p.scan, Module: ".", Package: "./scan"}, race.Program{Path: &p.proxy, Module: ".", Package: "./slowproxy"},
		race.Program{Path: &p.needed, Module: ".", Package: "./stores/needed"}, race.Program{Path: &p.replay, Module: ".", Package: "./stores/replay"})
	if err != nil {
		return err
	}
	if p.python, err = race.Environment(ctx, b.Data, []string{race.DuckDB, race.Polars, race.Pyarrow, race.Numpy}); err != nil {
		return err
	}
	return b.morePeers(ctx)
}

// morePeers installs the peers that measurements can do without.
func (b *bench) morePeers(ctx context.Context) error {
	p := &b.program
	if b.Quick || b.gateway == "" {
		p.noChdb, p.noHTTPFS = "not with -quick", "not with -quick"
		return nil
	}
	if _, err := race.Environment(ctx, b.Data, []string{race.Chdb}); err != nil {
		p.noChdb = race.Tail(err.Error(), 1)
	} else {
		p.chdb = true
	}
	var err error
	if p.httpfs, err = race.Environment(ctx, filepath.Join(b.Data, "httpfs"), []string{httpfsDuckDB, httpfs}); err != nil {
		p.httpfs, p.noHTTPFS = "", race.Tail(err.Error(), 1)
	}
	return ctx.Err()
}

// all starts the server, if there is one, and measures the cells.
func (b *bench) all(ctx context.Context, chosen []cell) error {
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	if b.gateway != "" {
		if b.server, err = serve(ctx, b.gateway, b.program.proxy, b.root()); err != nil {
			return err
		}
		defer b.server.close()
	}
	return cells.Measure(ctx, &b.Flags, machine, chosen, func(ctx context.Context, c cell) (*cells.Result, error) {
		d, err := c.layout.data(ctx, b)
		if err != nil {
			return nil, err
		}
		return c.measure(ctx, b, c, d)
	})
}
