package main

import (
	"context"
	"encoding/json"
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

// Without a server its cells are skipped, unless they were asked for.
func TestWithoutGateway(t *testing.T) {
	var b bench
	rest, err := b.withoutGateway(allCells(), false)
	if err != nil || len(rest) != 2 || rest[0].Name != "where-day" {
		t.Errorf("got %v, %v", rest, err)
	}
	if _, err := b.withoutGateway(allCells(), true); err == nil || !strings.Contains(err.Error(), "BLOOMJOIN_S3GW") {
		t.Errorf("got %v", err)
	}
}

// The documents have markers for each cell.
func TestDocumentsHaveMarkers(t *testing.T) {
	if err := cells.CheckDocuments("..", allCells()); err != nil {
		t.Error(err)
	}
}

// The command lines of programs: a log has a URL where there is an endpoint.
func TestSteps(t *testing.T) {
	b := &bench{}
	b.Ours, b.program.python, b.program.replay = "BJ", "PY", "REPLAY"
	j := jobOf(dataset{log: "/root/bench/d/log", ids: "/root/bench/d/ids", many: true}, "inner")
	j.where = "a > 1"
	near := attempt{bench: b, job: j, from: j.log, out: "OUT", scratch: "TMP"}
	far := near
	far.endpoint, far.from, far.ranges = "http://127.0.0.1:1", "s3://bench/d/log", "RANGES"
	const argv = "BJ join --force --quiet --json --threads 2 --ids /root/bench/d/ids --on user_id --type inner --where a > 1 -o OUT "
	for want, s := range map[string]race.Step{
		argv + "/root/bench/d/log":                              bloomjoin().step(near),
		argv + "s3://bench/d/log":                               bloomjoin().step(far),
		argv + "/root/bench/d/log ":                             local().step(far),
		"REPLAY -endpoint http://127.0.0.1:1 -flight 32 RANGES": replayed().step(far),
	} {
		if got := strings.Join(s.Argv, " "); got != strings.TrimSpace(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s := bloomjoin().step(far)
	if !slices.Contains(s.Env, "AWS_ENDPOINT_URL=http://127.0.0.1:1") || !slices.Contains(s.Env, "TMPDIR=TMP") {
		t.Errorf("environment: %q", s.Env)
	}
	var args struct {
		Log     string   `json:"log"`
		Payload []string `json:"payload"`
	}
	s = b.duckdb().step(far)
	if err := json.Unmarshal([]byte(s.Argv[3]), &args); err != nil || args.Log != "s3://bench/d/log/*.parquet" || len(args.Payload) != 2 {
		t.Errorf("a peer's arguments: %s, %v", s.Argv[3], err)
	}
}

func TestURL(t *testing.T) {
	s := &server{dir: "/root/bench"}
	if got, err := s.url("/root/bench/d/log"); err != nil || got != "s3://bench/d/log" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, outside := range []string{"/root/log", "/root/bench2/log", "log"} {
		if got, err := s.url(outside); err == nil {
			t.Errorf("%s: got %q, want an error", outside, got)
		}
	}
}

func TestTraffic(t *testing.T) {
	passed := traffic{
		{Method: "GET", Path: "/bench/", Out: 1}, {Method: "GET", Path: "/bench", Out: 2}, {Method: "HEAD", Path: "/bench/a"}, {Method: "GET", Path: "/bench/a", Out: 4},
	}
	if got := passed.kinds(); got != "2 LIST, 1 HEAD, 1 GET" || passed.bytes() != 7 || passed.requests() != 4 {
		t.Errorf("%s, %d bytes, %d requests", got, passed.bytes(), passed.requests())
	}
}

// The floor of a round is the longer of two; the figure is the median over rounds.
func TestOverLongest(t *testing.T) {
	walls := func(seconds ...float64) (runs []race.Usage) {
		for _, s := range seconds {
			runs = append(runs, race.Usage{Wall: s})
		}
		return runs
	}
	r := &contest{runs: race.Runs{"ours": walls(2, 6, 5), "local": walls(1, 2, 5), "replay": walls(2, 3, 1), "peer": walls(4)}}
	if got := r.overLongest("local", "replay"); got != 1 {
		t.Errorf("got %v, want the median of 1, 2 and 1", got)
	}
	if got := r.over("peer", "ours"); got != 2 {
		t.Errorf("who ran once: got %v, want 2", got)
	}
	delete(r.runs, "replay")
	if got := r.overLongest("local", "replay"); !math.IsNaN(got) {
		t.Errorf("without the floor: got %v", got)
	}
}

// A wrong answer of ours, a report that does not fit it, and a failure are errors. A
// peer's failure is not. The table shows both.
func TestWrongAnswers(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Python's part: DuckDB's join writes "right", and answers are read by their text.
	python := racetest.Program(t, `case "$3" in {*) out=${3#*'"out":"'}; echo right >"${out%%'"'*}";; `+
		`*) sed 's/.*/{"rows":7,"hash":"&","columns":["a"],"codecs":["snappy"]}/' "$3";; esac`)
	const product = `while [ "$1" != -o ]; do shift; done; echo TEXT >"$2"; echo '{"rows_out":ROWS}'`
	says := func(text, rows string) string {
		return strings.NewReplacer("TEXT", text, "ROWS", rows).Replace(product)
	}
	for name, c := range map[string]struct{ ours, wrong string }{
		"right":        {ours: says("right", "7")},
		"wrong answer": {ours: says("other", "7"), wrong: "others than DuckDB's"},
		"wrong report": {ours: says("right", "8"), wrong: "says that it wrote 8 rows"},
		"failure":      {ours: "echo trouble >&2; exit 1", wrong: "trouble"},
	} {
		b := &bench{Flags: cells.Flags{Out: t.TempDir()}}
		b.Ours, b.program.python = racetest.Program(t, c.ours), python
		broken := peerOf(racetest.Program(t, "exit 3"))
		r, err := b.race(context.Background(), "cell", jobOf(dataset{log: log, ids: log}, "semi"), nil, 2, []contender{bloomjoin(), b.duckdb(), broken})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := len(r.wrong) > 0; got != (c.wrong != "") || got && !strings.Contains(r.wrong[0].Error(), c.wrong) {
			t.Errorf("%s: got %v, want %q", name, r.wrong, c.wrong)
		}
		if len(r.runs["duckdb"]) != 2 || r.failed["broken"] == "" {
			t.Errorf("%s: DuckDB ran %d times, want 2; failed: %q", name, len(r.runs["duckdb"]), r.failed)
		}
		rows := r.table().Rows
		if failed := rows[0][1] == "failed"; failed != (c.wrong != "") || rows[2][1] != "failed" {
			t.Errorf("%s: %q", name, rows)
		}
		if left, err := os.ReadDir(b.Out); err != nil || len(left) > 0 {
			t.Errorf("%s: left: %v, %v", name, left, err)
		}
	}
}

// peerOf is a peer that another interpreter runs.
func peerOf(interpreter string) contender {
	return python("broken", "broken", "duckdb_join", interpreter, 1)
}

func TestConditionRow(t *testing.T) {
	r := &contest{answer: answer.Answer{Rows: 5}, runs: race.Runs{"ours": {{Wall: 3, Peak: 300 << 20}}, "duckdb": {{Wall: 4, Peak: 1 << 30}}}}
	var table report.Table
	r.conditionRow(&table, condition{text: "a", goal: 0.7})
	r.conditionRow(&table, condition{text: "b"})
	for i, want := range []string{"a|3.00|4.00|–|0.75|≤ 0.70|**no**|300|1024|5", "b|3.00|4.00|–|0.75|–|–|300|1024|5"} {
		if got := strings.Join(table.Rows[i], "|"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// versitygw serves files as objects, and proxies count what passes and repeat it.
func TestServer(t *testing.T) {
	gateway := os.Getenv("BLOOMJOIN_S3GW")
	if gateway == "" {
		t.Skip(noGateway)
	}
	ctx := t.Context()
	dir := t.TempDir()
	b := &bench{Flags: cells.Flags{Data: dir, Out: dir}, gateway: gateway}
	for pkg, program := range map[string]*string{"../slowproxy": &b.program.proxy, "./replay": &b.program.replay} {
		var err error
		if *program, err = race.Build(ctx, dir, ".", pkg); err != nil {
			t.Fatal(err)
		}
	}
	s, err := serve(ctx, gateway, b.program.proxy, b.root())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := os.WriteFile(filepath.Join(s.dir, "a"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	ranges := filepath.Join(dir, "ranges")
	if err := os.WriteFile(ranges, []byte(`[{"Method":"GET","Path":"/bench/a","Range":"bytes=10-109","Status":206,"Out":100}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if before := s.cpu(); !(before >= 0 && before < 60) || len(s.shells) != 3 {
		t.Errorf("processor time of %d processes: %v s", len(s.shells), before)
	}
	for _, endpoint := range []string{s.endpoint, s.counting, s.slow} {
		u, err := race.Execute(ctx, replayed().step(attempt{bench: b, endpoint: endpoint, ranges: ranges}))
		if err != nil {
			t.Fatal(err)
		}
		if endpoint == s.endpoint {
			continue
		}
		if endpoint == s.slow && u.Wall < slow.delay.Seconds() {
			t.Errorf("it took %v s through the slow network", u.Wall)
		}
		got, err := passed(ctx, endpoint)
		if err != nil || len(got) != 1 || got[0].Range != "bytes=10-109" || got.bytes() != 100 {
			t.Errorf("passed: %+v, %v", got, err)
		}
		if again, err := passed(ctx, endpoint); err != nil || len(again) != 0 {
			t.Errorf("passed again: %+v, %v", again, err)
		}
	}
}
