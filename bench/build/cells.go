package main

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// script makes a Bloom filter with pyarrow.
//
//go:embed python/pyarrow_bloom.py
var script string

// cell is something to measure.
type cell struct {
	name, text string
	set        set
	big        bool // measured only if asked for
	measure    func(context.Context, *bench, cell) (*result, error)
}

// cells in the order of the document.
func cells() []cell {
	const million = 1_000_000
	return []cell{
		{name: "int64-100m", text: "100 million random integers in Parquet, beside other libraries",
			set: set{kind: "int64", rows: 100 * million, files: 1}, measure: integers},
		{name: "memory-100m", text: "100 million integers in memory", measure: memory},
		{name: "string-100m", text: "100 million strings of 16 to 36 bytes in Parquet",
			set: set{kind: "string", rows: 100 * million, files: 1}, measure: strings100m},
		{name: "text-10m", text: "10 million IDs as text, one a line, gzip",
			set: set{kind: "text", rows: 10 * million, files: 1}, measure: textLines},
		{name: "int64-dense", text: "100 million IDs from a sequence of 400 million, in Parquet: an exact filter",
			set: set{kind: "dense", rows: 100 * million, files: 1}, measure: dense},
		{name: "int64-1b", text: "1 billion integers in ten files, in a budget of 3 GiB; then in ten shards",
			set: set{kind: "int64", rows: 1000 * million, files: 10}, big: true, measure: billion},
		{name: "duplicates-1b", text: "1 billion rows of 5 million distinct integers in ten files",
			set: set{kind: "repeated", rows: 1000 * million, files: 10, distinct: 5 * million}, big: true, measure: duplicates},
	}
}

// bloomjoin is the contender that is us.
func (b *bench) bloomjoin(name, text, ids string, more ...string) contender {
	return contender{name: name, text: text, kind: ours, step: func(out string) race.Step { return b.build(out, ids, more...) }}
}

// done ends a contest: its table, that of the targets, the rates last.
func (r *contest) done(main, goals report.Table) *result {
	for _, c := range r.contenders {
		if rate, ok := r.rates[c.name]; ok {
			rate.row(&goals, "false positives of "+c.text)
		}
	}
	return &result{tables: []report.Table{main, goals}, wrong: r.wrong}
}

// integers is the cell with all peers.
func integers(ctx context.Context, b *bench, c cell) (*result, error) {
	p, err := b.dataset(ctx, c)
	if err != nil {
		return nil, err
	}
	if b.program.python, err = race.Environment(ctx, b.data, []string{race.Pyarrow}); err != nil {
		return nil, err
	}
	peers := b.peers(p.ids(),
		[3]string{"parquet-go", "pages", "parquet-go's bloom, its pages read by value"},
		[3]string{"parquet-go", "rows", "parquet-go's bloom, its generic reader"},
		[3]string{"bits-and-blooms", "pages", "bits-and-blooms, parquet-go's pages"},
		[3]string{"arrow-go", "arrow-go", "arrow-go's bloom, its column reader"})
	peers = append(peers, contender{name: "pyarrow", text: "pyarrow, which writes the column again with one", kind: peer, step: func(string) race.Step {
		return race.Step{Argv: []string{b.program.python, "-c", script, p.ids(), fmt.Sprint(fpr), fmt.Sprint(threads)}}
	}})
	return b.beside(ctx, c, p, peers, 60, 3)
}

func strings100m(ctx context.Context, b *bench, c cell) (*result, error) {
	p, err := b.dataset(ctx, c)
	if err != nil {
		return nil, err
	}
	return b.beside(ctx, c, p, b.peers(p.ids(),
		[3]string{"parquet-go", "arrow-go", "parquet-go's bloom, arrow-go's column reader"},
		[3]string{"bits-and-blooms", "arrow-go", "bits-and-blooms, arrow-go's column reader"}), 20, 0)
}

// beside races with peers and the floor. We want so many million keys a second,
// and so many times the speed of the fastest peer in Go.
func (b *bench) beside(ctx context.Context, c cell, p paths, peers []contender, speed, times float64) (*result, error) {
	all := append([]contender{b.bloomjoin("ours", "**bloomjoin**", p.ids()), b.floor(p.ids())}, peers...)
	r, err := b.race(ctx, c, p, all)
	if err != nil {
		return nil, err
	}
	main, goals := r.table(), targets()
	if err := r.equals(ctx, &main, p.outside("")); err != nil {
		return nil, err
	}
	atLeast(&goals, "speed", " M keys/s", r.speed("ours"), speed)
	atLeast(&goals, "time / that of the floor", " ×", r.runs.Ratio("ours", "floor"), 0)
	r.peak(&goals, "ours")
	r.fastestGo(&goals, times)
	return r.done(main, goals), nil
}

// textLines is bound by what decompression takes, which is one goroutine's.
func textLines(ctx context.Context, b *bench, c cell) (*result, error) {
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
	goals := targets()
	atLeast(&goals, "time / that of gunzip, integers", " ×", r.runs.Ratio("ours", "floor"), 0)
	atLeast(&goals, "time / that of gunzip, strings", " ×", r.runs.Ratio("string", "floor"), 0)
	return r.done(r.table(), goals), nil
}

// dense compares an exact filter, which --kind auto comes to, with bits.
func dense(ctx context.Context, b *bench, c cell) (*result, error) {
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
	goals := targets()
	auto, bits := r.built["auto"], r.built["bloom"]
	goals.Row("kind", auto.Kind, "exact", report.Yes(auto.Kind == "exact"))
	goals.Row("file", fmt.Sprintf("%.1f MB, %.2f bits a key", float64(auto.FileBytes)/1e6, 8*float64(auto.FileBytes)/float64(r.keys())),
		fmt.Sprintf("≤ that of bits, %.1f MB", float64(bits.FileBytes)/1e6), report.Yes(auto.FileBytes <= bits.FileBytes))
	return r.done(r.table(), goals), nil
}

// memory runs its process in rounds, as a contest does.
func memory(ctx context.Context, b *bench, c cell) (*result, error) {
	n := b.scaled(100_000_000)
	step := race.Step{Argv: []string{b.program.memory, "-keys", number(n), "-threads", fmt.Sprint(threads), "-fpr", fmt.Sprint(fpr), "-outside", number(b.scaled(outside))}}
	var took measure.Samples
	var last struct {
		NS           int64
		Bytes        uint64
		FPRPredicted float64 `json:"fpr_predicted"`
		Probed, Hits uint64
	}
	for range b.roundsOf(c) {
		race.Say("%s", c.name)
		if _, err := answered(ctx, step, &last); err != nil {
			return nil, err
		}
		took = append(took, float64(last.NS)/1e9)
	}
	least := math.Inf(1)
	for _, t := range took {
		least = min(least, t)
	}
	speed := float64(n) / took.Median() / 1e6
	main := report.Table{Name: c.name, Head: []string{report.Count(n) + " keys", "median s", "least s", "M keys/s", "filter MiB"}}
	main.Row("**bloomjoin**, from a slice to a filter", report.Seconds(took.Median()), report.Seconds(least), fmt.Sprintf("%.1f", speed), report.MiB(int64(last.Bytes)))
	main.Note("%d rounds, %d goroutines.", len(took), threads)
	goals, r := targets(), rate{last.Hits, last.Probed, last.FPRPredicted}
	atLeast(&goals, "speed", " M keys/s", speed, 100)
	r.row(&goals, "false positives")
	res := &result{tables: []report.Table{main, goals}}
	if err := r.err(); err != nil {
		res.wrong = append(res.wrong, err)
	}
	return res, nil
}
