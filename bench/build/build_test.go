package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/race/racetest"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// Sets have different names, also with -quick.
func TestNamesOfSets(t *testing.T) {
	type sized struct {
		set
		divided uint64
	}
	names := map[string]sized{}
	for _, c := range allCells() {
		for _, divided := range []uint64{1, cells.Quickest} {
			if c.set.kind == "" {
				continue
			}
			name, now := c.set.name(c.set.rows/divided), sized{c.set, divided}
			if other, ok := names[name]; ok && other != now {
				t.Errorf("%s is %+v and %+v", name, other, now)
			}
			names[name] = now
		}
	}
	if len(names) < 10 {
		t.Errorf("%d names: %v", len(names), names)
	}
}

// The document has markers for each cell, and mentions it.
func TestDocumentHasMarkers(t *testing.T) {
	if err := cells.CheckDocuments("..", allCells()); err != nil {
		t.Error(err)
	}
	for _, c := range allCells() {
		doc, err := os.ReadFile(filepath.Join("..", c.Document))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(doc), "-cell "+c.Name+"\n") && !strings.Contains(string(doc), "`"+c.Name+"`") {
			t.Errorf("the document does not mention %s", c.Name)
		}
	}
}

// The bound is four standard deviations of the binomial distribution: for 1 % of
// 10 million, 10^5 hits, give or take 4·√99000 = 1258.5.
func TestRate(t *testing.T) {
	for _, c := range []struct {
		rate
		want bool
	}{
		{rate{100_000, 10_000_000, 0.01}, true},
		{rate{101_258, 10_000_000, 0.01}, true},
		{rate{101_259, 10_000_000, 0.01}, false},
		{rate{98_742, 10_000_000, 0.01}, true},
		{rate{98_741, 10_000_000, 0.01}, false},
		{rate{0, 10_000_000, 0}, true},
		{rate{1, 10_000_000, 0}, false},
		{rate{0, 0, 0}, false},
		{rate{1, 1, math.NaN()}, false},
	} {
		if err := c.err(); (err == nil) != c.want {
			t.Errorf("%+v: %v, want it to pass: %t", c.rate, err, c.want)
		}
	}
}

// Folding, computed without walking the divisors: no larger divisor has few enough
// false positives.
func TestFoldingOf(t *testing.T) {
	const capacity, distinct = 1_000_000_000, 5_000_000
	f, err := foldingOf("split-256", capacity, distinct)
	if err != nil {
		t.Fatal(err)
	}
	if f.blocks%f.by != 0 || f.blocks%f.next != 0 || f.by >= f.next || f.rate > 0.0102 || f.nextRate <= 0.0102 {
		t.Errorf("%+v", f)
	}
	for k := f.by + 1; k < f.next; k++ {
		if f.blocks%k == 0 {
			t.Errorf("%d divides, too: %+v", k, f)
		}
	}
	// 10.5 bits per key and a step: 6.6 MB, and at most a quarter more.
	if f.bytes < 6_500_000 || f.bytes > 8_200_000 {
		t.Errorf("%d bytes for %d keys", f.bytes, distinct)
	}
	if f, err := foldingOf("", capacity, distinct); err == nil {
		t.Errorf("no geometry: got %+v, want an error", f)
	}
}

func someContest() *contest {
	b := &bench{}
	return &contest{
		bench: b, cell: cell{Cell: cells.Cell{Name: "c"}, set: set{rows: 100_000_000}},
		contenders: append([]contender{{name: "ours", text: "**bloomjoin**"}, {name: "floor", text: "*floor*", kind: bound}},
			b.peers("IDS", [3]string{"a", "x", "A"}, [3]string{"b", "x", "B"})...),
		runs: race.Runs{
			"ours":  {{Wall: 1, CPU: 2, Peak: 400 << 20}, {Wall: 2, CPU: 2, Peak: 420 << 20}},
			"floor": {{Wall: 0.5}, {Wall: 0.5}},
			"a-x":   {{Wall: 4}, {Wall: 4}},
			"b-x":   {{Wall: 3}, {Wall: 6}},
		},
		built: map[string]built{"ours": {Kind: "bloom", MemoryBytes: 132 << 20}},
		rates: map[string]rate{"ours": {100_000, 10_000_000, 0.01}},
	}
}

func TestTables(t *testing.T) {
	r := someContest()
	main := r.table()
	if got, want := strings.Join(main.Rows[0], "|"), "**bloomjoin**|1.50|1.00|66.7|2.00|420|132.0, bloom|1.00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := strings.Join(main.Rows[1], "|"), "*floor*|0.50|0.50|200.0|0.00|0|–|0.38"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	goals := report.Targets()
	atLeast(&goals, "speed", " M", r.speed("ours"), 60)
	atLeast(&goals, "speed", " M", r.speed("ours"), 70)
	r.peak(&goals, "ours")
	r.fastestGo(&goals, 3)
	text := (&cells.Result{Tables: []report.Table{main, goals}}).Markdown()
	for _, want := range []string{
		"| speed | 66.7 M | ≥ 60 M | yes |", "| speed | 66.7 M | ≥ 70 M | **no** |",
		"| peak memory | 420 MiB | ≤ 428 MiB (1.3 × filter + 256 MiB) | yes |",
		"(A) / bloomjoin's | 3.0 × | ≥ 3 × | yes |", // rounds: 4/1 and 4/2; B's median is higher
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	done := r.done(main, goals)
	if last := done.Tables[1].Rows[len(done.Tables[1].Rows)-1]; last[1] != "1.0000 % of 10000000" || last[2] != "1.0000 ± 0.0126 % (predicted, 4 σ)" || last[3] != "yes" {
		t.Errorf("got %q", last)
	}
}

// A lost member, a different filter in the second round, or a wrong number of keys
// end the run; false positives out of bounds are reported.
func TestWrongFilters(t *testing.T) {
	const build, scan = `{"keys":100000,"digest":"a","kind":"bloom","fpr_predicted":0.01}`, `{"rows_in":10000,"rows_out":10000}`
	right := `case "$1 $*" in build*) echo '` + build + `';; *members*) echo '` + scan + `';; *) echo '{"rows_in":10000,"rows_out":100,"fpr_predicted":0.01}';; esac`
	for name, c := range map[string]struct{ says, failure, wrong string }{
		"right":      {right, "", ""},
		"key lost":   {strings.Replace(right, `"rows_out":10000}`, `"rows_out":9999}`, 1), "9999 of 10000 members", ""},
		"few keys":   {strings.Replace(right, `"keys":100000`, `"keys":99999`, 1), "99999 keys were read", ""},
		"other bits": {strings.Replace(right, `"digest":"a"`, `"digest":"'$$'"`, 1), "different filters", ""},
		"rate":       {strings.Replace(right, `"rows_out":100,`, `"rows_out":200,`, 1), "", "200 false positives"},
		"no JSON":    {"echo done", "done", ""},
		"failure":    {"echo trouble >&2; exit 1", "trouble", ""},
	} {
		b := &bench{Flags: cells.Flags{Out: t.TempDir(), Quick: true, Smaller: cells.Quickest}}
		b.Ours = racetest.Program(t, c.says)
		r, err := b.race(context.Background(), cell{set: set{rows: 100_000_000}}, paths{"/nowhere"}, []contender{b.bloomjoin("ours", "", "IDS")})
		if (err == nil) != (c.failure == "") || err != nil && !strings.Contains(err.Error(), c.failure) {
			t.Errorf("%s: %v, want %q", name, err, c.failure)
			continue
		}
		if got := len(r.wrong) > 0; got != (c.wrong != "") || got && !strings.Contains(r.wrong[0].Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", name, r.wrong, c.wrong)
		}
		left, err := os.ReadDir(b.Out)
		if err != nil || len(left) > 0 {
			t.Errorf("%s: left: %v, %v", name, left, err)
		}
	}
}

// The command lines of programs.
func TestSteps(t *testing.T) {
	b := &bench{}
	b.Ours, b.program.floor, b.program.peers = "BJ", "FLOOR", "PEERS"
	for want, got := range map[string]race.Step{
		"BJ build --force --quiet --json --threads 2 --key id --fpr 0.01 --kind bloom -o OUT IDS": b.build("OUT", "IDS", "--kind", "bloom"),
		"BJ merge --force --quiet --json --threads 2 -o OUT A B":                                  b.merge("OUT", "A", "B"),
		"FLOOR -threads 2 -columns id IDS":                                                        b.floor("IDS").step(""),
		"PEERS -filter a -reader x -threads 2 -fpr 0.01 IDS":                                      b.peers("IDS", [3]string{"a", "x", "A"})[0].step(""),
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
