package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// dayRows is the number of rows of a day, in two files. Of files above 1 MiB only the
// footer is compared.
const (
	dayRows = 100_000
	days    = 30
)

// change is something that happens to a log.
type change struct {
	text  string
	args  []string // further arguments of the run
	apply func(log string) error
	// Whether it brings bytes that a run must read, in a day whose files it names.
	day int
}

// grow measures runs of one command over a log that changes.
func grow(ctx context.Context, b *bench, c cell, _ string) (res *cells.Result, err error) {
	per := b.Scaled(dayRows*10) / 10 / 2 // rows of a file
	err = race.Within(b.Out, func(dir string) error {
		log := filepath.Join(dir, "log")
		if err := b.write(ctx, log, "-rows", strconv.FormatUint(per, 10), "-files", count(2*days), "-directories", count(days)); err != nil {
			return err
		}
		if err := b.write(ctx, dir, "-ids", strconv.FormatUint(per*2*(days+2), 10), "-every", "100"); err != nil {
			return err
		}
		res, err = b.grown(ctx, c, dir, log, per)
		return err
	})
	return res, err
}

func dayOf(n int) string { return fmt.Sprintf("dt=2024-%02d-%02d", 1+(n-1)/28, 1+(n-1)%28) }

// changes returns what happens, in order. Files have per rows.
func (b *bench) changes(ctx context.Context, per uint64) []change {
	put := func(log string, day int, name string, first, rows uint64, more ...string) error {
		return b.write(ctx, log, append([]string{"-rows", strconv.FormatUint(rows, 10), "-first", strconv.FormatUint(first, 10), "-file", filepath.Join(dayOf(day), name)}, more...)...)
	}
	return []change{
		{text: "30 days", apply: func(string) error { return nil }},
		{text: "nothing"},
		{text: "one day more", day: 31, apply: func(log string) error {
			return errors.Join(put(log, 31, "part-000000.parquet", 60*per, per), put(log, 31, "part-000001.parquet", 61*per, per))
		}},
		{text: "a day compacted: one file for two", day: 5, apply: func(log string) error {
			return errors.Join(os.Remove(filepath.Join(log, dayOf(5), "part-000000.parquet")), os.Remove(filepath.Join(log, dayOf(5), "part-000001.parquet")),
				put(log, 5, "compacted.parquet", 4*per, 2*per))
		}},
		{text: "a day removed", apply: func(log string) error { return os.RemoveAll(filepath.Join(log, dayOf(7))) }},
		{text: "one day more, with another column", day: 32, apply: func(log string) error {
			return put(log, 32, "part-000000.parquet", 62*per, 2*per, "-extra")
		}},
		{text: "nothing, with `--prune`", args: []string{"--prune"}},
	}
}

// grown applies the changes and runs bloomjoin after each. Its output must be that of a
// run from nothing, apart from a day that is kept.
func (b *bench) grown(ctx context.Context, c cell, dir, log string, per uint64) (*cells.Result, error) {
	out, ids := filepath.Join(dir, "out"), filepath.Join(dir, "ids.parquet")
	t, res := report.Table{Name: c.Name, Head: []string{"since the last run", "new or changed MB", "MB read", "files written", "kept", "removed", "message"}}, &cells.Result{}
	for _, ch := range b.changes(ctx, per) {
		before, _, err := b.outputs(out)
		if err != nil {
			return nil, err
		}
		if ch.apply != nil {
			if err := ch.apply(log); err != nil {
				return nil, err
			}
		}
		_, s, err := b.run(ctx, append([]string{"join", "--ids", ids, "--on", "user_id", "-o", out + "/", log}, ch.args...)...)
		if err != nil {
			return nil, err
		}
		after, names, err := b.outputs(out)
		if err != nil {
			return nil, err
		}
		var written, kept, removed int
		for name, at := range after {
			if before[name] == at {
				kept++
			} else {
				written++
			}
		}
		for name := range before {
			if _, ok := after[name]; !ok {
				removed++
			}
		}
		t.Row(ch.text, megabytes(b.brought(log, ch)), megabytes(s.BytesRead), count(written), count(kept), count(removed), message(s))
		if err := b.asFromNothing(ctx, log, ids, names); err != nil {
			res.Wrong = append(res.Wrong, fmt.Errorf("%s: %w", ch.text, err))
		}
	}
	_, size, err := filesIn(log)
	if err != nil {
		return nil, err
	}
	t.Note("Semi-join with IDs of 1 %% of the rows, and no other file changes. The log has %s MB at the end, in files of %d rows. After each run the files equal those of a run from nothing, but for the removed day, which is kept until `--prune`.", megabytes(size), per)
	res.Tables = []report.Table{t}
	return res, nil
}

// message renders the report of a run.
func message(s said) string {
	var texts []string
	if s.Message != "" {
		texts = append(texts, s.Message)
	}
	for _, w := range s.Warnings {
		texts = append(texts, w.Text)
	}
	return strings.Join(texts, "; ")
}

// brought returns the bytes of the day that a change concerns.
func (b *bench) brought(log string, ch change) int64 {
	name := log
	if ch.day > 0 {
		name = filepath.Join(log, dayOf(ch.day))
	} else if ch.apply == nil || !strings.HasPrefix(ch.text, "30") {
		return 0
	}
	_, size, err := filesIn(name)
	if err != nil {
		return 0
	}
	return size
}

// outputs returns when each file of a directory was written, by name, and their names.
func (b *bench) outputs(dir string) (at map[string]int64, names []string, err error) {
	at = make(map[string]int64)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return at, nil, nil
	}
	files, _, err := filesIn(dir)
	for name, info := range files {
		at[name] = info.ModTime().UnixNano()
		names = append(names, filepath.Join(dir, name))
	}
	return at, names, err
}

// asFromNothing returns an error if the files of an output differ from those of a run
// from nothing, apart from those that no input is left for.
func (b *bench) asFromNothing(ctx context.Context, log, ids string, names []string) error {
	return race.Within(b.Out, func(dir string) error {
		if _, _, err := b.run(ctx, "join", "--ids", ids, "--on", "user_id", "-o", dir+"/fresh/", log); err != nil {
			return err
		}
		fresh, _, err := filesIn(filepath.Join(dir, "fresh"))
		if err != nil {
			return err
		}
		left := len(fresh)
		for _, name := range names {
			rel := filepath.Join(filepath.Base(filepath.Dir(name)), filepath.Base(name))
			if _, ok := fresh[rel]; !ok {
				if _, err := os.Stat(filepath.Join(log, rel)); !errors.Is(err, os.ErrNotExist) || !strings.Contains(rel, dayOf(7)) {
					return fmt.Errorf("%s is in the output, and not in one from nothing", rel)
				}
				continue
			}
			left--
			if err := equal(name, filepath.Join(dir, "fresh", rel)); err != nil {
				return err
			}
		}
		if left > 0 {
			return fmt.Errorf("%d files are missing", left)
		}
		return nil
	})
}

// equal returns an error if two files differ.
func equal(a, b string) error {
	x, err := os.ReadFile(a)
	if err != nil {
		return err
	}
	y, err := os.ReadFile(b)
	if err != nil {
		return err
	}
	if string(x) != string(y) {
		return fmt.Errorf("%s and %s differ", a, b)
	}
	return nil
}
