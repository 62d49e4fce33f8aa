package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// Targets.
const (
	longestStart = 0.5 // seconds from the start of a worker to its end, with little to do
	mostOfApart  = 1.1 // time with shared files / without
)

// inputsOfList and workers are those of the cell list: each worker has ten inputs.
const (
	inputsOfList = 100_000
	workers      = 10_000
)

// listData makes the log of the cell list.
func listData(ctx context.Context, b *bench) (dir string, err error) {
	files := b.Scaled(inputsOfList)
	return b.made(ctx, fmt.Sprintf("list-%d", files), []string{"-rows", "100", "-files", strconv.FormatUint(files, 10), "-directories", "100"}, []string{"-ids", strconv.FormatUint(files*100, 10), "-every", "1000"})
}

// list measures workers that open only their share of the inputs.
func list(ctx context.Context, b *bench, c cell, log string) (res *cells.Result, err error) {
	err = race.Within(b.Out, func(dir string) error {
		res, err = b.listed(ctx, c, log, dir)
		return err
	})
	return res, err
}

// listed measures the cell list. dir is empty.
func (b *bench) listed(ctx context.Context, c cell, log, dir string) (*cells.Result, error) {
	ids, frozen, filter := filepath.Join(log, "ids.parquet"), filepath.Join(dir, "inputs.jsonl"), filepath.Join(dir, "ids.bjf")
	if _, _, err := b.run(ctx, "build", "--key", "user_id", "-o", filter, ids); err != nil {
		return nil, err
	}
	n := b.Scaled(workers)
	t, goals := report.Table{Name: c.Name, Head: []string{"command", "s", "processor s", "peak MiB"}}, report.Targets()
	first := map[string]float64{}
	measure := func(name, text string, args ...string) error {
		runs := race.Runs{}
		for range b.RoundsOf(5, 1) {
			u, _, err := b.run(ctx, args...)
			if err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
			runs[name] = append(runs[name], u)
			if name == "" {
				break
			}
			if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
				return err
			}
			if err := os.RemoveAll(filepath.Join(dir, "out.bloomjoin")); err != nil {
				return err
			}
		}
		first[name] = runs.Wall(name)
		t.Row("`"+text+"`", report.Number(runs.Wall(name)), report.Number(runs.CPU(name)), report.MiB(runs.Peak(name)))
		return nil
	}
	logs := filepath.Join(log, "dt=*")
	shard := fmt.Sprintf("7/%d", max(n, 8))
	for _, m := range []struct {
		name, text string
		args       []string
	}{
		{"", "inputs -o inputs.jsonl log", []string{"inputs", "-o", frozen, logs}},
		{"", "inputs --update inputs.jsonl -o new.jsonl log", []string{"inputs", "--update", frozen, "-o", filepath.Join(dir, "new.jsonl"), logs}},
		{"count", "scan --shard " + shard + " --files-from inputs.jsonl --count", []string{"scan", "--filter", filter, "--shard", shard, "--count", "--files-from", frozen}},
		{"out", "scan --shard " + shard + " --files-from inputs.jsonl -o out/", []string{"scan", "--filter", filter, "--shard", shard, "-o", filepath.Join(dir, "out") + "/", "--files-from", frozen}},
		{"", "scan --shard " + shard + " --count log", []string{"scan", "--filter", filter, "--shard", shard, "--count", logs}},
	} {
		if err := measure(m.name, m.text, m.args...); err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(frozen)
	if err != nil {
		return nil, err
	}
	goals.AtMost("a worker with ten inputs, s", max(first["count"], first["out"]), longestStart)
	t.Note("%d files of 100 rows in 100 directories, in the page cache; inputs.jsonl has %s MB. Medians of %d runs of the workers with a list; the others ran once.", b.Scaled(inputsOfList), megabytes(info.Size()), b.RoundsOf(5, 1))
	return &cells.Result{Tables: []report.Table{t, goals}}, nil
}

// Sizes of the cell small.
const (
	inputsOfSmall = 10_000
	rowsOfSmall   = 5_000
	oneIn         = 10_000 // rows
	directories   = 12
)

// smallData makes the log of the cell small.
func smallData(ctx context.Context, b *bench) (dir string, err error) {
	files := b.Scaled(inputsOfSmall)
	return b.made(ctx, fmt.Sprintf("small-%d", files), []string{"-rows", strconv.Itoa(rowsOfSmall), "-files", strconv.FormatUint(files, 10), "-directories", strconv.Itoa(directories)},
		[]string{"-ids", strconv.FormatUint(files*rowsOfSmall, 10), "-every", strconv.Itoa(oneIn)})
}

// small measures outputs of a few rows, apart and together.
func small(ctx context.Context, b *bench, c cell, log string) (res *cells.Result, err error) {
	ways := []struct {
		name, text string
		args       []string
	}{
		{"every", "`--empty write`", []string{"--empty", "write"}},
		{"apart", "a file for each input with rows (default)", nil},
		{"together", "`--target-file-size 64MiB`", []string{"--target-file-size", "64MiB"}},
	}
	runs, found, sizes := race.Runs{}, map[string]int{}, map[string]int64{}
	rows := map[string]int64{}
	for _, w := range race.Rounds(b.RoundsOf(5, 1), ways) {
		err := race.Within(b.Out, func(dir string) error {
			out := filepath.Join(dir, "out")
			u, s, err := b.run(ctx, append([]string{"join", "--ids", filepath.Join(log, "ids.parquet"), "--on", "user_id", "-o", out + "/", filepath.Join(log, "dt=*")}, w.args...)...)
			if err != nil {
				return err
			}
			files, size, err := filesIn(out)
			runs[w.name], found[w.name], sizes[w.name], rows[w.name] = append(runs[w.name], u), len(files), size, s.RowsOut
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	t, goals := report.Table{Name: c.Name, Head: []string{"outputs", "files", "mean bytes", "s", "peak MiB"}}, report.Targets()
	res = &cells.Result{}
	for _, w := range ways {
		t.Row(w.text, count(found[w.name]), strconv.FormatInt(sizes[w.name]/int64(max(found[w.name], 1)), 10), report.Number(runs.Wall(w.name)), report.MiB(runs.Peak(w.name)))
		if rows[w.name] != rows["apart"] || rows[w.name] == 0 {
			res.Wrong = append(res.Wrong, fmt.Errorf("%s: %d rows, others %d", w.text, rows[w.name], rows["apart"]))
		}
	}
	goals.AtMost("time with shared files / without", runs.Ratio("together", "apart"), mostOfApart)
	t.Note("Semi-join of %d files of %d rows in %d directories with IDs of one row in %d. Medians of %d rounds.", b.Scaled(inputsOfSmall), rowsOfSmall, directories, oneIn, len(runs["apart"]))
	res.Tables = []report.Table{t, goals}
	return res, nil
}
