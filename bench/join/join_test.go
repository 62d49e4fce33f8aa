package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/answer"
	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/race/racetest"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// The document has markers for each cell.
func TestDocumentHasMarkers(t *testing.T) {
	if err := cells.CheckDocuments("..", allCells()); err != nil {
		t.Error(err)
	}
}

// The command lines of programs.
func TestSteps(t *testing.T) {
	b := &bench{}
	b.Ours, b.program.python = "BJ", "PY"
	semi := jobOf(dataset{log: "LOG", ids: "IDS"}, "semi")
	inner := jobOf(dataset{log: "LOG", ids: "IDS"}, "inner")
	files := typeFiles{base: "BASE", clustered: "CLUSTERED", more: "MORE"}
	full := files.job(typeCase{typ: "full", log: baseLog, ids: "ids-1"}, "zstd")
	anti := files.job(typeCase{typ: "anti", log: clusteredLog, ids: "ids-range"}, "snappy")
	for _, c := range []struct {
		who  contender
		want string
	}{
		{bloomjoin("ours", "", semi), "TMPDIR=TMP BJ join --force --quiet --json --threads 2 --ids IDS --on user_id --type semi -o OUT LOG"},
		{strategy("shuffle", inner, "--memory", "1GiB"), "TMPDIR=TMP BJ join --force --quiet --json --threads 2 --ids IDS --on user_id --type inner --strategy shuffle --memory 1GiB -o OUT LOG"},
		{duckdb(semi), "POLARS_MAX_THREADS=2 PY -c SCRIPT LOG IDS OUT snappy user_id semi  2 TMP"},
		{reference(inner), "POLARS_MAX_THREADS=2 PY -c SCRIPT LOG IDS OUT snappy user_id inner score,name 2 TMP 8GiB"},
		{bloomjoin("ours", "", full), "TMPDIR=TMP BJ join --force --quiet --json --threads 2 --ids MORE/ids-1.parquet --on user_id --type full -o OUT BASE/log.zstd.parquet"},
		{duckdb(full), "POLARS_MAX_THREADS=2 PY -c SCRIPT BASE/log.zstd.parquet MORE/ids-1.parquet OUT zstd user_id full score,name 2 TMP"},
		{duckdb(anti), "POLARS_MAX_THREADS=2 PY -c SCRIPT CLUSTERED/log.snappy.parquet MORE/ids-range.parquet OUT snappy user_id anti  2 TMP"},
		{polars(semi)[1], "POLARS_MAX_THREADS=4 PY -c SCRIPT LOG IDS OUT snappy user_id semi  4 TMP"},
	} {
		s := c.who.step(b, c.who.job, "OUT", "TMP")
		if got := strings.Join(append(slices.Clone(s.Env), s.String()), " "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := polars(inner); len(got) != 1 {
		t.Errorf("is_in has no columns of the IDs: got %d ways", len(got))
	}
}

// Wrong answers, a changed order of rows, a report that differs from the output,
// warnings, another strategy than requested and failures are errors; an acceptable
// refusal is not. The other contenders continue.
func TestWrongAnswers(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Python's part: DuckDB's join writes "right", and answers are read by their text.
	python := racetest.Program(t, `case $# in 3) sed 's/\(.*\) \(.*\)/{"rows":7,"hash":"\1","ordered":"\2","columns":["a"],"codecs":["snappy"]}/' "$3";; *) echo right 1 >"$5";; esac`)
	const product = `while [ "$1" != -o ]; do test "$1" = --strategy && how=$2; shift; done; echo TEXT >"$2"; echo '{"rows_out":ROWS,"strategy":"'$how'"}'`
	says := func(text, rows string) string {
		return strings.NewReplacer("TEXT", text, "ROWS", rows).Replace(product)
	}
	for name, c := range map[string]struct {
		ours, wrong string
		mayRefuse   bool
	}{
		"right":          {ours: says("right 2", "7")},
		"wrong answer":   {ours: says("other 2", "7"), wrong: "others than DuckDB's"},
		"wrong, refuses": {ours: says("other 2", "7"), wrong: "others than DuckDB's", mayRefuse: true},
		"wrong report":   {ours: says("right 2", "8"), wrong: "says that it wrote 8 rows"},
		"other strategy": {ours: strings.Replace(says("right 2", "7"), "how=$2", "how=shuffle", 1), wrong: "it took shuffle"},
		"other order":    {ours: says("right $$", "7"), wrong: "another order"},
		"alarm":          {ours: strings.Replace(says("right 2", "7"), `{"rows_out"`, `{"warnings":[{"text":"odd"}],"rows_out"`, 1), wrong: "it warns: odd"},
		"no output":      {ours: "echo '{}'", wrong: "no such file"},
		"failure":        {ours: "echo trouble >&2; exit 1", wrong: "trouble"},
		"refusal":        {ours: "echo trouble >&2; exit 1", mayRefuse: true},
		"crash":          {ours: "kill -9 $$", wrong: "killed", mayRefuse: true},
	} {
		b := &bench{Flags: cells.Flags{Out: t.TempDir()}}
		b.Ours, b.program.python = racetest.Program(t, c.ours), python
		j := job{dataset: dataset{log: log, ids: log}, typ: "semi"}
		who := strategy("lookup", j)
		who.mayRefuse = c.mayRefuse
		r, err := b.race(context.Background(), "cell", 2, []contender{who, duckdb(j)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wrong := append(r.wrong, r.disobeyed()...)
		if got := len(wrong) > 0; got != (c.wrong != "") || got && !strings.Contains(wrong[0].Error(), c.wrong) {
			t.Errorf("%s: got %v, want %q", name, wrong, c.wrong)
		}
		if len(r.runs["duckdb"]) != 2 {
			t.Errorf("%s: DuckDB ran %d times, want 2", name, len(r.runs["duckdb"]))
		}
		table := r.table("DuckDB's", func(string) string { return "duckdb" })
		if failed := table.Rows[0][1] == "failed"; failed != (r.failed["lookup"] != "") {
			t.Errorf("%s: %q", name, table.Rows)
		}
		left, err := os.ReadDir(b.Out)
		if err != nil || len(left) > 0 {
			t.Errorf("%s: left: %v, %v", name, left, err)
		}
	}
}

func TestTable(t *testing.T) {
	semi := job{typ: "semi"}
	r := &contest{
		bench: &bench{}, name: "c", contenders: []contender{bloomjoin("ours", "**bloomjoin**", semi), duckdb(semi), strategy("exact", semi)},
		runs: race.Runs{
			"ours":   {{Wall: 1, CPU: 2, Peak: 400 << 20}, {Wall: 2, CPU: 2, Peak: 420 << 20}},
			"duckdb": {{Wall: 4, CPU: 8, Peak: 4 << 30}, {Wall: 4, CPU: 8, Peak: 4 << 30}},
		},
		said: map[string]joined{"ours": {SpilledBytes: 3e6}}, failed: map[string]string{"exact": "no"}, answers: map[job]answer.Answer{semi: {Rows: 5}},
	}
	table := r.toOurs()
	for i, want := range []string{"**bloomjoin**|1.50|1.00|2.00|420|3|5|1.00", "DuckDB 2.0.0|4.00|4.00|8.00|4096|–|5|3.00", "`exact`|failed|–|–|–|–|–|–"} {
		if got := strings.Join(table.Rows[i], "|"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := r.peakRatio("ours", "duckdb"); got != 420.0/4096 {
		t.Errorf("memory: got %v", got)
	}
	if got := r.peakRatio("exact", "duckdb"); !math.IsNaN(got) {
		t.Errorf("memory of who did not run: got %v", got)
	}
}

// A row of the cell types: the ratio and its target, and the peak unless the IDs are
// many.
func TestTypeRow(t *testing.T) {
	j := job{typ: "inner"}
	r := &contest{
		bench: &bench{}, contenders: []contender{bloomjoin("ours", "", j), duckdb(j)}, answers: map[job]answer.Answer{j: {Rows: 5}},
		runs: race.Runs{"ours": {{Wall: 3, Peak: 300 << 20}}, "duckdb": {{Wall: 4, Peak: 1 << 30}}},
	}
	var table report.Table
	r.typeRow(&table, typeCase{typ: "inner", text: "10 %", wall: 0.8}, "zstd")
	r.typeRow(&table, typeCase{typ: "inner", text: "50 %", wall: 0.7, large: true}, "zstd")
	delete(r.runs, "duckdb")
	r.typeRow(&table, typeCase{typ: "left", text: "1 %", wall: 1}, "snappy")
	for i, want := range []string{
		"inner, 10 %|zstd|3.00|4.00|–|0.75|≤ 0.80|yes|300|1024|**no**|5",
		"inner, 50 %|zstd|3.00|4.00|–|0.75|≤ 0.70|**no**|300|1024|–|5",
		"left, 1 %|snappy|3.00|–|–|–|≤ 1.00|–|300|–|**no**|5",
	} {
		if got := strings.Join(table.Rows[i], "|"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEstimate(t *testing.T) {
	e := estimate{Value: 10, Low: 9, High: 11}
	for figure, want := range map[float64]bool{8.99: false, 9: true, 9 - 1e-12: true, 11: true, 11 + 1e-12: true, 11.01: false} {
		if got := e.holds(figure); got != want {
			t.Errorf("%v: got %t", figure, got)
		}
	}
	if zero := (estimate{}); !zero.holds(0) || zero.holds(1) {
		t.Error("nothing is estimated as nothing")
	}
	for _, c := range []struct {
		got, want float64
		text      string
	}{{100, 100, "0"}, {0, 0, "0"}, {1, 0, "–"}, {101, 100, "+1 %"}, {87.65, 100, "-12 %"}, {100 + 1e-12, 100, "0"}} {
		if got := errorOf(c.got, c.want); got != c.text {
			t.Errorf("%v for %v: got %q, want %q", c.got, c.want, got, c.text)
		}
	}
	if got, want := bounds(estimate{0.01, 0.005, 0.02}, percent), "1 (0.5 to 2)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
