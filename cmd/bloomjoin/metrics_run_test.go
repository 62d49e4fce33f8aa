package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

var (
	metadata = regexp.MustCompile(`^# (TYPE|UNIT|HELP) (bloomjoin_[a-z0-9_]+) (.+)$`)
	sampled  = regexp.MustCompile(`^([a-z0-9_]+)\{((?:[a-z]+="[^"\\\n]*"(?:,|\}))+) (-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?)$`)
)

// openMetricsOf parses a file by the grammar of OpenMetrics, as far as it is used here, and returns
// the samples with their labels.
func openMetricsOf(t *testing.T, name string) map[string]float64 {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutSuffix(string(b), "# EOF\n")
	if !ok || strings.Contains(text, "# EOF") {
		t.Fatalf("want # EOF once, at the end: %s", b)
	}
	samples, about, family := map[string]float64{}, map[string]map[string]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := metadata.FindStringSubmatch(line); m != nil {
			if family != m[2] && (m[1] != "TYPE" || about[m[2]] != nil) || about[m[2]][m[1]] != "" {
				t.Errorf("%q: a family begins with its type, and is in one piece", line)
			}
			if family = m[2]; m[1] == "TYPE" {
				about[family] = map[string]string{}
			}
			about[family][m[1]] = m[3]
			continue
		}
		m := sampled.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%q is not a sample", line)
			continue
		}
		want := map[string]string{"counter": family + "_total", "gauge": family}[about[family]["TYPE"]]
		unit := about[family]["UNIT"]
		if m[1] != want || unit != "" && !strings.HasSuffix(family, "_"+unit) || strings.HasSuffix(family, "_bytes") != (unit == "bytes") || strings.HasSuffix(family, "_seconds") != (unit == "seconds") {
			t.Errorf("%q: want a sample of %s, in %q", line, want, unit)
		}
		key := m[1] + "{" + m[2]
		if _, twice := samples[key]; twice {
			t.Errorf("%q: twice", line)
		}
		if samples[key], err = strconv.ParseFloat(m[3], 64); err != nil {
			t.Error(err)
		}
	}
	return samples
}

// records returns the lines of a log.
func records(t *testing.T, name string) (all []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// Every verb keeps its figures as OpenMetrics, which say what the report says, and logs what it says
// on standard error, and more.
func TestMetricsAndLog(t *testing.T) {
	flights, err := filepath.Abs("../../testdata/flights")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS(".", os.DirFS(flights)); err != nil {
		t.Fatal(err)
	}
	labels := func(f map[string]float64, name string) (found []string) {
		for key := range maps.Keys(f) {
			if n, l, _ := strings.Cut(key, "{"); n == name {
				found = append(found, l)
			}
		}
		return found
	}
	for i, c := range []struct {
		args, verb string
		exit       int
		figures    map[string]string // metrics by the name of the field
	}{
		{"build --key iata -o ids.bjf airports-tx.csv", "build", 0, map[string]string{"rows": "rows", "distinct": "distinct", "file_bytes": "file_bytes", "bytes_read": "read_bytes", "sealed": "sealed"}},
		{"join --ids airports-tx.csv --on origin=iata --type inner -o rows.parquet logs", "join", 0, map[string]string{"rows_in": "rows_in", "rows_out": "rows_out", "ids_total": "ids", "ids_matched": "ids_matched", "bytes_written": "written_bytes", "spilled_bytes": "spilled_bytes"}},
		{"join --ids airports-tx.csv --on origin=iata --type inner -o rows.parquet logs", "join", 0, map[string]string{"already_done": "already_done", "rows_out": "rows_out"}},
		{"scan --filter ids.bjf --key origin --quiet --shard 0/2 --no-commit -o out/ logs", "scan", 0, map[string]string{"rows_in": "rows_in"}},
		{"scan --filter ids.bjf --key origin --shard 1/2 --progress none --no-commit -o out/ logs", "scan", 0, nil},
		{"commit --sweep --older 0s out/", "commit", 0, nil}, {"commit out/", "commit", 0, map[string]string{"rows_out": "rows_out", "bytes": "bytes", "workers": "workers"}},
		{"plan --ids airports-tx.csv --on origin=iata logs", "plan", 0, nil}, {"inspect --check ids.bjf", "inspect", 0, nil}, {"inspect out/", "inspect", 0, nil},
		{"size --keys 1e6", "size", 0, nil}, {"inputs -o in.jsonl logs", "inputs", 0, nil}, {"merge --union -o two.bjf ids.bjf", "merge", 0, nil},
		{"dedup --key origin --expect 60000 -o dedup.parquet logs", "dedup", 0, nil}, {"sketch --key origin -o s.bjs logs", "sketch", 0, nil}, {"sketch query --value DFW s.bjs", "sketch query", 0, nil},
		{"update --key iata -o x.bjf ids.bjf", "update", 64, nil}, {"version", "version", 0, nil},
		{"join --ids airports-tx.csv --on origin=iata --require-rows 99999 -o none.parquet logs", "join", 2, nil},
		{"join --ids airports-tx.csv --on nothing -o none.parquet logs", "join", 1, nil},
		{"join --ids airports-tx.csv --on origin=iata --fpr x -o none.parquet logs", "", 64, nil}, // is not parsed
	} {
		metrics, log := fmt.Sprintf("%d.prom", i), fmt.Sprintf("%d.jsonl", i)
		var out, said bytes.Buffer
		code := run(append(strings.Fields(c.args), "--json", "--metrics", metrics, "--log", log), strings.NewReader("1\n"), &out, &said)
		if code != c.exit {
			t.Errorf("%s: exit code %d: %s%s", c.args, code, &out, &said)
			continue
		}
		if c.verb == "" {
			if r := records(t, log); r[0]["level"] != "ERROR" || r[0]["code"] != "E103" || len(r) != 2 {
				t.Errorf("%s: %v", c.args, r)
			}
		} else {
			checkMetrics(t, c.args, c.verb, code, openMetricsOf(t, metrics), out.Bytes(), c.figures, labels)
			checkLog(t, c.args, c.verb, code, records(t, log), said.String())
		}
		if left, _ := filepath.Glob(".*.tmp"); len(left) > 0 {
			t.Errorf("%s: it leaves %q", c.args, left)
		}
	}
}

func checkMetrics(t *testing.T, what, verb string, exit int, got map[string]float64, report []byte, figures map[string]string, labels func(map[string]float64, string) []string) {
	t.Helper()
	shard := ""
	if i := strings.Index(what, "--shard "); i >= 0 {
		shard = fmt.Sprintf(",shard=%q", what[i+8:i+11])
	}
	of := fmt.Sprintf("{verb=%q%s}", verb, shard)
	if code, ok := got["bloomjoin_exit_code"+of]; !ok || int(code) != exit {
		t.Errorf("%s: exit code %v %t of %v", what, code, ok, got)
	}
	run := labels(got, "bloomjoin_run")
	if len(run) != 1 || exit == 0 == strings.Contains(run[0], "class=") || exit == 2 && !strings.Contains(run[0], `class="gate"`) || strings.Contains(what, "--type inner") && len(got) > 30 && !strings.Contains(run[0], "strategy=") {
		t.Errorf("%s: %q", what, run)
	}
	var r map[string]any
	if err := json.Unmarshal(report, &r); err != nil && figures != nil {
		t.Errorf("%s: %s: %v", what, report, err)
	}
	for field, name := range figures {
		want, is := r[field].(float64)
		if b, ok := r[field].(bool); ok && b {
			want, is = 1, true
		}
		if v, ok := got["bloomjoin_"+name+of]; !ok || !is || v != want {
			t.Errorf("%s: %s: got %v %t, want %v", what, name, v, ok, r[field])
		}
	}
	if stages := labels(got, "bloomjoin_stage_rows_total"); verb == "scan" && (len(stages) != 1 || !strings.Contains(stages[0], `stage="scanning"`)) {
		t.Errorf("%s: stages %q", what, stages)
	}
}

func checkLog(t *testing.T, what, verb string, exit int, got []map[string]any, said string) {
	t.Helper()
	first, last := got[0], got[len(got)-1]
	report, _ := last["report"].(map[string]any)
	if first["msg"] != "start" || first["verb"] != verb || first["version"] == "" || !strings.Contains(fmt.Sprint(first["args"]), strings.Fields(what)[1%len(strings.Fields(what))]) || last["msg"] != "end" || report["exit_code"] != float64(exit) || report["verb"] != verb {
		t.Errorf("%s: %v … %v", what, first, last)
	}
	begun, ended := 0, 0
	for _, r := range got[1 : len(got)-1] {
		text := fmt.Sprint(r["msg"])
		switch {
		case text == "stage begun":
			begun++
		case text == "stage ended":
			ended++
		case !strings.Contains(said, text) && !strings.Contains(what, "--quiet"):
			t.Errorf("%s: %q is not said: %s", what, text, said)
		}
		said = strings.Replace(said, text, "", 1)
	}
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && line != "bloomjoin:" && line != "bloomjoin: warning:" && !strings.HasPrefix(line, "{") {
			t.Errorf("%s: %q is not in the log", what, line)
		}
	}
	if begun != ended || begun == 0 && verb == "scan" {
		t.Errorf("%s: %d stages, %d ended", what, begun, ended)
	}
}

// The files of --metrics and --log are new ones or of their kind; whatever else is there stays.
func TestReportsSpare(t *testing.T) {
	t.Chdir(t.TempDir())
	content := map[string]string{"ids.csv": "id\n1\n", "log.csv": "id\n1\n2\n", "events.ndjson": `{"time":"2024-01-01T00:00:00Z","level":"INFO","msg":"start","user":1}` + "\n", "other.prom": "# TYPE up gauge\nup 1\n"}
	for name, text := range content {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := os.Symlink("ids.csv", "link") == nil
	for _, args := range []string{
		"--log ids.csv", "--metrics ids.csv", "--metrics ./log.csv", "--log log.csv", "--log events.ndjson", "--metrics other.prom", "--log link", "--log out.csv", "--metrics sub/../out.csv", "--log both --metrics both",
	} {
		if strings.Contains(args, "link") && !link {
			continue
		}
		var said bytes.Buffer
		line := append([]string{"join", "--ids", "ids.csv", "--on", "id", "-o", "out.csv", "log.csv"}, strings.Fields(args)...)
		if code := run(line, nil, &said, &said); code != session.ExitUsage {
			t.Errorf("%s: exit code %d: %s", args, code, &said)
		}
		for name, text := range content {
			if b, err := os.ReadFile(name); err != nil || string(b) != text {
				t.Errorf("%s: %s: %q, %v", args, name, b, err)
			}
		}
		if _, err := os.Stat("out.csv"); err == nil {
			t.Errorf("%s: there is an output", args)
		}
	}
}

// An output that replaces the file of --metrics stays, by whatever name that file was given.
func TestMetricsSpareOutput(t *testing.T) {
	flights, err := filepath.Abs("../../testdata/flights")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("real", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", "link"); err != nil {
		t.Skip(err)
	}
	for _, args := range []string{"-o real/out.csv --metrics link/out.csv", "-oreal/out.csv --metrics real/out.csv", "-o link/../real/out.csv --metrics real/out.csv"} {
		var said bytes.Buffer
		code := run(append([]string{"join", "--ids", flights + "/airports-tx.csv", "--on", "origin=iata", "--force", flights + "/logs"}, strings.Fields(args)...), nil, &said, &said)
		b, err := os.ReadFile("real/out.csv")
		if spared := code == session.ExitUsage && err != nil || code == 0 && strings.Contains(string(b), ",DFW") && strings.Contains(said.String(), "--metrics"); !spared {
			t.Errorf("%s: exit code %d, %q, %v: %s", args, code, b, err, &said)
		}
		_ = os.Remove("real/out.csv")
	}
}

// Keys that a command line has are not in the log.
func TestLogWithoutKeys(t *testing.T) {
	log := filepath.Join(t.TempDir(), "run.jsonl")
	for _, args := range [][]string{
		{"sketch", "query", "--value", "4711", "--value=4711", "none"}, {"find", "--key", "4711", "none"}, {"find", "--key=4711", "none"},
		{"scan", "--where", "id = 4711", "-o", "out.csv", "none"}, {"join", "--ids", "none", "--on", "id", "--where=id = 4711", "-o", "out.csv", "none"},
	} {
		var said bytes.Buffer
		if code := run(append(args, "--log", log), nil, &said, &said); code == 0 {
			t.Errorf("%q: %s", args, &said)
		}
	}
	b, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(b), "4711") || strings.Count(string(b), "--") < 8 || !strings.Contains(string(b), `--on id`) {
		t.Errorf("%s, %v", b, err)
	}
}

// Runs at the same time share one log.
func TestSharedLog(t *testing.T) {
	dir := t.TempDir()
	ids, log := filepath.Join(dir, "ids.csv"), filepath.Join(dir, "run.jsonl")
	if err := os.WriteFile(ids, []byte("id\n1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			cmd := exec.Command("bloomjoin", "build", "--key", "id", "--log", log, "-o", filepath.Join(dir, fmt.Sprintf("%d.bjf", i)), ids)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	times := map[any]int{}
	for _, r := range records(t, log) {
		times[r["msg"]]++
	}
	if times["start"] != 8 || times["end"] != 8 {
		t.Errorf("%v", times)
	}
}

// Metrics are there while a run works, without an exit code, and are those of its end when it is
// interrupted.
func TestMetricsOfInterrupted(t *testing.T) {
	dir := t.TempDir()
	metrics, log := filepath.Join(dir, "run.prom"), filepath.Join(dir, "run.jsonl")
	cmd := exec.Command("bloomjoin", "build", "--key", "1", "--no-header", "--ids-format", "csv", "--expect", "10", "--progress-interval", "10ms", "--metrics", metrics, "--log", log, "-o", filepath.Join(dir, "f.bjf"), "-")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	const seconds, exit = `bloomjoin_seconds{verb="build"}`, `bloomjoin_exit_code{verb="build"}`
	for begun, first := time.Now(), 0.0; ; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("no metrics in a minute")
		}
		if _, err := os.Stat(metrics); err != nil {
			continue
		}
		now := openMetricsOf(t, metrics)
		if _, ended := now[exit]; ended {
			t.Fatalf("it has ended: %v", now)
		}
		if first == 0 {
			first = now[seconds]
		} else if now[seconds] > first {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	now := openMetricsOf(t, metrics)
	keys := slices.Collect(maps.Keys(now))
	if now[exit] != 143 || !slices.ContainsFunc(keys, func(k string) bool { return strings.Contains(k, `class="interrupted"`) }) {
		t.Errorf("%v", now)
	}
	if all := records(t, log); all[len(all)-1]["msg"] != "end" {
		t.Errorf("%v", all)
	}
}
