package joins_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Files in which the key has another name are read as those in which it has the first one, in every
// format, on both sides, beside conditions.
func TestOtherNames(t *testing.T) {
	dir := t.TempDir()
	type old struct {
		UID int64 `parquet:"uid,dict"`
		N   int64 `parquet:"n"`
	}
	type now struct {
		N  int64 `parquet:"n"`
		ID int64 `parquet:"user_id"`
	}
	logs, ids := filepath.Join(dir, "logs"), filepath.Join(dir, "ids")
	for _, d := range []string{logs, ids} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := pq.WriteFile(filepath.Join(logs, "a.parquet"), []old{{1, 10}, {2, 11}, {3, 12}}); err != nil {
		t.Fatal(err)
	}
	if err := pq.WriteFile(filepath.Join(logs, "b.parquet"), []now{{20, 1}, {21, 4}}); err != nil {
		t.Fatal(err)
	}
	sourcetest.Write(t, filepath.Join(logs, "c.arrow"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "n", Values: []int64{30, 31}}, sourcetest.Col{Name: "ident", Values: []int64{3, 9}}))
	for name, text := range map[string]string{"a.csv": "id,c\n1,x\n2,y\n", "b.csv": "c,ident\nx,3\n", "c.ndjson": `{"ident":4,"c":"x"}`} {
		if err := os.WriteFile(filepath.Join(ids, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openBoth := func(of, on string) (i, l []*partition.File) {
		return open(t, partition.OpenOptions{Text: true, Where: of, OtherNames: []string{"id|ident"}}, ids),
			open(t, partition.OpenOptions{Where: on, OtherNames: []string{"user_id|uid|ident"}}, logs)
	}
	for _, s := range []join.Strategy{join.Exact, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
		for _, c := range []struct {
			of, on string
			want   int
		}{{"", "", 6}, {"c = 'x'", "", 5}, {"", "user_id < 3", 3}, {"c = 'x'", "user_id > 1 AND n < 31", 3}} {
			i, l := openBoth(c.of, c.on)
			got, err := run(t, i, l, join.Options{On: "user_id=id", Strategy: s, Columns: []string{"user_id", "n"}})
			if err != nil || len(got.rows) != c.want || !strings.HasPrefix(got.names, "user_id") {
				t.Errorf("%s, where %q and %q: %d rows of %s, %v; want %d", s, c.of, c.on, len(got.rows), got.names, err, c.want)
			}
		}
	}
	i, l := openBoth("", "")
	if _, err := join.New(i, l, join.Options{On: "user_id|uid=id"}); err == nil || !strings.Contains(err.Error(), "OtherNames") {
		t.Errorf("other names without files opened by them: %v", err)
	}
}

// A file must have one of the names, and no two.
func TestOtherNamesRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "both.parquet")
	if err := pq.WriteFile(name, []struct {
		A int64 `parquet:"user_id"`
		B int64 `parquet:"uid"`
	}{{1, 2}}); err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]string{"user_id|uid": "both.parquet: mismatch: columns that are read as user_id: want one, got user_id and uid", "user_id|a.b": "unsupported", "user_id|uid::int64": "such as user_id|uid", "a|b,c|d": "such as a|b", "k|": "empty"} {
		files, err := partition.Open(t.Context(), []string{name}, partition.OpenOptions{OtherNames: []string{names}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", names, err, want)
		}
		_ = partition.Close(files)
	}
}

// Files of one schema share it, with the names that they store and with those that they are read by.
func TestOtherNamesOfManyFiles(t *testing.T) {
	dir := t.TempDir()
	type row struct {
		UID int64 `parquet:"uid"`
		N   int64 `parquet:"n"`
	}
	for i := range 20 {
		if err := pq.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".parquet")), []row{{int64(i), 1}, {int64(i), 2}}); err != nil {
			t.Fatal(err)
		}
	}
	opts := partition.OpenOptions{OtherNames: []string{"user_id|uid"}, Where: "user_id > 3"}
	for range 5 { // files are opened at once
		got, err := run(t, open(t, opts, dir), open(t, opts, dir), join.Options{On: "user_id", Columns: []string{"user_id", "n"}})
		if err != nil || len(got.rows) != 32 || got.names != "user_id n" {
			t.Fatalf("%d rows of %s: %v", len(got.rows), got.names, err)
		}
	}
	schemas := map[*arrow.Schema]bool{}
	for _, f := range open(t, opts, dir) {
		schemas[f.Schema()] = true
	}
	if len(schemas) > 10 { // some are opened at once
		t.Errorf("20 files of one schema, with the same other names, have %d schemas", len(schemas))
	}
}
