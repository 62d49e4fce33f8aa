package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Exact runs in little memory put keys on disk, with the same answer.
func TestDedupSpills(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.parquet")
	ids := make([]string, 300_000)
	for i := range ids {
		ids[i] = fmt.Sprintf("%0128d", i%150_000)
	}
	sourcetest.Write(t, in, 50_000, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids}))
	for _, size := range []string{"64MiB", "1GiB"} {
		var rep dedupReport
		runJSON(t, &rep, "dedup", "--json", "--quiet", "--key", "id", "--memory", size, "--temp-dir", dir, "-o", filepath.Join(dir, size+".parquet"), in)
		if rep.RowsOut != 150_000 || rep.Duplicates != 150_000 {
			t.Errorf("%s: %+v", size, rep)
		}
	}
	_, said, code := called(t, "", "dedup", "--key", "id", "--memory", "64MiB", "--temp-dir", filepath.Join(dir, "nowhere"), "-o", filepath.Join(dir, "o.parquet"), in)
	if code == session.ExitDone || !strings.Contains(said, "--temp-dir: keys to compare") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// Files lose no row, whatever is expected; streams are approximate, and say so first.
func TestDedupFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const n = 100_000
	ids := make([]int64, n)
	lines, objects := &strings.Builder{}, &strings.Builder{}
	for i := range ids {
		ids[i] = int64(i)
		fmt.Fprintln(lines, i)
		fmt.Fprintf(objects, "{\"id\":%d}\n", i)
	}
	rec := sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids})
	sourcetest.Write(t, at("a.parquet"), 50_000, rec)
	sourcetest.Put(t, at("a.txt"), lines.String())
	sourcetest.Put(t, at("a.ndjson"), objects.String())
	sourcetest.Put(t, at("a.csv"), "id\n"+lines.String())
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write([]byte("id\n" + lines.String())); err != nil || zip.Close() != nil {
		t.Fatal(err)
	}
	sourcetest.Put(t, at("b.csv.gz"), packed.String())
	outs := 0
	report := func(code int, args ...string) (rep dedupReport, said string) {
		t.Helper()
		outs++
		out := at(fmt.Sprint("out", outs))
		if name := args[len(args)-1]; !strings.HasPrefix(name, "--") {
			out += strings.TrimPrefix(filepath.Base(name), "a")
		}
		stdin := ""
		if args[len(args)-1] == "--format=lines" {
			stdin = lines.String()
		}
		given, said, got := called(t, stdin, append([]string{"dedup", "--key", "id", "--json", "-o", out}, args...)...)
		if got != code {
			t.Errorf("%v: exit code %d, want %d: %s", args, got, code, said)
		}
		if err := json.Unmarshal([]byte(given), &rep); err != nil {
			t.Fatalf("%v: %v: %s", args, err, said)
		}
		if info, err := os.Stat(out); err != nil || info.Size() == 0 {
			t.Errorf("%v: there is no output: %v", args, err)
		}
		return rep, said
	}
	for _, name := range []string{"a.parquet", "a.txt", "a.ndjson", "a.csv", "b.csv.gz"} {
		for _, more := range [][]string{{}, {"--expect", "1000"}, {"--expect=1000", "--fpr=0.5", "--exact"}} {
			if rep, said := report(session.ExitDone, append(more, at(name))...); rep.RowsOut != n || !rep.Exact || rep.WronglyDropped != nil || strings.Contains(said, "approximate") {
				t.Errorf("%s %v: %+v: %s", name, more, rep, said)
			}
		}
		rep, said := report(session.ExitGate, "--approximate", "--expect", "1000", at(name))
		if rep.RowsOut > n/2 || rep.Exact || !strings.HasPrefix(said, "approximate: ") || !strings.Contains(said, "a requirement is not met: --fpr 0.001: ") {
			t.Errorf("%s: %+v: %s", name, rep, said)
		}
	}
	if rep, said := report(session.ExitDone, "--approximate", at("a.parquet")); rep.Exact || rep.Expect != n || !strings.HasPrefix(said, "approximate: ") {
		t.Errorf("%+v: %s", rep, said)
	}
	if rep, said := report(session.ExitGate, "--expect=1000", "--format=lines"); rep.RowsOut > n/2 || !strings.HasPrefix(said, "approximate: ") || !strings.Contains(said, "--exact") {
		t.Errorf("%+v: %s", rep, said)
	}
	if rep, _ := report(session.ExitDone, "--exact", "--format=lines"); rep.RowsOut != n {
		t.Errorf("%+v", rep)
	}
	if _, said, code := called(t, "", "dedup", "--key", "id", "--approximate", at("a.txt")); code != session.ExitUsage || !strings.Contains(said, "--expect N is required") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// The unit of integer times that does not fit is named.
func TestDedupUnit(t *testing.T) {
	const in = "id,at\n1,1714521600000\n1,1714608000000\n1,1746057600000\n"
	flags := strings.Fields("dedup --key id --time at --window 1h --slots 1 --expect 10 --format csv")
	for unit, warned := range map[string]string{"s": "outside of the years 1970 to 2100 (--time-unit ms would fit)", "ms": "", "us": "", "ns": "all times are in one part of the window (--time-unit ms would fit)"} {
		out, said, code := called(t, in, append(flags, "--time-unit", unit)...)
		if code != session.ExitDone || (out == in) != (unit == "s" || unit == "ms") && unit != "us" || strings.Contains(said, "warning") != (warned != "") || !strings.Contains(said, warned) {
			t.Errorf("%s: exit code %d: %q: %s", unit, code, out, said)
		}
	}
}

// A state whose filters are too full is not saved, for text and for tables, although the output
// is written.
func TestDedupOverfullState(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	ids := make([]int64, 20_000)
	rows := "id\n"
	for i := range ids {
		ids[i] = int64(i)
		rows += strconv.Itoa(i) + "\n"
	}
	for _, name := range []string{"csv", "parquet"} {
		write := func(of string, n int) {
			if name == "csv" {
				sourcetest.Put(t, at(of+".csv"), strings.Join(strings.SplitAfter(rows, "\n")[:n+1], ""))
			} else {
				sourcetest.Write(t, at(of+".parquet"), 5000, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids[:n]}))
			}
		}
		line := func(out, in string) []string {
			return []string{"dedup", "--key", "id", "--expect", "5000", "--checkpoint", "1ms", "--state", at(name + ".state"), "-o", at(out + "." + name), at(in + "." + name)}
		}
		write("few", 1000)
		works(t, "", line("first", "few")...)
		before := sourcetest.Get(t, at(name+".state"))
		write("many", len(ids))
		out, said, code := called(t, "", line("second", "many")...)
		if code != session.ExitGate || !strings.HasPrefix(said, "approximate: ") || !strings.Contains(said, name+".state is not saved") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, said)
		}
		if after := sourcetest.Get(t, at(name+".state")); name == "parquet" && after != before {
			t.Errorf("%s: the state has changed", name)
		}
		if info, err := os.Stat(at("second." + name)); err != nil || info.Size() < 5000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
