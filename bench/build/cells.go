package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// script builds a Bloom filter with pyarrow.
//
//go:embed python/pyarrow_bloom.py
var script string

// cell is a measurement.
type cell struct {
	cells.Cell
	set     set
	measure func(context.Context, *bench, cell) (*cells.Result, error)
}

// allCells returns all cells, in the order of the document.
func allCells() []cell {
	const million = 1_000_000
	named := func(name, text string) cells.Cell {
		return cells.Cell{Name: name, Text: text, Document: "../docs/build.md"}
	}
	big := func(name, text string) cells.Cell {
		c := named(name, text)
		c.Big = true
		return c
	}
	return []cell{
		{Cell: named("int64-100m", "100 million random integers in Parquet, beside other libraries"),
			set: set{kind: "int64", rows: 100 * million, files: 1}, measure: integers},
		{Cell: named("memory-100m", "100 million integers in memory"), measure: memory},
		{Cell: named("string-100m", "100 million strings of 16 to 36 bytes in Parquet"),
			set: set{kind: "string", rows: 100 * million, files: 1}, measure: texts},
		{Cell: named("text-10m", "10 million IDs as text, one a line, gzip"),
			set: set{kind: "text", rows: 10 * million, files: 1}, measure: lines},
		{Cell: named("int64-dense", "100 million IDs from a sequence of 400 million, in Parquet: an exact filter"),
			set: set{kind: "dense", rows: 100 * million, files: 1}, measure: dense},
		{Cell: big("int64-1b", "1 billion integers in ten files, in a budget of 3 GiB; then in ten shards"),
			set: set{kind: "int64", rows: 1000 * million, files: 10}, measure: billion},
		{Cell: big("duplicates-1b", "1 billion rows of 5 million distinct integers in ten files"),
			set: set{kind: "repeated", rows: 1000 * million, files: 10, distinct: 5 * million}, measure: duplicates},
	}
}

// bloomjoin returns a contender with additional flags.
func (b *bench) bloomjoin(name, text, ids string, more ...string) contender {
	return contender{name: name, text: text, kind: ours, step: func(out string) race.Step { return b.build(out, ids, more...) }}
}

// done returns the tables of a contest: figures, targets, and false-positive rates.
func (r *contest) done(main, goals report.Table) *cells.Result {
	for _, c := range r.contenders {
		if rate, ok := r.rates[c.name]; ok {
			rate.row(&goals, "false positives of "+c.text)
		}
	}
	return &cells.Result{Tables: []report.Table{main, goals}, Wrong: r.wrong}
}

// integers measures all peers.
func integers(ctx context.Context, b *bench, c cell) (*cells.Result, error) {
	p, err := b.dataset(ctx, c)
	if err != nil {
		return nil, err
	}
	if b.program.python, err = race.Environment(ctx, b.Data, []string{race.Pyarrow}); err != nil {
		return nil, err
	}
	peers := b.peers(p.ids(),
		[3]string{"parquet-go", "pages", "parquet-go's bloom, its pages read by value"},
		[3]string{"parquet-go", "rows", "parquet-go's bloom, its generic reader"},
		[3]string{"bits-and-blooms", "pages", "bits-and-blooms, parquet-go's pages"},
		[3]string{"arrow-go", "arrow-go", "arrow-go's bloom, its column reader"})
	peers = append(peers, contender{name: "pyarrow", text: strings.ReplaceAll(race.Pyarrow, "==", " ") + ", which writes the column again with one", kind: peer, step: func(string) race.Step {
		return race.Step{Argv: []string{b.program.python, "-c", script, p.ids(), fmt.Sprint(fpr), fmt.Sprint(threads)}}
	}})
	return b.beside(ctx, c, p, peers, 60, 3)
}

func texts(ctx context.Context, b *bench, c cell) (*cells.Result, error) {
	p, err := b.dataset(ctx, c)
	if err != nil {
		return nil, err
	}
	return b.beside(ctx, c, p, b.peers(p.ids(),
		[3]string{"parquet-go", "arrow-go", "parquet-go's bloom, arrow-go's column reader"},
		[3]string{"bits-and-blooms", "arrow-go", "bits-and-blooms, arrow-go's column reader"}), 20, 0)
}

// beside measures peers and the floor. The targets are a speed in million keys per
// second, and its ratio to the fastest Go peer.
func (b *bench) beside(ctx context.Context, c cell, p paths, peers []contender, speed, times float64) (*cells.Result, error) {
	all := append([]contender{b.bloomjoin("ours", "**bloomjoin**", p.ids()), b.floor(p.ids())}, peers...)
	r, err := b.race(ctx, c, p, all)
	if err != nil {
		return nil, err
	}
	main, goals := r.table(), report.Targets()
	if err := r.equals(ctx, &main, p.outside("")); err != nil {
		return nil, err
	}
	atLeast(&goals, "speed", " M keys/s", r.speed("ours"), speed)
	atLeast(&goals, "time / that of the floor", " ×", r.runs.Ratio("ours", "floor"), 0)
	r.peak(&goals, "ours")
	r.fastestGo(&goals, times)
	return r.done(main, goals), nil
}

// lines measures text, which is bound by decompression in one goroutine.
func lines(ctx context.Context, b *bench, c cell) (*cells.Result, error) {
	p, err := b.dataset(ctx, c)
	if err != nil {
		return nil, err
	}
	asText := b.bloomjoin("string", "bloomjoin, `--key-type string`", p.text(), "--key-type", "string")
	asText.as = "-text"
	r, err := b.race(ctx, c, p, []contender{
		b.bloomjoin("ours", "**bloomjoin**, `--key-type int64`", p.text(), "--key-type", "int64"), asText,
		{name: "floor", text: "*floor: gunzip*", kind: bound, step: func(string) race.Step {
			return race.Step{Argv: []string{b.program.gunzip, p.text()}}
		}},
	})
	if err != nil {
		return nil, err
	}
	goals := report.Targets()
	atLeast(&goals, "time / that of gunzip, integers", " ×", r.runs.Ratio("ours", "floor"), 0)
	atLeast(&goals, "time / that of gunzip, strings", " ×", r.runs.Ratio("string", "floor"), 0)
	return r.done(r.table(), goals), nil
}

// dense compares an exact filter, which --kind auto chooses, with a Bloom filter.
func dense(ctx context.Context, b *bench, c cell) (*cells.Result, error) {
	p, err := b.dataset(ctx, c)
	if err != nil {
		return nil, err
	}
	r, err := b.race(ctx, c, p, []contender{
		b.bloomjoin("auto", "**bloomjoin**", p.ids()), b.bloomjoin("bloom", "bloomjoin, `--kind bloom`", p.ids(), "--kind", "bloom"), b.floor(p.ids()),
	})
	if err != nil {
		return nil, err
	}
	goals := report.Targets()
	auto, bits := r.built["auto"], r.built["bloom"]
	goals.Row("kind", auto.Kind, "exact", report.Yes(auto.Kind == "exact"))
	goals.Row("file", fmt.Sprintf("%.1f MB, %.2f bits a key", float64(auto.FileBytes)/1e6, 8*float64(auto.FileBytes)/float64(r.keys())),
		fmt.Sprintf("≤ that of bits, %.1f MB", float64(bits.FileBytes)/1e6), report.Yes(auto.FileBytes <= bits.FileBytes))
	return r.done(r.table(), goals), nil
}

// ways are the ways in which goroutines fill a filter from memory.
var ways = []struct {
	name, text string
	flags      []string
}{
	{"shared", "**bloomjoin**, one filter, filled by ranges of blocks", nil},
	{"private", "bloomjoin, a filter for each goroutine, merged", []string{"-private"}},
}

// fromMemory is the output of command memory.
type fromMemory struct {
	NS           int64
	Bytes        int64
	FPRPredicted float64 `json:"fpr_predicted"`
	Probed, Hits uint64
}

// memory runs processes in rounds, as a contest does. They measure their time
// themselves.
func memory(ctx context.Context, b *bench, c cell) (*cells.Result, error) {
	n, runs, last := b.Scaled(100_000_000), race.Runs{}, map[string]fromMemory{}
	for _, way := range race.Rounds(b.roundsOf(c), ways) {
		race.Say("%s: %s", c.Name, way.name)
		argv := append([]string{b.program.memory, "-keys", number(n), "-threads", fmt.Sprint(threads),
			"-fpr", fmt.Sprint(fpr), "-outside", number(b.Scaled(outside))}, way.flags...)
		var reply fromMemory
		u, err := answered(ctx, race.Step{Argv: argv}, &reply)
		if err != nil {
			return nil, err
		}
		u.Wall, last[way.name] = float64(reply.NS)/1e9, reply
		runs[way.name] = append(runs[way.name], u)
	}
	main := report.Table{Name: c.Name, Head: []string{report.Count(n) + " keys", "median s", "least s", "M keys/s", "filter MiB", "its time / the first"}}
	goals, res, fastest := report.Targets(), &cells.Result{}, 0.0
	for _, way := range ways {
		speed := float64(n) / runs.Wall(way.name) / 1e6
		main.Row(way.text, report.Seconds(runs.Wall(way.name)), report.Seconds(runs.Least(way.name)), fmt.Sprintf("%.1f", speed),
			report.MiB(last[way.name].Bytes), report.Number(runs.Ratio(way.name, ways[0].name)))
		fastest = max(fastest, speed)
	}
	main.Note("%d rounds, %d goroutines.", len(runs[ways[0].name]), threads)
	atLeast(&goals, "speed of the faster way", " M keys/s", fastest, 100)
	for _, way := range ways {
		r := rate{last[way.name].Hits, last[way.name].Probed, last[way.name].FPRPredicted}
		r.row(&goals, "false positives, "+way.name)
		if err := r.err(); err != nil {
			res.Wrong = append(res.Wrong, err)
		}
	}
	res.Tables = []report.Table{main, goals}
	return res, nil
}
