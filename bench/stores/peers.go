package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// scripts are the peers' programs, as their users would write them, and the program
// that makes the data.
//
//go:embed python/*.py
var scripts embed.FS

// job is a join. Equal jobs have equal answers.
type job struct {
	dataset
	typ     string // as --type
	payload string // columns of the IDs in the answer, separated by commas
	where   string // as --where
	polars  string // the same as an expression of Polars
}

// jobOf returns a join of a type.
func jobOf(d dataset, typ string) job {
	j := job{dataset: d, typ: typ}
	if typ != "semi" {
		j.payload = "score,name"
	}
	return j
}

type kind int

const (
	ours  kind = iota
	peer       // another system
	bound      // a lower bound, which has no answer
)

// contender is a way to do a job.
type contender struct {
	name, text string
	kind       kind
	once       bool          // runs in the first round only
	limit      time.Duration // of a run; 0: none
	step       func(a attempt) race.Step
}

// attempt is a run of a contender.
type attempt struct {
	job
	bench        *bench
	endpoint     string // of the server; "": the log is a local file
	from         string // the log: a file's name, or a URL
	ranges       string // file of the requests that bloomjoin made
	out, scratch string
}

// ours returns the process of bloomjoin with this log.
func (a attempt) ours(log string) race.Step {
	argv := []string{a.bench.Ours, "join", "--force", "--quiet", "--json", "--threads", fmt.Sprint(threads), "--ids", a.ids, "--on", key, "--type", a.typ}
	if a.where != "" {
		argv = append(argv, "--where", a.where)
	}
	env := append(environment(a.endpoint), "TMPDIR="+a.scratch, "HOME="+a.scratch, "XDG_CACHE_HOME="+filepath.Join(a.scratch, "cache"))
	return race.Step{Argv: append(argv, "-o", a.out, log), Env: env}
}

func bloomjoin() contender {
	return contender{name: "ours", text: "**bloomjoin**", step: func(a attempt) race.Step { return a.ours(a.from) }}
}

// local is bloomjoin with the same files on this machine.
func local() contender {
	return contender{name: "local", text: "bloomjoin, the same files on this machine", kind: ours, step: func(a attempt) race.Step { return a.ours(a.log) }}
}

// flight is the number of requests that bloomjoin and replay have in flight at most.
const flight = 32

// replayed fetches what bloomjoin fetched.
func replayed() contender {
	return contender{name: "replay", text: "*floor: fetch the same ranges, discard them*", kind: bound, step: func(a attempt) race.Step {
		return race.Step{Argv: []string{a.bench.program.replay, "-endpoint", a.endpoint, "-flight", fmt.Sprint(flight), a.ranges}, Env: environment(a.endpoint)}
	}}
}

// python returns a peer whose script gets the job as JSON, followed by more.
func python(name, text, file, interpreter string, threads int, more ...string) contender {
	return contender{name: name, text: text, kind: peer, step: func(a attempt) race.Step {
		log := a.from
		if a.many {
			log += "/*.parquet"
		}
		args := map[string]any{
			"log": log, "ids": a.ids, "out": a.out, "key": key, "type": a.typ, "payload": split(a.payload), "where": a.where, "polars": a.polars,
			"threads": threads, "scratch": a.scratch, "endpoint": a.endpoint, "access": accessKey, "secret": secretKey, "region": region,
		}
		text, err := json.Marshal(args)
		if err != nil {
			panic(err) // strings and numbers
		}
		argv := append([]string{interpreter, "-c", race.Script(scripts, file), string(text)}, more...)
		return race.Step{Argv: argv, Env: []string{"POLARS_MAX_THREADS=" + fmt.Sprint(threads)}}
	}}
}

func split(list string) []string {
	if list == "" {
		return []string{}
	}
	return strings.Split(list, ",")
}

// reference is the DuckDB that all answers are compared with.
func (b *bench) reference() contender {
	return python("answer", "", "duckdb_join", b.program.python, threads)
}

func (b *bench) duckdb() contender {
	return python("duckdb", "DuckDB "+race.Version(race.DuckDB), "duckdb_join", b.program.python, threads)
}

// polars returns the variants of Polars. With two threads it leaves one of two
// processors idle.
func (b *bench) polars(typ string) []contender {
	name := "Polars " + race.Version(race.Polars)
	all := []contender{python("polars-join", name+", join, twice the threads", "polars_join", b.program.python, 2*threads, "join")}
	if typ == "semi" {
		all = append(all, python("polars-isin", name+", is_in, twice the threads", "polars_join", b.program.python, 2*threads, "is_in"))
	}
	return all
}

// remote returns the peers that read from object stores, and why some are left out.
func (b *bench) remote(typ string) (all []contender, missing []string) {
	all = b.polars(typ)
	if b.program.chdb {
		all = append(all, python("chdb", "ClickHouse (chdb "+race.Version(race.Chdb)+")", "chdb_join", b.program.python, threads))
	} else {
		missing = append(missing, "chdb is left out: "+b.program.noChdb)
	}
	if b.program.httpfs != "" {
		all = append(all, python("duckdb", "DuckDB "+race.Version(httpfsDuckDB)+", httpfs", "duckdb_join", b.program.httpfs, threads))
	} else {
		missing = append(missing, "DuckDB's httpfs is left out: "+b.program.noHTTPFS)
	}
	return all, missing
}

// The newest DuckDB whose httpfs a package registry has. DuckDB itself installs
// extensions from a server of its own.
const (
	httpfsDuckDB = "duckdb==1.5.5"
	httpfs       = "duckdb_extension_httpfs==1.5.5" // as pip freeze spells it
)

// sizeOf returns the size of a file, or of the files of a directory.
func sizeOf(root string) (n int64, files int, err error) {
	err = filepath.WalkDir(root, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			n, files = n+info.Size(), files+1
		}
		return err
	})
	return n, files, err
}
