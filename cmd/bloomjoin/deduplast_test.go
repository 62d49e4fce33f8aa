package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// With --keep last, text loses the rows that a map says, in any memory, by order or by time.
func TestDedupLast(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	random := rand.New(rand.NewPCG(5, 6))
	type line struct {
		key, text string
		time      int // -1: none
	}
	var lines []line
	for i := range 3000 {
		l := line{key: strconv.Itoa(random.IntN(400)), time: random.IntN(20) - 1}
		text := ""
		if l.time >= 0 { // a zone, and fractions of a second
			text = fmt.Sprintf("2024-01-31T1%d:00:00.%09d+0%[1]d:00", random.IntN(10), l.time)
		}
		if random.IntN(50) == 0 {
			l.key = ""
		}
		l.text = fmt.Sprintf("%d,%s,%s\n", i, l.key, text)
		lines = append(lines, l)
	}
	sourcetest.Put(t, at("a.csv"), "n,id,at\n")
	for i, l := range lines {
		name := at([]string{"a.csv", "b.csv"}[i*2/len(lines)])
		if i*2 == len(lines) {
			sourcetest.Put(t, name, "n,id,at\n")
		}
		sourcetest.Put(t, name, sourcetest.Get(t, name)+l.text)
	}
	stays := func(timed bool) string {
		last := map[string]int{}
		for i, l := range lines {
			if before, ok := last[l.key]; !ok || !timed || cmp.Compare(l.time, lines[before].time) >= 0 {
				last[l.key] = i
			}
		}
		b := strings.Builder{}
		b.WriteString("n,id,at\n")
		for i, l := range lines {
			if l.key == "" || last[l.key] == i {
				b.WriteString(l.text)
			}
		}
		return b.String()
	}
	for _, more := range [][]string{nil, {"--time", "at"}} {
		for _, memory := range []string{"64MiB", "1GiB"} {
			args := append([]string{"dedup", "--quiet", "--key", "id", "--keep", "last", "--memory", memory, at("a.csv"), at("b.csv")}, more...)
			got, said, code := called(t, "", append(args, "-o", "-")...)
			if code != session.ExitDone || got != stays(more != nil) {
				t.Errorf("%v: exit code %d: %s", more, code, said)
			}
		}
	}
	stdin := sourcetest.Get(t, at("a.csv"))
	got, said, code := called(t, stdin+"x,1,\n", "dedup", "--quiet", "--key", "id", "--keep", "last", "--exact", "--format", "csv")
	if code != session.ExitDone || !strings.HasSuffix(got, "\nx,1,\n") || strings.Count(got, ",1,") != 1 {
		t.Errorf("standard input: exit code %d: %s", code, said)
	}
}

// Another --keep is another run.
func TestDedupLastAgain(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.parquet"), filepath.Join(dir, "out.parquet")
	sourcetest.Write(t, in, 2, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: []int64{1, 2, 1, 1}}, sourcetest.Col{Name: "v", Values: []int64{5, 6, 9, 7}}))
	run := []string{"dedup", "--key", "id", "-o", out, in}
	works(t, "", run...)
	for _, more := range [][]string{{"--keep", "last"}, {"--keep", "last", "--time", "v", "--time-unit", "s"}} {
		again := append(run, more...)
		if _, said, code := called(t, "", again...); code != session.ExitFailed || !strings.Contains(said, "--force") {
			t.Errorf("%v: exit code %d: %s", more, code, said)
		}
		works(t, "", append(again, "--force")...)
		if _, said, code := called(t, "", again...); code != session.ExitDone || !strings.Contains(said, "already done") {
			t.Errorf("%v: exit code %d: %s", more, code, said)
		}
	}
}

// What --keep last excludes is refused before an input is opened.
func TestDedupLastUsage(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.csv")
	for _, more := range [][]string{
		{"--time=t", "--window=1h"}, {"--time=t", "--slots=2"}, {"--late=drop"}, {"--max-jump=1h"}, {"--rate=5"}, {"--approximate", "--expect=9"}, {"--state=" + none}, {"--keep=newest"}, {"--keep="},
	} {
		args := append([]string{"dedup", "--key", "id", "-o", none + ".csv", none}, more...)
		if !strings.HasPrefix(more[0], "--keep") {
			args = append(args, "--keep", "last")
		}
		if _, said, code := called(t, "", args...); code != session.ExitUsage {
			t.Errorf("%v: exit code %d: %s", more, code, said)
		}
	}
	if _, err := os.Stat(none + ".csv"); err == nil {
		t.Error("there is an output")
	}
}
