package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// userLog writes a log of files in directories of days. Each file has 30 users of its own;
// some have rows without a user, one is Arrow, and one has no rows. It returns the users by
// file.
func userLog(t *testing.T, dir string) map[string][]int64 {
	t.Helper()
	mem := memory.DefaultAllocator
	users := map[string][]int64{}
	for i := range 25 {
		rows := 90
		name := filepath.Join(dir, fmt.Sprintf("dt=2024-05-%02d", 1+i%4), fmt.Sprintf("p%02d.parquet", i))
		switch i {
		case 7:
			name = strings.TrimSuffix(name, ".parquet") + ".arrow"
		case 11:
			rows = 0
		}
		var user []any
		var names []string
		var inner []int64
		for k := range rows {
			id := 1000*i + k%30
			users[name] = append(users[name], int64(id))
			inner = append(inner, int64(id))
			names = append(names, fmt.Sprintf([]string{"User%d", "uSER%d", " user%d"}[k%3], id))
			if i%5 == 2 && k%7 == 0 {
				user = append(user, nil)
			} else {
				user = append(user, id)
			}
		}
		ids := sourcetest.Array(t, mem, inner)
		nested, err := array.NewStructArray([]arrow.Array{ids}, []string{"id"})
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.Write(t, name, 40, sourcetest.Record(t, mem,
			sourcetest.Col{Name: "user", Values: user}, sourcetest.Col{Name: "name", Values: names},
			sourcetest.Col{Name: "u", Values: nested}, sourcetest.Col{Name: "n", Values: sourcetest.Numbers(rows, func(k int) int64 { return int64(k) })}))
	}
	return users
}

// volatile are the parts of manifests that differ from run to run.
var volatile = regexp.MustCompile(`"(done|staged|identity|identities|started|finished|modified|time)":("[^"]*"|\d+|\{[^}]*\})`)

// writtenTo returns the files of an output, and of its manifests without what differs from run
// to run.
func writtenTo(t *testing.T, out string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, root := range []string{out, strings.TrimSuffix(out, "/") + ".bloomjoin"} {
		if _, err := os.Stat(root); err != nil {
			continue
		}
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(filepath.Dir(root), path)
				all[stagedAs.ReplaceAllString(filepath.ToSlash(rel), "staged")] = volatile.ReplaceAllString(string(read(t, path)), "")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// indexCase is a command over the log of userLog.
type indexCase struct {
	index  []string // of inputs
	run    []string // scan or join, without -o and the log
	unread bool     // files are not opened
}

func indexCases(at func(string) string) []indexCase {
	user, name, nested, day := []string{"--index", "user"}, []string{"--index", "name", "--normalize", "trim,lower"}, []string{"--index", "u.id"}, []string{"--index", "dt"}
	both := []string{"--index", "user,name"}
	scan := func(args ...string) []string { return append([]string{"scan", "--filter", at("few.bjf")}, args...) }
	join := func(args ...string) []string { return append([]string{"join", "--ids", at("few.csv")}, args...) }
	return []indexCase{
		{user, scan(), true},
		{append(user, "--index-row-groups"), scan("--key", "user"), true},
		{user, scan("--key", "user", "--columns", "n,user"), true},
		{user, scan("--key", "user::int64"), false},
		{user, scan("--key", "u.id"), false},
		{nested, scan("--key", "u.id"), true},
		{user, scan("--key", "USER", "--ignore-case"), false},
		{user, scan("--where", "n > 20"), true},
		{user, scan("--where", "dt > '2024-05-02'"), true},
		{user, scan("--shard", "1/3"), true},
		{append(user, "--exclude", "*.arrow"), scan("--schema", "union"), true},
		{append(user, "--exclude", "*.arrow"), scan(), true},
		{user, scan("--match", "u.id="+at("many.bjf")), true},
		{user, scan("--match", "u.id="+at("many.bjf"), "--any"), false},
		{user, scan("--no-match", "u.id="+at("even.bjf")), true},
		{user, []string{"scan", "--match", "u.id=" + at("many.bjf"), "--match", "user=" + at("few.bjf")}, false},
		{user, []string{"scan", "--no-match", "user=" + at("few.bjf")}, false},
		{user, []string{"scan", "--filter", at("few-bloom.bjf")}, false},
		{user, []string{"scan", "--filter", at("many.bjf")}, false}, // too many keys
		{user, scan("--empty", "write"), false},
		{user, scan("--target-file-size", "1KiB"), false},
		{user, join("--on", "user"), true},
		{user, join("--on", "user", "--type", "inner"), true},
		{user, join("--on", "user", "--type", "inner", "--strategy", "shuffle"), true},
		{user, join("--on", "user", "--type", "inner", "--strategy", "reverse", "--shard", "0/2"), true},
		{user, []string{"join", "--ids", at("bad.csv"), "--on", "user", "--skip-bad"}, true},
		{user, join("--on", "user", "--type", "anti"), false},
		{user, join("--on", "user", "--type", "left"), false},
		{user, join("--on", "user", "--type", "right"), false},
		{user, join("--on", "user", "--type", "full"), false},
		{user, join("--on", "user", "--max-kept", "90%", "--require-rows", "1"), true},
		{user, join("--on", "user::string=user", "--key-type", "string"), false},
		{nested, join("--on", "u.id=user", "--type", "inner", "--format", "arrow"), true},
		{name, []string{"join", "--ids", at("names.csv"), "--on", "name", "--normalize", "trim,lower"}, true},
		{name, []string{"join", "--ids", at("names.csv"), "--on", "name", "--normalize", "lower"}, false},
		{name, []string{"join", "--ids", at("names.csv"), "--on", "name"}, false},
		{day, []string{"join", "--ids", at("days.csv"), "--on", "dt"}, true},
		{user, []string{"join", "--ids", at("nowhere.csv"), "--on", "user", "--type", "inner"}, true},
		{user, []string{"join", "--ids", at("nowhere.csv"), "--on", "user", "--shard", "2/3"}, true},
		{user, join("--on", "user", "--type", "inner", "--where", "n > 20", "--format", "arrow"), true},
		{both, []string{"join", "--ids", at("pairs.csv"), "--on", "user,name", "--type", "inner"}, true},
	}
}

// A run over a list with an index opens fewer files, and its output, manifests and figures
// are those of a run without.
func TestIndexChangesNoAnswer(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	log := at("log")
	userLog(t, log)
	for name, text := range map[string]string{
		"few.csv": "user\n3001\n3005\n9012\n77\n17003\n", "names.csv": "name\nUSER3001\nuser9012\nnobody\n",
		"nowhere.csv": "user\n500\n", "bad.csv": "user\n3001\nx\n3002\n3003\n3004\n", "days.csv": "dt\n2024-05-02\n2023-01-01\n", "pairs.csv": "user,name\n3001,uSER3001\n3001,nobody\n9002, user9002\n",
	} {
		sourcetest.Put(t, at(name), text)
	}
	var many, even strings.Builder
	for i := range 25000 {
		fmt.Fprintln(&many, i)
		fmt.Fprintln(&even, 2*i)
	}
	sourcetest.Put(t, at("many.csv"), "user\n"+many.String())
	sourcetest.Put(t, at("even.csv"), "user\n"+even.String())
	for _, name := range []string{"few", "many", "even"} {
		works(t, "", "build", "--quiet", "--key", "user", "--key-type", "int64", "--kind", "exact", "-o", at(name+".bjf"), at(name+".csv"))
	}
	works(t, "", "build", "--quiet", "--key", "user", "--key-type", "int64", "--kind", "bloom", "-o", at("few-bloom.bjf"), at("few.csv"))
	for i, c := range indexCases(at) {
		plain, list := at(fmt.Sprintf("plain%d.jsonl", i)), at(fmt.Sprintf("list%d.jsonl", i))
		works(t, "", append(append([]string{"inputs", "--quiet"}, c.index...), "-o", plain, log)...)
		if err := os.Remove(keyindex.NameOf(plain)); err != nil {
			t.Fatal(err)
		}
		works(t, "", append(append([]string{"inputs", "--quiet"}, c.index...), "-o", list, log)...)
		for _, out := range []string{"out/", "out.parquet", "count"} {
			if out != "out/" && (slices.Contains(c.run, "--empty") || slices.Contains(c.run, "--target-file-size") || slices.Contains(c.run, "arrow") || slices.Contains(c.run, "reverse")) {
				continue
			}
			if out == "count" && (i%4 > 0 || slices.Contains(c.run, "--columns") || slices.Contains(c.run, "--schema")) {
				continue
			}
			var reports [2]map[string]any
			var outputs [2]map[string]string
			for k, from := range []string{plain, list} {
				base := at(fmt.Sprintf("%d-%d", i, k))
				to := []string{"-o", filepath.Join(base, out)}
				if strings.HasSuffix(out, "/") {
					to[1] += "/"
				}
				if out == "count" {
					to = []string{"--count"}
				} else if err := os.MkdirAll(base, 0o777); err != nil {
					t.Fatal(err)
				}
				run := slices.Concat(c.run, []string{"--json", "--quiet", "--files-from", from}, to)
				stdout := works(t, "", run...)
				if err := json.Unmarshal([]byte(stdout), &reports[k]); err != nil {
					t.Fatal(err)
				}
				if out != "count" {
					outputs[k] = writtenTo(t, to[1])
				}
			}
			about := fmt.Sprintf("%v %v %s", c.index, c.run, out)
			sameOutputs(t, about, outputs[0], outputs[1])
			for _, field := range []string{"rows_in", "rows_out", "keys_null", "row_groups", "ids_total", "ids_matched", "rows_matched", "warnings", "bad_lines"} {
				if got, want := reports[1][field], reports[0][field]; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: %s: got %v, want %v", about, field, got, want)
				}
			}
			unread, _ := reports[1]["files_skipped_by_index"].(float64)
			if unread > 0 != c.unread {
				t.Errorf("%s: %v files are not opened", about, unread)
			}
			if _, ok := reports[0]["files_skipped_by_index"]; ok {
				t.Errorf("%s: the report of a run without an index speaks of one", about)
			}
		}
	}
}

func sameOutputs(t *testing.T, about string, want, got map[string]string) {
	t.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%s: %s: it is missing", about, name)
		} else if g != w {
			if strings.HasSuffix(name, ".json") {
				t.Errorf("%s: %s:\n%s\nwant\n%s", about, name, g, w)
			} else {
				t.Errorf("%s: %s has other bytes", about, name)
			}
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s: want no such file", about, name)
		}
	}
}

// A file that was changed after it was listed is noticed, although the index knows that it had
// no key.
func TestIndexNoticesChanges(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	log := at("log")
	userLog(t, log)
	sourcetest.Put(t, at("one.csv"), "user\n3001\n")
	works(t, "", "inputs", "--quiet", "--index", "user", "-o", at("list.jsonl"), log)
	sourcetest.Write(t, filepath.Join(log, "dt=2024-05-01", "p04.parquet"), 40, sourcetest.Record(t, memory.DefaultAllocator,
		sourcetest.Col{Name: "user", Values: []any{3001}}))
	_, said, code := called(t, "", "join", "--ids", at("one.csv"), "--on", "user", "-o", at("out.parquet"), "--files-from", at("list.jsonl"))
	if code != session.ExitFailed || !strings.Contains(said, "p04.parquet") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// replaced writes a file again, of the same size and time.
func replaced(t *testing.T, name string, cols ...sourcetest.Col) {
	t.Helper()
	was, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Write(t, name, 40, sourcetest.Record(t, memory.DefaultAllocator, cols...))
	if err := os.Chtimes(name, time.Time{}, was.ModTime()); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(name); err != nil || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
		t.Fatalf("%s: %v, %v, want the size and time of %v", name, now, err, was)
	}
}

// What is left out by what a list or its index says is looked at, also if size and time are as
// they were listed.
func TestUnreadFilesAreLookedAt(t *testing.T) {
	t.Chdir(t.TempDir())
	ids := func(name string, values ...int64) sourcetest.Col { return sourcetest.Col{Name: name, Values: values} }
	for name, col := range map[string]sourcetest.Col{
		"a": ids("user", 1, 2), "b": ids("user", 7, 8), "c": ids("misc", 1, 2), "d": ids("misc", 3, 4),
	} {
		sourcetest.Write(t, "log/"+name+".parquet", 40, sourcetest.Record(t, memory.DefaultAllocator, col))
	}
	sourcetest.Put(t, "one.csv", "user\n1\n3\n")
	works(t, "", "inputs", "--quiet", "--index", "user", "--index-row-groups", "-o", "list.jsonl", "log/a.parquet", "log/b.parquet")
	works(t, "", "inputs", "--quiet", "-o", "all.jsonl", "log")
	count := func(want, list string, more ...string) {
		t.Helper()
		args := append([]string{"join", "--quiet", "--ids", "one.csv", "--on", "user", "--count", "--files-from", list}, more...)
		if got := works(t, "", args...); got != want+"\n" {
			t.Errorf("%v: %q, want %s", args, got, want)
		}
	}
	count("1", "list.jsonl")
	count("1", "all.jsonl", "--missing-key", "skip-file")
	if got := works(t, "", "find", "--quiet", "--key", "3", "list.jsonl"); got != "" {
		t.Errorf("find: %q", got)
	}
	replaced(t, "log/b.parquet", ids("user", 1, 3))
	count("3", "list.jsonl")
	count("3", "all.jsonl", "--missing-key", "skip-file")
	if got := works(t, "", "find", "--quiet", "--row-groups", "--key", "3", "list.jsonl"); got != "log/b.parquet\t0\n" {
		t.Errorf("find: %q", got)
	}
	if got := works(t, "", "find", "--quiet", "--verify", "--key", "3", "list.jsonl"); got != "log/b.parquet\t1\n" {
		t.Errorf("find --verify: %q", got)
	}
	replaced(t, "log/d.parquet", ids("user", 1, 3)) // the list says that it has no users
	_, said, code := called(t, "", "join", "--ids", "one.csv", "--on", "user", "--count", "--files-from", "all.jsonl", "--missing-key", "skip-file")
	if code != session.ExitFailed || !strings.Contains(said, "d.parquet") || !strings.Contains(said, "its content is another one") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if err := os.Remove("log/b.parquet"); err != nil {
		t.Fatal(err)
	}
	if got := works(t, "", "find", "--quiet", "--key", "3", "list.jsonl"); got != "" {
		t.Errorf("find without the file: %q", got)
	}
}

// Files of a table are refused however they are named, and in a list that is older than the
// table. The manifest says that they were read all the same.
func TestRawFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	sourcetest.Write(t, "t/data/a.parquet", 40, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: []int64{1, 2}}))
	sourcetest.Put(t, "one.csv", "user\n1\n3\n")
	sourcetest.Put(t, "names.txt", "t/data/a.parquet\n")
	works(t, "", "inputs", "--quiet", "-o", "list.jsonl", "t/data")
	works(t, "", "build", "--quiet", "--key", "user", "--kind", "counting", "-o", "count.bjf", "t/data")
	works(t, "", "build", "--quiet", "--key", "user", "--key-type", "int64", "-o", "one.bjf", "one.csv")
	sourcetest.Put(t, "t/metadata/v1.metadata.json", "{}")
	for _, args := range [][]string{
		{"join", "--ids", "one.csv", "--on", "user", "-o", "out/", "t/data"},
		{"join", "--ids", "one.csv", "--on", "user", "-o", "out/", "--files-from", "names.txt"},
		{"join", "--ids", "one.csv", "--on", "user", "-o", "out/", "--files-from", "list.jsonl"},
		{"join", "--ids", "t/data/*.parquet", "--on", "user", "-o", "out/", "t/data/a.parquet"},
		{"plan", "--ids", "one.csv", "--on", "user", "t/data"},
		{"build", "--key", "user", "-o", "out.bjf", "t/data"},
		{"scan", "--filter", "one.bjf", "-o", "out.parquet", "t/data/*.parquet"},
		{"dedup", "--key", "user", "--expect", "10", "-o", "dedup.parquet", "t/data/a.parquet"},
		{"sketch", "--key", "user", "-o", "out.bjs", "t/data"},
		{"inputs", "-o", "new.jsonl", "t/data"},
		{"update", "--add", "t/data/a.parquet", "-o", "more.bjf", "count.bjf"},
	} {
		if _, said, code := called(t, "", args...); code != session.ExitFailed || !strings.Contains(said, "t: unsupported: the files of a table in the format Iceberg") || !strings.Contains(said, "--raw-files") {
			t.Errorf("%v: exit code %d: %s", args, code, said)
		}
		works(t, "", append(args, "--raw-files", "--quiet")...)
		if args[0] != "join" {
			continue
		}
		if state := string(read(t, "out.bloomjoin/manifest.json")); !strings.Contains(state, `"raw_files":true`) {
			t.Errorf("%v: the manifest is %s", args, state)
		}
		for _, dir := range []string{"out", "out.bloomjoin"} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	works(t, "", "inspect", "--quiet", "t/data/a.parquet")
}

// Whether files fit into one output does not depend on which of them hold a key.
func TestIndexComparesSchemas(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	user := func(id int) sourcetest.Col { return sourcetest.Col{Name: "user", Values: []any{id}} }
	sourcetest.Write(t, at("log/a.parquet"), 40, sourcetest.Record(t, memory.DefaultAllocator, user(1)))
	sourcetest.Write(t, at("log/b.parquet"), 40, sourcetest.Record(t, memory.DefaultAllocator, user(2), sourcetest.Col{Name: "n", Values: []int64{1}}))
	sourcetest.Put(t, at("one.csv"), "user\n1\n")
	works(t, "", "inputs", "--quiet", "--index", "user", "-o", at("list.jsonl"), at("log"))
	_, said, code := called(t, "", "join", "--ids", at("one.csv"), "--on", "user", "--type", "inner", "-o", at("out.parquet"), "--files-from", at("list.jsonl"))
	if code != session.ExitFailed || !strings.Contains(said, "b.parquet: mismatch: schema") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// find names the files that hold a key, and a few others; --verify only those.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	log, list := at("log"), at("list.jsonl")
	users := userLog(t, log)
	works(t, "", "inputs", "--quiet", "--index", "u.id", "--index-row-groups", "-o", list, log)
	for _, id := range []int64{0, 3001, 7029, 24000, 11000, 999999, -5} {
		rows := 0
		var want []string
		for name, all := range users {
			if n := len(slices.DeleteFunc(slices.Clone(all), func(u int64) bool { return u != id })); n > 0 {
				want, rows = append(want, fmt.Sprintf("%s\t%d\n", name, n)), rows+n
			}
		}
		key := fmt.Sprint(id)
		if got := works(t, "", "find", "--quiet", "--verify", "--key", key, list); got != strings.Join(want, "") {
			t.Errorf("%d: got %q, want %q", id, got, want)
		}
		may := works(t, "", "find", "--quiet", "--key", key, list)
		for _, w := range want {
			if name, _, _ := strings.Cut(w, "\t"); !strings.Contains(may, name+"\n") {
				t.Errorf("%d: %s is not named", id, name)
			}
		}
	}
	var rep struct {
		Inputs int
		Files  []struct {
			File      string
			RowGroups []int `json:"row_groups"`
			Rows      int64
		}
	}
	out := works(t, "", "find", "--quiet", "--json", "--verify", "--key", "3029", "--key", "4000", list)
	if err := json.Unmarshal([]byte(out), &rep); err != nil || rep.Inputs != 25 || len(rep.Files) != 2 || rep.Files[0].Rows != 3 {
		t.Errorf("got %s, %v", out, err)
	}
	if strings.Contains(out, "3029") {
		t.Errorf("the report has a key: %s", out)
	}
	// Row 29, 59 and 89 of row groups of 40 rows.
	if out := works(t, "", "find", "--quiet", "--verify", "--row-groups", "--key", "4029", list); !strings.Contains(out, "\t0,1,2\t3\n") {
		t.Errorf("row groups: %q", out)
	}
}

// An update takes filters of files that have not changed from the index before, gives the
// bytes of a new index, and never forgets it.
func TestIndexUpdates(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	log, list := at("log"), at("list.jsonl")
	userLog(t, log)
	index := func(args ...string) (r indexReport) {
		t.Helper()
		var rep inputsReport
		if err := json.Unmarshal([]byte(works(t, "", append(append([]string{"inputs", "--quiet", "--json"}, args...), log)...)), &rep); err != nil || rep.Index == nil {
			t.Fatalf("%v: %v, %+v", args, err, rep)
		}
		return *rep.Index
	}
	index("--index", "user", "--index-row-groups", "-o", list)
	if err := os.Remove(filepath.Join(log, "dt=2024-05-02", "p01.parquet")); err != nil {
		t.Fatal(err)
	}
	sourcetest.Write(t, filepath.Join(log, "dt=2024-05-01", "p00.parquet"), 40, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: []any{1, 2, nil}}))
	sourcetest.Write(t, filepath.Join(log, "dt=2024-05-09", "new.parquet"), 40, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: []any{1, 2, nil}}))
	if r := index("--update", list, "-o", list); r.Reused != 23 || r.Inputs != 25 || r.Key != "user" || !r.RowGroups {
		t.Errorf("update: %+v", r)
	}
	if r := index("--index", "user", "--index-row-groups", "--threads", "1", "-o", at("fresh.jsonl")); r.Reused != 0 {
		t.Errorf("fresh: %+v", r)
	}
	if string(read(t, list+".index")) != string(read(t, at("fresh.jsonl.index"))) {
		t.Error("an updated index has other bytes than a new one")
	}
	// The list of another time: as when a process is killed between both.
	sourcetest.Put(t, at("stale.jsonl"), string(read(t, list)))
	works(t, "", "inputs", "--quiet", "--index", "user", "-o", at("old.jsonl"), filepath.Join(log, "dt=2024-05-02"))
	sourcetest.Put(t, at("stale.jsonl.index"), string(read(t, at("old.jsonl.index"))))
	for _, args := range [][]string{{"find", "--key", "1"}, {"scan", "--filter", at("one.bjf"), "--count", "--files-from"}} {
		if args[0] == "scan" {
			sourcetest.Put(t, at("one.csv"), "user\n1\n")
			works(t, "", "build", "--quiet", "--key", "user", "--key-type", "int64", "--kind", "exact", "-o", at("one.bjf"), at("one.csv"))
		}
		_, said, code := called(t, "", append(args, at("stale.jsonl"))...)
		if code != session.ExitFailed || !strings.Contains(said, "want digest") || !strings.Contains(said, "inputs --update") {
			t.Errorf("%v: exit code %d: %s", args, code, said)
		}
	}
	if r := index("--update", at("stale.jsonl"), "-o", at("stale.jsonl")); r.Reused != 0 {
		t.Errorf("stale: %+v", r)
	}
	works(t, "", "find", "--quiet", "--key", "1", at("stale.jsonl"))
	// Another key is another file.
	if _, said, code := called(t, "", "inputs", "--quiet", "--index", "user", "--index-fpr", "0.1", "-o", at("fresh.jsonl"), log); code != session.ExitFailed || !strings.Contains(said, "--force") {
		t.Errorf("another rate: exit code %d: %s", code, said)
	}
	if keyindex.NameOf("a") != "a.index" {
		t.Error("the name of an index")
	}
}
