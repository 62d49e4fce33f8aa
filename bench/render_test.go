package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// someTables and someResults are two tables, of which one was measured elsewhere.
func someTables() []*Table {
	return []*Table{
		{Name: "a", Title: "First & foremost", Text: "Text.", Cells: []Cell{{Name: "one", Chief: true, Contenders: []Contender{ours()}}}},
		{Name: "b", Title: "Second", Text: "Text.", Grid: sizeGrid},
		{Name: "c", Title: "Third", Text: "Text.", Grid: sizeGrid},
	}
}

func someResults() map[string]Measurement {
	first, second := Origin{Commit: "aaaa", Date: "2026-01-02", Machine: "M"}, Origin{Commit: "bbbb", Changed: true, Date: "2026-01-03", Machine: "M"}
	return map[string]Measurement{
		"a": {Table: "a", Origin: first, Versions: map[string]string{"duckdb": "2"}, Cells: []Measured{{Name: "one", Results: []Result{
			{Name: "**bloomjoin**", Kind: Ours, Runs: []Run{{Wall: 1, CPU: 2, Peak: 3 << 20, Output: 5e6}, {Wall: 3, CPU: 2, Peak: 4 << 20}}, Facts: map[string]string{"strategy": "lookup"}},
			{Name: "<Other>", Kind: Peer, Runs: []Run{{Wall: 0.5, CPU: 1, Peak: 90 << 20}, {Wall: 1.5, CPU: 1, Peak: 80 << 20}}, Facts: map[string]string{"strategy": "exact"}},
			{Name: "floor", Kind: Floor, Runs: []Run{{Wall: 0.5}, {Wall: 0.5}}},
		}}, {Name: "two", Results: []Result{{Name: "**bloomjoin** `--all`", Kind: Ours, Runs: []Run{{Wall: 1, CPU: 2, Peak: 3 << 20}, {Wall: 3, CPU: 2, Peak: 4 << 20}}}}}}},
		"b": {Table: "b", Origin: second, Grid: &Grid{Head: []string{"x", "y"}, Rows: [][]string{{"1", "2"}}, Note: "So."}},
	}
}

func TestDocument(t *testing.T) {
	text := Document(someTables(), someResults())
	for _, want := range []string{
		"Commit aaaa, 2026-01-02; M.\nduckdb 2.",
		"![Time and peak memory beside other tools](results.svg)",
		"| a | s | CPU s | peak MiB | strategy | <Other> | floor |\n",
		"| one | 2.00 | 2.00 | 4 | lookup | 0.50 (0.50–0.50) 90, exact | 0.33 (0.17–0.50) 0 |\n", // faster than ours, and shown
		"| two, `--all` | 2.00 | 2.00 | 4 | – |  |  |\n",
		"2 rounds.",
		"Measured apart from the others, at commit bbbb **with uncommitted changes**, 2026-01-03; M: `b`.\n",
		"| 1 | 2 |\n\nSo.\n",
		"## Not measured yet\n\n`c`\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "aaaa") != 1 || strings.Contains(text, "-dirty") {
		t.Errorf("the commit is not stated once:\n%s", text)
	}
	if text := Document(someTables(), nil); !strings.Contains(text, "Nothing has been measured") {
		t.Errorf("without results: %s", text)
	}
}

func TestChart(t *testing.T) {
	cells := chiefs(someTables(), someResults())
	if len(cells) != 1 || len(cells[0].bars) != 2 {
		t.Fatalf("got %+v", cells)
	}
	svg := Chart(cells)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{"First &amp; foremost: one", "&lt;Other&gt;", ">2.00<", ">90<", `width="250"`, `width="125"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	if n := strings.Count(svg, `class="ours"`); n != 2 {
		t.Errorf("%d bars of ours, want 2", n)
	}
}

// Results are read as they were saved, and results of an unknown table are refused.
func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	want := someResults()
	for _, m := range want {
		if err := m.Save(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := load(resultsDir, someTables())
	if err != nil || Document(someTables(), got) != Document(someTables(), want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := load(resultsDir, someTables()[:1]); err == nil {
		t.Errorf("of a table that there is not: got %+v", got)
	}
	if err := os.Rename(filepath.Join(resultsDir, "a.json"), filepath.Join(resultsDir, "c.json")); err != nil {
		t.Fatal(err)
	}
	if got, err := load(resultsDir, someTables()); err == nil {
		t.Errorf("with a wrong name: got %+v", got)
	}
}

// The committed document and image are what the committed results give.
func TestDocumentIsCurrent(t *testing.T) {
	all, err := load(resultsDir, Tables())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{document: Document(Tables(), all), image: Chart(chiefs(Tables(), all))} {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what results/ gives (run: go run . -render)", name)
		}
	}
}

func TestBenchmarks(t *testing.T) {
	out := "goos: linux\nBenchmarkAdd/keys=3/filter=x-2  10  5 ns/op  7.5 ns/key\nBenchmarkAdd/keys=3/filter=x-2  10  5 ns/op  9.5 ns/key\n" +
		"BenchmarkAdd/keys=4/filter=y-2  10  5 ns/op  200.4 ns/key\nPASS\n"
	g, err := benchmarks([]byte(out), "ns/key")
	if want := "| ns/key | Add, keys 3 | Add, keys 4 |\n| --- | ---: | ---: |\n| x | 8.5 | – |\n| y | – | 200 |\n"; err != nil || g.Markdown() != want {
		t.Errorf("got %s, %v", g.Markdown(), err)
	}
	g, err = benchmarks([]byte("BenchmarkLoad/fill=half/uncompressed-2  10  5 ns/op  7.5 MB/s  3 B/op\n"), "MB/s")
	if want := "| MB/s | median |\n| --- | ---: |\n| Load/fill=half/uncompressed | 7.5 |\n"; err != nil || g.Markdown() != want {
		t.Errorf("got %s, %v", g.Markdown(), err)
	}
	for _, bad := range []string{"", "PASS\n", "BenchmarkAdd/filter=x-2  10  5 ns/op\n"} {
		if g, err := benchmarks([]byte(bad), "ns/key"); err == nil {
			t.Errorf("%q: got %+v", bad, g)
		}
	}
}

// The rates that the table shows are verified; one that is not as predicted fails.
func TestFalsePositives(t *testing.T) {
	g, err := falsePositiveGrid(&Harness{quick: true})
	if err != nil || len(g.Rows) != 8 {
		t.Errorf("%d rows, %v", len(g.Rows), err)
	}
}
