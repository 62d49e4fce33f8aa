package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// dataVersion is part of the data's names: to be raised when command generate
// makes something else than before.
const dataVersion = 1

// quickest is what -quick divides sizes by.
const quickest = 1000

// Sizes.
const (
	logRows   = 20_000_000    // and users, of bench/scan's log
	members   = logRows / 100 // users of it that are in ID sets: 1 % of its rows match
	manyIDs   = 100_000_000
	denseRows = 10_000_000
	skewRows  = 10_000_000
	pairRows  = 200_000_000
	smallRows = 150_000 // 10 MB of bench/scan's log
	smallIDs  = 2000
	shapeRows = 5_000_000 // of bench/scan's other logs
)

// groupRows are the rows of a row group.
const groupRows = 1_000_000

// scaled returns a number as -quick or -smaller want it.
func (b *bench) scaled(n uint64) uint64 { return n / b.smaller }

// dataset is where the files of a cell lie.
type dataset struct{ log, ids string }

// sized makes a log's or an ID set's directory by command generate, unless it is
// there.
func (b *bench) sized(ctx context.Context, set string, rows uint64, more ...string) (dir string, err error) {
	if b.smaller > 1 { // as many row groups as else
		more = append(more, "-group", number(b.scaled(groupRows)))
	}
	name := "join-" + set + "-" + number(rows)
	for i := 1; i < len(more); i += 2 {
		name += "-" + more[i]
	}
	dir = filepath.Join(b.data, fmt.Sprintf("%s.v%d", name, dataVersion))
	return dir, race.Make(dir, func(begun string) error {
		argv := append([]string{b.program.generate, "-make", set, "-rows", number(rows)}, more...)
		_, err := race.Execute(ctx, race.Step{Argv: append(argv, begun)})
		return err
	})
}

// scanned is a log of bench/scan, which its program makes unless it is there, in
// the directory of its IDs.
func (b *bench) scanned(ctx context.Context, shape, flag string, rows uint64) (dir string, err error) {
	argv := []string{b.program.scan, "-generate", "-data", b.data, "-cell", shape + "/" + codec + "/1%", "-contenders", "duckdb", flag, number(rows)}
	if _, err := race.Execute(ctx, race.Step{Argv: argv}); err != nil {
		return "", err
	}
	dirs, err := filepath.Glob(filepath.Join(b.data, shape+"-"+number(rows)+".v*"))
	if err != nil || len(dirs) == 0 {
		return "", fmt.Errorf("%q made no log of %d rows: %w", argv, rows, err)
	}
	return dirs[len(dirs)-1], nil
}

// usersOf has bench/scan's base of so many rows, and a set of ids IDs of which
// some are its users.
func usersOf(ctx context.Context, b *bench, rows, ids, members uint64) (d dataset, err error) {
	log, err := b.scanned(ctx, "base", "-rows", rows)
	if err != nil {
		return d, err
	}
	dir, err := b.sized(ctx, "users", ids, "-users", number(rows), "-members", number(members))
	return dataset{log: filepath.Join(log, "log."+codec+".parquet"), ids: filepath.Join(dir, "ids.parquet")}, err
}

// many has 100 million IDs, few those of them that are users, and small both
// sides small.
func many(ctx context.Context, b *bench) (dataset, error) {
	return usersOf(ctx, b, b.scaled(logRows), b.scaled(manyIDs), b.scaled(members))
}

func few(ctx context.Context, b *bench) (dataset, error) {
	return usersOf(ctx, b, b.scaled(logRows), b.scaled(members), b.scaled(members))
}

func small(ctx context.Context, b *bench) (dataset, error) {
	return usersOf(ctx, b, smallRows, smallIDs, smallIDs)
}

// made returns a data set of command generate that needs its rows alone.
func made(set string, rows uint64, log string) func(context.Context, *bench) (dataset, error) {
	return func(ctx context.Context, b *bench) (dataset, error) {
		dir, err := b.sized(ctx, set, b.scaled(rows))
		return dataset{log: filepath.Join(dir, log+".parquet"), ids: filepath.Join(dir, "ids.parquet")}, err
	}
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
