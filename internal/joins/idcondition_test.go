package joins_test

import (
	"os"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// A filter of the IDs that satisfy a condition is the filter of these IDs: entries of a dictionary
// that only other rows have need not be in it.
func TestFilterOfSomeIDs(t *testing.T) {
	type id struct {
		K int64 `parquet:"k,dict"`
		M int64 `parquet:"m"`
	}
	dir := t.TempDir()
	ids, log := filepath.Join(dir, "ids.parquet"), filepath.Join(dir, "log.parquet")
	if err := pq.WriteFile(ids, []id{{128, 2}, {37, 3}, {128, 4}}); err != nil {
		t.Fatal(err)
	}
	if err := pq.WriteFile(log, []id{{37, 0}, {128, 1}, {5, 2}}); err != nil {
		t.Fatal(err)
	}
	some := open(t, partition.OpenOptions{Where: "m <> 3"}, ids)
	for _, kind := range []codec.Kind{codec.KindBloom, codec.KindExact} {
		filter := filterOf(t, some, "k", kind, 0.01)
		for _, s := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
			got, err := run(t, some, open(t, partition.OpenOptions{}, log), join.Options{On: "k", Strategy: s, Filter: (*codec.Filter)(filter)})
			if err != nil || len(got.rows) != 1 || got.report.IDsTotal != 2 {
				t.Errorf("%s: %d rows, %d IDs, %v; want the row of 128, and 2 IDs", s, len(got.rows), got.report.IDsTotal, err)
			}
		}
	}
}

// The rows of text IDs that satisfy a condition are those of a file without the others.
func TestConditionOnText(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log.parquet")
	if err := pq.WriteFile(log, []struct {
		K int64 `parquet:"k"`
	}{{1}, {2}, {3}, {10}}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ids.csv": "id,c\n1,DE\n2,FR\n3,DE\n10,\n", "ids.ndjson": `{"id":1,"c":"DE"}` + "\n" + `{"id":2,"c":"FR"}` + "\n" + `{"id":3,"c":"DE"}` + "\n" + `{"id":10}` + "\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for where, want := range map[string]int{"c = 'DE'": 2, "c <> 'DE'": 1, "c IS NULL": 1, "c < 'E' OR c IS NULL": 3} {
			for _, s := range []join.Strategy{join.Exact, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
				got, err := run(t, open(t, partition.OpenOptions{Text: true, Where: where}, name), open(t, partition.OpenOptions{}, log), join.Options{On: "k=id", Strategy: s})
				if err != nil || len(got.rows) != want || got.report.IDsTotal != int64(want) {
					t.Errorf("%s where %s by %s: %d rows, %d IDs, %v; want %d", name, where, s, len(got.rows), got.report.IDsTotal, err, want)
				}
			}
		}
	}
}
