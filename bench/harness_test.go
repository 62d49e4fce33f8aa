package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestExecute(t *testing.T) {
	shell := func(text string) Command {
		return Command{Argv: []string{"sh", "-c", text}, Env: []string{"WORD=word"}}
	}
	r, out, err := shell("sleep 0.2; echo $WORD").Execute(t.Context())
	if err != nil || string(out) != "word\n" {
		t.Fatalf("got %q, %v", out, err)
	}
	if r.Wall < 0.2 || r.Wall > 20 || r.CPU > r.Wall || r.Peak < 100<<10 || r.Peak > 1<<30 {
		t.Errorf("a sleep of 0.2 s: got %+v", r)
	}
	if _, _, err = shell("echo the reason >&2; exit 3").Execute(t.Context()); err == nil || !strings.Contains(err.Error(), "the reason") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a failure: got %v", err)
	}
}

// A child that was waited for counts: its time, and its memory if it is the larger one.
func TestExecuteCountsChildren(t *testing.T) {
	alone, _, err := Command{Argv: []string{"sh", "-c", "true"}}.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The shell goes on after its child, so it does not replace itself by it.
	r, _, err := Command{Argv: []string{"sh", "-c", "head -c 100000000 /dev/zero | tail -c 100000000 | cat >/dev/null; true"}}.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Peak < 90<<20 || r.CPU <= alone.CPU {
		t.Errorf("a child with 100 MB: got %+v, without %+v", r, alone)
	}
}

func TestRounds(t *testing.T) {
	var got string
	for round, name := range rounds(3, []string{"a", "b"}) {
		if round == 2 && name == "b" {
			break
		}
		got += fmt.Sprint(round, name, " ")
	}
	if want := "0a 0b 1b 1a 2a "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSamples(t *testing.T) {
	near(t, "odd median", Samples{9, 1, 5}.Median(), 5, 0)
	near(t, "even median", Samples{9, 1, 5, 7}.Median(), 6, 0)
	near(t, "median of quotients", Samples{2, 9, 8}.Over(Samples{1, 3, 2}).Median(), 3, 0)
	if !math.IsNaN(Samples{}.Median()) || Samples([]float64{1}).Over(Samples{}) != nil {
		t.Error("without samples: want none")
	}
}

// The ratio is the median of the rounds' quotients, not the quotient of the medians.
func TestRatio(t *testing.T) {
	runs := func(walls ...float64) (r Result) {
		for _, w := range walls {
			r.Runs = append(r.Runs, Run{Wall: w})
		}
		r.Name = fmt.Sprint(walls)
		return r
	}
	first := runs(1, 2, 6)
	if got, want := runs(4, 1, 2).beside(first), "0.50 (0.33–4.00) 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := runs(4, 1).beside(first); got != none {
		t.Errorf("rounds that do not pair: got %s", got)
	}
}

// Every table has a name of its own, and every cell one in its table, whose first
// contender is ours. Its data can be generated.
func TestTables(t *testing.T) {
	names := map[string]bool{}
	for _, table := range Tables() {
		if names[table.Name] || table.Title == "" || table.Text == "" || (table.Grid == nil) == (len(table.Cells) == 0) {
			t.Errorf("table %q", table.Name)
		}
		names[table.Name] = true
		cells := map[string]bool{}
		for _, c := range table.Cells {
			if cells[c.Name] || len(c.Contenders) == 0 || c.Contenders[0].Kind != Ours {
				t.Errorf("%s: cell %q", table.Name, c.Name)
			}
			cells[c.Name] = true
			contenders := map[string]bool{}
			for _, who := range c.Contenders {
				if contenders[who.Name] {
					t.Errorf("%s: %s: two of %s", table.Name, c.Name, who.Name)
				}
				contenders[who.Name] = true
			}
			for _, d := range []Data{c.Job.Log, c.Job.IDs, c.Job.Log.small(), c.Job.IDs.small()} {
				if d.Kind != "" && (d.Rows == 0 || d.Members > min(d.Rows, d.users()) || strings.Contains(d.Name(), "=")) {
					t.Errorf("%s: %s: data %+v", table.Name, c.Name, d)
				}
			}
		}
	}
	if n := len(names); n < 20 {
		t.Errorf("%d tables", n)
	}
}

func TestChoose(t *testing.T) {
	few, err := choose(Tables(), "semi,build-1b", false)
	if err != nil || len(few) != 2 || few[1].Name != "build-1b" {
		t.Errorf("got %v, %v", few, err)
	}
	usual, err := choose(Tables(), "", false)
	if err != nil || slices.ContainsFunc(usual, func(t *Table) bool { return t.Large }) {
		t.Errorf("large tables by default, or %v", err)
	}
	if all, err := choose(Tables(), "", true); err != nil || len(all) <= len(usual) {
		t.Errorf("with -large: %d tables, %v", len(all), err)
	}
	if _, err := choose(Tables(), "semi,none", false); err == nil {
		t.Error("a table that there is not: want an error")
	}
}

func TestUpdateRefusesFiguresThatMeanNothing(t *testing.T) {
	for _, args := range [][]string{{"-update", "-quick"}, {"-update", "-without", "chdb"}, {"-update", "-bloomjoin", "x"}, {"table"}} {
		if err := new(options).parse(args); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}

// -update refuses a checkout with changes other than its own results, unless told otherwise.
func TestUpdateRefusesChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(argv ...string) {
		t.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("git", "init", "-q")
	write("bench/main.go", "package main\n")
	run("git", "add", ".")
	run("git", "-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-qm", "first")
	t.Chdir("bench")
	o := options{update: true}
	clean, err := o.origin(t.Context())
	if err != nil || clean.Changed || len(clean.Commit) != 12 || clean.Date == "" || clean.Machine == "" {
		t.Errorf("clean: %+v, %v", clean, err)
	}
	write(resultsDir+"/semi.json", "{}")
	write(document, "")
	write(image, "")
	if got, err := o.origin(t.Context()); err != nil || got.Changed {
		t.Errorf("results: %+v, %v", got, err)
	}
	write("../other.go", "package other\n")
	if got, err := o.origin(t.Context()); err == nil || !strings.Contains(err.Error(), "other.go") {
		t.Errorf("a change: %+v, %v", got, err)
	}
	o.dirty = true
	if got, err := o.origin(t.Context()); err != nil || !got.Changed {
		t.Errorf("a change with -dirty: %+v, %v", got, err)
	}
}

// Quick runs leave no peer out: each runs once for each type of join in a table.
func TestAdmitted(t *testing.T) {
	h := &Harness{quick: true, met: map[string]bool{}, without: []string{"chdb"}}
	table := &Table{Name: "t"}
	names := func(typ string) (all []string) {
		for _, who := range h.admitted(table, Cell{Job: Job{Type: typ}, Contenders: []Contender{ours(), duckdb, chdb, decompress}}) {
			all = append(all, who.Name)
		}
		return all
	}
	for _, want := range []struct {
		typ  string
		many int
	}{{"semi", 3}, {"semi", 1}, {"inner", 3}} {
		if got := names(want.typ); len(got) != want.many || slices.Contains(got, chdb.Name) {
			t.Errorf("%s: got %q", want.typ, got)
		}
	}
	h.quick = false
	if got := names("semi"); len(got) != 3 {
		t.Errorf("not quick: got %q", got)
	}
}

// pythonVariable names a Python with the packages of .ci/requirements.txt.
const pythonVariable = "BLOOMJOIN_BENCH_PYTHON"

// testHarness returns a harness for quick runs. The test is skipped without Python.
func testHarness(t *testing.T) *Harness {
	t.Helper()
	python := os.Getenv(pythonVariable)
	if python == "" {
		t.Skipf("%s is not set", pythonVariable)
	}
	self := filepath.Join(t.TempDir(), "bench")
	if out, err := exec.Command("go", "build", "-o", self, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h := &Harness{ctx: context.Background(), dir: t.TempDir(), python: python, quick: true}
	if err := h.Prepare(); err != nil {
		t.Fatal(err)
	}
	h.self = self
	t.Cleanup(h.Close)
	return h
}

// A contender with a wrong answer fails: a row less, another value, another column, or a
// filter of other IDs.
func TestWrongAnswersFail(t *testing.T) {
	h := testHarness(t)
	table, log := &Table{Name: "test"}, logOf(5*million)
	changed := func(sql string) Contender {
		return Contender{Name: sql, Kind: Peer, Command: func(h *Harness, a Attempt) Command {
			right := duckdb.Command(h, a)
			script := "import json, sys, types, peers\nq = peers.duckdb_query\n" +
				"peers.duckdb_query = lambda a: f'" + sql + "'\npeers.duckdb_join(types.SimpleNamespace(**json.loads(sys.argv[1])))"
			return Command{Argv: []string{h.python, "-c", script, right.Argv[len(right.Argv)-1]}, Env: []string{"PYTHONDONTWRITEBYTECODE=1"}}
		}}
	}
	race := func(job Job, who Contender) error {
		_, err := h.Race(table, Cell{Name: who.Name, Job: job, Contenders: []Contender{who}})
		return err
	}
	job := join("inner", log, share(log, 0.1))
	for _, who := range []Contender{ours(), duckdb, changed("FROM ({q(a)}) ORDER BY url")} {
		if err := race(job, who); err != nil {
			t.Errorf("%s: %v", who.Name, err)
		}
	}
	for sql, want := range map[string]string{
		"FROM ({q(a)}) OFFSET 1":                                   "rows, want",
		"SELECT * REPLACE (status + 1 AS status) FROM ({q(a)})":    "other values",
		"SELECT * EXCLUDE (name) FROM ({q(a)})":                    "columns",
		"SELECT * RENAME (name AS url, url AS name) FROM ({q(a)})": "other values",
	} {
		if err := race(job, changed(sql)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", sql, err, want)
		}
	}
	none := join("semi", log, Data{Kind: "ids", Rows: million, Users: log.Rows, First: 1})
	if err := race(none, ours()); err == nil || !strings.Contains(err.Error(), "nothing is compared") {
		t.Errorf("an answer without rows: got %v", err)
	}
	filter, other := builder(idsOf("ids", 100*million, "")), ours(onePercent...)
	if err := race(filter, other); err != nil {
		t.Error(err)
	}
	right := other.Command
	other.Command = func(h *Harness, a Attempt) Command {
		path, err := h.Make(idsOf("ids", 50*million, ""))
		if err != nil {
			t.Fatal(err)
		}
		a.IDsPath = path
		return right(h, a)
	}
	if err := race(filter, other); err == nil || !strings.Contains(err.Error(), "members") {
		t.Errorf("a filter of half of the IDs: got %v", err)
	}
}
