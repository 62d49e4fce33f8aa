package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/bloomjoin/bloomjoin/bench/internal/logs"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// dataVersion is part of the data's names. Raise it when command generate changes its
// output.
const dataVersion = 1

// Sizes.
const (
	logRows   = 20_000_000    // rows and users of bench/scan's log
	members   = logRows / 100 // users in ID sets: 1 % of its rows match
	manyIDs   = 100_000_000
	denseRows = 10_000_000
	skewRows  = 10_000_000
	pairRows  = 200_000_000
	smallRows = 150_000 // 10 MB of bench/scan's log
	smallIDs  = 2000
	shapeRows = 5_000_000 // of bench/scan's other logs
)

// groupRows is the number of rows of a row group.
const groupRows = 1_000_000

// dataset has the paths of the files of a cell.
type dataset struct {
	log, ids string
	codec    string // of the log and the answers; empty: the usual one
}

// written returns the codec of the answers.
func (d dataset) written() string {
	if d.codec == "" {
		return codec
	}
	return d.codec
}

// sized returns the directory of a log or ID set, which command generate fills if it
// does not exist.
func (b *bench) sized(ctx context.Context, set string, rows uint64, more ...string) (dir string, err error) {
	if b.Smaller > 1 { // keep the number of row groups
		more = append(more, "-group", number(b.Scaled(groupRows)))
	}
	name := "join-" + set + "-" + number(rows)
	for i := 1; i < len(more); i += 2 {
		name += "-" + more[i]
	}
	dir = filepath.Join(b.Data, fmt.Sprintf("%s.v%d", name, dataVersion))
	return dir, race.Make(dir, func(begun string) error {
		argv := append([]string{b.program.generate, "-make", set, "-rows", number(rows)}, more...)
		_, err := race.Execute(ctx, race.Step{Argv: append(argv, begun)})
		return err
	})
}

// scanned returns the directory of a log of bench/scan.
func (b *bench) scanned(ctx context.Context, shape, flag string, rows uint64) (dir string, err error) {
	return logs.Make(ctx, b.program.scan, b.Data, shape, flag, rows)
}

// usersOf returns bench/scan's base log with the given rows, and a set of ids IDs, some
// of which are its users.
func usersOf(ctx context.Context, b *bench, rows, ids, members uint64) (d dataset, err error) {
	log, err := b.scanned(ctx, "base", "-rows", rows)
	if err != nil {
		return d, err
	}
	dir, err := b.sized(ctx, "users", ids, "-users", number(rows), "-members", number(members))
	return dataset{log: filepath.Join(log, "log."+codec+".parquet"), ids: filepath.Join(dir, "ids.parquet")}, err
}

// many has 100 million IDs, few has those of them that are users, and small has two
// small sides.
func many(ctx context.Context, b *bench) (dataset, error) {
	return usersOf(ctx, b, b.Scaled(logRows), b.Scaled(manyIDs), b.Scaled(members))
}

func few(ctx context.Context, b *bench) (dataset, error) {
	return usersOf(ctx, b, b.Scaled(logRows), b.Scaled(members), b.Scaled(members))
}

func small(ctx context.Context, b *bench) (dataset, error) {
	return usersOf(ctx, b, smallRows, smallIDs, smallIDs)
}

// made returns a generated data set that depends only on its number of rows.
func made(set string, rows uint64, log string) func(context.Context, *bench) (dataset, error) {
	return func(ctx context.Context, b *bench) (dataset, error) {
		dir, err := b.sized(ctx, set, b.Scaled(rows))
		return dataset{log: filepath.Join(dir, log+".parquet"), ids: filepath.Join(dir, "ids.parquet")}, err
	}
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
