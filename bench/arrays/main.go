// Command arrays measures runs over many files: logs that grow, lists of inputs, and
// small outputs.
//
//	cd bench && go run ./arrays               everything, to standard output
//	cd bench && go run ./arrays -update       into ../docs/outputs.md and ../docs/inputs.md
//	cd bench && go run ./arrays -quick        small: does it run?
//	cd bench && go run ./arrays -cell grow
//
// It needs Linux and Go. Logs are generated once and kept in the -data directory.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func main() { cells.Main("arrays", command) }

// bench has the flags and the programs.
type bench struct {
	cells.Flags
	generate string
}

// cell is a measurement.
type cell struct {
	cells.Cell
	data    func(context.Context, *bench) (dir string, err error) // makes the log; nil: measure does
	measure func(ctx context.Context, b *bench, c cell, log string) (*cells.Result, error)
}

func allCells() []cell {
	const outputs, inputs = "../docs/outputs.md", "../docs/inputs.md"
	return []cell{
		{Cell: cells.Cell{Name: "grow", Text: "a log of 30 days that grows and changes", Document: outputs}, measure: grow},
		{Cell: cells.Cell{Name: "list", Text: "100,000 inputs, with and without a list of them", Document: inputs}, data: listData, measure: list},
		{Cell: cells.Cell{Name: "small", Text: "10,000 inputs with a few rows each in the output", Document: outputs}, data: smallData, measure: small},
	}
}

func command(ctx context.Context, args []string) error {
	b := bench{Flags: cells.Flags{Command: "arrays"}}
	if err := b.Parse(args, nil); err != nil {
		return err
	}
	if b.List {
		return cells.List(os.Stdout, allCells())
	}
	chosen, err := cells.Choose(allCells(), b.Names, b.Quick)
	if err != nil {
		return err
	}
	if err := b.Prepare(ctx, race.Program{Path: &b.generate, Module: ".", Package: "./arrays/generate"}); err != nil {
		return err
	}
	if b.Generate {
		for _, c := range chosen {
			if _, err := c.log(ctx, &b); err != nil {
				return err
			}
		}
		return nil
	}
	machine, err := report.Machine()
	if err != nil {
		return err
	}
	return cells.Measure(ctx, &b.Flags, machine, chosen, func(ctx context.Context, c cell) (*cells.Result, error) {
		log, err := c.log(ctx, &b)
		if err != nil {
			return nil, err
		}
		return c.measure(ctx, &b, c, log)
	})
}

// log returns the directory of the cell's log, or "".
func (c cell) log(ctx context.Context, b *bench) (string, error) {
	if c.data == nil {
		return "", nil
	}
	return c.data(ctx, b)
}

// made returns a directory of files that generate writes with each of the argument
// lists, unless it exists.
func (b *bench) made(ctx context.Context, name string, lists ...[]string) (dir string, err error) {
	dir = filepath.Join(b.Data, name+".v1")
	return dir, race.Make(dir, func(begun string) error {
		for _, args := range lists {
			if err := b.write(ctx, begun, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// write calls generate.
func (b *bench) write(ctx context.Context, dir string, args ...string) error {
	_, err := race.Execute(ctx, race.Step{Argv: append(append([]string{b.generate}, args...), dir)})
	return err
}

// said is what bloomjoin reports with --json.
type said struct {
	BytesRead int64  `json:"bytes_read"`
	RowsOut   int64  `json:"rows_out"`
	Message   string `json:"message"`
	Warnings  []struct {
		Text string `json:"text"`
	} `json:"warnings"`
}

// run runs bloomjoin.
func (b *bench) run(ctx context.Context, args ...string) (u race.Usage, s said, err error) {
	var out bytes.Buffer
	u, err = race.Execute(ctx, race.Step{Argv: append([]string{b.Ours, args[0], "--json", "--quiet"}, args[1:]...), Out: &out})
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &s)
	}
	return u, s, err
}

// megabytes renders a size.
func megabytes(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e6) }

// count renders a number of things.
func count(n int) string { return strconv.Itoa(n) }

// filesIn returns the data files below a directory by name, and their size.
func filesIn(dir string) (files map[string]fs.FileInfo, size int64, err error) {
	files = make(map[string]fs.FileInfo)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".parquet") {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[name], size = info, size+info.Size()
		return err
	})
	return files, size, err
}
