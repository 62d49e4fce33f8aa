package joins_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// twoSides makes a log and IDs that share the key k and the name x.
func twoSides(t testing.TB) (ids, logs []*partition.File) {
	t.Helper()
	return files(t, 1, 1, ints("k", "1", "2", "2", "7"), texts("x", "i", "j", "k", "l"), texts("name", "one", "two", "deux", "seven")),
		files(t, 1, 2, texts("x", "a", "b", "c"), ints("k", "2", "1", "5"), texts("log", "p", "q", "r"), texts("log.x", "s", "t", "u"))
}

// onDisk joins into a file and reads it back.
func onDisk(t *testing.T, ids, logs []*partition.File, opts join.Options) (got answer, err error) {
	t.Helper()
	j, err := join.New(ids, logs, opts)
	if err != nil {
		return got, err
	}
	out := partition.Output{Name: filepath.Join(t.TempDir(), "o.parquet")}
	if _, err := j.Write(t.Context(), out); err != nil {
		return got, err
	}
	b, err := os.ReadFile(out.Name)
	if err != nil {
		return got, err
	}
	got.names, got.rows, err = stored(t, b, dataset.Parquet, false)
	return got, err
}

// TestChosenColumns: the columns of an answer, their order and their names, with rows
// written by hand.
func TestChosenColumns(t *testing.T) {
	ids, logs := twoSides(t)
	for _, c := range []struct {
		typ     join.Type
		columns string
		suffix  string
		names   string
		rows    []string
	}{
		{join.Inner, "k name", "", "k name", []string{`2 "two"`, `2 "deux"`, `1 "one"`}},
		{join.Inner, "name k", "", "name k", []string{`"two" 2`, `"deux" 2`, `"one" 1`}},
		{join.Inner, "name", "", "name", []string{`"two"`, `"deux"`, `"one"`}},
		{join.Inner, "log.x", "", "x", []string{`"a"`, `"a"`, `"b"`}},
		{join.Inner, "log", "", "log", []string{`"p"`, `"p"`, `"q"`}},
		{join.Inner, "log.log", "", "log", []string{`"p"`, `"p"`, `"q"`}},
		{join.Inner, `"log.x"`, "", "log.x", []string{`"s"`, `"s"`, `"t"`}},
		{join.Inner, `log."log.x" ids.x`, "", "log.x x", []string{`"s" "j"`, `"s" "k"`, `"t" "i"`}},
		{join.Inner, "ids.x log.x", "", "x_ids x", []string{`"j" "a"`, `"k" "a"`, `"i" "b"`}},
		{join.Inner, "ids.x log.x ids.k", "_right", "x_right x k", []string{`"j" "a" 2`, `"k" "a" 2`, `"i" "b" 1`}},
		{join.Left, "log.k ids.name", "", "k name", []string{`2 "two"`, `2 "deux"`, `1 "one"`, `5 NULL`}},
		{join.Left, "k", "", "k", []string{`2`, `2`, `1`, `5`}},
		{join.Right, "k ids.x", "", "k x", []string{`2 "j"`, `2 "k"`, `1 "i"`, `7 "l"`}},
		{join.Right, "log.x", "", "x", []string{`"a"`, `"a"`, `"b"`, `NULL`}},
		{join.Full, "ids.k", "", "k", []string{`2`, `2`, `1`, `5`, `7`}},
		{join.Full, "name log.x", "", "name x", []string{`"two" "a"`, `"deux" "a"`, `"one" "b"`, `NULL "c"`, `"seven" NULL`}},
		{join.Semi, "log.x k", "", "x k", []string{`"a" 2`, `"b" 1`}},
		{join.Anti, "log x", "", "log x", []string{`"r" "c"`}},
	} {
		opts := join.Options{On: "k", Type: c.typ, Columns: strings.Fields(c.columns), Suffix: c.suffix}
		for _, opts.Strategy = range []join.Strategy{join.Auto, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
			got, err := run(t, ids, logs, opts)
			if err != nil || got.names != c.names || !slices.Equal(got.rows, c.rows) {
				t.Errorf("%s, %s, %s: %s %q, %v; want %s %q", c.typ, c.columns, opts.Strategy, got.names, got.rows, err, c.names, c.rows)
			}
			got, err = onDisk(t, ids, logs, opts)
			if err != nil || got.names != c.names || !slices.Equal(got.rows, c.rows) {
				t.Errorf("%s, %s, %s, written: %s %q, %v; want %s %q", c.typ, c.columns, opts.Strategy, got.names, got.rows, err, c.names, c.rows)
			}
		}
	}
}

// TestStars: all columns of a side, but those of EXCEPT and those that are named.
func TestStars(t *testing.T) {
	ids, logs := twoSides(t) // of log.x, k, log, x and of k, x, name
	for _, c := range []struct {
		typ     join.Type
		columns []string
		names   string // or an error
	}{
		{join.Inner, []string{"*"}, "x k log log.x x_ids name"},
		{join.Right, []string{"ids.*", "k"}, "x name k"},
		{join.Full, []string{"name", "ids.*", "log.* except x,log"}, "name x k log.x"},
		{join.Left, []string{"log.* EXCEPT k", "name"}, "x log log.x name"},
		{join.Inner, []string{`* except log.x,"log.x",ids.name`}, "k log x"},
		{join.Inner, []string{"log.*", "ids.*", "log.x"}, "k log log.x x_ids name x"},
		{join.Semi, []string{"log.* except log.x,k"}, "log log.x"},
		{join.Anti, []string{"k", "*"}, "k x log log.x"},
		{join.Inner, []string{"*", "log.*"}, "* and log.* choose the same columns"},
		{join.Inner, []string{"* except x"}, "both the log and the IDs have a column x"},
		{join.Inner, []string{"* except nobody"}, `no column "nobody"`},
		{join.Semi, []string{"ids.*"}, "type semi has no columns of the IDs"},
		{join.Semi, []string{"* but k"}, "want a comma, or EXCEPT and names"},
		{join.Semi, []string{"* except"}, "want a comma, or EXCEPT and names"},
		{join.Semi, []string{`"*"`}, `no column "*"`},
	} {
		for how, do := range map[string]func(ids, logs []*partition.File, opts join.Options) (answer, error){
			"run": func(ids, logs []*partition.File, opts join.Options) (answer, error) { return run(t, ids, logs, opts) },
			"written": func(ids, logs []*partition.File, opts join.Options) (answer, error) {
				return onDisk(t, ids, logs, opts)
			},
		} {
			got, err := do(ids, logs, join.Options{On: "k", Type: c.typ, Columns: c.columns})
			if err != nil && !strings.Contains(err.Error(), c.names) || err == nil && got.names != c.names {
				t.Errorf("%s, %s, %q: %s, %v; want %s", how, c.typ, c.columns, got.names, err, c.names)
			}
		}
	}
}

// TestColumnsOfOtherNames: by default, an ID column whose name the log has gets the
// suffix, repeated until the name is unique. A name that clashes only with a column
// that is not chosen stays.
func TestColumnsOfOtherNames(t *testing.T) {
	ids := files(t, 1, 1, ints("id", "1"), texts("x", "i"), texts("x_ids", "j"))
	logs := files(t, 1, 1, ints("k", "1"), texts("x", "a"), texts("x_r", "b"))
	for _, c := range []struct {
		columns []string
		suffix  string
		names   string
	}{
		{nil, "", "k x x_r id x_ids x_ids_ids"},
		{nil, "_r", "k x x_r id x_r_r x_ids"},
		{[]string{"ids.x"}, "_r", "x"},
		{[]string{"ids.x", "x_ids", "log.x"}, "", "x_ids x_ids_ids x"},
	} {
		got, err := run(t, ids, logs, join.Options{On: "k=id", Type: join.Inner, Columns: c.columns, Suffix: c.suffix})
		if err != nil || got.names != c.names {
			t.Errorf("%q, suffix %q: %s, %v; want %s", c.columns, c.suffix, got.names, err, c.names)
		}
	}
}

// TestColumnsThatCannotBe: errors about invalid columns say what is wrong and what
// would be right.
func TestColumnsThatCannotBe(t *testing.T) {
	ids, logs := twoSides(t)
	for _, c := range []struct {
		typ     join.Type
		columns []string
		says    []string
	}{
		{join.Inner, []string{"x"}, []string{logs[0].Name(), "both the log and the IDs have a column x", "log.x or ids.x"}},
		{join.Inner, []string{"nam"}, []string{`no column "nam"`, "(there are log.x, k, log,", "ids.x, name"}},
		{join.Inner, []string{"x_ids"}, []string{`no column "x_ids"`, "(there are log.x,"}},
		{join.Inner, []string{"ids.nme"}, []string{"no column ids.nme (there are log.x,", "name)"}},
		{join.Inner, []string{"log.name"}, []string{"no column log.name"}},
		{join.Inner, []string{"k", "k"}, []string{"k is named twice"}},
		{join.Inner, []string{"log.k", "ids.k"}, []string{"log.k and ids.k are the same column"}},
		{join.Left, []string{"name", "ids.name"}, []string{"name and ids.name are the same column"}},
		{join.Inner, []string{"a.b"}, []string{`no column "a"`}},
		{join.Inner, []string{"k,name"}, []string{"want one column, got 2"}},
		{join.Inner, []string{""}, []string{"a column name is empty"}},
		{join.Semi, []string{"ids.x"}, []string{"ids.x", "type semi has no columns of the IDs"}},
		{join.Anti, []string{"name"}, []string{"name is a column of the IDs", "type anti"}},
		{join.Semi, []string{"k", "log.k"}, []string{"k is named twice"}},
		{join.Semi, []string{"lo"}, []string{`no column "lo" (there are x,`, "log,"}},
		{join.Inner, []string{}, []string{"no column of the answer is named", "Count"}},
	} {
		refused(t, fmt.Sprint(c.typ, c.columns), ids, logs, join.Options{On: "k", Type: c.typ, Columns: c.columns}, c.says...)
	}
	// The error knows which column is meant by an ID column's name in the answer.
	var e *keys.NotFoundError
	err := refused(t, "an answer's name", ids, logs, join.Options{On: "k", Type: join.Inner, Columns: []string{"x_ids"}})
	if !errors.As(err, &e) || e.Name != "x_ids" || e.Meant.String() != "ids.x" {
		t.Errorf("x_ids: %v, want one that means ids.x", err)
	}
	refused(t, "suffix", ids, logs, join.Options{On: "k", Suffix: "_r"}, "suffix", "semi")

	// A later file of the log has a column of that name.
	more := files(t, 1, 1, ints("k", "1"), texts("name", "n"), texts("log", "p"))
	refused(t, "another file", ids, append(slices.Clone(logs), more...), join.Options{On: "k", Type: join.Inner, Columns: []string{"name"}}, more[0].Name(), "log.name or ids.name")
}

// spoiled returns files in which the pages of the given columns are unreadable.
func spoiled(t testing.TB, files []*partition.File, columns ...string) []*partition.File {
	t.Helper()
	var names []string
	for _, f := range files {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		p, err := parquet.Open(nil, bytes.NewReader(b), int64(len(b)), f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range p.Metadata.RowGroups {
			for i, c := range g.Columns {
				if slices.Contains(columns, f.Schema().Field(i).Name) {
					for i := range c.MetaData.TotalCompressedSize {
						b[c.MetaData.DataPageOffset+i] = 0xff
					}
				}
			}
		}
		if err := os.WriteFile(f.Name(), b, 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name())
	}
	return open(t, partition.OpenOptions{}, names...)
}

// TestColumnsThatAreNotRead: no strategy reads a column, of either side, that is not in
// the answer.
func TestColumnsThatAreNotRead(t *testing.T) {
	ids, logs := twoSides(t)
	ids, logs = spoiled(t, ids, "x"), spoiled(t, logs, "x", "log.x")
	strategies := []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle}
	for _, typ := range types {
		for _, strategy := range strategies {
			opts := join.Options{On: "k", Type: typ, Strategy: strategy}
			columns := []string{"log", "k", "name"}
			if typ == join.Semi || typ == join.Anti {
				columns = columns[:2]
			}
			for _, opts.Columns = range [][]string{columns, columns[:1]} {
				if got, err := run(t, ids, logs, opts); err != nil || len(got.rows) == 0 {
					t.Errorf("%s by %s, columns %q: %d rows, %v", typ, strategy, opts.Columns, len(got.rows), err)
				}
				if got, err := onDisk(t, ids, logs, opts); err != nil || len(got.rows) == 0 {
					t.Errorf("%s by %s, columns %q, written: %d rows, %v", typ, strategy, opts.Columns, len(got.rows), err)
				}
			}
			for _, opts.Columns = range [][]string{nil, {"log.x"}, {"ids.x"}} {
				if slices.Equal(opts.Columns, []string{"ids.x"}) && len(columns) == 2 {
					continue
				}
				if _, err := run(t, ids, logs, opts); !errors.Is(err, fault.ErrCorrupt) {
					t.Errorf("%s by %s, columns %q, which cannot be read: %v", typ, strategy, opts.Columns, err)
				}
			}
			j, err := join.New(ids, logs, join.Options{On: "k", Type: typ, Strategy: strategy})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.Count(t.Context()); err != nil {
				t.Errorf("%s by %s, counted: %v", typ, strategy, err)
			}
		}
	}
}

// TestColumnsThatAreNotHeld: without a wide column, the IDs fit into memory that they
// would exceed with it.
func TestColumnsThatAreNotHeld(t *testing.T) {
	ids := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 1000), texts("w", slices.Repeat([]string{strings.Repeat("x", 3000)}, 1000)...), numbers("n", arrow.PrimitiveTypes.Int32, 0, 1000))
	logs := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 1000))
	for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse} {
		for _, typ := range []join.Type{join.Inner, join.Left, join.Right, join.Full} {
			opts := join.Options{On: "k", Type: typ, Strategy: strategy, Memory: 2 << 20}
			for _, c := range []struct {
				columns []string
				fits    bool
			}{{[]string{"k", "n"}, true}, {[]string{"k"}, true}, {[]string{"w"}, false}, {nil, false}} {
				opts.Columns = c.columns
				_, err := run(t, ids, logs, opts)
				if c.fits && err != nil || !c.fits && !errors.Is(err, fault.ErrMemory) {
					t.Errorf("%s by %s, columns %q: %v", typ, strategy, c.columns, err)
				}
			}
		}
	}
	// The plan takes this into account, and so does the choice of the strategy.
	for _, c := range []struct {
		columns  []string
		strategy join.Strategy
	}{{[]string{"k", "n"}, join.Lookup}, {nil, join.Shuffle}} {
		got, err := run(t, ids, logs, join.Options{On: "k", Type: join.Inner, Memory: 2 << 20, Columns: c.columns})
		if err != nil || got.report.Strategy != c.strategy {
			t.Errorf("columns %q: %v, by %s; want %s", c.columns, err, got.report.Strategy, c.strategy)
		}
	}
}

// TestSpillOfChosenColumns: a column that is not chosen does not go to disk.
func TestSpillOfChosenColumns(t *testing.T) {
	var noise []string
	for i := range 4000 {
		noise = append(noise, fmt.Sprintf("%x", [4]uint64{uint64(i) * 0x9e3779b97f4a7c15, uint64(i) * 0xbf58476d1ce4e5b9, uint64(i) << 40, uint64(i)}))
	}
	ids := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 4000), texts("w", noise...), numbers("n", arrow.PrimitiveTypes.Int32, 0, 4000))
	logs := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 4000))
	spilled := map[string]int64{}
	for _, columns := range [][]string{nil, {"k", "n"}, {"k"}} {
		got, err := run(t, ids, logs, join.Options{On: "k", Type: join.Inner, Strategy: join.Shuffle, Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		spilled[fmt.Sprint(columns)] = got.report.SpilledBytes
	}
	if all, two, one := spilled["[]"], spilled["[k n]"], spilled["[k]"]; two*2 > all || one >= two {
		t.Errorf("%v bytes on disk", spilled)
	}
}

// TestCount: with repeated and NULL keys on both sides, every strategy counts as many
// rows as it makes, and Require checks that number.
func TestCount(t *testing.T) {
	ids := files(t, 2, 2, ints("k", "1", "2", "2", "NULL", "7", "2", "NULL", "1", "8"))
	logs := files(t, 2, 2, ints("k", "2", "1", "5", "2", "NULL", "2", "9"))
	// By hand: key 1 has a log row and two IDs, key 2 three rows and three IDs.
	for typ, want := range map[join.Type]int64{join.Semi: 4, join.Anti: 3, join.Inner: 11, join.Left: 14, join.Right: 15, join.Full: 18} {
		for _, strategy := range []join.Strategy{join.Auto, join.Exact, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
			if strategy == join.Exact && typ != join.Semi && typ != join.Anti {
				continue
			}
			for _, columns := range [][]string{nil, {}, {"k"}} {
				opts := join.Options{On: "k", Type: typ, Strategy: strategy, Columns: columns}
				j, err := join.New(ids, logs, opts)
				if err != nil {
					t.Fatal(err)
				}
				n, err := j.Count(t.Context())
				if r := j.Report(); err != nil || n != want || r.RowsOut != want || r.RowsIn != 7 || r.RowsMatched != 4 || r.IDsTotal != 7 || r.IDsMatched != 5 {
					t.Errorf("%s by %s: %d rows, %v, want %d; report %+v", typ, strategy, n, err, want, r)
				}
			}
			opts := join.Options{On: "k", Type: typ, Strategy: strategy, Require: dataset.Require{Rows: want + 1}}
			j, err := join.New(ids, logs, opts)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.Count(t.Context()); !errors.Is(err, partition.ErrRequire) {
				t.Errorf("%s by %s, too few rows: %v", typ, strategy, err)
			}
		}
	}
}

// TestCountOfShards: the counts of all shards add up to that of the log.
func TestCountOfShards(t *testing.T) {
	ids := files(t, 1, 1, ints("k", "1", "2", "2"))
	logs := files(t, 2, 3, ints("k", "2", "1", "5", "2", "NULL", "2", "9"))
	for typ, want := range map[join.Type]int64{join.Semi: 4, join.Inner: 7, join.Left: 10} {
		var sum int64
		for i := range uint32(3) {
			j, err := join.New(ids, logs, join.Options{On: "k", Type: typ, Shard: dataset.Shard{Index: i, Of: 3}, Columns: []string{}})
			if err != nil {
				t.Fatal(err)
			}
			n, err := j.Count(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if sum != want {
			t.Errorf("%s: %d rows, want %d", typ, sum, want)
		}
	}
}

// TestCountNeedsKeysAlone: ID files that differ only in other columns than the key can
// be counted, and joined if none of these columns is chosen.
func TestCountNeedsKeysAlone(t *testing.T) {
	ids := append(files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 3), texts("x", "a", "b", "c"), texts("y", "d", "e", "f")),
		files(t, 1, 1, texts("y", "g", "h"), numbers("k", arrow.PrimitiveTypes.Int64, 2, 4))...)
	logs := files(t, 1, 1, ints("k", "2", "3"))
	for _, typ := range []join.Type{join.Inner, join.Left, join.Right, join.Full} {
		opts := join.Options{On: "k", Type: typ, Columns: []string{}}
		j, err := join.New(ids, logs, opts)
		if err != nil {
			t.Fatal(err)
		}
		want := map[join.Type]int64{join.Inner: 3, join.Left: 3, join.Right: 5, join.Full: 5}[typ]
		if n, err := j.Count(t.Context()); n != want || err != nil {
			t.Errorf("%s: %d rows, %v; want %d", typ, n, err, want)
		}
		opts.Columns = []string{"k", "y"}
		if got, err := run(t, ids, logs, opts); err != nil || int64(len(got.rows)) != want || got.rows[0] != `2 "f"` || got.rows[1] != `2 "g"` || got.rows[2] != `3 "h"` {
			t.Errorf("%s: %q, %v", typ, got.rows, err)
		}
		opts.Columns = []string{"x"}
		refused(t, "a column that one file lacks", ids, logs, opts, ids[1].Name(), `no column "x"`)
		opts.Columns = nil
		refused(t, "all columns", ids, logs, opts, ids[1].Name(), "columns of the ID files", "choose those that are alike")
		reversed := []*partition.File{ids[1], ids[0]}
		refused(t, "all columns, of which the first file lacks one", reversed, logs, opts, ids[0].Name(), "column x", "columns of the ID files", "choose those that all have")
	}
}

// TestCountWithAFilter: Count, too, compares a given filter with the IDs.
func TestCountWithAFilter(t *testing.T) {
	ids, logs := files(t, 1, 1, ints("k", "1", "2", "2")), files(t, 1, 1, ints("k", "2", "1", "5"))
	for _, kind := range []codec.Kind{codec.KindBloom, codec.KindExact} {
		for _, typ := range types {
			other := filterOf(t, files(t, 1, 1, ints("k", "1", "3")), "k", kind, 0.01)
			j, err := join.New(ids, logs, join.Options{On: "k", Type: typ, Filter: (*codec.Filter)(other), Columns: []string{}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.Count(t.Context()); !errors.Is(err, fault.ErrMismatch) {
				t.Errorf("%s: %v", typ, err)
			}
		}
	}
}

// TestCountInLittleMemory: counts are right in the least memory with which a shuffle
// works, where the IDs of a row group come in portions.
func TestCountInLittleMemory(t *testing.T) {
	n := int64(cases.Count(2000, 2000, 6000))
	keys := func(n, times int64) column {
		c := column{name: "k", dt: arrow.BinaryTypes.String}
		for i := range n * times {
			c.values = append(c.values, fmt.Sprintf("key %08d", i%n))
		}
		return c
	}
	ids, logs := files(t, 1, 1, keys(n, 3)), files(t, 1, 1, keys(n*5/4, 2))
	for typ, want := range map[join.Type]int64{join.Inner: 6 * n, join.Left: 6*n + n/2, join.Right: 6 * n, join.Full: 6*n + n/2} {
		var worked int
		for memory := int64(64 << 10); worked < cases.Count(3, 6, 12); memory += memory / int64(cases.Count(8, 8, 16)) {
			j, err := join.New(ids, logs, join.Options{On: "k", Type: typ, Strategy: join.Shuffle, Memory: memory, TempDir: t.TempDir(), Columns: []string{}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := j.Count(t.Context())
			if tooSmall(err) && memory < 64<<20 {
				continue
			}
			worked++
			if r := j.Report(); err != nil || got != want || r.RowsMatched != 2*n || r.IDsMatched != 3*n {
				t.Fatalf("%s in %d bytes: %d rows, %v, want %d; %d rows matched, %d IDs", typ, memory, got, err, want, r.RowsMatched, r.IDsMatched)
			}
		}
	}
}

// TestColumnsInAnyCase: with IgnoreCase, columns are found by names in any case, keep
// their own spelling, and get the suffix if names differ only in case.
func TestColumnsInAnyCase(t *testing.T) {
	ids := append(files(t, 1, 1, ints("USER", "1"), texts("X", "i"), texts("Name", "one")),
		files(t, 1, 1, ints("user", "2"), texts("X", "j"), texts("NAME", "two"))...)
	logs := files(t, 1, 1, ints("User", "2", "3"), texts("x", "a", "b"))
	more := files(t, 1, 1, texts("X", "c"), ints("user", "1"))
	for _, c := range []struct {
		columns []string
		names   string
		rows    []string
	}{
		{nil, "User x X_ids Name", []string{`2 "a" "j" "two"`}},
		{[]string{"NAME", "USER"}, "Name User", []string{`"two" 2`}},
		{[]string{"ids.x", "log.X"}, "X_ids x", []string{`"j" "a"`}},
		{[]string{"ids.x"}, "X", []string{`"j"`}},
	} {
		for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
			opts := join.Options{On: "user", IgnoreCase: true, Type: join.Inner, Strategy: strategy, Columns: c.columns}
			got, err := run(t, ids, logs, opts)
			if err != nil || got.names != c.names || !slices.Equal(got.rows, c.rows) {
				t.Errorf("%q by %s: %s %q, %v; want %s %q", c.columns, strategy, got.names, got.rows, err, c.names, c.rows)
			}
			opts.Type = join.Full // other files of the log spell the names differently
			if j, err := join.New(ids, append(slices.Clone(logs), more...), opts); err != nil {
				t.Error(err)
			} else if n, err := j.Count(t.Context()); n != 3 || err != nil {
				t.Errorf("%q by %s: %d rows, %v", c.columns, strategy, n, err)
			}
		}
	}
	opts := join.Options{On: "user", IgnoreCase: true, Type: join.Inner, Columns: []string{"x"}}
	refused(t, "a name on both sides", ids, logs, opts, "both the log and the IDs have a column x", "log.x or ids.x")
	semi := join.Options{On: "user", IgnoreCase: true, Columns: []string{"X"}}
	if got, err := run(t, ids, logs, semi); err != nil || !slices.Equal(got.rows, []string{`"a"`}) {
		t.Errorf("semi: %q, %v", got.rows, err)
	}
}

// TestCountOfCasts: Count agrees with the rows for keys that are converted, or that
// have no equal in the class in which both sides are compared.
func TestCountOfCasts(t *testing.T) {
	num := func(name string, dt arrow.DataType, values ...string) column {
		return column{name: name, dt: dt, values: values}
	}
	p := arrow.PrimitiveTypes
	ids := files(t, 1, 1, num("id", p.Float64, "1", "2.5", "NaN", "NULL", "2.5", "7", "1"), texts("w", "a", "b", "c", "d", "e", "f", "g"))
	text := files(t, 1, 1, texts("id", "1", "NULL", "7", "7"))
	decimals := num("k", &arrow.Decimal128Type{Precision: 9, Scale: 1}, "1", "2.5", "NULL", "2.5", "9")
	for _, c := range []struct {
		on   string
		ids  []*partition.File
		logs []*partition.File
	}{
		{"k=id", ids, files(t, 1, 1, decimals)},
		{"k=id", ids, files(t, 2, 2, num("k", p.Int32, "1", "7", "NULL", "7", "9"))},
		{"k=id::int64", text, files(t, 2, 2, num("k", p.Int32, "1", "7", "NULL", "7", "9"))},
		{"k::int64=id", ids, files(t, 2, 2, texts("k", "1", "7", "NULL", "7", "9"))},
	} {
		for _, typ := range types {
			for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
				opts := join.Options{On: c.on, Type: typ, Strategy: strategy, Columns: []string{"k"}}
				got, err := run(t, c.ids, c.logs, opts)
				if err != nil {
					t.Errorf("%s, %s by %s: %v", c.on, typ, strategy, err)
					continue
				}
				j, err := join.New(c.ids, c.logs, opts)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := j.Count(t.Context()); n != int64(len(got.rows)) || n == 0 || err != nil {
					t.Errorf("%s, %s by %s: %d rows, %v; want %d", c.on, typ, strategy, n, err, len(got.rows))
				}
			}
		}
	}
}
