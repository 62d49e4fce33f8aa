package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// id, eventRow and pairRow are rows as read by another library.
type id struct {
	Key   int64  `parquet:"user_id"`
	Score int64  `parquet:"score"`
	Name  string `parquet:"name"`
}

type eventRow struct {
	Time    int64  `parquet:"event_time"`
	Key     int64  `parquet:"user_id"`
	Session string `parquet:"session_id"`
	Amount  int64  `parquet:"amount"`
}

type pairRow struct {
	Key    int64 `parquet:"user_id"`
	Amount int64 `parquet:"amount"`
	Score  int64 `parquet:"score"`
}

func generated(t *testing.T, args ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := run(append(args, dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func rowsOf[T any](t *testing.T, dir, name string) []T {
	t.Helper()
	rows, err := parquet.ReadFile[T](filepath.Join(dir, name+".parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// distinct returns the keys of IDs and checks that they are unique.
func distinct[T any](t *testing.T, rows []T, key func(T) int64) map[int64]bool {
	t.Helper()
	keys := map[int64]bool{}
	for _, r := range rows {
		keys[key(r)] = true
	}
	if len(keys) != len(rows) {
		t.Errorf("%d keys in %d rows", len(keys), len(rows))
	}
	return keys
}

func share(rows []eventRow, keys map[int64]bool) float64 {
	var in int
	for _, r := range rows {
		if keys[r.Key] {
			in++
		}
	}
	return float64(in) / float64(len(rows))
}

func near(t *testing.T, what string, got, want float64, rows int) {
	t.Helper()
	if math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/float64(rows)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// The keys of users equal those of bench/scan's generate.py, and the expected number
// is in the set.
func TestUsers(t *testing.T) {
	for user, want := range map[uint64]uint64{0: 0, 1: 217416242025, 2: 140501209475, 19_999_999: 945263994042} {
		if got := userKey(user); got != want {
			t.Errorf("user %d: got %d, want %d", user, got, want)
		}
	}
	ids := rowsOf[id](t, generated(t, "-make", "users", "-rows", "1003", "-users", "500", "-members", "50"), "ids")
	keys := distinct(t, ids, func(r id) int64 { return r.Key })
	var in int
	for user := range uint64(500) {
		if keys[int64(userKey(user))] {
			in++
		}
	}
	if len(ids) != 1003 || in != 50 || len(ids[7].Name) != 12 {
		t.Errorf("%d IDs, of which %d are users; a name is %q", len(ids), in, ids[7].Name)
	}
}

func TestDense(t *testing.T) {
	dir := generated(t, "-make", "dense", "-rows", "50000")
	ids, log := rowsOf[id](t, dir, "ids"), rowsOf[eventRow](t, dir, "log")
	keys := distinct(t, ids, func(r id) int64 { return r.Key })
	for k := range keys {
		if k < 0 || k >= 200_000 {
			t.Fatalf("key %d", k)
		}
	}
	near(t, "rows that match", share(log, keys), 0.01, len(log))
}

func TestSkew(t *testing.T) {
	const n = 50_000
	dir := generated(t, "-make", "skew", "-rows", "50000")
	keys := distinct(t, rowsOf[id](t, dir, "ids"), func(r id) int64 { return r.Key })
	var zipf float64 // share of the first user
	for k := range n {
		zipf += math.Pow(float64(k+1), -zipfExponent)
	}
	for name, want := range map[string]struct{ top, matched, slack float64 }{
		"uniform": {1.0 / n, 0.5, 0}, "heavy": {0.3 + 0.7/n, 0.65, 0}, "zipf": {1 / zipf, 0.57, 0.02},
	} {
		log, counts := rowsOf[eventRow](t, dir, name), map[int64]int{}
		var top int
		for _, r := range log {
			counts[r.Key]++
			top = max(top, counts[r.Key])
		}
		if name != "uniform" {
			near(t, name+": the heaviest key", float64(top)/n, want.top, n)
		} else if top > 20 {
			t.Errorf("%s: a key has %d rows", name, top)
		}
		if got := share(log, keys); math.Abs(got-want.matched) > 0.02+want.slack {
			t.Errorf("%s: %v of the rows match", name, got)
		}
	}
}

// Both sides have unique keys, of which a tenth are common, all over the files.
func TestPair(t *testing.T) {
	dir := generated(t, "-make", "pair", "-rows", "10000")
	log, ids := rowsOf[pairRow](t, dir, "log"), rowsOf[pairRow](t, dir, "ids")
	key := func(r pairRow) int64 { return r.Key }
	distinct(t, log, key)
	keys := distinct(t, ids, key)
	halves := [2]int{}
	for i, r := range log {
		if keys[r.Key] {
			halves[i*2/len(log)]++
		}
	}
	if halves[0]+halves[1] != 1000 || halves[0] < 400 || halves[0] > 600 {
		t.Errorf("matches in the halves of the log: %v", halves)
	}
	if log[0].Amount == 0 || ids[0].Score == 0 {
		t.Errorf("no values: %+v, %+v", log[0], ids[0])
	}
}

// Generation is deterministic.
func TestTwice(t *testing.T) {
	a, b := generated(t, "-make", "skew", "-rows", "1000"), generated(t, "-make", "skew", "-rows", "1000")
	for _, name := range []string{"ids", "uniform", "heavy", "zipf"} {
		one, err := os.ReadFile(filepath.Join(a, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(filepath.Join(b, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		if string(one) != string(two) {
			t.Errorf("%s: differs", name)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-make", "users", "-rows", "100", "-users", "10", "-members", "11", "D"}, {"-make", "users", "-rows", "100", "D"},
		{"-make", "none", "-rows", "100", "D"}, {"-make", "skew", "-rows", "9", "D"}, {"-make", "skew", "-rows", "100"},
	} {
		if err := run(args); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}
