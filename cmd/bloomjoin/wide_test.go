package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// wideFiles writes five rows of n columns as Arrow, CSV and NDJSON. Only the first row of NDJSON has
// all columns.
func wideFiles(t *testing.T, dir string, n int) {
	fields := make([]arrow.Field, n)
	for c := range fields {
		fields[c] = arrow.Field{Name: fmt.Sprintf("c%d", c), Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	}
	fields[0].Name = "k"
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	var csv, objects strings.Builder
	for row := range 5 {
		for c, f := range fields {
			b.Field(c).(*array.Int64Builder).Append(int64(row + c))
			if c > 0 {
				csv.WriteByte(',')
			}
			if row == 0 {
				csv.WriteString(f.Name)
				fmt.Fprintf(&objects, "%c%q:%d", "{,"[min(c, 1)], f.Name, c)
			} else {
				fmt.Fprint(&csv, row+c-1)
			}
		}
		csv.WriteByte('\n')
		if row > 0 {
			fmt.Fprintf(&objects, `{"k":%d`, row)
		}
		objects.WriteString("}\n")
	}
	for name, content := range map[string][]byte{"w.arrow": arrowStream(t, b.NewRecord()), "w.csv": []byte(csv.String()), "w.ndjson": []byte(objects.String())} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// wideRuns are commands over wide files, by what they do. NARROW is a log of one column.
func wideRuns() []string {
	runs := []string{ // the first one makes the Parquet file
		"join --ids ids.csv --key-type int64 --on k -o w.parquet w.arrow",
		"build --key k --kind exact -o f.bjf w.parquet",
	}
	for _, log := range []string{"w.arrow", "w.parquet"} {
		for _, out := range []string{"o.arrow", "o.parquet", "o.csv", "o.ndjson"} {
			runs = append(runs, "join --ids ids.csv --key-type int64 --on k --type full -o "+out+" "+log)
		}
		runs = append(runs, "scan --filter f.bjf -o o.parquet "+log, "inputs -o in.jsonl "+log, "plan --ids ids.csv --key-type int64 --on k "+log)
	}
	for _, ids := range []string{"w.arrow", "w.parquet", "w.csv --key-type int64", "w.ndjson --key-type int64"} {
		for _, out := range []string{"o.arrow", "o.parquet", "o.csv"} {
			runs = append(runs, "join --on k --type full -o "+out+" narrow.arrow --ids "+ids)
		}
		runs = append(runs, "build --key k -o g.bjf "+ids, "sketch --key k -o s.bjs "+strings.Fields(ids)[0], "inspect "+strings.Fields(ids)[0])
	}
	return runs
}

// What a wide schema takes grows with its columns, on either side and in each format. Four times the
// columns would take sixteen times the memory if one walk over all columns were made for each.
func TestWide(t *testing.T) {
	took := map[int]map[string]uint64{}
	few, many := 500, 2000
	for _, n := range []int{few, many} {
		dir := t.TempDir()
		t.Chdir(dir)
		wideFiles(t, dir, n)
		if err := os.WriteFile("ids.csv", []byte("k\n0\n1\n2\n3\n4\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		narrow := keyRecord(t, []arrow.DataType{arrow.PrimitiveTypes.Int64}, "[1, 2, 70]", false)
		if err := os.WriteFile("narrow.arrow", arrowStream(t, narrow), 0o600); err != nil {
			t.Fatal(err)
		}
		took[n] = map[string]uint64{}
		for _, args := range wideRuns() {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var stderr bytes.Buffer
			if code := run(append(strings.Fields(args), "--force")[:len(strings.Fields(args))+forces(args)], strings.NewReader(""), new(bytes.Buffer), &stderr); code != 0 {
				t.Fatalf("%d columns: %s: exit code %d: %s", n, args, code, &stderr)
			}
			runtime.ReadMemStats(&after)
			took[n][args] = after.TotalAlloc - before.TotalAlloc
		}
	}
	for args, bytes := range took[few] {
		ratio := float64(took[many][args]) / float64(bytes)
		t.Logf("%5.1f times as much: %s", ratio, args)
		if ratio > 6 {
			t.Errorf("%s: %d columns take %d MiB, %d columns %d MiB", args, few, bytes>>20, many, took[many][args]>>20)
		}
	}
}

// forces returns 1 if a command takes --force.
func forces(args string) int {
	if strings.HasPrefix(args, "plan") || strings.HasPrefix(args, "inspect") {
		return 0
	}
	return 1
}

// Text with more columns than the budget has room for is refused before its rows are read.
func TestWideBudget(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	wideFiles(t, dir, 5000)
	for _, name := range []string{"w.csv", "w.ndjson"} {
		var stderr bytes.Buffer
		args := "join --memory 64MiB --ids " + name + " --key-type int64 --on k --type inner -o o.parquet w.arrow"
		if code := run(strings.Fields(args), strings.NewReader(""), new(bytes.Buffer), &stderr); code != 1 ||
			!strings.Contains(stderr.String(), "want at most 32 MiB, 1/2 of the budget, got 39.05 MiB (raise --memory to 79MiB or more, or choose fewer --columns)") {
			t.Errorf("%s: exit code %d: %s", name, code, &stderr)
		}
		do(t, strings.Fields("join --force --quiet --memory 64MiB --columns ids.c7 --ids "+name+" --key-type int64 --on k --type inner -o o.csv w.arrow")...)
	}
}
