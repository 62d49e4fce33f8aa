package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// changing is a table of three files, of which rows are deleted and restored.
type changing struct {
	*laketest.Table
	t     *testing.T
	sizes []int
	now   []any // the actions that have added the files
}

// newChanging writes the table. The key 77 is in row 3 of file 1 alone.
func newChanging(t *testing.T, schema *arrow.Schema, mapped map[string]string) *changing {
	r := rand.New(rand.NewPCG(1, 2))
	c := &changing{Table: laketest.New(t, schema, mapped), t: t}
	for i := range 3 {
		rows := linesOfTable(r, 150, 10, 1000*i)
		if k := int64(77); i == 1 {
			rows[3].K = &k
		}
		b := smallPages(t, 1, true, 60, rows)
		c.sizes = append(c.sizes, len(b))
		c.now = append(c.now, c.Add(fmt.Sprint(i, ".parquet"), string(b), []int64{3, 4, 60}))
	}
	c.Commit(c.now...)
	return c
}

// delete commits a version in which other rows of a file are deleted.
func (c *changing) delete(file int, rows ...int64) {
	c.t.Helper()
	was := c.now[file]
	c.now[file] = c.Again(fmt.Sprint(file, ".parquet"), c.sizes[file], rows)
	c.Commit(c.now[file], laketest.Remove(was))
}

// outputsIn returns the files of an output, to tell which are written again.
func outputsIn(t *testing.T, dir string) (files []os.FileInfo) {
	t.Helper()
	for i := range 3 {
		f, err := os.Stat(filepath.Join(dir, fmt.Sprint(i, ".parquet")))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// A run over a table is done again for the files whose rows are others, and for no more.
func TestTableChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	flat := slices.Clone(tableSchema.Fields()[:3]) // the table has dropped the others
	namesOf := func(fields []arrow.Field) map[string]string {
		names := map[string]string{}
		for i, f := range fields {
			names[f.Name] = []string{"k", "n", "s", "more"}[i]
		}
		return names
	}
	c := newChanging(t, arrow.NewSchema(flat, nil), namesOf(flat))
	put(t, "ids.csv", []byte("k\n1\n3\n5\n77\n"))
	into := func(out string) []string {
		return []string{"join", "--quiet", "--ids", "ids.csv", "--on", "k", "-o", out, c.Name()}
	}
	was := []os.FileInfo(nil)
	again := func(what string, files ...int) {
		t.Helper()
		report := do(t, into("out/")...)
		if _, done := report["already_done"]; done != (len(files) == 0) {
			t.Fatalf("%s: %v", what, report)
		}
		fresh := "fresh " + what + "/"
		do(t, into(fresh)...)
		if got, want := writtenRows(t, "out/"), writtenRows(t, fresh); !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
		}
		now := outputsIn(t, "out")
		for i := range now {
			if was != nil && os.SameFile(was[i], now[i]) == slices.Contains(files, i) {
				t.Errorf("%s: %d is written again: %t", what, i, slices.Contains(files, i))
			}
		}
		was = now
	}
	again("first", 0, 1, 2)
	again("the same")
	c.delete(1, 3, 4, 5, 60)
	again("one more", 1)
	c.delete(1, 3, 4, 6, 60)
	again("as many", 1)
	c.delete(1)
	again("restored", 1)
	c.Commit()
	again("an empty commit")
	flat[2].Name = "text"
	c.Commit(laketest.New(t, arrow.NewSchema(flat, nil), namesOf(flat)).Metadata()...)
	again("renamed", 0, 1, 2)
	flat = append(flat, arrow.Field{Name: "more", Type: arrow.PrimitiveTypes.Int64})
	c.Commit(laketest.New(t, arrow.NewSchema(flat, nil), namesOf(flat)).Metadata()...)
	again("another column", 0, 1, 2)
}

// An output does not keep rows of files that the table no longer has: they may be in others.
func TestCompactedTable(t *testing.T) {
	t.Chdir(t.TempDir())
	c := newChanging(t, tableSchema, nil)
	put(t, "ids.csv", []byte("k\n1\n3\n5\n77\n"))
	into := func(out string, more ...string) []string {
		return append([]string{"join", "--quiet", "--ids", "ids.csv", "--on", "k", "-o", out, c.Name()}, more...)
	}
	do(t, into("out/")...)
	all := smallPages(t, 1, true, 60, linesOfTable(rand.New(rand.NewPCG(3, 4)), 150, 10, 5000))
	c.Commit(laketest.Remove(c.now[0]), laketest.Remove(c.now[1]), c.Add("both.parquet", string(all), nil))
	_, said, code := called(t, "", into("out/")...)
	if code != session.ExitFailed || !strings.Contains(said, "2 files that the table no longer has") || !strings.Contains(said, "--prune") {
		t.Errorf("exit code %d: %s", code, said)
	}
	do(t, into("out/", "--prune")...)
	do(t, into("fresh/")...)
	if got, want := writtenRows(t, "out/"), writtenRows(t, "fresh/"); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}

// Lists of inputs, indexes, sketches, plans and deduplication see the rows of the version.
func TestTableFigures(t *testing.T) {
	t.Chdir(t.TempDir())
	c := newChanging(t, tableSchema, nil)
	put(t, "ids.csv", []byte("k\n1\n77\n"))
	live := 3 * 147
	check := func(what string, changed int, found bool) {
		t.Helper()
		update := []string{"inputs", "--force", "--index", "k", "-o", "list.jsonl", c.Name()}
		if what != "first" {
			update = append(update, "--update", "list.jsonl")
		}
		report := do(t, update...)
		if n, _ := report["changed"].([]any); len(n) != changed || report["rows"] != float64(live) {
			t.Errorf("%s: inputs: %v, want %d changed", what, report, changed)
		}
		want := ""
		if found {
			want = filepath.ToSlash(c.Dir) + "/1.parquet\t1\n"
		}
		if got := works(t, "", "find", "--quiet", "--verify", "--key", "77", "--key", "78", "list.jsonl"); got != want {
			t.Errorf("%s: find --verify: %q, want %q", what, got, want)
		}
		for _, from := range [][]string{{c.Name()}, {"--files-from", "list.jsonl"}} {
			counted := do(t, append([]string{"join", "--quiet", "--ids", "ids.csv", "--on", "k", "--count"}, from...)...)
			if counted["rows_in"] != float64(live) || counted["ids_matched"] != map[bool]float64{false: 1, true: 2}[found] {
				t.Errorf("%s: join of %v: rows_in %v, ids_matched %v", what, from, counted["rows_in"], counted["ids_matched"])
			}
			sketched := do(t, append([]string{"sketch", "--quiet", "--force", "--key", "n", "-o", "s.bjs"}, from...)...)
			if sketched["rows"] != float64(live) && sketched["total"] != float64(live) {
				t.Errorf("%s: sketch of %v: %v", what, from, sketched)
			}
		}
		if said := works(t, "", "plan", "--ids", "ids.csv", "--on", "k", c.Name()); !strings.Contains(said, fmt.Sprint(live, " rows in 3 files")) {
			t.Errorf("%s: plan: %s", what, said)
		}
		unique := do(t, "dedup", "--quiet", "--key", "n", "-o", "u.parquet", "--force", c.Name())
		if rows := writtenRows(t, "u.parquet"); unique["rows_in"] != float64(live) || len(rows) != live {
			t.Errorf("%s: dedup: rows_in %v, %d rows", what, unique["rows_in"], len(rows))
		}
	}
	check("first", 0, false)
	check("the same", 0, false)
	c.delete(1, 4, 60)
	live++
	check("restored", 1, true)
	c.delete(1, 3, 4, 60)
	live--
	check("deleted", 1, false)

	state := []string{"dedup", "--quiet", "--key", "n", "--expect", "1000", "--state", "s.state", "-o", "d.parquet", c.Name()}
	works(t, "", state...)
	if rows := writtenRows(t, "d.parquet"); len(rows) != live {
		t.Errorf("dedup --state: %d rows, want %d", len(rows), live)
	}
	works(t, "", state...)
	c.delete(1, 4, 60)
	state[9] = "e.parquet"
	if _, said, code := called(t, "", state...); code != session.ExitFailed || !strings.Contains(said, "1.parquet") || !strings.Contains(said, "inputs may be added, not change") {
		t.Errorf("dedup --state of a table that has changed: exit code %d: %s", code, said)
	}
}

// Files that were vacuumed are named by the error, and so is what to do. Another storage makes no
// difference, nor does a file that goes while it is read.
func TestVacuumed(t *testing.T) {
	ids := sourcetest.Put(t, filepath.Join(t.TempDir(), "ids.csv"), "k\n1\n77\n")
	for _, name := range []string{"1.parquet", "vectors 1.bin"} {
		for _, inMemory := range []bool{false, true} {
			c := newChanging(t, tableSchema, nil)
			if err := os.Remove(filepath.Join(c.Dir, name)); err != nil {
				t.Fatal(err)
			}
			var stored storage.Storage
			if inMemory {
				m := teststore.NewMemory()
				for _, from := range []string{c.Dir, filepath.Dir(ids)} {
					for _, rel := range sourcetest.Tree(t, from) {
						m.Put(filepath.ToSlash(filepath.Join(from, rel)), read(t, filepath.Join(from, rel)))
					}
				}
				stored = m
			}
			said, code := runStored(t, "bloomjoin join --ids "+ids+" --on k --count "+c.Name(), stored)
			if code != session.ExitFailed || !strings.Contains(said, name) || !strings.Contains(said, "vacuumed? name a newer version") {
				t.Errorf("%s, in memory %t: exit code %d: %s", name, inMemory, code, said)
			}
		}
	}
	c := newChanging(t, tableSchema, nil)
	files, err := source.Open(t.Context(), []string{c.Name()}, source.Opening{OpenOptions: source.OpenOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	for i, f := range files { // each is opened again, or still open
		name := fmt.Sprint(i, ".parquet")
		if err := os.Remove(filepath.Join(c.Dir, name)); err != nil && runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		rows, failed := int64(0), error(nil)
		for g := range f.NumGroups() {
			for rec, err := range rowfilter.Read(t.Context(), f, g, nil) {
				if failed = err; err != nil {
					break
				}
				rows += rec.NumRows()
			}
		}
		if failed == nil && rows != 147 || failed != nil && (!errors.Is(failed, fs.ErrNotExist) || !strings.Contains(failed.Error(), name)) {
			t.Errorf("%s, which is gone: %d rows, %v", name, rows, failed)
		}
	}
}

// A file has the rows that are deleted.
func TestDeletedBeyondTheEnd(t *testing.T) {
	c := newChanging(t, tableSchema, nil)
	ids := sourcetest.Put(t, filepath.Join(t.TempDir(), "ids.csv"), "k\n1\n")
	join := []string{"join", "--quiet", "--ids", ids, "--on", "k", "--count", c.Name()}
	c.delete(1, 149)
	works(t, "", join...)
	c.delete(1, 150)
	if _, said, code := called(t, "", join...); code != session.ExitFailed || !strings.Contains(said, "1.parquet") || !strings.Contains(said, "rows that are deleted: want some of 150, got row 151") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// A table whose name is spelled in another way is the same one: its rows are read once.
func TestTableSpelled(t *testing.T) {
	d := newChanging(t, tableSchema, nil)
	t.Chdir(filepath.Dir(d.Dir))
	base := filepath.Base(d.Dir)
	put(t, "ids.csv", []byte("k\n1\n77\n"))
	count := []string{"join", "--quiet", "--ids", "ids.csv", "--on", "k", "--count", d.Name()}
	for _, other := range []string{"delta:" + base, "delta:./" + base, d.Name() + "/", d.Name() + "@v1"} {
		if n := do(t, append(count, other)...)["rows_in"]; n != float64(3*147) {
			t.Errorf("%s beside %s: %v rows", other, d.Name(), n)
		}
	}
	refused := func(want string, names ...string) {
		t.Helper()
		if _, said, code := called(t, "", append(count[:len(count)-1], names...)...); code != session.ExitFailed || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d: %s, want %s", names, code, said, want)
		}
	}
	clone := laketest.New(t, tableSchema, nil)
	clone.Commit(clone.Again(filepath.Join(d.Dir, "0.parquet"), d.sizes[0], []int64{1}))
	refused("is in two tables", d.Name(), clone.Name())
	refused("is in two tables", clone.Name(), d.Name())
	again := d.Again("0.parquet", d.sizes[0], []int64{1})
	again.(map[string]any)["add"].(map[string]any)["path"] = "./%30.parquet"
	d.Commit(again)
	refused("is in version 1 of the table and in version 2", d.Name()+"@v1", d.Name())
	refused("0.parquet is twice in version 2", d.Name())
}

// A run over a table with another name goes on with what is there, whatever rows are deleted.
func TestTableElsewhere(t *testing.T) {
	d := newChanging(t, tableSchema, nil)
	t.Chdir(filepath.Dir(d.Dir))
	put(t, "ids.csv", []byte("k\n1\n3\n77\n"))
	into := []string{"join", "--quiet", "--ids", "ids.csv", "--on", "k", "-o", "out/"}
	do(t, append(into, d.Name())...)
	if report := do(t, append(into, "delta:"+filepath.Base(d.Dir))...); report["already_done"] == nil {
		t.Errorf("by another name: %v", report)
	}
}

// Files are left out by the type that the table says, so no column may have another.
func TestTableTypesHold(t *testing.T) {
	of := func(typ arrow.DataType) *laketest.Table {
		schema := arrow.NewSchema([]arrow.Field{tableSchema.Field(0), {Name: "p", Type: typ}}, nil)
		d := laketest.New(t, schema, nil, "p")
		for _, p := range []string{"9", "10", "11"} {
			d.Commit(d.Add(p+typ.Name()+".parquet", string(smallPages(t, 1, true, 60, linesOfTable(rand.New(rand.NewPCG(1, 2)), 5, 10, 0))), nil, p))
		}
		return d
	}
	ints, texts := of(arrow.PrimitiveTypes.Int32), of(arrow.BinaryTypes.String)
	ids := sourcetest.Put(t, filepath.Join(t.TempDir(), "ids.csv"), "k\n1\n")
	for _, args := range [][]string{{"--hive-types", "p:string", ints.Name()}, {ints.Name(), texts.Name()}, {texts.Name(), ints.Name()}} {
		_, said, code := called(t, "", append([]string{"join", "--quiet", "--ids", ids, "--on", "k", "--count", "--where", "p > '10'"}, args...)...)
		if code != session.ExitFailed || !strings.Contains(said, "the type of a table's column") {
			t.Errorf("%s: exit code %d: %s", args, code, said)
		}
	}
	works(t, "", "join", "--quiet", "--ids", ids, "--on", "k", "--count", "--where", "p > '10'", "--hive-types", "p:int32", ints.Name(), ints.Name())
}

// Names of columns differ in more than case, so a file may have another case than the table; with
// the same one, it is that column.
func TestTableCase(t *testing.T) {
	fields := slices.Clone(tableSchema.Fields())
	for i := range fields {
		fields[i].Name = strings.ToUpper(fields[i].Name)
	}
	d := laketest.New(t, arrow.NewSchema(fields, nil), nil)
	rows := linesOfTable(rand.New(rand.NewPCG(1, 2)), 50, 10, 0)
	d.Commit(d.Add("a.parquet", string(smallPages(t, 1, true, 60, rows)), []int64{1}))
	ids := sourcetest.Put(t, filepath.Join(t.TempDir(), "ids.csv"), "k\n")
	has := float64(0)
	for i, r := range rows {
		if i != 1 && r.K != nil {
			has++
		}
	}
	if n := do(t, "join", "--quiet", "--ids", ids, "--on", "K=k", "--type", "anti", "--where", "K IS NOT NULL", "--count", d.Name())["rows_out"]; has == 0 || n != has {
		t.Errorf("%v rows have a key, want %v", n, has)
	}
}
