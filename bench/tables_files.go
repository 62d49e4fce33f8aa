package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func manyFiles() *Table {
	log := logOf(5 * million)
	log.Files = 2000
	tiny := logOf(10 * million)
	tiny.Files, tiny.Group = 10_000, 1000
	return &Table{Name: "many-files", Title: "Many small files", Text: "Semi-joins of logs in many files. bloomjoin writes a file for each input with rows, or larger ones with `--target-file-size`; the others write one.", Cells: []Cell{
		{Name: "2,000 files of 2,500 rows, 1 % of the users", Job: join("semi", log, share(log, 0.01)), Chief: true,
			Contenders: append(rivals(), pyarrow, datafusion, ours("--target-file-size", "64MiB"))},
		{Name: "10,000 files of 1,000 rows, 0.01 % of the users", Job: join("semi", tiny, share(tiny, 0.0001)),
			Contenders: append(rivals(), ours("--target-file-size", "64MiB"))},
	}}
}

func inputLists() *Table {
	log := Data{Kind: "log", Rows: 2 * million, Files: 20_000, Days: 100, Group: 100}
	shard := join("semi", log, share(log, 0.1))
	shard.Steps = []Change{listInputs}
	return &Table{Name: "lists", Title: "Lists of inputs", Text: "20,000 files in 100 directories. A worker in an array of 2,000 reads its ten files, which it finds in the log or in a list.", Cells: []Cell{
		{Name: "write the list", Job: Job{Verb: verbInputs, Log: log}, Contenders: []Contender{ours()}},
		{Name: "a worker", Job: shard, Alike: true, Contenders: []Contender{worker("", false), worker(" `--files-from`", true)}},
	}}
}

// listOf returns the name of the list of inputs.
func listOf(a Attempt) string { return filepath.Join(a.Scratch, "inputs.jsonl") }

func listInputs(h *Harness, a *Attempt) error {
	return h.do(h.ours, "inputs", "--quiet", "-o", listOf(*a), a.LogPath)
}

// worker reads its ten inputs, and finds them in the log or in a list.
func worker(name string, listed bool) Contender {
	return Contender{Name: "**bloomjoin**" + name, Kind: Ours, Command: func(h *Harness, a Attempt) Command {
		workers := a.Log.Files / 10
		if h.quick {
			workers = a.Log.small().Files / 10
		}
		argv := []string{h.ours, "join", "--json", "--quiet", "--threads", fmt.Sprint(a.Threads), "--ids", a.IDsPath, "--on", keyColumn, "--type", "semi",
			"--shard", fmt.Sprintf("%d/%d", workers/3, workers), "-o", a.Out}
		if listed {
			return Command{Argv: append(argv, "--files-from", listOf(a))}
		}
		return Command{Argv: append(argv, a.LogPath)}
	}}
}

// Sizes of the log that grows.
const (
	days     = 30
	dayFiles = 2
	dayRows  = 100_000
)

func growing() *Table {
	log := Data{Kind: "log", Rows: days * dayRows, Users: days * dayRows, Files: days * dayFiles, Days: days}
	t := &Table{Name: "growing", Title: "Logs that grow", Text: "A run of the same semi-join after a first one, when the log of 30 days has changed: what is unchanged is not read again. DuckDB starts from nothing."}
	plain := []string{"--hive-partitioning", "off"} // no column dt, which DuckDB's answer has not
	add := func(name string, who Contender, changes ...Change) {
		job := join("semi", log, share(log, 0.01))
		job.Steps = append([]Change{copyLog, firstRun}, changes...)
		job.Union = len(changes) > 0
		who.Name = "**bloomjoin**"
		t.Cells = append(t.Cells, Cell{Name: name, Job: job, Contenders: []Contender{who, duckdb}})
	}
	add("nothing new", ours(plain...))
	add("one more day", ours(plain...), newDay(days, 0))
	add("one more day, with another column", ours(plain...), newDay(days, 1))
	add("a day in one file for two", ours(plain...), compact)
	add("a day is gone, `--prune`", ours(append(plain[:2:2], "--prune")...), removeDay)
	return t
}

// copyLog gives the attempt a log of its own, of links to the files.
func copyLog(h *Harness, a *Attempt) error {
	own := filepath.Join(a.Scratch, "log")
	if err := h.do("cp", "-al", a.LogPath, own); err != nil {
		return err
	}
	a.LogPath = own
	return nil
}

// firstRun makes the output that the timed run brings up to date.
func firstRun(h *Harness, a *Attempt) error {
	return h.do(h.ours, "join", "--quiet", "--hive-partitioning", "off", "--ids", a.IDsPath, "--on", keyColumn, "--type", "semi", "-o", a.Out, a.LogPath)
}

// newDay adds a day with the rows of another one, and with more columns.
func newDay(day uint64, wide int) Change {
	return func(h *Harness, a *Attempt) error {
		d := a.Log
		d.Rows, d.Files, d.Days, d.Wide = dayRows, 0, 0, wide
		if h.quick {
			d = d.small()
		}
		dir := filepath.Join(a.LogPath, dayName(day))
		return h.MakeIn(d, dir)
	}
}

// compact writes the first day's files as one.
func compact(h *Harness, a *Attempt) error {
	dir := filepath.Join(a.LogPath, dayName(0))
	names, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil || len(names) < 2 {
		return fmt.Errorf("%s: %d files, want more (%w)", dir, len(names), err)
	}
	job, err := json.Marshal(map[string]any{"files": names, "out": filepath.Join(dir, "compacted.parquet")})
	if err != nil {
		return err
	}
	if err := h.do(h.python, "peers.py", "compact", string(job)); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func removeDay(_ *Harness, a *Attempt) error {
	return os.RemoveAll(filepath.Join(a.LogPath, dayName(3)))
}

// stores are joins of logs in an object store.
func stores() *Table {
	t := &Table{Name: "stores", Title: "Object stores", Text: "Joins of 5 million rows in an S3 server on this machine (versitygw), which shares the processors; IDs and answers are local files. Bytes and requests are counted on the way."}
	who := func() []Contender { return []Contender{ours(), polars, chdb, duckdbStore, fromDisk} }
	add := func(name, typ string, n *Network, log, ids Data) {
		job := join(typ, log, ids)
		job.Network = n
		t.Cells = append(t.Cells, Cell{Name: name + ", " + n.Name, Job: job, Contenders: who(), Chief: n == slow && name == "semi, 1 % of the users"})
	}
	log, near, many := smallerLog, smallerLog, logOf(2*million)
	log.Index, near.Index = true, true
	near.Order, near.Key = "clustered", "ascending"
	many.Files = 1000
	add("semi, 1 % of the users", "semi", loopback, log, share(log, 0.01))
	add("semi, 1 % of the users", "semi", slow, log, share(log, 0.01))
	add("inner, 1 % of the users", "inner", slow, log, share(log, 0.01))
	add("semi, 0.1 % of the users, neighbours", "semi", slow, near, share(near, 0.001))
	add("semi, 1,000 objects of 2,000 rows", "semi", slow, many, share(many, 0.01))
	return t
}

// fromDisk is bloomjoin with the same files, not in the store.
var fromDisk = Contender{Name: "**bloomjoin**, local files", Kind: Ours, Command: func(h *Harness, a Attempt) Command {
	a.LogPath = h.local(a).LogPath
	return ours().Command(h, a)
}}

func pythonPackage() *Table {
	log := Data{Kind: "log", Rows: 5 * million, Users: 500 * million, Key: "dense"}
	ids := Data{Kind: "ids", Rows: 5 * million, Users: 20 * million, Members: 5 * million, Key: "dense", Plain: true}
	job := join("semi", log, ids)
	job.Steps = []Change{installPackage}
	return &Table{Name: "python", Title: "From Python", Text: "Semi-joins by the [package for Python](../docs/python.md): an answer as a stream of record batches that pyarrow writes, and pyarrow's batches filtered by `Filter.probe`; beside the command. 5 million rows, 5 million dense IDs.", Cells: []Cell{
		{Name: "semi", Job: job, Contenders: []Contender{ours(), packaged("a stream", "bloomjoin_stream"), packaged("`Filter.probe`", "bloomjoin_probe"), polars, pyarrow}},
	}}
}

// packaged is a function of peers.py that uses our package.
func packaged(name, function string) Contender {
	command := python("", "", function, 1).Command
	return Contender{Name: "**bloomjoin** in Python, " + name, Kind: Peer, Command: func(h *Harness, a Attempt) Command {
		made := command(h, a)
		made.Env = append(made.Env, "PYTHONPATH="+h.packageDir(), "BLOOMJOIN_BINARY="+h.ours)
		return made
	}}
}

func (h *Harness) packageDir() string { return filepath.Join(h.dir, "package") }

// installPackage builds our package from this checkout, once for a run of the harness.
func installPackage(h *Harness, _ *Attempt) error {
	if h.packaged {
		return nil
	}
	if err := os.RemoveAll(h.packageDir()); err != nil {
		return err
	}
	h.packaged = true
	return h.do(h.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", h.packageDir(), "../python")
}
