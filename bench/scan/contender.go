package main

import (
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// scripts are the peers' programs, as their users would write them, and the programs
// that generate and check data.
//
//go:embed python/*.py
var scripts embed.FS

// task is a semi-join: keep the rows of the log whose key is in ids.
type task struct {
	cell
	log, ids, out string
	threads       int
	share         float64 // share of the rows that are kept
}

// columns returns the columns to keep, separated by commas, or all if there is
// no selection.
func (t task) columns(all string) string {
	if t.shape.columns == nil {
		return all
	}
	return strings.Join(t.shape.columns, ",")
}

// tools are the programs that run the contenders.
type tools struct {
	python, ours, other, floor string
}

type kind int

const (
	ours  kind = iota
	peer       // another system
	bound      // a floor: a lower bound that writes nothing
)

// contender is a way to do a task.
type contender struct {
	name     string
	text     string
	kind     kind
	packages []string // Python packages with versions; the first is the system
	module   string   // the import name of the first package
	steps    func(tools, task) []race.Step
}

// dataPackages are the Python packages that generate data and check outputs.
func dataPackages() []string { return []string{race.DuckDB, race.Pyarrow, race.Numpy} }

// contenders returns all contenders, in the order of the document.
func contenders() []contender {
	return []contender{
		{name: "ours", text: "**bloomjoin**", kind: ours,
			steps: func(p tools, t task) []race.Step { return join(p.ours, t) }},
		{name: "other", text: "bloomjoin, another build", kind: ours,
			steps: func(p tools, t task) []race.Step { return join(p.other, t) }},
		python("duckdb", "DuckDB", "duckdb_join", "duckdb", glob, 1, race.DuckDB),
		python("polars", "Polars is_in", "polars_isin", "polars", glob, 1, race.Polars),
		python("polars4", "Polars is_in, twice the threads", "polars_isin", "polars", glob, 2, race.Polars),
		python("polars-join", "Polars semi join", "polars_join", "polars", glob, 1, race.Polars),
		python("pyarrow", "pyarrow isin", "pyarrow_isin", "pyarrow.dataset", directory, 1, race.Pyarrow),
		python("pyarrow-join", "pyarrow Dataset.join", "pyarrow_join", "pyarrow.dataset", directory, 1, race.Pyarrow),
		python("datafusion", "DataFusion", "datafusion_join", "datafusion", directory, 1, race.DataFusion, race.Pyarrow),
		python("chdb", "ClickHouse (chdb)", "chdb_join", "chdb", glob, 1, race.Chdb),
		{name: "floor", text: "*floor: decompress*", kind: bound,
			steps: func(p tools, t task) []race.Step { return floor(p, t, 0) }},
		{name: "floor2", text: "*floor: decompress, compress what is written*", kind: bound,
			steps: func(p tools, t task) []race.Step { return floor(p, t, t.share) }},
	}
}

// many returns how a system names the files of a directory.
type many int

const (
	directory many = iota
	glob
)

// python returns a peer whose script has the arguments
// LOG IDS OUT CODEC KEY COLUMNS|* THREADS.
func python(name, text, file, module string, files many, times int, packages ...string) contender {
	return contender{name: name, text: text, kind: peer, module: module, packages: packages, steps: func(p tools, t task) []race.Step {
		log, threads := t.log, strconv.Itoa(t.threads*times)
		if t.shape.many && files == glob {
			log = filepath.Join(log, "*.parquet")
		}
		return []race.Step{{
			Argv: []string{p.python, "-c", race.Script(scripts, file), log, t.ids, t.out, t.codec, key, t.columns("*"), threads},
			Env:  []string{"POLARS_MAX_THREADS=" + threads},
		}}
	}}
}

// join returns the command line of bloomjoin.
func join(program string, t task) []race.Step {
	argv := []string{program, "join", "--force", "--quiet", "--threads", strconv.Itoa(t.threads),
		"--ids", t.ids, "--on", key, "--type", "semi"}
	if t.shape.columns != nil {
		argv = append(argv, "--columns", t.columns(""))
	}
	return []race.Step{{Argv: append(argv, "-o", t.out, t.log)}}
}

func floor(p tools, t task, share float64) []race.Step {
	return []race.Step{{Argv: []string{p.floor, "-threads", strconv.Itoa(t.threads), "-columns", t.columns(""),
		"-share", strconv.FormatFloat(share, 'g', -1, 64), t.log}}}
}

// chosenContenders returns the contenders in a list of names, separated by commas. No
// name means all except another build of bloomjoin.
func chosenContenders(list string) ([]contender, error) {
	all := contenders()
	if list == "" {
		return slices.DeleteFunc(all, func(c contender) bool { return c.name == "other" }), nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(c contender) bool { return c.name == name }) {
			return nil, fmt.Errorf("-contenders: no %q; -list names all", name)
		}
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !slices.Contains(wanted, c.name) }), nil
}
