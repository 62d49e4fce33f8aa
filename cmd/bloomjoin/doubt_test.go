package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pg "github.com/parquet-go/parquet-go"
)

// TestDamagedBloomFilter: a damaged Bloom filter in a Parquet file is ignored.
// Scan and join return the same rows without it, and warn.
func TestDamagedBloomFilter(t *testing.T) {
	type row struct {
		K int64 `parquet:"k"`
		V int64 `parquet:"v"`
	}
	var rows []row
	for i := range int64(20000) {
		rows = append(rows, row{i * 7919 % 20011, i})
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log.parquet")
	if err := pg.WriteFile(log, rows, pg.BloomFilters(pg.SplitBlockFilter(10, "k"))); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	f, err := pg.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	ids := filepath.Join(dir, "ids.csv")
	if err := os.WriteFile(ids, []byte("k\n7\n19000\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	filter := filepath.Join(dir, "ids.bjf")
	try := func(log string, args ...string) (rows int, warnings []string, said string) {
		t.Helper()
		var out, msg bytes.Buffer
		if code := run(append(args, log), nil, &out, &msg); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, msg.String())
		}
		var r struct {
			RowsOut  int `json:"rows_out"`
			Warnings []struct{ Code, Text string }
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Warnings {
			if w.Code == "damaged" {
				warnings = append(warnings, w.Text)
			}
		}
		return r.RowsOut, warnings, msg.String()
	}
	try(ids, "build", "--json", "--key", "k", "--key-type", "int64", "--kind", "exact", "-o", filter)
	bad := filepath.Join(dir, "bad.parquet")
	at := f.Metadata().RowGroups[0].Columns[0].MetaData.BloomFilterOffset
	copy(b[at:], bytes.Repeat([]byte{0xff}, 16))
	if err := os.WriteFile(bad, b, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"scan", "--json", "--filter", filter, "-o", filepath.Join(dir, "scanned.parquet")},
		{"join", "--json", "--ids", ids, "--on", "k", "--strategy", "exact", "-o", filepath.Join(dir, "joined.parquet")},
	} {
		args = append(args, "--force")
		if n, warnings, said := try(log, args...); n != 2 || len(warnings) > 0 || strings.Contains(said, "Bloom filter is not used") {
			t.Errorf("%s of a whole file: %d rows, %q, %s", args[0], n, warnings, said)
		}
		n, warnings, said := try(bad, args...)
		if n != 2 || len(warnings) != 1 || !strings.Contains(warnings[0], "bad.parquet: row group 1: column k") || !strings.Contains(said, warnings[0]) {
			t.Errorf("%s: %d rows, warnings %q, said %s", args[0], n, warnings, said)
		}
	}
}

// What a writer is known to say wrongly, and no scan relies on, is a note of inspect --check.
func TestInspectNotes(t *testing.T) {
	const file = "../../internal/parquet/testdata/v2otherrows.parquet"
	const note = file + ": row group 1: column user_id: page 1: the header's rows: want 6, as decoded, got 5; scans do not rely on it"
	out := works(t, "", "inspect", "--check", file)
	if !strings.Contains(out, note) || !strings.Contains(out, "every page was decoded; see the notes") {
		t.Errorf("got %s", out)
	}
	var report struct{ Files []inspected }
	if err := json.Unmarshal([]byte(works(t, "", "inspect", "--check", "--json", file)), &report); err != nil {
		t.Fatal(err)
	}
	if f := report.Files[0]; !f.Checked || len(f.Notes) == 0 || f.Notes[0] != note {
		t.Errorf("got %+v", f)
	}
	if out := works(t, "", "inspect", "--check", flights+"/logs"); strings.Count(out, ", checked\n") != 4 {
		t.Errorf("got %s", out)
	}
	if out := works(t, "", "inspect", "--check", filepath.Dir(file)); !strings.Contains(out, "v2otherrows.parquet: 667 B, parquet, 20 rows, 2 columns, checked with 4 notes\n") {
		t.Errorf("got %s", out)
	}
	ids := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(ids, []byte("user_id\n5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := works(t, "", "join", "--ids", ids, "--on", "user_id", "--count", file); strings.TrimSpace(out) != "1" {
		t.Errorf("got %s rows, want 1", out)
	}
}
