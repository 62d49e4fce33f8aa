package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Where results are, below this directory.
const (
	resultsDir = "results"
	document   = "RESULTS.md"
	image      = "results.svg"
)

// Measurement is a table's raw results: a file below results.
type Measurement struct {
	Table string `json:"table"`
	Origin
	Versions map[string]string `json:"versions,omitempty"`
	Cells    []Measured        `json:"cells,omitempty"`
	Grid     *Grid             `json:"grid,omitempty"`
}

// Origin says what was measured, when and where.
type Origin struct {
	Commit  string `json:"commit"`
	Changed bool   `json:"changed,omitempty"` // the checkout had uncommitted changes
	Date    string `json:"date"`
	Machine string `json:"machine"`
}

// Measured has the results of a cell, in the order of its contenders.
type Measured struct {
	Name    string   `json:"name"`
	Results []Result `json:"results"`
}

// Save writes the measurement.
func (m Measurement) Save() error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(resultsDir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(resultsDir, m.Table+".json"), append(text, '\n'), 0o644)
}

// load reads the measurements of tables below a directory. Every file must belong to one.
func load(dir string, tables []*Table) (map[string]Measurement, error) {
	all := map[string]Measurement{}
	for _, t := range tables {
		all[t.Name] = Measurement{}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var m Measurement
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, ok := all[m.Table]; !ok || strings.TrimSuffix(filepath.Base(name), ".json") != m.Table {
			return nil, fmt.Errorf("%s: results of a table that there is not, %q (remove the file)", name, m.Table)
		}
		all[m.Table] = m
	}
	for name, m := range all {
		if m.Table == "" {
			delete(all, name)
		}
	}
	return all, nil
}

// versions returns the versions of the tools in a table.
func (h *Harness) versions(t *Table) map[string]string {
	all := map[string]string{}
	for _, c := range t.Cells {
		for _, who := range c.Contenders {
			switch {
			case who.Tool == "":
			case who.Tool == "httpfs":
				all["DuckDB with httpfs"] = storeDuckDB
			case strings.Contains(who.Tool, "/"):
				all[who.Name] = moduleVersion(who.Tool)
			case all[who.Tool] == "":
				_, out, err := Command{Argv: []string{h.python, "-c", "import importlib.metadata as m; print(m.version('" + who.Tool + "'))"}}.Execute(h.ctx)
				if err != nil {
					out = []byte("unknown")
				}
				all[who.Tool] = strings.TrimSpace(string(out))
			}
		}
	}
	return all
}
