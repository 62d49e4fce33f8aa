package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

func openText(t *testing.T, name, content string, opts Options) (*Table, error) {
	t.Helper()
	opts.Size = int64(len(content))
	return Open(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }, name, opts)
}

// scattered returns NDJSON of objects with an id and some of a large number of
// other keys each.
func scattered(rows, each, keys int) string {
	var b bytes.Buffer
	for r := range rows {
		fmt.Fprintf(&b, `{"id":%d`, r)
		for k := range each {
			fmt.Fprintf(&b, `,"k%d":"v"`, (each*r+k)%keys)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func TestColumnsAreCapped(t *testing.T) {
	header := func(n int, by string) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("c%d", i)
		}
		return strings.Join(names, by) + "\n"
	}
	for _, c := range []struct{ name, content string }{
		{"wide.csv", header(100_000, ",")},
		{"quoted.csv", `"a",` + header(100_000, ",")},
		{"wide.tsv", header(100_000, "\t")},
		{"wide.ndjson", "{" + strings.TrimSuffix(strings.ReplaceAll(header(40_000, "\":1,"), "c", "\"c"), "\n") + "\":1}\n"},
	} {
		_, err := openText(t, c.name, c.content, Options{})
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "32768 columns") {
			t.Errorf("%s: %v, want an error that names the cap", c.name, err)
		}
	}
}

// Rows with more columns than fit the budget are refused, but a key column alone can be read.
func TestKeyOfManyColumns(t *testing.T) {
	tab, err := openText(t, "a.ndjson", scattered(10_000, 20, 20_000), Options{Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range tab.Read(t.Context(), 0, nil) {
		if !errors.Is(err, fault.ErrMemory) || !strings.Contains(err.Error(), "raise Memory to 313MiB or more, or choose fewer Columns") {
			t.Errorf("%v, want an error that names the options", err)
		}
	}
	rows := 0
	for v, err := range tab.ReadPlain(t.Context(), 0, 1, 0, 2) {
		if err != nil {
			t.Fatal(err)
		}
		rows += v.NonNull
	}
	if rows != 10_000 {
		t.Errorf("%d keys", rows)
	}
}

// NULLs count towards the size of a batch.
func TestNullsAreCharged(t *testing.T) {
	const columns = 4000
	records := cases.Count(1000, 3000, 3000)
	content := scattered(records, 4, columns)
	for _, memory := range []int64{0, 64 << 20} {
		tab, err := openText(t, "a.ndjson", content, Options{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		most, rows := int64(batchBytes), int64(0)
		if memory > 0 {
			most = memory / batchShare
		}
		for rec, err := range tab.Read(context.Background(), 0, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if n := (rec.NumRows() - 1) * rec.NumCols() * cellBytes; n > most {
				t.Errorf("budget %d: a batch of %d rows and %d columns", memory, rec.NumRows(), rec.NumCols())
			}
			rows += rec.NumRows()
		}
		if rows != int64(records) {
			t.Errorf("%d rows", rows)
		}
	}
}

// A line that exceeds the budget is refused with the budget that would suffice, in
// every format and compression.
func TestLinesBeyondTheBudget(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for _, c := range []struct{ name, content string }{
		{"a.ids", long}, {"a.csv", "id\n" + long}, {"b.csv", "id\n\"" + strings.ReplaceAll(long, "xxxx", "xxx\n")},
		{"a.tsv", "id\n" + long}, {"a.ndjson", `{"id":"` + long + `"}`},
	} {
		for memory, ok := range map[int64]bool{16 << 20: false, 64 << 20: true} {
			tab, err := openText(t, c.name, c.content, Options{Memory: memory})
			if err == nil {
				for _, e := range tab.ReadPlain(t.Context(), 0, 1, 0, 2) {
					err = errors.Join(err, e)
				}
			}
			if ok && c.name == "b.csv" && errors.Is(err, fault.ErrCorrupt) { // the quote is not closed
				err = nil
			}
			if ok != (err == nil) || !ok && (!errors.Is(err, fault.ErrMemory) || !strings.Contains(err.Error(), "Memory to 17MiB")) {
				t.Errorf("%s in %d bytes: %v", c.name, memory, err)
			}
		}
	}
}
