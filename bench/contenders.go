package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ours is bloomjoin with additional flags, which its name shows.
func ours(flags ...string) Contender {
	name := "**bloomjoin**"
	if len(flags) > 0 {
		name += " `" + strings.Join(flags, " ") + "`"
	}
	return Contender{Name: name, Kind: Ours, Command: func(h *Harness, a Attempt) Command {
		argv := []string{h.ours, a.Verb, "--json", "--quiet", "--threads", strconv.Itoa(a.Threads)}
		var inputs []string
		switch a.Verb {
		case verbJoin:
			argv = append(argv, "--ids", a.IDsPath, "--on", keyColumn, "--type", a.Type)
			if len(a.Columns) > 0 {
				argv = append(argv, "--columns", strings.Join(a.Columns, ","))
			}
			if a.Where != "" {
				argv = append(argv, "--where", a.Where)
			}
			inputs = []string{a.LogPath}
		case verbBuild:
			if a.KeyType != "" {
				argv = append(argv, "--key-type", a.KeyType)
			}
			if a.IDs.Kind != "lines" {
				argv = append(argv, "--key", keyColumn)
			}
			inputs = []string{a.IDsPath}
		case verbInputs:
			argv = argv[:4] // without threads
			inputs = []string{a.LogPath}
		}
		argv = append(append(argv, flags...), "-o", a.Out)
		return Command{Argv: append(argv, inputs...)}
	}}
}

// The other tools. Polars has twice the threads, as it leaves one of two processors idle
// otherwise.
var (
	duckdb     = python("DuckDB", "duckdb", "duckdb_join", 1)
	polars     = python("Polars", "polars", "polars_join", 2)
	pyarrow    = python("pyarrow", "pyarrow", "pyarrow_join", 1)
	datafusion = python("DataFusion", "datafusion", "datafusion_join", 1)
	chdb       = python("ClickHouse (chdb)", "chdb", "chdb_join", 1)

	pyarrowBloom = python("pyarrow, which writes the IDs again with one", "pyarrow", "pyarrow_bloom", 1)
)

// duckdbStore is the newest DuckDB whose extension for object stores a package registry
// has.
var duckdbStore = func() Contender {
	c := python("DuckDB "+storeDuckDB+" with httpfs", "httpfs", "duckdb_join", 1)
	command := c.Command
	c.Command = func(h *Harness, a Attempt) Command {
		made := command(h, a)
		made.Env = append(made.Env, "PYTHONPATH="+h.httpfs())
		return made
	}
	return c
}()

// python is a function of peers.py. It gets the attempt as JSON.
func python(name, tool, function string, threads int) Contender {
	return Contender{Name: name, Kind: Peer, Tool: tool, Threads: threads, Command: func(h *Harness, a Attempt) Command {
		text, err := json.Marshal(h.forPeers(a))
		if err != nil {
			panic(err) // strings and numbers
		}
		return Command{Argv: []string{h.python, "peers.py", function, string(text)}, Env: []string{"POLARS_MAX_THREADS=" + strconv.Itoa(a.Threads)}}
	}}
}

// forPeers names the log as Python's tools want it: the files of a directory by a pattern,
// and their answer is one file.
func (h *Harness) forPeers(a Attempt) Attempt {
	if a.Log.Files > 0 {
		a.LogPath = strings.TrimSuffix(a.LogPath, "/")
		if a.Log.Days > 0 {
			a.LogPath += "/*"
		}
		a.LogPath += "/*.parquet"
		a.Out = strings.TrimSuffix(strings.TrimSuffix(a.Out, "/"), ".parquet") + ".parquet"
	}
	if a.IDs.Files > 0 {
		a.IDsPath += "/*.parquet"
	}
	return a
}

// Floors.
var (
	decompress = tool("*floor: decompress the log*", Floor, func(a Attempt) []string {
		return []string{"decompress", fmt.Sprint(a.Threads), strings.Join(a.Columns, ","), a.LogPath}
	})
	decompressIDs = tool("*floor: decompress the keys*", Floor, func(a Attempt) []string {
		return []string{"decompress", fmt.Sprint(a.Threads), keyColumn, a.IDsPath}
	})
	gunzip = tool("*floor: gunzip*", Floor, func(a Attempt) []string { return []string{"gunzip", a.IDsPath} })
)

// goFilter is a Bloom filter of a Go module, filled from arrow-go's column reader.
func goFilter(name, module string) Contender {
	c := tool(name, Peer, func(a Attempt) []string { return []string{"filter", name, fmt.Sprint(a.Threads), a.IDsPath} })
	c.Tool = module
	return c
}

// tool is a part of this program.
func tool(name string, kind Kind, args func(Attempt) []string) Contender {
	return Contender{Name: name, Kind: kind, Command: func(h *Harness, a Attempt) Command { return h.tool(args(a)...) }}
}

// reported reads what bloomjoin reports of itself.
func reported(output []byte, facts map[string]string) error {
	var said struct {
		Strategy    string `json:"strategy"`
		BytesRead   int64  `json:"bytes_read"`
		MemoryBytes int64  `json:"memory_bytes"`
		Kind        string `json:"kind"`
	}
	if err := json.Unmarshal(output, &said); err != nil {
		return fmt.Errorf("the report: %w: %s", err, tail(string(output), 3))
	}
	if said.Strategy != "" {
		facts["strategy"] = said.Strategy
	}
	if said.MemoryBytes > 0 {
		facts["filter"] = fmt.Sprintf("%s, %s MB", said.Kind, megabytes(said.MemoryBytes))
	}
	if said.BytesRead > 0 {
		facts["MB read"] = megabytes(said.BytesRead)
	}
	return nil
}
