package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// want has the figures of one ID set in expected.txt, computed by DuckDB.
type want struct {
	set     string
	figures map[string]int64
}

func expected(t *testing.T) []want {
	t.Helper()
	b, err := os.ReadFile(flights + "/expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []want
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		words := strings.Fields(line)
		if words[0] == "#" || words[0] == "logs" {
			continue
		}
		w := want{words[0], map[string]int64{}}
		for _, f := range words[1:] {
			name, value, ok := strings.Cut(f, "=")
			var n int64
			if _, err := fmt.Sscan(value, &n); err != nil || !ok {
				t.Fatalf("expected.txt: %q", f)
			}
			w.figures[name] = n
		}
		all = append(all, w)
	}
	if len(all) != 7 {
		t.Fatalf("expected.txt has %d ID sets", len(all))
	}
	return all
}

// idsOf writes a file with the airports of a state.
func idsOf(t *testing.T, state string) string {
	t.Helper()
	if state == "all" {
		return flights + "/airports.csv"
	}
	if name := flights + "/airports-" + strings.ToLower(state) + ".csv"; exists(name) {
		return name
	}
	f, err := os.Open(flights + "/airports.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	for i, row := range rows {
		if i == 0 || row[3] == state {
			if err := w.Write(row); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Flush()
	name := filepath.Join(t.TempDir(), state+".csv")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// do runs the command in this process and returns its JSON report.
func do(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(append(args, "--json"), strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("bloomjoin %s: exit code %d: %s", strings.Join(args, " "), code, &stderr)
	}
	var v map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// counted returns the number of rows and the sum of the column distance, read with
// the independent reader of arrow/go. That reader panics with 32-bit ints, where our
// own replaces it.
func counted(t *testing.T, names ...string) (rows, distance int64) {
	t.Helper()
	add := func(table arrow.Table) {
		rows += table.NumRows()
		for _, i := range table.Schema().FieldIndices("distance") {
			for _, chunk := range table.Column(i).Data().Chunks() {
				ints := chunk.(*array.Int64)
				for j := range ints.Len() {
					if ints.IsValid(j) {
						distance += ints.Value(j)
					}
				}
			}
		}
		table.Release()
	}
	for _, name := range names {
		if strconv.IntSize < 64 {
			add(ownTable(t, name))
			continue
		}
		f, err := file.OpenParquetFile(name, false)
		if err != nil {
			t.Fatal(err)
		}
		r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		table, err := r.ReadTable(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		add(table)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return rows, distance
}

// ownTable reads a file with the reader of this module.
func ownTable(t *testing.T, name string) arrow.Table {
	t.Helper()
	files, err := source.Open(t.Context(), []string{name}, source.Opening{OpenOptions: source.OpenOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	var records []arrow.Record
	for g := range files[0].NumGroups() {
		for rec, err := range rowfilter.Read(t.Context(), files[0], g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rec.Retain()
			defer rec.Release()
			records = append(records, rec)
		}
	}
	return array.NewTableFromRecords(files[0].Schema(), records)
}

// On real data, every join type with every ID set returns what DuckDB returns: as
// one command, and for some also with another strategy and in shards.
func TestFlights(t *testing.T) {
	for _, w := range expected(t) {
		t.Run(w.set, func(t *testing.T) {
			t.Parallel()
			ids, dir := idsOf(t, w.set), t.TempDir()
			for _, typ := range []string{"semi", "anti", "inner", "left", "right", "full"} {
				hows := [][]string{nil}
				if w.set == "CA" && (typ == "semi" || typ == "full") {
					hows = append(hows, []string{"--strategy", "broadcast", "--threads", "1"})
				}
				for _, how := range hows {
					out := filepath.Join(dir, fmt.Sprint(typ, len(how), ".parquet"))
					got := do(t, append([]string{"join", "--type", typ, "--ids", ids, "--on", "origin=iata", "-o", out, flights + "/logs"}, how...)...)
					rows, distance := counted(t, out)
					if rows != w.figures[typ] || got["rows_out"] != float64(rows) || got["rows_in"] != 50000.0 || got["ids_total"] != float64(w.figures["ids"]) {
						t.Errorf("%s %v: %d rows, and the report says %v of %v from %v IDs; want %d", typ, how, rows, got["rows_out"], got["rows_in"], got["ids_total"], w.figures[typ])
					}
					if typ == "semi" && distance != w.figures["distance"] {
						t.Errorf("semi: sum of distance %d, want %d", distance, w.figures["distance"])
					}
				}
			}
			if w.set != "TX" {
				return
			}
			// As a batch job: partial filters, a merge, scans of shards, and a
			// join of the candidates.
			var parts []string
			for i := range 3 {
				parts = append(parts, filepath.Join(dir, fmt.Sprint("part", i)))
				do(t, "build", "--key", "iata", "--expect", "4000", "--shard", fmt.Sprint(i, "/3"), "-o", parts[i], ids)
			}
			filter, candidates := filepath.Join(dir, "filter"), filepath.Join(dir, "candidates")+"/"
			do(t, append([]string{"merge", "-o", filter}, parts...)...)
			for i := range 4 {
				do(t, "scan", "--filter", filter, "--key", "origin", "--shard", fmt.Sprint(i, "/4"), "-o", candidates, flights+"/logs")
			}
			if !exists(candidates + "_SUCCESS") {
				t.Error("the shards did not mark their directory")
			}
			out := filepath.Join(dir, "out.parquet")
			do(t, "join", "--ids", ids, "--on", "origin=iata", "-o", out, candidates)
			if rows, distance := counted(t, out); rows != w.figures["semi"] || distance != w.figures["distance"] {
				t.Errorf("as a batch job: %d rows, sum of distance %d; want %d, %d", rows, distance, w.figures["semi"], w.figures["distance"])
			}
			for i := range 4 {
				do(t, "join", "--type", "left", "--ids", ids, "--on", "origin=iata", "--shard", fmt.Sprint(i, "/4"), "-o", dir+"/left/", flights+"/logs")
			}
			names, err := filepath.Glob(dir + "/left/*.parquet")
			if err != nil {
				t.Fatal(err)
			}
			if rows, _ := counted(t, names...); rows != w.figures["left"] {
				t.Errorf("left join in shards: %d rows, want %d", rows, w.figures["left"])
			}
		})
	}
}
