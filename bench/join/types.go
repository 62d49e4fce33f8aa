package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// typeCase is a join of the cell types.
type typeCase struct {
	typ, text string
	log, ids  string  // files, see typeFiles.job
	wall      float64 // target: the ratio to DuckDB's time
	large     bool    // the IDs take more memory than the target allows
}

// typeCases returns the joins of the cell types.
func typeCases() []typeCase {
	return []typeCase{
		{typ: "left", text: "0.01 %", log: baseLog, ids: "ids-0.01", wall: 0.25},
		{typ: "left", text: "1 %", log: baseLog, ids: "ids-1", wall: 0.25},
		{typ: "left", text: "1 %, every ID twice", log: baseLog, ids: "ids-1-twice", wall: 1},
		{typ: "full", text: "0.01 %", log: baseLog, ids: "ids-0.01", wall: 0.25},
		{typ: "full", text: "1 %", log: baseLog, ids: "ids-1", wall: 0.25},
		{typ: "full", text: "1 %, REQUIRED columns", log: requiredLog, ids: "ids-1", wall: 1},
		{typ: "anti", text: "1 %", log: baseLog, ids: "ids-1", wall: 0.4},
		{typ: "anti", text: "0.1 %, clustered", log: clusteredLog, ids: "ids-range", wall: 0.1},
		{typ: "inner", text: "1 %", log: baseLog, ids: "ids-1", wall: 0.8},
		{typ: "inner", text: "10 %", log: baseLog, ids: "ids-10", wall: 0.85},
		{typ: "inner", text: "50 %", log: baseLog, ids: "ids-50", wall: 0.9, large: true},
		{typ: "right", text: "1 %", log: baseLog, ids: "ids-1", wall: 0.85},
	}
}

// Logs of the cell types.
const (
	baseLog      = "base"
	clusteredLog = "clustered"
	requiredLog  = "required"
)

// mostMiB is the target for the peak memory of the joins of the cell types.
const mostMiB = 256

// typeFiles are the directories of the files of the cell types.
type typeFiles struct{ base, clustered, more string }

// types generates the data of the cell types.
func types(ctx context.Context, b *bench) (dataset, error) {
	_, err := b.typeFiles(ctx)
	return dataset{}, err
}

func (b *bench) typeFiles(ctx context.Context) (f typeFiles, err error) {
	rows := b.Scaled(logRows)
	if f.base, err = b.scanned(ctx, "base", "-rows", rows); err != nil {
		return f, err
	}
	if f.clustered, err = b.scanned(ctx, "clustered", "-scale", rows); err != nil {
		return f, err
	}
	f.more = filepath.Join(b.Data, fmt.Sprintf("join-types-%d.v%d", rows, dataVersion))
	return f, race.Make(f.more, func(begun string) error {
		_, err := race.Execute(ctx, race.Step{Argv: []string{b.program.python, "-c", race.Script(scripts, "types"), f.base, f.clustered, begun}})
		return err
	})
}

// job returns a join of files with the given codec.
func (f typeFiles) job(c typeCase, codec string) job {
	logs := map[string]string{
		baseLog: filepath.Join(f.base, "log."), clusteredLog: filepath.Join(f.clustered, "log."), requiredLog: filepath.Join(f.more, "required."),
	}
	return jobOf(dataset{log: logs[c.log] + codec + ".parquet", ids: filepath.Join(f.more, c.ids+".parquet"), codec: codec}, c.typ)
}

// everyType measures joins of all types beside DuckDB, and inner joins beside Polars.
// The outputs are in memory where the system has a place for them.
func everyType(ctx context.Context, b *bench, c cell, _ dataset) (*cells.Result, error) {
	files, err := b.typeFiles(ctx)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(sharedMemory); b.Out == b.Data && err == nil && info.IsDir() {
		own := *b
		own.Out, b = sharedMemory, &own
	}
	where := ""
	if b.Out == sharedMemory {
		where = " Outputs are in memory."
	}
	t := report.Table{Name: c.Name, Head: []string{"join, IDs", "log", "bloomjoin s", "DuckDB s", "Polars s", "/ DuckDB", "wanted", "met", "peak MiB", "DuckDB's", fmt.Sprintf("≤ %d", mostMiB), "rows out"}}
	res := &cells.Result{}
	rounds := 0
	for _, tc := range typeCases() {
		for _, codec := range []string{"snappy", "zstd"} {
			j := files.job(tc, codec)
			contenders := []contender{bloomjoin("ours", "**bloomjoin**", j), duckdb(j)}
			if tc.typ == "inner" {
				contenders = append(contenders, polars(j)...)
			}
			r, err := b.race(ctx, fmt.Sprintf("%s, %s, %s, %s", c.Name, tc.typ, tc.text, codec), 5, contenders)
			if err != nil {
				return nil, err
			}
			for _, w := range r.wrong {
				res.Wrong = append(res.Wrong, fmt.Errorf("%s: %w", r.name, w))
			}
			r.typeRow(&t, tc, codec)
			rounds = max(rounds, r.roundsRun())
		}
	}
	t.Note("%d rounds, %d threads; Polars has twice as many.%s", rounds, threads, where)
	res.Tables = []report.Table{t}
	return res, nil
}

// sharedMemory is a file system in memory.
const sharedMemory = "/dev/shm"

// typeRow adds the row of a race to the table of the cell types.
func (r *contest) typeRow(t *report.Table, c typeCase, codec string) {
	seconds := func(name string) string {
		if len(r.runs[name]) == 0 {
			return "–"
		}
		return report.Seconds(r.runs.Wall(name))
	}
	peak := func(name string) string {
		if len(r.runs[name]) == 0 {
			return "–"
		}
		return report.MiB(r.runs.Peak(name))
	}
	ratio, small := r.runs.Ratio("ours", "duckdb"), "–"
	if !c.large {
		small = report.Met(r.runs.Figure("ours", func(name string) float64 { return float64(r.runs.Peak(name)) }), mostMiB<<20)
	}
	t.Row(c.typ+", "+c.text, codec, seconds("ours"), seconds("duckdb"), seconds("polars-join"),
		report.Number(ratio), "≤ "+report.Number(c.wall), report.Met(ratio, c.wall),
		peak("ours"), peak("duckdb"), small, fmt.Sprint(r.answers[r.contenders[0].job].Rows))
}
