package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

// called runs a command in this process.
func called(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, said bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &said)
	return out.String(), said.String(), code
}

// works runs a command that succeeds.
func works(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, said, code := called(t, stdin, args...)
	if code != session.ExitDone {
		t.Fatalf("%v: exit code %d: %s", args, code, said)
	}
	return out
}

// A list, its paths, and both on standard input give what the arguments give, in every
// command, whatever the shard.
func TestFilesFrom(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	logs, ids := flights+"/logs", flights+"/airports-tx.csv"
	var paths strings.Builder
	for _, n := range []string{"2001-q1.parquet", "2001-04.parquet", "2001-05.parquet", "2001-06.arrow"} {
		paths.WriteString(logs + "/" + n + "\r\n\n")
	}
	works(t, "", "inputs", "--quiet", "-o", at("list"), logs)
	works(t, "", "inputs", "--quiet", "--text", "-o", at("ids"), ids)
	works(t, "", "build", "--quiet", "--key", "iata", "-o", at("tx.bjf"), ids)
	if err := os.WriteFile(at("paths"), []byte(paths.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	list := string(read(t, at("list")))
	for i, args := range [][]string{
		{"scan", "--filter", at("tx.bjf"), "--key", "origin"},
		{"scan", "--filter", at("tx.bjf"), "--key", "origin", "--shard", "1/3"},
		{"scan", "--filter", at("tx.bjf"), "--key", "origin", "--shard", "19/20"},
		{"join", "--ids", ids, "--on", "origin=iata", "--type", "inner", "--shard", "1/2"},
		{"join", "--ids", ids, "--on", "origin=iata", "--type", "left"},
		{"join", "--ids", ids, "--on", "origin=iata", "--type", "right"},
		{"build", "--key", "origin"},
		{"build", "--key", "origin", "--shard", "2/5"},
	} {
		ending := ".parquet"
		if args[0] == "build" {
			ending = ".bjf"
		}
		want := at(fmt.Sprint("want", i, ending))
		works(t, "", append(args, "--quiet", "-o", want, logs)...)
		for k, from := range []struct{ name, stdin string }{{at("list"), ""}, {at("paths"), ""}, {"-", list}, {"-", paths.String()}} {
			got := at(fmt.Sprint("got", i, "-", k, ending))
			works(t, from.stdin, append(args, "--quiet", "-o", got, "--files-from", from.name)...)
			if !bytes.Equal(read(t, got), read(t, want)) {
				t.Errorf("%v --files-from %s (%d): another output", args, from.name, k)
			}
		}
	}
	for _, shard := range [][]string{nil, {"--shard", "1/3"}} {
		plan := append([]string{"plan", "--ids", ids, "--on", "origin=iata"}, shard...)
		want := works(t, "", append(plan, logs)...)
		if got := works(t, "", append(plan, "--files-from", at("list"))...); got != want {
			t.Errorf("plan %v: %s, want %s", shard, got, want)
		}
	}
	for _, shard := range []string{"0/2", "1/2"} {
		bound := []string{"build", "--quiet", "--key", "iata", "--expect", "1000", "--shard", shard, "-o"}
		works(t, "", append(bound, at("arg"+shard[:1]), ids)...)
		works(t, "", append(bound, at("listed"+shard[:1]), "--files-from", at("ids"))...)
		if !bytes.Equal(read(t, at("arg"+shard[:1])), read(t, at("listed"+shard[:1]))) {
			t.Errorf("shard %s of text: another filter", shard)
		}
	}
	if out := works(t, "", "inspect", "--check", "--files-from", at("list")); strings.Count(out, "every page was decoded") != 4 {
		t.Errorf("inspect: %s", out)
	}
	if out := works(t, "", "inspect", "--check", at("list")); !strings.Contains(out, "4 inputs, 50,000 rows") || !strings.Contains(out, "all checksums hold") {
		t.Errorf("inspect: %s", out)
	}
}

// A directory output of a list grows and stays like one of arguments, and a worker
// reads only its own files.
func TestListedDirectory(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	log, list := at("log"), at("list")
	days := func(from, to int) {
		for d := from; d <= to; d++ {
			day := filepath.Join(log, fmt.Sprintf("dt=2024-05-%02d", d))
			if err := os.MkdirAll(day, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(day+"/a.parquet", read(t, flights+"/logs/2001-05.parquet"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	scan := []string{"scan", "--json", "--filter", at("tx.bjf"), "--key", "origin"}
	type report struct {
		RowsIn        int64 `json:"rows_in"`
		FilesExcluded int64 `json:"files_excluded"`
		Inputs        int   `json:"inputs"`
		New           []string
		Kept          *int
	}
	figures := func(args ...string) (r report) {
		if err := json.Unmarshal([]byte(works(t, "", args...)), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	works(t, "", "build", "--quiet", "--key", "iata", "-o", at("tx.bjf"), flights+"/airports-tx.csv")
	days(1, 5)
	if r := figures("inputs", "--json", "-o", list, log); r.Inputs != 5 || r.Kept != nil {
		t.Errorf("inputs: %+v", r)
	}
	figures(append(scan, "-o", at("out")+"/", "--files-from", list)...)
	days(6, 7)
	if r := figures("inputs", "--json", "--update", list, "-o", list, log); r.Inputs != 7 || *r.Kept != 5 || len(r.New) != 2 {
		t.Errorf("inputs --update: %+v", r)
	}
	if r := figures(append(scan, "-o", at("out")+"/", "--files-from", list)...); r.RowsIn != 2*8647 {
		t.Errorf("a grown log: %+v", r)
	}
	figures(append(scan, "-o", at("new")+"/", log)...)
	for d := 1; d <= 7; d++ {
		name := fmt.Sprintf("/dt=2024-05-%02d/a.parquet", d)
		if !bytes.Equal(read(t, at("out")+name), read(t, at("new")+name)) {
			t.Errorf("%s differs", name)
		}
	}
	if r := figures(append(scan, "--count", "--where", "dt > '2024-05-05'", "--files-from", list)...); r.RowsIn != 2*8647 || r.FilesExcluded != 5 {
		t.Errorf("with a condition: %+v", r)
	}
	// Six of seven files are gone: a worker does not need them.
	for d := 2; d <= 7; d++ {
		os.RemoveAll(filepath.Join(log, fmt.Sprintf("dt=2024-05-%02d", d)))
	}
	if r := figures(append(scan, "--count", "--shard", "0/7", "--files-from", list)...); r.RowsIn != 8647 {
		t.Errorf("the first shard: %+v", r)
	}
	_, said, code := called(t, "", append(scan, "--count", "--shard", "1/7", "--files-from", list)...)
	if code != session.ExitFailed || !strings.Contains(said, "dt=2024-05-02/a.parquet") || !strings.Contains(said, "bloomjoin inputs --update "+list) {
		t.Errorf("a file that is gone: exit code %d: %s", code, said)
	}
}

// What a condition leaves out of a list decides nothing, like directories that are not
// named: neither its columns, nor that it has no key, nor that it is gone.
func TestListLeavesOut(t *testing.T) {
	dir := t.TempDir()
	for day, from := range map[string]string{"1": "airports-tx.csv", "2": "logs/2001-04.parquet", "3": "logs/2001-05.parquet"} {
		name := dir + "/log/day=" + day + "/a" + filepath.Ext(from)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, read(t, flights+"/"+from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	works(t, "", "inputs", "--quiet", "--text", "-o", dir+"/list", dir+"/log")
	if err := os.RemoveAll(dir + "/log/day=1"); err != nil {
		t.Fatal(err)
	}
	for _, verb := range [][]string{
		{"scan", "--filter", dir + "/tx.bjf", "--key", "origin"},
		{"join", "--ids", flights + "/airports-tx.csv", "--on", "origin=iata"},
	} {
		if verb[0] == "scan" {
			works(t, "", "build", "--quiet", "--key", "iata", "-o", dir+"/tx.bjf", flights+"/airports-tx.csv")
		}
		args := append(verb, "--quiet", "--where", "day > 1", "-o", dir+"/out.parquet", "--force")
		works(t, "", append(args, dir+"/log")...)
		want := read(t, dir+"/out.parquet")
		works(t, "", append(args, "--files-from", dir+"/list")...)
		if !bytes.Equal(read(t, dir+"/out.parquet"), want) {
			t.Errorf("%s: another output", verb[0])
		}
	}
}

// Files of a list without a key are skipped and counted like files that are named.
func TestListSkipsFiles(t *testing.T) {
	dir := t.TempDir()
	for name, from := range map[string]string{"a": "airports-tx", "b": "logs/2001-04", "c": "airports-tx", "d": "logs/2001-05", "e": "airports-tx"} {
		from = flights + "/" + from + ".parquet"
		if strings.Contains(from, "airports") {
			from = dir + "/airports"
			works(t, "", "join", "--quiet", "--ids", flights+"/airports-tx.csv", "--on", "origin=iata", "--type", "right", "--columns", "name", "--force", "--format", "parquet", "-o", from, flights+"/logs/2001-04.parquet")
		}
		if err := os.MkdirAll(dir+"/log", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/log/"+name+".parquet", read(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	works(t, "", "inputs", "--quiet", "-o", dir+"/list", dir+"/log")
	join := []string{"join", "--ids", flights + "/airports-tx.csv", "--on", "origin=iata", "--missing-key", "skip-file", "--json", "-o", dir + "/out.parquet", "--force"}
	figures := func(args ...string) (said string, r struct {
		FilesSkipped int `json:"files_skipped"`
		Path         []struct{ File, Path string }
	}) {
		out, said, code := called(t, "", append(join, args...)...)
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != session.ExitDone {
			t.Fatalf("%v, exit code %d: %s", err, code, said)
		}
		said, _, _ = strings.Cut(said, "\n")
		return said, r
	}
	wantSaid, want := figures(dir + "/log")
	file := read(t, dir+"/out.parquet")
	if want.FilesSkipped != 3 {
		t.Fatalf("%+v", want)
	}
	gotSaid, got := figures("--files-from", dir+"/list")
	if gotSaid != wantSaid || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s %+v, want %s %+v", gotSaid, got, wantSaid, want)
	}
	if !bytes.Equal(read(t, dir+"/out.parquet"), file) {
		t.Error("another output")
	}
}

// Lists work at URLs, and on standard input.
func TestListAtURL(t *testing.T) {
	b := newBucket(t)
	b.done("inputs", "--quiet", "-o", b.at+"/lists/in.jsonl", b.at+"/logs/")
	b.done("inputs", "--quiet", "--update", b.at+"/lists/in.jsonl", "-o", b.at+"/lists/in.jsonl", b.at+"/logs/")
	b.done("build", "--quiet", "--key", "iata", "-o", b.at+"/tx.bjf", b.at+"/airports-tx.csv")
	for i := range 3 {
		b.done("scan", "--filter", b.at+"/tx.bjf", "--key", "origin", "--shard", fmt.Sprint(i, "/3"), "--files-from", b.at+"/lists/in.jsonl", "-o", b.at+"/listed/")
		b.done("scan", "--filter", b.at+"/tx.bjf", "--key", "origin", "--shard", fmt.Sprint(i, "/3"), "-o", b.at+"/named/", b.at+"/logs/")
	}
	if got, want := fmt.Sprint(b.tree(b.at+"/listed")), fmt.Sprint(b.tree(b.at+"/named")); got != want {
		t.Error("a list at a URL gives other outputs")
	}
}

// Files of names are refused where a line is no name.
func TestFilesFromRefusals(t *testing.T) {
	dir := t.TempDir()
	works(t, "", "inputs", "--quiet", "-o", dir+"/list", flights+"/logs")
	line := strings.SplitAfter(string(read(t, dir+"/list")), "\n")[1]
	for content, want := range map[string]string{
		"":                       "names no inputs",
		line:                     "a line of JSON",
		"a.parquet\n-\n":         "line 2: want a path, got -",
		"a.parquet\x00b.parquet": "NUL",
		string(read(t, flights+"/logs/2001-04.parquet")): "name it as an argument",
		string(read(t, dir+"/list"))[:400]:               "cut off",
	} {
		name := dir + "/from"
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, said, code := called(t, "", "join", "--ids", flights+"/airports-tx.csv", "--on", "origin=iata", "--count", "--files-from", name)
		if code != session.ExitFailed || !strings.Contains(said, want) {
			t.Errorf("%.20q: exit code %d: %s; want %s", content, code, said, want)
		}
	}
}
