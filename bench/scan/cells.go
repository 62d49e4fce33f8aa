package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// key is the column that logs and ID sets are joined on.
const key = "user_id"

var (
	codecs = []string{"snappy", "zstd"}
	rates  = []string{"0.01%", "1%", "10%", "50%"} // of the users are in the ID set
)

// shape is a kind of log; generate.py makes it.
type shape struct {
	name    string
	text    string
	columns []string // to keep; nil: all
	part    int      // its rows are the scale divided by this
	many    bool     // a directory of files
	skipped bool     // most pages hold no row that is wanted: no floor for that
}

// base is the shape whose cells make the matrix.
const base = "base"

// shapes in the order of the document.
func shapes() []shape {
	return []shape{
		{name: base, text: "users scattered over the log, pages of 1 MiB", part: 1},
		{name: "clustered", text: "one range of keys in one place of the log", part: 1, skipped: true},
		{name: "sorted", text: "sorted by key", part: 1},
		{name: "zipf", text: "few users have most of the rows", part: 1},
		{name: "string", text: "keys are strings", part: 1},
		{name: "dictionary", text: "keys are dictionary-encoded, 100 k users", part: 1},
		{name: "duckdb", text: "written by DuckDB, row groups of 122,880", part: 1},
		{name: "wide", text: "200 columns, of which three are kept", part: 10, columns: []string{key, "url", "amount"}},
		{name: "small", text: "2,000 files", part: 1, many: true},
	}
}

// cell is what contenders race over: a log, and a share of its users.
type cell struct {
	shape shape
	codec string
	rate  string
}

func (c cell) String() string { return c.shape.name + "/" + c.codec + "/" + c.rate }

// everyCell returns all cells, in the order of the document.
func everyCell() (cells []cell) {
	for _, s := range shapes() {
		for _, codec := range codecs {
			for _, rate := range rates {
				cells = append(cells, cell{s, codec, rate})
			}
		}
	}
	return cells
}

// usual reports whether a cell is raced when none is asked for: all of the
// base, and the other shapes at 1 %.
func usual(c cell) bool { return c.shape.name == base || c.rate == "1%" }

// chosenCells returns the cells that match one of the patterns, which are
// separated by commas: SHAPE/CODEC/RATE, each part a glob, missing ones all.
// No pattern means the usual cells.
func chosenCells(patterns string) (cells []cell, err error) {
	if patterns == "" {
		return slices.DeleteFunc(everyCell(), func(c cell) bool { return !usual(c) }), nil
	}
	matched := map[string]bool{}
	for _, pattern := range strings.Split(patterns, ",") {
		full, found := pattern+strings.Repeat("/*", max(2-strings.Count(pattern, "/"), 0)), false
		for _, c := range everyCell() {
			ok, err := path.Match(full, c.String())
			if err != nil {
				return nil, fmt.Errorf("-cell %q: %w", pattern, err)
			}
			if ok {
				matched[c.String()], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("-cell %q matches none; -list names all", pattern)
		}
	}
	return slices.DeleteFunc(everyCell(), func(c cell) bool { return !matched[c.String()] }), nil
}

// whole reports, as an error, what is missing of the document's tables: those of
// the base need all of its cells, that of the other shapes all of the usual ones.
func whole(cells []cell) error {
	missing := map[bool]int{} // by whether the cell is of the base
	chosen := map[bool]int{}
	for _, c := range everyCell() {
		isBase := c.shape.name == base
		if slices.ContainsFunc(cells, func(d cell) bool { return d.String() == c.String() }) {
			chosen[isBase]++
		} else if usual(c) {
			missing[isBase]++
		}
	}
	for _, isBase := range []bool{true, false} {
		if chosen[isBase] > 0 && missing[isBase] > 0 {
			return fmt.Errorf("-update: the tables need %d cells more; -cell 'base' and -cell '[^b]*/*/1%%' choose whole ones", missing[isBase])
		}
	}
	return nil
}
