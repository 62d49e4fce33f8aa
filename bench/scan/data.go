package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// dataVersion is part of the data's names. Raise it when generate.py changes its
// output.
const dataVersion = 1

// store is the directory that keeps data and programs between runs.
type store struct {
	dir    string
	python string // interpreter of the virtual environment, once it exists
}

// facts is the output of generate.py about a log.
type facts struct {
	Rows    int64            `json:"rows"`
	Matched map[string]int64 `json:"matched"` // by rate, without the percent sign
}

// log returns the directory of a shape's data and its facts. It generates the data if
// necessary. rows is the scale. The directory's name has everything that the data
// depend on.
func (s *store) log(ctx context.Context, sh shape, rows int) (dir string, f facts, err error) {
	rows /= sh.part
	dir = filepath.Join(s.dir, fmt.Sprintf("%s-%d.v%d", sh.name, rows, dataVersion))
	if err := race.Make(dir, func(begun string) error {
		_, err := race.Execute(ctx, race.Step{Argv: []string{s.python, "-c", race.Script(scripts, "generate"), begun, sh.name, fmt.Sprint(rows)}})
		return err
	}); err != nil {
		return "", f, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "facts.json"))
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	return dir, f, err
}

// taskOf returns the task of a cell, with the paths of its data.
func taskOf(c cell, dir string, f facts) (t task, rows int64) {
	rate := strings.TrimSuffix(c.rate, "%")
	log := filepath.Join(dir, "log."+c.codec)
	if !c.shape.many {
		log += ".parquet"
	}
	rows = f.Matched[rate]
	return task{cell: c, log: log, ids: filepath.Join(dir, "ids-"+rate+".parquet"), share: float64(rows) / float64(f.Rows)}, rows
}
