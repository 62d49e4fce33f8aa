package main

import (
	"fmt"
	"path/filepath"
)

// idsOf are IDs without further columns, all of them members.
func idsOf(kind string, rows uint64, key string) Data {
	d := Data{Kind: kind, Rows: rows, Members: rows, Key: key, Plain: true}
	if key == "dense" { // one in four of a sequence
		d.Users = 4 * rows
	}
	return d
}

// builder returns the job of a filter from IDs.
func builder(ids Data) Job {
	j := Job{Verb: verbBuild, IDs: ids}
	if ids.Kind != "ids" {
		j.KeyType = "int64"
	}
	return j
}

// onePercent are the flags of filters that others are compared with.
var onePercent = []string{"--fpr", "0.01"}

func build() *Table {
	others := []Contender{goFilter("parquet-go", parquetGo), goFilter("bits-and-blooms", bitsAndBlooms), goFilter("arrow-go", arrowGo)}
	return &Table{Name: "build", Title: "Filters from ID files", Text: "Filters with 1 % false positives. The Go libraries are used by goroutines that each take row groups from arrow-go's reader and fill a filter of their own; arrow-go's is shared, as it cannot be merged.", Cells: []Cell{
		{Name: "100 million integers, Parquet", Job: builder(idsOf("ids", 100*million, "")), Chief: true,
			Contenders: append(append([]Contender{ours(onePercent...)}, others...), pyarrowBloom, decompressIDs)},
		{Name: "100 million dense integers", Job: builder(idsOf("ids", 100*million, "dense")),
			Contenders: []Contender{ours(), ours("--fpr", "0.01", "--kind", "bloom"), decompressIDs}},
		{Name: "20 million strings, Parquet", Job: builder(idsOf("ids", 20*million, "string")),
			Contenders: append(append([]Contender{ours(onePercent...)}, others...), decompressIDs)},
		{Name: "10 million integers, lines, gzip", Job: builder(idsOf("lines", 10*million, "")), Contenders: []Contender{ours(onePercent...), gunzip}},
		{Name: "10 million integers, CSV", Job: builder(idsOf("csv", 10*million, "")), Contenders: []Contender{ours(onePercent...)}},
	}}
}

// shardCount is the number of partial filters.
const shardCount = 10

func shards() *Table {
	ids := idsOf("ids", 100*million, "")
	ids.Files = 10
	merge := builder(ids)
	merge.Steps = []Change{buildShards}
	return &Table{Name: "shards", Title: "Filters in shards", Text: "100 million IDs in ten files: in one process, and the merge of the partial filters of ten.", Cells: []Cell{
		{Name: "one process", Job: builder(ids), Contenders: []Contender{ours(onePercent...), ours("--fpr", "0.01", "--memory", "512MiB")}},
		{Name: "merge ten partial filters", Job: merge, Contenders: []Contender{merging}},
	}}
}

// buildShards builds the partial filters, in the directory of what is spilled.
func buildShards(h *Harness, a *Attempt) error {
	for i := range shardCount {
		out := filepath.Join(a.Scratch, fmt.Sprintf("part-%d.bjf", i))
		if err := h.do(h.ours, "build", "--quiet", "--key", keyColumn, "--fpr", "0.01", "--shard", fmt.Sprintf("%d/%d", i, shardCount), "-o", out, a.IDsPath); err != nil {
			return err
		}
	}
	return nil
}

// merging merges partial filters.
var merging = Contender{Name: "**bloomjoin** `merge`", Kind: Ours, Command: func(h *Harness, a Attempt) Command {
	argv := []string{h.ours, "merge", "--json", "--quiet", "--threads", fmt.Sprint(a.Threads), "-o", a.Out}
	for i := range shardCount {
		argv = append(argv, filepath.Join(a.Scratch, fmt.Sprintf("part-%d.bjf", i)))
	}
	return Command{Argv: argv}
}}

func billion() *Table {
	ids := idsOf("ids", 1000*million, "")
	ids.Files = 10
	return &Table{Name: "build-1b", Title: "A billion IDs", Text: "A filter with 1 % false positives from ten files.", Large: true, Rounds: 2, Cells: []Cell{
		{Name: "one process", Job: builder(ids), Contenders: []Contender{ours("--fpr", "0.01", "--memory", "3GiB"), goFilter("parquet-go", parquetGo), decompressIDs}},
	}}
}
