package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestChosenCells(t *testing.T) {
	for patterns, want := range map[string]int{
		"":                                      8 + 8*2,
		"base":                                  8,
		"base/snappy":                           4,
		"base/snappy/1%":                        1,
		"base/snappy/1%,base/*/1%":              2,
		"*/zstd/50%":                            9,
		"[^b]*/*/1%":                            16,
		"wide/zstd/1%,small/zstd/1%,wide/*/10%": 4,
	} {
		cells, err := chosenCells(patterns)
		if err != nil || len(cells) != want {
			t.Errorf("%q: %d cells, %v, want %d", patterns, len(cells), err, want)
		}
	}
	for _, bad := range []string{"bass", "base/gzip", "base/zstd/1%/x", "base/[", "base,", "base/zstd/1"} {
		if cells, err := chosenCells(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, cells)
		}
	}
}

func TestWhole(t *testing.T) {
	for patterns, ok := range map[string]bool{
		"": true, "base": true, "[^b]*/*/1%": true, "base,[^b]*/*/1%": true, "[^b]*": true,
		"base/snappy": false, "wide": false, "base,wide/*/1%": false,
	} {
		cells, err := chosenCells(patterns)
		if err != nil {
			t.Fatal(err)
		}
		if err := whole(cells); (err == nil) != ok {
			t.Errorf("%q: %v, want it to be accepted: %t", patterns, err, ok)
		}
	}
}

func TestTaskOf(t *testing.T) {
	f := facts{Rows: 1000, Matched: map[string]int64{"0.01": 1, "10": 90}}
	cells, err := chosenCells("base/zstd/10%,small/snappy/0.01%")
	if err != nil {
		t.Fatal(err)
	}
	task, rows := taskOf(cells[0], "/d", f)
	if got, want := fmt.Sprint(task.log, task.ids, task.share, rows), fmt.Sprint("/d/log.zstd.parquet", "/d/ids-10.parquet", 0.09, 90); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	task, rows = taskOf(cells[1], "/d", f)
	if got, want := fmt.Sprint(task.log, task.ids, task.share, rows), fmt.Sprint("/d/log.snappy", "/d/ids-0.01.parquet", 0.001, 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestChosenContenders(t *testing.T) {
	names := func(list string) string {
		chosen, err := chosenContenders(list)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, c := range chosen {
			all = append(all, c.name)
		}
		return strings.Join(all, " ")
	}
	if got, want := names("floor,duckdb,ours"), "ours duckdb floor"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := names(""); strings.Contains(got, "other") || !strings.Contains(got, "chdb") {
		t.Errorf("by default: %q", got)
	}
	if _, err := chosenContenders("ours,spark"); err == nil {
		t.Error("a name that there is not: want an error")
	}
}

// The command line of each contender: log, IDs, output, key, threads and columns.
func TestSteps(t *testing.T) {
	programs := tools{python: "PY", ours: "BJ", other: "BJ2", floor: "FLOOR"}
	lines := func(name, of string) (text []string) {
		cells, err := chosenCells(of)
		if err != nil {
			t.Fatal(err)
		}
		job := task{cell: cells[0], log: "LOG", ids: "IDS", out: "OUT", threads: 3, share: 0.25}
		i := slices.IndexFunc(contenders(), func(c contender) bool { return c.name == name })
		for _, s := range contenders()[i].steps(programs, job) {
			text = append(text, strings.Join(append(slices.Clone(s.Env), s.String()), " "))
		}
		return text
	}
	for _, c := range []struct {
		name, of string
		want     []string
	}{
		{"ours", "base/zstd/1%", []string{"BJ join --force --quiet --threads 3 --ids IDS --on user_id --type semi -o OUT LOG"}},
		{"other", "small/zstd/1%", []string{"BJ2 join --force --quiet --threads 3 --ids IDS --on user_id --type semi -o OUT LOG"}},
		{"ours", "wide/zstd/1%", []string{
			"BJ join --force --quiet --threads 3 --ids IDS --on user_id --type semi --columns user_id,url,amount -o OUT LOG"}},
		{"duckdb", "base/zstd/1%", []string{"POLARS_MAX_THREADS=3 PY -c SCRIPT LOG IDS OUT zstd user_id * 3"}},
		{"polars4", "small/snappy/1%", []string{"POLARS_MAX_THREADS=6 PY -c SCRIPT LOG/*.parquet IDS OUT snappy user_id * 6"}},
		{"datafusion", "small/snappy/1%", []string{"POLARS_MAX_THREADS=3 PY -c SCRIPT LOG IDS OUT snappy user_id * 3"}},
		{"chdb", "wide/snappy/1%", []string{"POLARS_MAX_THREADS=3 PY -c SCRIPT LOG IDS OUT snappy user_id user_id,url,amount 3"}},
		{"floor", "base/zstd/1%", []string{"FLOOR -threads 3 -columns  -share 0 LOG"}},
		{"floor2", "wide/zstd/1%", []string{"FLOOR -threads 3 -columns user_id,url,amount -share 0.25 LOG"}},
	} {
		if got := lines(c.name, c.of); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: got %q, want %q", c.name, c.of, got, c.want)
		}
	}
}
