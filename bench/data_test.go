package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// event and identity are rows as another library reads them.
type event struct {
	Key    *int64   `parquet:"user_id,optional"`
	Time   *int64   `parquet:"event_time,optional"`
	Amount *float64 `parquet:"amount,optional"`
	URL    *string  `parquet:"url,optional"`
}

type identity struct {
	Key  *int64  `parquet:"user_id,optional"`
	Name *string `parquet:"name,optional"`
}

func made(t *testing.T, d Data) (path string) {
	t.Helper()
	dir := t.TempDir()
	if err := d.Write(dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, d.file())
}

func rowsOf[T any](t *testing.T, d Data) []T {
	t.Helper()
	rows, err := parquet.ReadFile[T](made(t, d))
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(rows)) != d.Rows {
		t.Fatalf("%d rows, want %d", len(rows), d.Rows)
	}
	return rows
}

// Equal descriptions give equal bytes, for each kind of data.
func TestSameBytes(t *testing.T) {
	for _, d := range []Data{
		{Kind: "log", Rows: 5000, Group: 1500}, {Kind: "log", Rows: 3000, Codec: "zstd", Key: "string", Order: "zipf", Wide: 6, Index: true},
		{Kind: "ids", Rows: 3000, Members: 50, Users: 1000}, {Kind: "lines", Rows: 1000, Members: 1000}, {Kind: "csv", Rows: 1000, Members: 1000},
	} {
		one, err := os.ReadFile(made(t, d))
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(made(t, d))
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s: differs (%v)", d.Name(), err)
		}
	}
}

// Different data have different names.
func TestNames(t *testing.T) {
	names := map[string]Data{}
	for _, table := range Tables() {
		for _, c := range table.Cells {
			for _, d := range []Data{c.Job.Log, c.Job.IDs} {
				if other, ok := names[d.Name()]; ok && other != d {
					t.Errorf("%s: %+v and %+v", d.Name(), other, d)
				}
				names[d.Name()] = d
			}
		}
	}
}

// An ID set has distinct keys, of which Members are users of the log. A share
// of the users has that share of the rows.
func TestMembers(t *testing.T) {
	log := logOf(50_000)
	ids := Data{Kind: "ids", Rows: 20_000, Users: log.Rows, Members: 5000}
	in := map[int64]bool{}
	for _, r := range rowsOf[identity](t, ids) {
		in[*r.Key] = true
		if len(*r.Name) != 12 {
			t.Fatalf("name %q", *r.Name)
		}
	}
	users := 0
	for user := range log.users() {
		if in[int64(log.keyOf(user))] {
			users++
		}
	}
	if len(in) != 20_000 || users != 5000 {
		t.Errorf("%d IDs, %d users among them", len(in), users)
	}
	var found, null int
	for _, r := range rowsOf[event](t, log) {
		if in[*r.Key] {
			found++
		}
		if r.Amount == nil {
			null++
		}
		if !strings.HasPrefix(*r.URL, "https://shop.example.com/") {
			t.Fatalf("url %q", *r.URL)
		}
	}
	near(t, "rows of a tenth of the users", float64(found), 5000, 0.06)
	near(t, "NULLs", float64(null), 25_000, 0.03)
}

// Keys that a filter must not know are not in its set.
func TestOutsiders(t *testing.T) {
	for _, set := range []Data{idsOf("ids", 3000, ""), idsOf("ids", 3000, "dense")} {
		in := map[uint64]bool{}
		for row := range set.Rows {
			in[set.keyOf(set.idOf(row))] = true
		}
		others := set
		others.Members = 0
		if others.Users = set.users(); others.Users > set.Members {
			others.Order, others.First = "others", set.Members
		}
		seen := map[uint64]bool{}
		for row := range set.Rows {
			key := others.keyOf(others.idOf(row))
			if in[key] || seen[key] {
				t.Fatalf("%s: key %d twice", set.Name(), key)
			}
			seen[key] = true
		}
	}
}

func TestOrders(t *testing.T) {
	const n = 40_000
	shares := func(order string) (top float64, changes int) {
		d := Data{Kind: "log", Rows: n, Order: order}
		counts, last := map[uint64]int{}, uint64(0)
		for row := range d.Rows {
			user := d.userOf(row)
			if user >= d.users() {
				t.Fatalf("%s: user %d", order, user)
			}
			if counts[user]++; user < last {
				changes++
			}
			last = user
		}
		most := 0
		for _, c := range counts {
			most = max(most, c)
		}
		return float64(most) / n, changes
	}
	if top, changes := shares(""); top > 0.001 || changes < n/3 {
		t.Errorf("even: the first user has %v, %d descents", top, changes)
	}
	if top, _ := shares("heavy"); math.Abs(top-0.3) > 0.02 {
		t.Errorf("heavy: the first user has %v", top)
	}
	if top, _ := shares("zipf"); top < 0.1 || top > 0.2 { // 1 - 2^-0.2 = 0.13
		t.Errorf("zipf: the first user has %v", top)
	}
	if _, changes := shares("sorted"); changes != 0 {
		t.Errorf("sorted: %d descents", changes)
	}
	d := Data{Kind: "log", Rows: n, Order: "clustered"}
	for row := range d.Rows {
		if user := d.userOf(row); math.Abs(float64(user)-float64(row)) > n/500+1 {
			t.Fatalf("clustered: row %d has user %d", row, user)
		}
	}
	if d.member(0) != (Data{Kind: "ids", Rows: 10, Members: 10, Users: n}).idOf(0) {
		t.Error("the heavy user is not in every set")
	}
}

// A log in files has its rows, each once.
func TestFiles(t *testing.T) {
	d := Data{Kind: "log", Rows: 1000, Files: 7, Days: 3}
	root := made(t, d)
	names, err := filepath.Glob(filepath.Join(root, "dt=2024-01-0?", "part-*.parquet"))
	if err != nil || len(names) != 7 {
		t.Fatalf("%q, %v", names, err)
	}
	var got, want []int64
	for _, name := range names {
		rows, err := parquet.ReadFile[event](name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			got = append(got, *r.Time)
		}
	}
	d.Files, d.Days = 0, 0
	for _, r := range rowsOf[event](t, d) {
		want = append(want, *r.Time)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}

func TestText(t *testing.T) {
	d := Data{Kind: "lines", Rows: 100, Members: 100}
	f, err := os.Open(made(t, d))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if lines := strings.Fields(string(text)); err != nil || len(lines) != 100 || lines[7] != string(d.appendKey(nil, d.idOf(7))) {
		t.Errorf("%q, %v", text, err)
	}
	d.Kind = "csv"
	text, err = os.ReadFile(made(t, d))
	if lines := strings.Fields(string(text)); err != nil || len(lines) != 101 || !strings.HasPrefix(lines[1], string(d.appendKey(nil, d.idOf(0)))+",") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, d := range []Data{{Kind: "log"}, {Kind: "x", Rows: 5}, {Kind: "ids", Rows: 5, Members: 6}, {Kind: "ids", Rows: 5, Users: 2, Members: 3}} {
		if err := d.Write(t.TempDir()); err == nil {
			t.Errorf("%+v: want an error", d)
		}
	}
}

// The floor decompresses every page, and a file that is cut in a page is an error.
func TestDecompress(t *testing.T) {
	for _, codec := range []string{"snappy", "zstd"} {
		path := made(t, Data{Kind: "log", Rows: 3000, Group: 1000, Codec: codec})
		if err := runDecompress([]string{"2", "", path}); err != nil {
			t.Error(err)
		}
		chunks, err := chunksBelow(path, "user_id,url")
		if err != nil || len(chunks) != 6 {
			t.Fatalf("%d chunks, %v", len(chunks), err)
		}
		bad := chunks[0]
		bad.end--
		if err := new(decompressor).chunk(bad); err == nil {
			t.Error("a chunk that is cut: want an error")
		}
	}
	if err := runDecompress([]string{"2", "none", made(t, Data{Kind: "log", Rows: 10})}); err == nil {
		t.Error("no column: want an error")
	}
}

// The filters of Go modules find the keys that they hold, and report those they do not.
func TestGoFilters(t *testing.T) {
	for _, key := range []string{"", "string"} {
		path := made(t, Data{Kind: "ids", Rows: 5000, Members: 5000, Key: key, Group: 1000, Plain: true})
		for name, maker := range goBlooms {
			if err := runFilter([]string{name, "2", path}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := maker(100)().misses(keys{ints: []int64{1, 2, 3}}); n != 3 {
				t.Errorf("%s: an empty filter misses %d of 3", name, n)
			}
		}
	}
}
