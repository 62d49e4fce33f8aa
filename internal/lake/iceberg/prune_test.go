package iceberg_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// asked returns the bounds for which it is asked whether they hold: first those of manifests.
func asked(t *testing.T, d *laketest.Iceberg, shown func([]lake.Bound) string) (all []string) {
	t.Helper()
	var mu sync.Mutex
	if _, err := described(t.Context(), storage.Local(), d.Name(), func(bounds []lake.Bound) bool {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, shown(bounds))
		return true
	}, false); err != nil {
		t.Fatal(err)
	}
	return all
}

// Manifests are left out by what the list says of their partitions, and their files are counted.
func TestSkipped(t *testing.T) {
	for _, c := range []struct {
		by     string
		values [4]any // of four files, in as many manifests
		want   string // bounds of the manifests
	}{
		{"id", [4]any{5, -7, nil, 5}, "[0 5 5 true] [0 -7 -7 true] [0   false] [0 5 5 true]"},
		{"name", [4]any{"a", "", nil, "é"}, "[1 a a true] [1   true] [1   false] [1 é é true]"},
		{"truncate[2](name)", [4]any{"a", "", nil, "é"}, "[1   true] [1   true] [1   false] [1   true]"},
		{"truncate[10](id)", [4]any{10, -10, nil, 0}, "[0 10 19 true] [0 -10 -1 true] [0   false] [0 0 9 true]"},
		{"bucket[8](id)", [4]any{1, 2, nil, 3}, "[0   true] [0   true] [0   false] [0   true]"},
		{"day", [4]any{0, -1, nil, 1}, "[3 1970-01-01 1970-01-01 true] [3 1969-12-31 1969-12-31 true] [3   false] [3 1970-01-02 1970-01-02 true]"},
		{"month(day)", [4]any{1, 2, nil, 600}, "[3 1970-02-01 1970-02-28 true] [3 1970-03-01 1970-03-31 true] [3   false] [3 2020-01-01 2020-01-31 true]"},
		{"hour(at)", [4]any{1, 2, nil, 3}, "[2 1970-01-01T01:00:00.000000Z 1970-01-01T01:59:59.999999Z true] [2 1970-01-01T02:00:00.000000Z 1970-01-01T02:59:59.999999Z true] [2   false] [2 1970-01-01T03:00:00.000000Z 1970-01-01T03:59:59.999999Z true]"},
		{"void(id)", [4]any{nil, nil, nil, nil}, "   "},
	} {
		t.Run(c.by, func(t *testing.T) {
			d := laketest.NewIceberg(t, 2, schema, c.by)
			for i, v := range c.values {
				d.Commit(d.Add(fmt.Sprint(i, ".parquet"), "A", nil, v))
			}
			got := asked(t, d, func(bounds []lake.Bound) (text string) {
				for _, b := range bounds {
					text += fmt.Sprint("[", b.Column, " ", b.Least, " ", b.Most, " ", b.NoNulls, "]")
				}
				return text
			})
			if text := strings.Join(got[:4], " "); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
			// Manifests of one partition have its bounds; they are read in any order.
			want := slices.Sorted(slices.Values(got[:4]))
			if partitions := slices.Sorted(slices.Values(got[4:])); !slices.Equal(partitions, want) {
				t.Errorf("got  %q\nwant %q", partitions, want)
			}
		})
	}
	d := laketest.NewIceberg(t, 2, schema, "id")
	for i := range 4 {
		d.Commit(d.Add(fmt.Sprint(i, ".parquet"), "A", []int64{1}, i), d.Add(fmt.Sprint(i, "b.parquet"), "A", nil, i))
	}
	only := func(values ...string) func([]lake.Bound) bool {
		return func(bounds []lake.Bound) bool { return slices.Contains(values, bounds[0].Least) }
	}
	for _, c := range []struct {
		holds func([]lake.Bound) bool
		want  string
	}{
		{only("0", "1", "2", "3"), "7000000004: 0.parquet id=0 without [1]; 0b.parquet id=0; 1.parquet id=1 without [1]; 1b.parquet id=1; 2.parquet id=2 without [1]; 2b.parquet id=2; 3.parquet id=3 without [1]; 3b.parquet id=3"},
		{only("2"), "7000000004: 2.parquet id=2 without [1]; 2b.parquet id=2 (6 skipped)"},
		{only(), "7000000004: 0.parquet id=0 (7 skipped)"}, // one is read for its columns
	} {
		got, err := described(t.Context(), storage.Local(), d.Name(), c.holds, false)
		if err != nil || got != c.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
		}
	}
	// Manifests of which it is not known how many files they have are read, also if none is wanted.
	d.Edit = func(what string, of map[string]any) {
		if what == "list" && of["content"] == 0 && of["sequence_number"] == int64(2) {
			of["existing_files_count"] = nil
		}
	}
	d.Commit()
	for which, want := range map[string]string{"3": "7000000005: 3.parquet id=3 without [1]; 3b.parquet id=3 (6 skipped)", "": "7000000005: 1.parquet id=1 (7 skipped)"} {
		if got, err := described(t.Context(), storage.Local(), d.Name(), only(which), false); err != nil || got != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	// The first manifest may have no files.
	d.Edit = nil
	d.Commit(laketest.Remove(d.Again("0.parquet", 1, nil)), laketest.Remove(d.Again("0b.parquet", 1, nil)))
	if got, err := described(t.Context(), storage.Local(), d.Name(), only(), false); err != nil || got != "7000000006: 1.parquet id=1 (5 skipped)" {
		t.Errorf("%s, %v", got, err)
	}
}

// Of the files in a manifest, those of partitions that cannot satisfy a condition are counted, whatever
// is wrong with them. It is asked once for each partition.
func TestPartitionsOfManifest(t *testing.T) {
	d := laketest.NewIceberg(t, 2, schema, "id", "day")
	var files []any
	for i := range 6 {
		files = append(files, d.Add(fmt.Sprint(i, map[bool]string{true: "x"}[i > 3], ".parquet"), "A", []int64{int64(i)}, i/2, nil))
	}
	d.Commit(files...)
	got := asked(t, d, func(b []lake.Bound) string { return fmt.Sprint(b) })
	of := "[{0 0 2 true false} {3   false false}]" // of the manifest of data, and of that of deletes
	want := []string{of, of, "[{0 0 0 true false} {3   false true}]", "[{0 1 1 true false} {3   false true}]", "[{0 2 2 true false} {3   false true}]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	onEntry(d, "x.parquet", func(_, file map[string]any) { file["file_format"] = "orc" })
	d.Commit(laketest.Remove(d.Again("3.parquet", 1, nil))) // and writes the manifest again
	for _, c := range []struct{ id, want string }{
		{"0", "7000000002: 0.parquet id=0 day=NULL without [0]; 1.parquet id=0 day=NULL without [1] (3 skipped)"},
		{"1", "7000000002: 2.parquet id=1 day=NULL without [2] (4 skipped)"},
		{"7", "7000000002: 0.parquet id=0 day=NULL without [0] (4 skipped)"},
	} {
		holds := func(b []lake.Bound) bool { return b[0].Least != b[0].Most || b[0].Least == c.id }
		if got, err := described(t.Context(), storage.Local(), d.Name(), holds, false); err != nil || got != c.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
		}
	}
	if _, err := described(t.Context(), storage.Local(), d.Name(), nil, false); !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
}

// Summaries that are not those of the fields, or not in order, leave nothing out.
func TestOddSummaries(t *testing.T) {
	summary := func(least, most any) any {
		return map[string]any{"contains_null": true, "lower_bound": least, "upper_bound": most}
	}
	one, two := laketest.SingleValue("long", 1), laketest.SingleValue("long", 2)
	for _, c := range []struct {
		list any
		want string
	}{
		{[]any{summary(one, two)}, "[{0 1 2 false false}]"}, {[]any{summary(two, one)}, "[{0   false false}]"}, {[]any{summary(one, nil)}, "[{0   false false}]"},
		{[]any{summary(one[:3], two)}, "[{0   false false}]"}, {[]any{summary([]byte{}, []byte{})}, "[{0   false false}]"}, {[]any{summary(one[:4], two)}, "[{0 1 2 false false}]"},
		{[]any{}, "[]"}, {nil, "[]"}, {[]any{summary(one, two), summary(one, two)}, "[]"},
	} {
		d := laketest.NewIceberg(t, 2, schema, "id")
		d.Edit = func(what string, of map[string]any) {
			if what == "list" {
				of["partitions"] = c.list
			}
		}
		d.Commit(d.Add("a.parquet", "A", nil, 1))
		if seen := asked(t, d, func(b []lake.Bound) string { return fmt.Sprint(b) }); len(seen) != 2 || seen[0] != c.want || seen[1] != "[{0 1 1 true false}]" {
			t.Errorf("%v: %q, want %s", c.list, seen, c.want)
		}
	}
}

// Fields that divide a table by one column say what each of them knows.
func TestTwoFields(t *testing.T) {
	d := laketest.NewIceberg(t, 2, schema, "bucket[8](id)", "truncate[10](id)", "day")
	d.Commit(d.Add("a.parquet", "A", nil, 3, 10, nil))
	want := []string{"[{0 10 19 true false} {3   false false}]", "[{0 10 19 true false} {3   false true}]"}
	if seen := asked(t, d, func(b []lake.Bound) string { return fmt.Sprint(b) }); !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
}
