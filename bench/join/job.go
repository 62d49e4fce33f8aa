package main

import (
	"embed"
	"fmt"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// scripts are the peers' programs, as their users would write them, and the program
// that reads answers.
//
//go:embed python/*.py
var scripts embed.FS

// job is a join. Equal jobs have equal answers.
type job struct {
	dataset
	typ     string // as --type
	payload string // columns of the IDs in the answer, separated by commas
}

type kind int

const (
	ours kind = iota
	peer
)

// contender is a way to do a job.
type contender struct {
	name, text string
	kind       kind
	job        job
	// mayRefuse reports whether a refusal is acceptable. The table shows it.
	mayRefuse bool
	// anyOrder reports whether the memory is too small to keep the order of rows.
	anyOrder bool
	// step returns the process, which writes to out and spills to scratch.
	step func(b *bench, j job, out, scratch string) race.Step
}

// bloomjoin returns a contender with additional flags.
func bloomjoin(name, text string, j job, more ...string) contender {
	return contender{name: name, text: text, job: j, step: func(b *bench, j job, out, scratch string) race.Step {
		argv := []string{b.Ours, "join", "--force", "--quiet", "--json", "--threads", fmt.Sprint(threads),
			"--ids", j.ids, "--on", key, "--type", j.typ}
		return race.Step{Argv: append(append(argv, more...), "-o", out, j.log), Env: []string{"TMPDIR=" + scratch}}
	}}
}

// strategy returns a contender with a forced strategy.
func strategy(name string, j job, more ...string) contender {
	return bloomjoin(name, "`"+name+"`", j, append([]string{"--strategy", name}, more...)...)
}

// python returns a peer whose script has the arguments
// LOG IDS OUT CODEC KEY TYPE PAYLOAD THREADS SCRATCH, followed by more.
func python(name, text, file string, threads int, j job, more ...string) contender {
	return contender{name: name, text: text, kind: peer, job: j, step: func(b *bench, j job, out, scratch string) race.Step {
		argv := []string{b.program.python, "-c", race.Script(scripts, file), j.log, j.ids, out, j.written(), key, j.typ, j.payload, fmt.Sprint(threads), scratch}
		return race.Step{Argv: append(argv, more...), Env: []string{"POLARS_MAX_THREADS=" + fmt.Sprint(threads)}}
	}}
}

func duckdb(j job) contender {
	return python("duckdb", "DuckDB "+race.Version(race.DuckDB), "duckdb_join", threads, j)
}

// reference is the DuckDB that all answers are compared with.
func reference(j job) contender { return python("answer", "", "duckdb_join", threads, j, "8GiB") }

// polars returns the variants of Polars. With two threads it leaves one of two
// processors idle.
func polars(j job) []contender {
	all := []contender{python("polars-join", "Polars "+race.Version(race.Polars)+", join, twice the threads", "polars_join", 2*threads, j)}
	if j.typ == "semi" {
		all = append(all, python("polars-isin", "Polars "+race.Version(race.Polars)+", is_in, twice the threads", "polars_isin", 2*threads, j))
	}
	return all
}

// outIn returns the path of an answer.
func outIn(dir string) string { return filepath.Join(dir, "out.parquet") }
