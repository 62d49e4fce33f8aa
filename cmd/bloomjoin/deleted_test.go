package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	pg "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// tableRow is a row of a table with deleted rows.
type tableRow struct {
	K *int64 `parquet:"k,optional"`
	N int64  `parquet:"n"`
	S string `parquet:"s"`
	U *struct {
		ID *int64 `parquet:"id,optional"`
	} `parquet:"u,optional"`
	Tags []string `parquet:"tags,list"`
}

// dictRow is a tableRow in files with dictionaries.
type dictRow struct {
	K *int64 `parquet:"k,optional,dict"`
	N int64  `parquet:"n"`
	S string `parquet:"s,dict"`
	U *struct {
		ID *int64 `parquet:"id,optional"`
	} `parquet:"u,optional"`
	Tags []string `parquet:"tags,list"`
}

var tableSchema = arrow.NewSchema([]arrow.Field{
	{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String},
	{Name: "u", Type: arrow.StructOf(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true})},
	{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String)},
}, nil)

// linesOfTable draws rows whose keys are repeated, and some of them NULL.
func linesOfTable(r *rand.Rand, rows, keys, from int) (list []tableRow) {
	for i := range rows {
		row := tableRow{N: int64(from + i), S: fmt.Sprint("text ", r.IntN(9))}
		if k := int64(r.IntN(keys)); r.IntN(9) > 0 {
			row.K = &k
		}
		if r.IntN(9) > 0 {
			row.U = new(struct {
				ID *int64 `parquet:"id,optional"`
			})
			if id := int64(r.IntN(keys)); r.IntN(9) > 0 {
				row.U.ID = &id
			}
		}
		for range r.IntN(4) {
			row.Tags = append(row.Tags, fmt.Sprint("tag ", r.IntN(5)))
		}
		list = append(list, row)
	}
	return list
}

// nullableRow is a tableRow in files where a column that others require may be NULL.
type nullableRow struct {
	K *int64 `parquet:"k,optional"`
	N int64  `parquet:"n"`
	S string `parquet:"s,optional"`
	U *struct {
		ID *int64 `parquet:"id,optional"`
	} `parquet:"u,optional"`
	Tags []string `parquet:"tags,list"`
}

// smallPages writes rows in row groups of a few small pages of a version, perhaps with dictionaries.
func smallPages(t *testing.T, version int, dict bool, group int64, rows []tableRow) []byte {
	if dict {
		return pagesAs(t, version, group, rows, func(row tableRow) dictRow { return dictRow(row) })
	}
	return pagesAs(t, version, group, rows, func(row tableRow) tableRow { return row })
}

// pagesAs is smallPages of a type of rows.
func pagesAs[Row any](t *testing.T, version int, group int64, rows []tableRow, as func(tableRow) Row) []byte {
	var b bytes.Buffer
	w := pg.NewGenericWriter[Row](&b, pg.MaxRowsPerRowGroup(group), pg.PageBufferSize(100), pg.DataPageVersion(version))
	for part := range slices.Chunk(rows, 5) {
		for _, row := range part {
			if _, err := w.Write([]Row{as(row)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withoutIndex returns a Parquet file without a page index.
func withoutIndex(t *testing.T, file []byte) []byte {
	return withFooter(t, file, func(m *meta.Footer) {
		for g := range m.RowGroups {
			for i := range m.RowGroups[g].Columns {
				c := &m.RowGroups[g].Columns[i]
				c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = 0, 0, 0, 0
			}
		}
	})
}

// withFooter returns a Parquet file with a changed footer.
func withFooter(t *testing.T, file []byte, change func(*meta.Footer)) []byte {
	t.Helper()
	size := int(binary.LittleEndian.Uint32(file[len(file)-8:]))
	m, _, err := meta.DecodeFooter(file[len(file)-8-size : len(file)-8])
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	footer, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file = append(slices.Clone(file[:len(file)-8-size]), footer...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), "PAR1"...)
}

// pagesOf returns where row groups and pages of a column begin, and the number of rows at last.
func pagesOf(t *testing.T, file []byte, column int) (groups, pages []int64) {
	f, err := pg.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	for _, g := range f.RowGroups() {
		groups = append(groups, at)
		in := g.ColumnChunks()[column].Pages()
		for {
			p, err := in.ReadPage()
			if err != nil {
				break
			}
			pages, at = append(pages, at), at+p.NumRows()
			pg.Release(p)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return append(groups, at), append(pages, at)
}

// deletions are patterns of deleted rows in a file whose row groups and pages begin at rows.
var deletions = map[string]func(file int, groups, pages []int64) (gone []int64){
	"none": func(int, []int64, []int64) []int64 { return nil },
	"one of each row group": func(_ int, groups, _ []int64) (gone []int64) {
		for i, at := range groups[:len(groups)-1] {
			gone = append(gone, at+int64(i)*13%(groups[i+1]-at))
		}
		return gone
	},
	"ends of pages": func(_ int, _, pages []int64) (gone []int64) {
		for i, at := range pages[:len(pages)-1] {
			if gone = append(gone, at); pages[i+1] > at+1 {
				gone = append(gone, pages[i+1]-1)
			}
		}
		return gone
	},
	"pages":      func(_ int, _, pages []int64) []int64 { return alternate(pages) },
	"row groups": func(_ int, groups, _ []int64) []int64 { return alternate(groups) },
	"a file": func(file int, groups, _ []int64) []int64 {
		if file != 1 {
			return nil
		}
		return ranged(0, groups[len(groups)-1])
	},
	"all":          func(_ int, groups, _ []int64) []int64 { return ranged(0, groups[len(groups)-1]) },
	"every second": func(_ int, groups, _ []int64) []int64 { return alternate(ranged(0, groups[len(groups)-1]+1)) },
	"a long run":   func(_ int, groups, _ []int64) []int64 { return ranged(7, groups[len(groups)-1]*4/5) },
}

func ranged(lo, hi int64) (list []int64) {
	for v := lo; v < hi; v++ {
		list = append(list, v)
	}
	return list
}

// alternate returns every second of the ranges that begin at numbers.
func alternate(starts []int64) (list []int64) {
	for i := 0; i+1 < len(starts); i += 2 {
		list = append(list, ranged(starts[i], starts[i+1])...)
	}
	return list
}

// twoTables writes rows as a table, some of whose rows a pattern deletes, and the others as files.
func twoTables(t *testing.T, pattern string, byKeys bool, rows, keys int) (table, files string) {
	r := rand.New(rand.NewPCG(uint64(len(pattern)), uint64(rows)))
	d := laketest.Draw(t, tableSchema, r.Uint64())
	var deleted []tableRow // by their keys
	if byKeys {
		d = laketest.NewIceberg(t, 2, tableSchema)
	}
	files = t.TempDir()
	var actions []any
	for i := range 3 {
		all := linesOfTable(r, rows, keys, i*rows)
		group := int64(60)
		if i == 0 { // a file of one row group may be copied as it is stored
			group = 1000
		}
		b := smallPages(t, 1+r.IntN(2), i%2 == 0, group, all)
		if i == 1 && strings.HasPrefix(pattern, "one") {
			b = pagesAs(t, 1, group, all, func(row tableRow) nullableRow { return nullableRow(row) })
		}
		groups, pages := pagesOf(t, b, i%2*2) // those of k or s
		if len(groups) < 3 && i > 0 || len(pages) < 2*len(groups) {
			t.Fatalf("%d row groups, %d pages", len(groups)-1, len(pages)-1)
		}
		gone := deletions[pattern](i, groups, pages)
		name := fmt.Sprint(i, ".parquet")
		if i == 2 {
			b = withoutIndex(t, b)
		}
		if byKeys {
			for _, at := range gone {
				deleted = append(deleted, all[at])
			}
			actions = append(actions, d.Add(name, string(b), nil))
		} else {
			actions = append(actions, d.Add(name, string(b), gone))
		}
		var live []tableRow
		for at, row := range all {
			if _, deleted := slices.BinarySearch(gone, int64(at)); !deleted {
				live = append(live, row)
			}
		}
		put(t, filepath.Join(files, name), smallPages(t, 1, false, 60, live))
	}
	d.Commit(actions...)
	if table, ok := d.(*laketest.Iceberg); ok && byKeys {
		for i := range 3 {
			deleteKeys(t, table, i, slices.Collect(func(yield func(tableRow) bool) {
				for at := i; at < len(deleted) && yield(deleted[at]); at += 3 {
				}
			}))
		}
	}
	return d.Name(), files
}

// deleteKeys deletes rows of a table by their keys: by n, or by k and n.
func deleteKeys(t *testing.T, d *laketest.Iceberg, i int, rows []tableRow) {
	k := &laketest.IcebergKeys{Name: fmt.Sprintf("keys %d.parquet", i), Rows: int64(len(rows)), IDs: []int{2}, Spec: -1}
	var b bytes.Buffer
	if err := pg.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	if i == 2 {
		k.IDs = []int{1, 2}
	}
	d.Put(k.Name, b.String())
	k.Size = b.Len()
	d.Commit(k)
}

// writtenRows returns the rows of an output, in order.
func writtenRows(t *testing.T, out string) (rows []string) {
	t.Helper()
	var names []string
	err := filepath.WalkDir(strings.TrimSuffix(out, "/"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(filepath.Base(name), ".") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		table := ownTable(t, name)
		tr := array.NewTableReader(table, 0)
		for tr.Next() {
			for i := range int(tr.Record().NumRows()) {
				var cells []string
				for _, c := range tr.Record().Columns() {
					cells = append(cells, c.ValueStr(i))
				}
				rows = append(rows, strings.Join(cells, " "))
			}
		}
		tr.Release()
		table.Release()
	}
	return rows
}

// deletedRun is how a command is run over a table and over files.
type deletedRun struct {
	args   []string // with LOG and IDS for the inputs
	out    string   // the kind of output
	memory bool     // as little as the command takes
}

// figures are those of reports that do not depend on where rows are.
var figures = []string{"rows_in", "rows_out", "ids_total", "ids_matched", "rows_matched", "keys_matched"}

// run runs the command, and returns its rows, and figures.
func (d *deletedRun) run(t *testing.T, log, ids string) (rows []string, got map[string]any) {
	t.Helper()
	args := slices.Clone(d.args)
	for i, a := range args {
		args[i] = strings.NewReplacer("LOG", log, "IDS", ids).Replace(a)
	}
	got = map[string]any{}
	note := func(report map[string]any) {
		if warnings := fmt.Sprint(report["warnings"]); strings.Contains(warnings, "filter-rate") {
			t.Errorf("%v: %s", args, warnings)
		}
		for _, f := range append(figures, "strategy") {
			if n, ok := report[f].(float64); ok && f != "strategy" && !strings.HasPrefix(f, "ids") {
				sum, _ := got[f].(float64)
				got[f] = sum + n
			} else if report[f] != nil {
				got[f] = report[f]
			}
		}
	}
	dir := t.TempDir()
	switch d.out {
	case "count":
		note(d.do(t, append(args, "--count")))
		return nil, got
	case "shards":
		out := dir + "/out/"
		for i := range 3 {
			note(d.do(t, append(args, "--no-commit", "--shard", fmt.Sprint(i, "/3"), "-o", out)))
		}
		works(t, "", "commit", "--quiet", out)
		rows = writtenRows(t, out)
	default:
		out := dir + "/" + d.out
		note(d.do(t, append(args, "-o", out)))
		rows = writtenRows(t, out)
	}
	return rows, got
}

// do runs a command with its memory.
func (d *deletedRun) do(t *testing.T, args []string) map[string]any {
	t.Helper()
	args = append(args, "--quiet", "--progress", "none")
	if d.memory {
		args = append(args, "--memory", "16MiB")
	}
	return do(t, args...)
}

// Deleted rows change nothing but what is there: a command over a table gives what it gives over
// files with the other rows. Each type of join by each strategy, over each pattern of deleted
// rows, on either side, in outputs of all kinds.
func TestDeletedRows(t *testing.T) {
	tried, outs, patterns := map[string]int{}, map[string]int{}, 0
	for _, name := range append(slices.Sorted(maps.Keys(deletions)), "every second by keys", "pages by keys", "one of each row group by keys") {
		t.Run(name, func(t *testing.T) {
			patterns++
			pattern, byKeys := strings.CutSuffix(name, " by keys")
			r := rand.New(rand.NewPCG(8, uint64(len(name))))
			log, plain := twoTables(t, pattern, byKeys, 190, 50)
			ids, plainIDs := twoTables(t, pattern, byKeys, 130, 70)
			filter := filepath.Join(t.TempDir(), "ids.bjf")
			works(t, "", "build", "--quiet", "--kind", "exact", "--key", "k", "-o", filter, ids)
			unique := filepath.Join(t.TempDir(), "unique.csv")
			put(t, unique, []byte("k,w\n1,one\n7,seven\n12,\n200,none\n"))
			wanted, same := map[string][]string{}, map[string]map[string]any{}
			compare := func(what string, d deletedRun, log, ids string) map[string]any {
				t.Helper()
				if _, ok := same[what]; !ok {
					once := deletedRun{args: d.args, out: "out.parquet"}
					wanted[what], same[what] = once.run(t, plain, plainIDs)
				}
				rows, got := d.run(t, log, ids)
				want := wanted[what]
				if d.out == "shards" || d.memory { // portions of a row group may come one after the other
					want = slices.Sorted(slices.Values(want))
					slices.Sort(rows)
				}
				if d.out != "count" && !slices.Equal(rows, want) {
					t.Errorf("%s: %v into %s, little memory: %t: %d rows, want %d", what, d.args, d.out, d.memory, len(rows), len(want))
				}
				for _, f := range figures {
					if byKeys && f == "rows_in" { // rows that are deleted by their keys are counted
						continue
					}
					if got[f] != nil && same[what][f] != nil && got[f] != same[what][f] && (d.out != "shards" || f != "keys_matched" && f != "ids_matched") {
						t.Errorf("%s: %v into %s: %s: %v, want %v", what, d.args, d.out, f, got[f], same[what][f])
					}
				}
				outs[d.out]++
				return got
			}
			for range cases.Count(1, 1, 3) {
				for _, typ := range []string{"semi", "anti", "inner", "left", "right", "full"} {
					strategies := []string{"lookup", "broadcast", "reverse", "shuffle"}
					if typ == "semi" || typ == "anti" {
						strategies = append(strategies, "exact")
					}
					on := []string{"k", "u.id=k"}[r.IntN(2)]
					for _, strategy := range strategies {
						d := deletedRun{out: []string{"out.parquet", "out.arrow", "out/", "count", "shards"}[r.IntN(5)], memory: r.IntN(3) == 0}
						if typ == "right" || typ == "full" {
							d.out = []string{"out.parquet", "out.arrow", "count"}[r.IntN(3)]
						}
						d.args = []string{"join", "--type", typ, "--on", on, "--threads", []string{"1", "4"}[r.IntN(2)], "--ids", "IDS", "LOG", "--strategy", strategy}
						from := [][2]string{{log, plainIDs}, {plain, ids}, {log, ids}}[r.IntN(3)]
						if got := compare(typ+" on "+on, d, from[0], from[1]); got["strategy"] != strategy {
							t.Errorf("%v: strategy %v", d.args, got["strategy"])
						}
						tried[pattern+" "+strategy]++
					}
				}
				for _, typ := range []string{"left", "inner", "anti"} {
					for _, out := range []string{"out.parquet", "out/"} {
						compare(typ+" with unique IDs", deletedRun{args: []string{"join", "--type", typ, "--on", "k", "--ids", unique, "LOG"}, out: out}, log, ids)
					}
				}
				for i, args := range [][]string{
					{"--filter", filter}, {"--filter", filter, "--where", "n >= 100"}, {"--no-match", "k=" + filter}, {"--filter", filter, "--key", "u.id"}, {"--filter", filter, "--columns", "tags,u,n"},
					{"--no-match", "k=" + filter, "--where", "k is null or u.id > 20"},
				} {
					d := deletedRun{args: append([]string{"scan", "LOG", "--threads", []string{"1", "4"}[r.IntN(2)]}, args...)}
					d.out = []string{"out.parquet", "out.arrow", "out/", "count", "shards"}[(i+r.IntN(2))%5]
					if d.out == "count" && slices.Contains(args, "--columns") {
						d.out = "out/"
					}
					compare(strings.Join(args, " "), d, log, ids)
				}
				compare("dedup", deletedRun{args: []string{"dedup", "--key", "k", "LOG"}, out: []string{"out.parquet", "out.arrow"}[r.IntN(2)]}, log, ids)
			}
			for _, kind := range []string{"exact", "bloom"} {
				var reports [2]map[string]any
				for i, from := range []string{ids, plainIDs} {
					out := filepath.Join(t.TempDir(), "x.bjf")
					reports[i] = do(t, "build", "--quiet", "--kind", kind, "--key", "k", "-o", out, from)
				}
				for _, f := range []string{"rows", "keys", "keys_null", "distinct", "kind"} {
					if reports[0][f] != reports[1][f] {
						t.Errorf("build --kind %s: %s: %v, want %v", kind, f, reports[0][f], reports[1][f])
					}
				}
			}
		})
	}
	if t.Failed() || patterns < len(deletions) { // with -run
		return
	}
	for _, out := range []string{"out.parquet", "out.arrow", "out/", "count", "shards"} {
		if outs[out] < 10 {
			t.Errorf("%d runs into %s", outs[out], out)
		}
	}
	for pattern := range deletions {
		for _, strategy := range []string{"exact", "lookup", "broadcast", "reverse", "shuffle"} {
			if tried[pattern+" "+strategy] == 0 {
				t.Errorf("%s: no join by %s", pattern, strategy)
			}
		}
	}
}
