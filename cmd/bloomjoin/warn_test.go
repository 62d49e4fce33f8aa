package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
)

// TestHintReadsOneRowGroup: why no ID has a row is sought in one row group, however large the
// file is.
func TestHintReadsOneRowGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues([]string{"ANN", "ANN", "BOB", "BOB"}, nil)
	a := b.NewArray()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "k", Type: a.DataType()}}, nil), []arrow.Array{a}, 4)
	var file bytes.Buffer
	w, err := arrowparquet.NewParquetWriter(&file, rec.Schema(), arrowparquet.WriterOptions{RowGroupRows: 2})
	if err == nil {
		err = w.Write(rec)
	}
	if err == nil {
		_, _, err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	ids, log := filepath.Join(dir, "ids.txt"), filepath.Join(dir, "log.parquet")
	for id, hint := range map[string]string{"ann": "with --normalize lower some have", "bob": "as text, A and a differ"} {
		for name, data := range map[string]string{ids: id + "\n", log: file.String()} {
			if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var out, msg bytes.Buffer
		if code := run([]string{"join", "--on", "k", "--ids", ids, "--count", log}, nil, &out, &msg); code != 0 || !strings.Contains(msg.String(), hint) {
			t.Errorf("%s: exit code %d: %s", id, code, msg.String())
		}
	}
}

// putKeys writes a log whose column k has each value v times(v) times.
func putKeys(t *testing.T, name string, times func(v int64) int, values int64) string {
	t.Helper()
	v, left := int64(-1), 0
	return putInts(t, name, func() (int64, bool) {
		for left == 0 {
			if v++; v >= values {
				return 0, false
			}
			left = times(v)
		}
		left--
		return v, true
	})
}

// putInts writes a log whose column k has the values that next returns.
func putInts(t *testing.T, name string, next func() (int64, bool)) string {
	t.Helper()
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for v, ok := next(); ok; v, ok = next() {
		b.Append(v)
	}
	a := b.NewArray()
	defer a.Release()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "k", Type: a.DataType()}}, nil), []arrow.Array{a}, int64(a.Len()))
	defer rec.Release()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := arrowparquet.NewParquetWriter(f, rec.Schema(), arrowparquet.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestWarningsOfAScan: the warnings distinguish rows of members from false positives,
// and a heavy key is not taken for false positives, whether it passes or not.
func TestWarningsOfAScan(t *testing.T) {
	dir := t.TempDir()
	const member = 0 // the first one; the other members are greater than all unmatched keys
	var ids strings.Builder
	for i := range 5000 {
		fmt.Fprintln(&ids, member+int64(i)*104_729)
	}
	text := filepath.Join(dir, "ids.txt")
	if err := os.WriteFile(text, []byte(ids.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	run0 := func(args ...string) (figures struct {
		RowsIn   int64 `json:"rows_in"`
		RowsOut  int64 `json:"rows_out"`
		Warnings []struct{ Code, Text string }
	}, stderr string) {
		t.Helper()
		var out, msg bytes.Buffer
		if code := run(args, nil, &out, &msg); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, msg.String())
		}
		if err := json.Unmarshal(out.Bytes(), &figures); err != nil {
			t.Fatal(err)
		}
		return figures, msg.String()
	}
	filter := filepath.Join(dir, "ids.bjf")
	run0("build", "--json", "--key", "k", "--key-type", "int64", "--kind", "bloom", "--fpr", "0.02", "-o", filter, text)
	// A non-member that passes, and one that does not.
	var passes, fails int64 = -1, -1
	for v := int64(1); passes < 0 || fails < 0; v++ {
		if v > 2000 {
			t.Fatal("no stranger passes")
		}
		name := putKeys(t, filepath.Join(dir, "one.parquet"), func(w int64) int { return map[bool]int{true: 1}[w == v] }, v+1)
		if got, _ := run0("scan", "--json", "--count", "--filter", filter, "--key", "k", name); got.RowsOut == 1 {
			passes = v
		} else {
			fails = v
		}
	}
	some := func(extra map[int64]int) func(int64) int {
		return func(v int64) int {
			if n, ok := extra[v]; ok {
				return n
			}
			return map[bool]int{true: 1}[v != member]
		}
	}
	for _, c := range []struct {
		name  string
		times func(int64) int
		want  string
	}{
		{"strangers alone", some(nil), "false-positives-only"},
		{"a handful of members", some(map[int64]int{member: 20}), "false-positives-only"},
		{"many members", some(map[int64]int{member: 400}), ""},
		{"a heavy member", some(map[int64]int{member: 30_000}), ""},
		{"a heavy stranger that passes", some(map[int64]int{passes: 30_000}), ""},
		{"a heavy stranger that does not, and members", some(map[int64]int{fails: 30_000, member: 2000}), ""},
		{"a heavy member alone", func(v int64) int { return map[bool]int{true: 9}[v == member] }, "nothing-dropped"},
		{"a heavy stranger alone", func(v int64) int { return map[bool]int{true: 9999}[v == fails] }, "none-matched"},
		{"no rows", func(int64) int { return 0 }, ""},
	} {
		name := putKeys(t, filepath.Join(dir, "log.parquet"), c.times, 50_001)
		got, msg := run0("scan", "--json", "--count", "--filter", filter, "--key", "k", name)
		codes := ""
		for _, w := range got.Warnings {
			codes += w.Code
			if !strings.Contains(msg, "warning: "+w.Text) {
				t.Errorf("%s: %q is not said: %s", c.name, w.Text, msg)
			}
		}
		if codes != c.want || got.Warnings == nil {
			t.Errorf("%s: warnings %q, want %q (%d of %d rows pass)", c.name, codes, c.want, got.RowsOut, got.RowsIn)
		}
		// With a condition, few rows say nothing.
		got, _ = run0("scan", "--json", "--count", "--filter", filter, "--key", "k", "--where", "k IS NOT NULL", name)
		switch {
		case c.want == "none-matched" && (len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0].Text, "check --where and --key")),
			c.want == "false-positives-only" && len(got.Warnings) > 0:
			t.Errorf("%s, --where: warnings %v", c.name, got.Warnings)
		}
	}
}
