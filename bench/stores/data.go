package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/bench/internal/logs"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// dataVersion is part of the data's names. Raise it when data.py changes its output.
const dataVersion = 1

// logRows is the number of rows of each log: 1.3 GB.
const logRows = 20_000_000

// layout is a form of the log, see data.py.
type layout struct {
	name  string
	shape string // of bench/scan's log that it is made from
	flag  string // which gives this shape its number of rows
	many  bool   // a directory
}

var (
	paged     = layout{name: "paged", shape: "base", flag: "-rows"}
	clustered = layout{name: "clustered", shape: "clustered", flag: "-scale"}
	many      = layout{name: "many", shape: "base", flag: "-rows", many: true}
	year      = layout{name: "year", shape: "base", flag: "-rows"}
)

// dataset has the paths of a log and IDs below the bucket.
type dataset struct {
	log, ids string
	many     bool // log is a directory
}

// data returns a log in this layout, which is made if it does not exist.
func (l layout) data(ctx context.Context, b *bench) (d dataset, err error) {
	rows := b.Scaled(logRows)
	source, err := logs.Make(ctx, b.program.scan, b.Data, l.shape, l.flag, rows)
	if err != nil {
		return d, err
	}
	dir := filepath.Join(b.bucketDir(), fmt.Sprintf("%s-%d.v%d", l.name, rows, dataVersion))
	err = race.Make(dir, func(begun string) error {
		_, err := race.Execute(ctx, race.Step{Argv: []string{b.program.python, "-c", race.Script(scripts, "data"), l.name, source, begun}})
		return err
	})
	d = dataset{log: filepath.Join(dir, "log.parquet"), ids: filepath.Join(dir, "ids.parquet"), many: l.many}
	if l.many {
		d.log = filepath.Join(dir, "log")
	}
	return d, err
}

// bucketDir is the directory that is the bucket.
func (b *bench) bucketDir() string { return filepath.Join(b.root(), bucket) }

// root is the directory that the server serves.
func (b *bench) root() string { return filepath.Join(b.Data, "s3") }
