package main

import (
	"embed"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// scripts are the peers' programs, as their users would write them, and what
// reads answers.
//
//go:embed python/*.py
var scripts embed.FS

func script(name string) string {
	text, err := scripts.ReadFile("python/" + name + ".py")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// job is one join. Two jobs that are equal have the same answer.
type job struct {
	dataset
	typ     string // semi or inner
	payload string // columns of the IDs in the answer, separated by commas
}

type kind int

const (
	ours kind = iota
	peer
)

// contender is one way to do a job.
type contender struct {
	name, text string
	kind       kind
	job        job
	// mayRefuse says that an error is an answer, which the table tells of.
	mayRefuse bool
	// anyOrder says that the memory is too little for the order of the others.
	anyOrder bool
	// step is the process that does it, and writes to out. What waits on disk goes
	// below scratch.
	step func(b *bench, j job, out, scratch string) race.Step
}

// bloomjoin is our command; more are flags besides the usual ones.
func bloomjoin(name, text string, j job, more ...string) contender {
	return contender{name: name, text: text, job: j, step: func(b *bench, j job, out, scratch string) race.Step {
		argv := []string{b.program.ours, "join", "--force", "--quiet", "--json", "--threads", fmt.Sprint(threads),
			"--ids", j.ids, "--on", key, "--type", j.typ}
		return race.Step{Argv: append(append(argv, more...), "-o", out, j.log), Env: []string{"TMPDIR=" + scratch}}
	}}
}

// strategy is our command with a strategy forced.
func strategy(name string, j job, more ...string) contender {
	return bloomjoin(name, "`"+name+"`", j, append([]string{"--strategy", name}, more...)...)
}

// python is a peer whose script is run with
// LOG IDS OUT CODEC KEY TYPE PAYLOAD THREADS SCRATCH, and what more says.
func python(name, text, file string, threads int, j job, more ...string) contender {
	return contender{name: name, text: text, kind: peer, job: j, step: func(b *bench, j job, out, scratch string) race.Step {
		argv := []string{b.program.python, "-c", script(file), j.log, j.ids, out, codec, key, j.typ, j.payload, fmt.Sprint(threads), scratch}
		return race.Step{Argv: append(argv, more...), Env: []string{"POLARS_MAX_THREADS=" + fmt.Sprint(threads)}}
	}}
}

func duckdb(j job) contender {
	return python("duckdb", version(race.DuckDB), "duckdb_join", threads, j)
}

// reference is the DuckDB whose answer is compared with all others'.
func reference(j job) contender { return python("answer", "", "duckdb_join", threads, j, "8GiB") }

// polars are its ways. It leaves one of two processors idle unless it is given
// more threads.
func polars(j job) []contender {
	all := []contender{python("polars-join", version(race.Polars)+", join, twice the threads", "polars_join", 2*threads, j)}
	if j.typ == "semi" {
		all = append(all, python("polars-isin", version(race.Polars)+", is_in, twice the threads", "polars_isin", 2*threads, j))
	}
	return all
}

// version makes "duckdb==2.0.0" a system's name and version.
func version(pin string) string {
	name, number, _ := strings.Cut(pin, "==")
	names := map[string]string{"duckdb": "DuckDB", "polars": "Polars"}
	return names[name] + " " + number
}

// outIn is where an answer goes.
func outIn(dir string) string { return filepath.Join(dir, "out.parquet") }
