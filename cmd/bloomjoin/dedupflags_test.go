package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/process"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// What happens to a second run, over an input that has grown with a state, or over the same one
// without.
const (
	goesOn  = "goes on"      // with the state
	done    = "already done" // the output is that of the first run
	made    = "made"         // the output is new
	refused = "refused"      // the state, or the output, is of other options
	usage   = "usage"        // the flags exclude one another
)

// dedupFlag is what a flag of dedup does to the identity of a state, of an exact output and of an
// approximate one.
type dedupFlag struct {
	value                     string // of the second run
	state, exact, approximate string
	instead                   string // a flag that is left out
}

// dedupFlagTable has all flags of dedup, beside those of flagsOfHow.
var dedupFlagTable = map[string]dedupFlag{
	"key":         {"id::string,more", refused, refused, refused, ""},
	"time":        {"more", refused, refused, refused, ""},
	"time-unit":   {"ms", refused, refused, refused, ""},
	"window":      {"2h", refused, refused, refused, ""},
	"slots":       {"4", refused, refused, refused, ""},
	"max-jump":    {"1h", refused, refused, refused, ""},
	"late":        {"drop", refused, refused, refused, ""},
	"keep":        {"last", usage, usage, usage, ""}, // not with a window; see TestDedupLastAgain
	"normalize":   {"lower", refused, refused, refused, ""},
	"ignore-case": {"true", refused, refused, refused, ""},
	"cast-errors": {"null", refused, refused, refused, ""},
	"expect":      {"200", refused, done, refused, ""},
	"rate":        {"1", refused, done, refused, "expect"},
	"fpr":         {"0.01", refused, done, refused, ""},
	"delimiter":   {";", refused, usage, usage, ""}, // of text
	"format":      {"csv", refused, usage, usage, ""},
	"exact":       {"true", usage, done, refused, "approximate"},
	"approximate": {"true", goesOn, refused, done, ""},
	"output":      {"OTHER", goesOn, made, made, ""},
	"state":       {"OTHER", refused, refused, goesOn, ""}, // the output is that of a run that begins the state
	"checkpoint":  {"1ms", goesOn, usage, usage, ""},
	"force":       {"true", goesOn, made, made, ""},
}

// flagsOfHow are flags on which no answer depends.
var flagsOfHow = map[string]string{
	"temp-dir": "TEMP", "memory": "1GiB", "threads": "1", "json": "true", "log-format": "json", "progress": "lines", "progress-interval": "1s",
	"metrics": "TEMP/run.prom", "log": "TEMP/run.jsonl", "quiet": "true", "verbose": "true", "store-option": "retries=1", "stdin-digest": "ab", "raw-files": "true",
}

// Each flag of dedup is or is not part of the identity of a state and of an output, as the table
// says: a second run with another value goes on, has nothing to do, or is refused.
func TestDedupIdentity(t *testing.T) {
	cmd, _, err := (&cli{}).root().Find([]string{"dedup"})
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range flagsOfHow {
		dedupFlagTable[name] = dedupFlag{value, goesOn, done, done, ""}
	}
	visit := func(f *pflag.Flag) {
		if _, ok := dedupFlagTable[f.Name]; !ok && f.Name != "help" && f.Name != "help-all" {
			t.Errorf("--%s is not in the table: say whether answers depend on it", f.Name)
		}
	}
	cmd.Flags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
	for name, f := range dedupFlagTable {
		for mode, want := range map[string]string{"state": f.state, "exact": f.exact, "approximate": f.approximate} {
			if got, said := secondRun(t, mode, name, f); got != want {
				t.Errorf("--%s %s, %s: %s, want %s: %s", name, f.value, mode, got, want, said)
			}
		}
	}
}

// secondRun runs dedup twice, the second time with another value of a flag.
func secondRun(t *testing.T, mode, name string, f dedupFlag) (what, said string) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	flags := map[string]string{"key": "id::string", "time": "at", "time-unit": "s", "window": "1h", "slots": "2", "expect": "100", "json": "false"}
	const rows = "id,at,more\na,1000,7200\nb,1001,7300\na,1002,1\n"
	in, out := at("in.csv"), at("out.csv")
	switch mode {
	case "state":
		flags["state"] = at("s")
		sourcetest.Put(t, in, rows)
	case "approximate":
		flags["approximate"] = "true"
		fallthrough
	case "exact":
		in, out = at("in.parquet"), at("out.parquet")
		sourcetest.Write(t, in, 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: []string{"a", "b", "a"}},
			sourcetest.Col{Name: "at", Values: []int64{1000, 1001, 1002}}, sourcetest.Col{Name: "more", Values: []int64{7200, 7300, 1}}))
	}
	flags["output"] = out
	call := func() (string, int) {
		args := []string{"dedup"}
		for n, v := range flags {
			args = append(args, "--"+n+"="+v)
		}
		stdout, said, code := called(t, "", append(args, in)...)
		return stdout + said, code
	}
	if said, code := call(); code != session.ExitDone {
		t.Fatalf("%s, before --%s: exit code %d: %s", mode, name, code, said)
	}
	first := sourcetest.Get(t, out)
	if mode == "state" {
		sourcetest.Put(t, in, rows+"c,1003,2\n")
	}
	delete(flags, f.instead)
	flags[name] = strings.NewReplacer("OTHER", at("other"+filepath.Ext(out)), "TEMP", dir).Replace(f.value)
	said, code := call()
	after := sourcetest.Get(t, out)
	other, err := os.ReadFile(at("other" + filepath.Ext(out)))
	switch {
	case code == session.ExitUsage:
		return usage, said
	case code == session.ExitFailed && (strings.Contains(said, "options of the state") || strings.Contains(said, "--force")):
		return refused, said
	case code != session.ExitDone:
	case strings.Contains(said, "already done") || strings.Contains(said, "earlier run") || name == "quiet" && mode != "state" && after == first:
		return done, said
	case mode != "state" && (name == "force" || name == "output" && err == nil && len(other) > 0):
		return made, said
	case name == "state", mode == "state" && (strings.HasSuffix(after, "c,1003,2\n") || strings.HasSuffix(string(other), "c,1003,2\n")):
		return goesOn, said
	}
	return fmt.Sprintf("exit code %d", code), said
}

// A start of a text that was rewritten is found, however long the text is.
func TestDedupHead(t *testing.T) {
	dir := t.TempDir()
	in, rows := filepath.Join(dir, "in.csv"), "id\n"
	for i := range 20_000 {
		rows += fmt.Sprintf("%09d\n", i)
	}
	line := []string{"dedup", "--quiet", "--key", "id", "--expect", "50000", "--state", filepath.Join(dir, "s"), "-o", filepath.Join(dir, "out.csv"), in}
	sourcetest.Put(t, in, rows)
	works(t, "", line...)
	sourcetest.Put(t, in, strings.Replace(rows, "000000001", "00000000x", 1)+"more\n")
	if _, said, code := called(t, "", line...); code != session.ExitFailed || !strings.Contains(said, "checksums of an input that is in part done") {
		t.Errorf("exit code %d: %s", code, said)
	}
	sourcetest.Put(t, in, rows+"more\n")
	works(t, "", line...)
}

// Verbs that write rows agree about names of outputs: a name that says another format is E103, and
// a file has the format, and the compression, that its name says.
func TestOutputNames(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	sourcetest.Write(t, at("log.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: []int64{1, 2, 1}}))
	sourcetest.Put(t, at("log.csv"), "id\n1\n2\n1\n")
	sourcetest.Put(t, at("log.ndjson"), "{\"id\":1}\n{\"id\":2}\n{\"id\":1}\n")
	sourcetest.Put(t, at("log.txt"), "1\n2\n1\n")
	works(t, "", "build", "--key", "id", "-o", at("f.bjf"), at("log.parquet"))
	verbs := map[string][]string{
		"scan":         {"scan", "--filter", at("f.bjf"), at("log.parquet")},
		"join":         {"join", "--ids", at("log.csv"), "--on", "id", at("log.parquet")},
		"dedup":        {"dedup", "--key", "id", at("log.parquet")},
		"dedup csv":    {"dedup", "--key", "id", at("log.csv")},
		"dedup ndjson": {"dedup", "--key", "id", at("log.ndjson")},
		"dedup txt":    {"dedup", "--key", "id", at("log.txt")},
		"dedup -":      {"dedup", "--key", "id", "--exact", "--format", "csv"},
		"build":        {"build", "--key", "id", at("log.parquet")},
		"sketch":       {"sketch", "--key", "id", at("log.parquet")},
	}
	all := []string{"scan", "join", "dedup", "dedup csv", "dedup ndjson", "dedup txt", "dedup -", "build", "sketch"}
	rows, texts, csv := all[:3], all[3:7], []string{"scan", "join", "dedup csv", "dedup -"}
	starts := map[string]string{".csv": "id\n1", ".ndjson": `{"id":1}`, ".parquet": "PAR1", ".arrow": "ARROW1", ".csv.gz": "\x1f\x8b", ".ndjson.gz": "\x1f\x8b", ".txt": "1\n2", ".txt.gz": "\x1f\x8b"}
	for _, c := range []struct {
		name  string
		takes []string // others refuse it
	}{
		{".csv", csv},
		{".csv.gz", csv},
		{".ndjson", []string{"scan", "join", "dedup ndjson"}},
		{".ndjson.gz", []string{"scan", "join", "dedup ndjson"}},
		{".csv.zst", nil},
		{".parquet", rows},
		{".arrow", rows},
		{".txt", []string{"dedup txt"}},
		{".txt.gz", []string{"dedup txt"}},
		{".gz", nil},
		{".xlsx", []string{"dedup -", "build", "sketch"}},
		{".2024-05-01", []string{"dedup -", "build", "sketch"}},
		{".bjf", []string{"build"}},
		{".bjs", []string{"sketch"}},
		{"", append(slices.Clone(texts), "build", "sketch")}, // the format is that of the input
		{"/", rows},
		{"-", append(slices.Clone(rows), texts...)},
	} {
		for _, verb := range all {
			out := at("out"+strings.ReplaceAll(verb, " ", "")) + c.name
			switch c.name {
			case "-":
				out = "-"
			case "/":
				out = at("dir"+strings.ReplaceAll(verb, " ", "")) + "/"
			}
			_, said, code := called(t, "id\n1\n2\n1\n", append([]string{verbs[verb][0], "-o", out}, verbs[verb][1:]...)...)
			want := session.ExitUsage
			if slices.Contains(c.takes, verb) {
				want = session.ExitDone
			}
			if c.name == "/" && (verb == "build" || verb == "sketch") {
				want = session.ExitFailed // when the file is written
			}
			if code != want || want == session.ExitUsage && !strings.Contains(said, "[E103]") && c.name != "-" {
				t.Errorf("%s -o out%s: exit code %d, want %d: %s", verb, c.name, code, want, said)
				continue
			}
			if want != session.ExitDone {
				if c.name == "/" {
					continue
				}
				if _, err := os.Stat(out); err == nil {
					t.Errorf("%s -o out%s: it is there", verb, c.name)
				}
				continue
			}
			if start, ok := starts[c.name]; ok {
				given := sourcetest.Get(t, out)
				if !strings.HasPrefix(given, start) {
					t.Errorf("%s -o out%s: it begins %.8q", verb, c.name, given)
				}
			}
		}
	}
	for verb, format := range map[string]string{"scan": "parquet", "join": "csv", "dedup csv": "csv", "dedup txt": "lines", "dedup -": "csv"} { // a format says what the suffix does not
		_, said, code := called(t, "id\n1\n2\n1\n", append([]string{verbs[verb][0], "--format", format, "-o", at(strings.ReplaceAll(verb, " ", "") + "2.xlsx")}, verbs[verb][1:]...)...)
		if code != session.ExitDone {
			t.Errorf("%s --format %s: exit code %d: %s", verb, format, code, said)
		}
	}
	if _, ok := process.This(); !ok {
		return
	}
	for _, verb := range []string{"scan", "dedup csv"} { // what killed runs have left is removed
		out := at("swept.csv")
		file, err := storage.Local().Create(t.Context(), out, storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		left, _ := filepath.Glob(at(".swept.csv.*.tmp"))
		if len(left) != 1 {
			t.Fatal(left)
		}
		tag := strings.Split(left[0], "-") // HOST-PID-START-RANDOM, of a process that started earlier
		tag[len(tag)-2] = "1"
		if err := os.WriteFile(strings.Join(tag, "-"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := file.Abort(); err != nil {
			t.Fatal(err)
		}
		works(t, "", append([]string{verbs[verb][0], "--force", "-o", out}, verbs[verb][1:]...)...)
		if left, _ = filepath.Glob(at(".swept.csv.*.tmp")); len(left) > 0 {
			t.Errorf("%s: %q is left", verb, left)
		}
	}
}
