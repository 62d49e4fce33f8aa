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

// dataVersion is part of the data's names: to be raised when generate.py makes
// something else than before.
const dataVersion = 1

// store is the directory that keeps data and programs from one run to the next.
type store struct {
	dir    string
	python string // of the virtual environment, once it is there
}

// facts is what generate.py says of a log.
type facts struct {
	Rows    int64            `json:"rows"`
	Matched map[string]int64 `json:"matched"` // by the rate, without its sign
}

// log returns the directory of a shape's data, which it makes if need be, with
// what is known of them. rows is the scale; the name has all that data depend on.
func (s *store) log(ctx context.Context, sh shape, rows int) (dir string, f facts, err error) {
	rows /= sh.part
	dir = filepath.Join(s.dir, fmt.Sprintf("%s-%d.v%d", sh.name, rows, dataVersion))
	if err := race.Make(dir, func(begun string) error {
		_, err := race.Execute(ctx, race.Step{Argv: []string{s.python, "-c", script("generate"), begun, sh.name, fmt.Sprint(rows)}})
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

// taskOf says where the data of a cell lie.
func taskOf(c cell, dir string, f facts) (t task, rows int64) {
	rate := strings.TrimSuffix(c.rate, "%")
	log := filepath.Join(dir, "log."+c.codec)
	if !c.shape.many {
		log += ".parquet"
	}
	rows = f.Matched[rate]
	return task{cell: c, log: log, ids: filepath.Join(dir, "ids-"+rate+".parquet"), share: float64(rows) / float64(f.Rows)}, rows
}
