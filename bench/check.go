package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Answer is what a Parquet answer holds: the number of rows, and a checksum that does not
// depend on the order of rows and columns.
type Answer struct {
	Rows    int64    `json:"rows"`
	Hash    string   `json:"hash"`
	Columns []string `json:"columns"`
	Error   string   `json:"error,omitempty"`
}

// Differs returns an error that says how an answer differs from the one that is wanted.
func (a Answer) Differs(want Answer) error {
	switch {
	case !slices.Equal(a.Columns, want.Columns):
		return fmt.Errorf("it has the columns %q, want %q", a.Columns, want.Columns)
	case a.Rows != want.Rows:
		return fmt.Errorf("it has %d rows, want %d", a.Rows, want.Rows)
	case a.Hash != want.Hash:
		return fmt.Errorf("its %d rows have other values than DuckDB's", a.Rows)
	}
	return nil
}

// Checker is DuckDB in a process of its own, which computes and reads answers.
type Checker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// question is about a job, or about the files of an answer.
type question struct {
	Job   *Attempt `json:"job"`
	Files []string `json:"files"`
}

// NewChecker starts the process.
func NewChecker(python string) (*Checker, error) {
	cmd := exec.Command(python, "peers.py", "check")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Checker{cmd, in, bufio.NewScanner(out)}, cmd.Start()
}

// Close ends the process.
func (c *Checker) Close() error { return errors.Join(c.in.Close(), c.process.Wait()) }

func (c *Checker) ask(q question) (a Answer, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	if _, err := c.in.Write(append(text, '\n')); err != nil {
		return a, err
	}
	if !c.out.Scan() {
		return a, errors.Join(errors.New("peers.py check has ended"), c.out.Err())
	}
	if err := json.Unmarshal(c.out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("peers.py check: %w: %s", err, c.out.Bytes())
	}
	if a.Error != "" {
		return a, fmt.Errorf("peers.py check: %s", a.Error)
	}
	return a, nil
}

// verify checks the answer of a contender.
func (r *race) verify(who Contender, a Attempt, res *Result) error {
	switch {
	case who.Kind == Floor || a.Verb == verbInputs:
		return nil
	case a.Verb == verbBuild && who.Kind == Ours:
		return r.verifyFilter(a, res)
	case a.Verb == verbBuild:
		return nil // tools verify the filters that they build, and exit
	}
	out := a.Out
	if who.Kind == Peer {
		out = r.forPeers(a).Out
	}
	files, err := answerFiles(out)
	if err != nil {
		return err
	}
	got, err := r.checker.ask(question{Files: files})
	if err != nil {
		return err
	}
	res.Facts["rows"] = fmt.Sprint(got.Rows)
	if len(files) > 1 {
		res.Facts["files"] = fmt.Sprint(len(files))
	}
	if r.want.Hash == "" {
		if r.want, err = r.wanted(a, got); err != nil {
			return err
		}
	}
	return got.Differs(r.want)
}

// wanted returns DuckDB's answer or, if the cell compares answers with each other, the first
// contender's. It must have rows.
func (r *race) wanted(a Attempt, first Answer) (want Answer, err error) {
	if want = first; !r.cell.Alike {
		local := r.local(a)
		local = r.forPeers(local)
		local.Endpoint = ""
		want, err = r.checker.ask(question{Job: &local})
	}
	if err == nil && want.Rows == 0 {
		err = errors.New("it has no rows, so nothing is compared")
	}
	return want, err
}

// answerFiles returns the Parquet files of an answer, a file or directory, or what one of several
// workers has staged in one.
func answerFiles(out string) (files []string, err error) {
	err = filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && (strings.HasSuffix(path, ".parquet") || strings.HasSuffix(path, ".staged")) {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no file", out)
	}
	return files, err
}

// outsiders is the number of other keys that are looked up in a filter.
const outsiders = 1_000_000

// verifyFilter checks that a filter lets all its members through, and as many other keys
// as it predicts.
func (r *race) verifyFilter(a Attempt, res *Result) error {
	ids := a.IDs
	if ids.Kind != "ids" { // the same IDs in Parquet
		ids.Kind, ids.Plain = "ids", true
	}
	in, err := r.scan(a.Out, ids)
	if err != nil {
		return err
	}
	if in.RowsIn == 0 || in.RowsOut != in.RowsIn {
		return fmt.Errorf("the filter finds %d of %d members", in.RowsOut, in.RowsIn)
	}
	members := ids.Members
	ids.Members, ids.Rows, ids.Files, ids.Users = 0, outsiders, 0, ids.users()
	if ids.Users > members { // within the range of keys that the filter knows
		ids.Order, ids.First = "others", members
	}
	out, err := r.scan(a.Out, ids)
	if err != nil {
		return err
	}
	if !Plausible(out.RowsOut, out.RowsIn, out.Predicted) {
		return fmt.Errorf("%d of %d other keys pass the filter, which predicts %g of them", out.RowsOut, out.RowsIn, out.Predicted)
	}
	res.Facts["false positives"] = fmt.Sprintf("%.3f %%", 100*float64(out.RowsOut)/float64(out.RowsIn))
	return nil
}

// scanned is the report of bloomjoin scan.
type scanned struct {
	RowsIn    uint64  `json:"rows_in"`
	RowsOut   uint64  `json:"rows_out"`
	Predicted float64 `json:"fpr_predicted"`
}

// scan counts the rows that pass a filter.
func (r *race) scan(filter string, d Data) (s scanned, err error) {
	path, err := r.Make(d)
	if err != nil {
		return s, err
	}
	_, out, err := Command{Argv: []string{r.ours, "scan", "--count", "--quiet", "--json", "--key", keyColumn, "--filter", filter, path}}.Execute(r.ctx)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(out, &s)
}
