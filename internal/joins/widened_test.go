package joins_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// slim is a row of a table as its old files store it, broad as its new ones do.
type slim struct {
	K *int32  `parquet:"k,optional,dict,id(1)"`
	N int32   `parquet:"n,delta,id(2)"`
	F float32 `parquet:"f,split,id(3)"`
	D int32   `parquet:"d,decimal(2:9),id(4)"`
	L []int32 `parquet:"l,list,id(5)"`
}

type broad struct {
	K    *int64   `parquet:"k,optional,dict,id(1)"`
	N    int64    `parquet:"n,delta,id(2)"`
	F    float64  `parquet:"f,split,id(3)"`
	D    [16]byte `parquet:"d,decimal(2:38),id(4)"`
	L    []int64  `parquet:"l,list,id(5)"`
	Part *string  `parquet:"part,optional,id(6)"`
}

// widened is a broad row of IDs or of an answer.
type widened struct {
	Key int64    `parquet:"key"`
	F   float64  `parquet:"pay"`
	D   [16]byte `parquet:"price,decimal(2:38)"`
}

// broadTable is a table by id that has all columns of broad.
func broadTable(location string) *lake.Table {
	t := &lake.Table{Kind: "test", Location: location, Version: "1", Widens: true, ByID: true, Columns: []lake.Column{
		{Name: "k", ID: 1, Type: "int64"}, {Name: "n", ID: 2, Type: "int64"}, {Name: "f", ID: 3, Type: "double"}, {Name: "d", ID: 4, Type: "decimal(38,2)"},
		{Name: "l", ID: 5, Type: "list", Children: []lake.Column{{Name: "element", ID: 7, Type: "int64"}}}, {Name: "part", ID: 6, Type: "string"},
	}}
	return t
}

// openTable opens files of a table, each with the table's value of part.
func openTable(t *testing.T, where, dir string, names, parts []string) (files []*partition.File) {
	t.Helper()
	opts := source.Opening{OpenOptions: source.OpenOptions{Where: where}}
	if err := opts.Fill(); err != nil {
		t.Fatal(err)
	}
	table, err := source.NewTableVersion(broadTable(dir + "/"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		name = filepath.Join(dir, name)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		e := source.Entry{Object: storage.Object{Name: name, Rel: names[i], Size: info.Size()}, Of: &source.OfTable{Table: table, Values: []hive.Part{{Name: "part", Text: parts[i]}}}}
		f, _, err := opts.OpenFound(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		files = append(files, (*partition.File)(f))
	}
	return files
}

// bigEndian is the test's own form of a decimal.
func bigEndian(n int32) (b [16]byte) {
	for i := range b {
		b[i] = byte(int64(n) >> min(63, 8*(15-i)))
	}
	return b
}

// slimRows draws rows and what they are in the wider types.
func slimRows(rng *rand.Rand, n int, part string) (a []slim, b []broad) {
	for i := range n {
		s := slim{N: int32(rng.Uint32()), F: float32(rng.IntN(100)) / 7, D: int32(rng.IntN(2e9)) - 1e9, L: []int32{}}
		w := broad{N: int64(s.N), F: float64(s.F), D: bigEndian(s.D), L: []int64{}, Part: &part}
		if i%100 >= 50 {
			s.N, w.N = int32(i), int64(i)
		}
		if rng.IntN(9) > 0 {
			k := int32(rng.IntN(400)) - 50
			wide := int64(k)
			s.K, w.K = &k, &wide
		}
		for range rng.IntN(3) {
			x := int32(rng.Uint32())
			s.L, w.L = append(s.L, x), append(w.L, int64(x))
		}
		a, b = append(a, s), append(b, w)
	}
	return a, b
}

// A table whose files store narrower types, or lack a column that the table has a value of, joins like one whose
// files store all of it.
func TestWidenedJoins(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	dir := t.TempDir()
	pages := []pq.WriterOption{pq.PageBufferSize(400), pq.MaxRowsPerRowGroup(300), pq.CreatedBy("parquet-mr", "1.14", "x"), pq.Compression(&pq.Snappy), pq.BloomFilters(pq.SplitBlockFilter(10, "k"))}
	var slims, broads, texts []string
	for i := range 3 {
		text := fmt.Sprint("part ", i%2)
		a, b := slimRows(rng, 700, text)
		version := pq.DataPageVersion(1 + i%2)
		slims, broads, texts = append(slims, fmt.Sprint("a", i)), append(broads, fmt.Sprint("b", i)), append(texts, text)
		save(t, filepath.Join(dir, slims[i]), a, append(pages, version)...)
		save(t, filepath.Join(dir, broads[i]), b, append(pages, version)...)
	}
	var ids []widened
	for i := range 150 {
		id := widened{Key: rng.Int64N(400) - 50, F: float64(float32(rng.IntN(100)) / 7), D: bigEndian(int32(rng.IntN(10)))}
		if i%3 == 0 { // a number of 32 bits if it is cut
			id.Key += 1 << 32
		}
		ids = append(ids, id)
	}
	small := save(t, filepath.Join(dir, "ids.parquet"), ids)
	far := save(t, filepath.Join(dir, "far.parquet"), []widened{{Key: 1 << 40}, {Key: -1 << 40}})
	answers := 0
	for _, c := range []struct {
		ids, on, where string
		types          []join.Type
	}{
		{small, "k=key", "", []join.Type{join.Semi, join.Anti, join.Inner, join.Left, join.Right, join.Full}},
		{small, "f=pay", "", []join.Type{join.Semi, join.Inner}}, {small, "d=price", "", []join.Type{join.Semi, join.Anti}},
		{small, "n=key", "", []join.Type{join.Semi, join.Anti}},
		{far, "k=key", "", []join.Type{join.Semi, join.Anti, join.Inner}}, {far, "n=key", "", []join.Type{join.Semi, join.Anti}},
		{small, "k=key", "n > 2147483000 OR d < -9999999.00", []join.Type{join.Semi, join.Anti}},
		{small, "k=key", "n < 3000000000 AND f >= 7.5", []join.Type{join.Semi}}, {small, "k=key", "n > 3000000000", []join.Type{join.Anti}},
		{small, "k=key", "part = 'part 1'", []join.Type{join.Semi, join.Inner}}, {small, "k=key", "part IS NULL", []join.Type{join.Anti}},
		{small, "k=key", "n BETWEEN 100 AND 120 AND d > -5000000.25", []join.Type{join.Anti}},
	} {
		for _, typ := range c.types {
			for _, strategy := range []join.Strategy{join.Auto, join.Shuffle} {
				if strategy == join.Shuffle && (c.on != "k=key" || c.ids == far || typ == join.Semi) {
					continue
				}
				name := fmt.Sprint(filepath.Base(c.ids), " ", c.on, " ", c.where, " ", typ, " ", strategy)
				opts := join.Options{On: c.on, Type: typ, Strategy: strategy}
				want, err := run(t, open(t, partition.OpenOptions{}, c.ids), openTable(t, c.where, dir, broads, texts), opts)
				if err != nil {
					t.Fatal(name, err)
				}
				got, err := run(t, open(t, partition.OpenOptions{}, c.ids), openTable(t, c.where, dir, slims, texts), opts)
				if err != nil || !slices.Equal(got.rows, want.rows) {
					t.Fatalf("%s: %d rows, want %d: %v", name, len(got.rows), len(want.rows), err)
				}
				answers += len(want.rows)
				j, err := join.New(open(t, partition.OpenOptions{}, c.ids), openTable(t, c.where, dir, slims, texts), opts)
				if err != nil {
					t.Fatal(name, err)
				}
				if n, err := j.Count(t.Context()); err != nil || n != int64(len(want.rows)) {
					t.Fatalf("%s: %d counted, want %d: %v", name, n, len(want.rows), err)
				}
				if typ != join.Semi && typ != join.Anti && typ != join.Inner {
					continue
				}
				var out [2][]broad
				var skipped [2]int64
				for i, names := range [][]string{slims, broads} {
					file := filepath.Join(t.TempDir(), "out.parquet")
					j, err := join.New(open(t, partition.OpenOptions{}, c.ids), openTable(t, c.where, dir, names, texts), opts)
					if err != nil {
						t.Fatal(name, err)
					}
					if _, err := room(j).Write(t.Context(), exactly(file), nil); err != nil {
						t.Fatal(name, err)
					}
					skipped[i] = j.Report().RowGroupsSkipped
					if out[i], err = pq.ReadFile[broad](file); err != nil {
						t.Fatal(name, err)
					}
				}
				if a, b := fmt.Sprintf("%+v", textsOf(out[0])), fmt.Sprintf("%+v", textsOf(out[1])); len(out[0]) != len(want.rows) || a != b {
					t.Fatalf("%s: %d rows written, want %d", name, len(out[0]), len(want.rows))
				}
				if c.ids == far && typ == join.Semi && (skipped[0] != skipped[1] || skipped[0] != 9) {
					t.Errorf("%s: %d row groups are skipped, %d in files that store the types", name, skipped[0], skipped[1])
				}
			}
		}
	}
	if answers < 5000 {
		t.Errorf("%d rows", answers)
	}
}

// The fingerprint of a file depends on the value that the table has for a column that it lacks.
func TestValuesInFingerprints(t *testing.T) {
	dir := t.TempDir()
	rows, _ := slimRows(rand.New(rand.NewPCG(1, 1)), 10, "")
	save(t, filepath.Join(dir, "a"), rows)
	prints := map[string]bool{}
	for _, part := range []string{"x", "y", "x"} {
		p, err := (*source.File)(openTable(t, "", dir, []string{"a"}, []string{part})[0]).Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		prints[string(p)] = true
	}
	if len(prints) != 2 {
		t.Errorf("%d fingerprints", len(prints))
	}
}

// textsOf renders rows without their pointers.
func textsOf(rows []broad) (out []string) {
	for _, r := range rows {
		k, part := "NULL", "NULL"
		if r.K != nil {
			k = fmt.Sprint(*r.K)
		}
		if r.Part != nil {
			part = *r.Part
		}
		r.K, r.Part = nil, nil
		out = append(out, fmt.Sprint(k, part, r))
	}
	return out
}
