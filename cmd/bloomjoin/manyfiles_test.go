package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	pg "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// logLine is a row of a file of another program.
type logLine struct {
	K *string `parquet:"k,optional"`
	N int64   `parquet:"n"`
}

// otherParquet writes rows with another program, whose name is by. If it is not trusted with
// texts, its bounds of them are wrong.
func otherParquet(t *testing.T, by string, trusted bool, rows []logLine, options ...pg.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pg.NewGenericWriter[logLine](&b, append([]pg.WriterOption{pg.MaxRowsPerRowGroup(70)}, options...)...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return withFooter(t, b.Bytes(), func(m *meta.Footer) {
		m.CreatedBy = by
		for g := range m.RowGroups {
			c := &m.RowGroups[g].Columns[0]
			c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0
			if s := &c.MetaData.Statistics; !trusted {
				s.MinValue.V, s.MaxValue.V = []byte("zz"), []byte("zzz")
			}
		}
	})
}

// A scan of files of several writers and shapes keeps the rows that scans of each of them keep,
// whatever their order: nothing that is known of one file is believed of the next.
func TestFilesOfOneScan(t *testing.T) {
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(5, 29))
	lines := func(n, keys int) (rows []logLine) {
		for i := range n {
			k := fmt.Sprintf("key %03d", rng.IntN(keys))
			rows = append(rows, logLine{&k, int64(i)})
			if rng.IntN(9) == 0 {
				rows[i].K = nil
			}
		}
		return rows
	}
	ours := func(rows []logLine, name string, groups int64) []byte {
		var k []string
		var n []int64
		for _, r := range rows {
			if k, n = append(k, "none"), append(n, r.N); r.K != nil {
				k[len(k)-1] = *r.K
			}
		}
		sourcetest.Write(t, name, groups, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "k", Values: k}, sourcetest.Col{Name: "n", Values: n}))
		return read(t, name)
	}
	snappy, pages := pg.Compression(&pg.Snappy), pg.PageBufferSize(200)
	shapes := map[string][]byte{
		"ours.parquet":      ours(lines(200, 20), "ours.parquet", 50),
		"narrow.parquet":    ours(lines(200, 2), "narrow.parquet", 100),
		"ours.arrow":        ours(lines(120, 30), "ours.arrow", 50),
		"trusted.parquet":   otherParquet(t, "parquet-mr version 1.13.1", true, lines(210, 30)),
		"untrusted.parquet": otherParquet(t, "segmentio", false, lines(210, 30)),
		"small.parquet":     otherParquet(t, "segmentio", false, lines(300, 40), snappy, pages),
		"large.parquet":     otherParquet(t, "parquet-mr version 1.13.1", true, lines(900, 300), snappy, pages),
		"v1.parquet":        otherParquet(t, "parquet-mr version 1.13.1", true, lines(300, 10), snappy, pages, pg.DataPageVersion(1)),
		"twin.parquet":      otherParquet(t, "parquet-mr version 1.13.1", true, lines(300, 10), snappy, pages, pg.DataPageVersion(1)),
		"nulls.parquet":     otherParquet(t, "parquet-mr version 1.13.1", true, make([]logLine, 90)),
		"empty.parquet":     otherParquet(t, "parquet-mr version 1.13.1", true, nil),
	}
	sourcetest.Put(t, "few.csv", "k\nkey 003\nkey 007\n")
	sourcetest.Put(t, "many.csv", "k\nkey 000\nkey 011\nkey 012\nkey 019\nkey 025\nkey 250\n")
	for _, ids := range []string{"few", "many"} {
		works(t, "", "build", "--quiet", "--key", "k", "-o", ids+".bjf", ids+".csv")
	}
	runs := [][]string{
		{"scan", "--filter", "few.bjf"}, {"scan", "--filter", "many.bjf", "--where", "n < 150"}, {"join", "--on", "k", "--ids", "few.csv"},
		{"join", "--on", "k", "--ids", "many.csv", "--type", "anti"}, {"join", "--on", "k", "--ids", "many.csv", "--strategy", "shuffle"},
	}
	count := func(args ...string) int {
		n, err := strconv.Atoi(strings.TrimSpace(works(t, "", append(args, "--quiet", "--count", "--threads", "1")...)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var names []string
	for name := range shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, run := range runs {
		alone, sum := map[string]int{}, 0
		for _, name := range names {
			sourcetest.Put(t, "alone/"+name, string(shapes[name]))
			alone[name] = count(append(run, "alone/"+name)...)
			sum += alone[name]
		}
		if sum == 0 {
			t.Errorf("%v keeps nothing", run)
		}
		for order := range 6 {
			rng.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
			dir := fmt.Sprint("order", order)
			for i, name := range names {
				sourcetest.Put(t, fmt.Sprintf("%s/%02d-%s", dir, i, name), string(shapes[name]))
			}
			if got := count(append(run, dir)...); got != sum {
				t.Errorf("%v of %v: %d rows, want %d, of %v", run, names, got, sum, alone)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An update spills to the directory that is named.
func TestUpdateSpillsToTempDir(t *testing.T) {
	t.Chdir(t.TempDir())
	var ids strings.Builder
	for i := range 200_000 {
		fmt.Fprintln(&ids, i)
	}
	sourcetest.Put(t, "few.txt", "1\n")
	sourcetest.Put(t, "many.txt", ids.String())
	works(t, "", "build", "--quiet", "--kind", "counting", "--expect", "200000", "-o", "old.bjf", "few.txt")
	update := []string{"update", "--quiet", "--memory", "16MiB", "--add", "many.txt", "-o", "new.bjf", "old.bjf", "--temp-dir"}
	if _, said, code := called(t, "", append(update, "missing")...); code == 0 || !strings.Contains(said, "missing") {
		t.Errorf("exit code %d: %s", code, said)
	}
	works(t, "", append(update, ".")...)
}
