// Package answer compares the rows of Parquet files, with DuckDB.
package answer

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

//go:embed answer.py
var script string

// Answer is DuckDB's digest of a file: its rows, and the sum over rows of the hash of
// all values. It does not depend on the order of columns.
type Answer struct {
	Rows    int64    `json:"rows"`
	Hash    string   `json:"hash"`
	Ordered string   `json:"ordered"` // the same over rows and their numbers, so it depends on their order
	Columns []string `json:"columns"` // sorted
	Codecs  []string `json:"codecs"`
	Bytes   int64    `json:"-"` // size of the file
}

// Of returns the digest of a file. python is an interpreter with DuckDB.
func Of(ctx context.Context, python, path string) (a Answer, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return a, err
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", script, path)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return a, fmt.Errorf("reading %s: %w\n%s", path, err, race.Tail(complaint.String(), 20))
	}
	a.Bytes = info.Size()
	return a, json.Unmarshal(out.Bytes(), &a)
}

// Same compares an answer with DuckDB's, which must have rows: equality of empty
// answers would show nothing.
func (a Answer) Same(want Answer) error {
	switch {
	case want.Rows == 0:
		return errors.New("DuckDB's answer has no rows")
	case !slices.Equal(a.Columns, want.Columns):
		return fmt.Errorf("the answer has the columns %q, DuckDB's %q", a.Columns, want.Columns)
	case a.Rows != want.Rows:
		return fmt.Errorf("the answer has %d rows, DuckDB's %d", a.Rows, want.Rows)
	case a.Hash != want.Hash:
		return fmt.Errorf("the answer's %d rows are others than DuckDB's", a.Rows)
	case !slices.Equal(a.Codecs, want.Codecs):
		return fmt.Errorf("the answer is compressed by %q, DuckDB's by %q", a.Codecs, want.Codecs)
	}
	return nil
}
