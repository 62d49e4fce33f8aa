package joins_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// differing is a log of two files with different columns; the first has two row groups.
func differing(t testing.TB) []*partition.File {
	t.Helper()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.parquet"), filepath.Join(dir, "b.parquet")
	writeFile(t, a, table(t, numbers("k", arrow.PrimitiveTypes.Int32, 0, 6), texts("s", "p", "q", "r", "s", "t", "u")), 3, dataset.Parquet)
	writeFile(t, b, table(t, ints("n", "10", "20", "30"), ints("k", "4", "5", "-1")), 3, dataset.Parquet)
	return open(t, partition.OpenOptions{}, dir)
}

// result joins into a file and reads it back with a join that keeps all rows.
func result(t *testing.T, ids, logs []*partition.File, opts join.Options) (answer, error) {
	t.Helper()
	j, err := join.New(ids, logs, opts)
	if err != nil {
		return answer{}, err
	}
	out := partition.Output{Name: filepath.Join(t.TempDir(), "o.parquet")}
	if _, err := j.Write(t.Context(), out); err != nil {
		return answer{}, err
	}
	none := files(t, 1, 1, ints("none", "1"))
	whole := open(t, partition.OpenOptions{}, out.Name)
	return run(t, none, whole, join.Options{On: whole[0].Schema().Field(0).Name + "=none", Type: join.Anti})
}

func TestUnionOfTheLog(t *testing.T) {
	ids := files(t, 1, 1, ints("id", "0", "4", "5", "-1"))
	for _, c := range []struct {
		opts  join.Options
		names string
		rows  []string
	}{
		{join.Options{Schema: dataset.UnionByName}, "k s n", []string{`0 "p" NULL`, `4 "t" NULL`, `5 "u" NULL`, `4 NULL 10`, `5 NULL 20`, `-1 NULL 30`}},
		{join.Options{Schema: dataset.UnionByName, Type: join.Anti}, "k s n", []string{`2 "r" NULL`, `3 "s" NULL`}},
		{join.Options{Schema: dataset.UnionByName, Columns: []string{"n"}}, "n", []string{"NULL", "NULL", "NULL", "10", "20", "30"}},
		{join.Options{Columns: []string{"k"}}, "", nil},
	} {
		c.opts.On = "k=id"
		got, err := result(t, ids, differing(t), c.opts)
		if c.rows == nil {
			if !errors.Is(err, fault.ErrMismatch) { // int32 and int64
				t.Errorf("%+v: %v", c.opts, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.opts, err)
			continue
		}
		if got.names != c.names || !slices.Equal(got.rows, c.rows) {
			t.Errorf("%+v: %s %q, want %s %q", c.opts, got.names, got.rows, c.names, c.rows)
		}
	}
	one := join.Options{On: "k=id", Type: join.Inner, Columns: []string{"w"}} // in which the files agree
	words := files(t, 1, 1, ints("id", "0", "4", "-1"), texts("w", "a", "b", "c"))
	if got, err := onDisk(t, words, differing(t), one); err != nil || !slices.Equal(got.rows, []string{`"a"`, `"b"`, `"b"`, `"c"`}) {
		t.Errorf("columns of the IDs alone, in one file: %q, %v", got.rows, err)
	}
	one.Schema = dataset.Strict
	if _, err := onDisk(t, words, differing(t), one); err != nil {
		t.Errorf("columns of the IDs alone, all of one schema: %v", err)
	}
	one.Columns = []string{"w", "k"}
	if _, err := onDisk(t, words, differing(t), one); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("a column that differs, all of one schema: %v", err)
	}
	_, err := result(t, ids, differing(t), join.Options{On: "k=id"})
	if !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("columns that differ, in one file: %v", err)
	}
}

// TestPairsOfAUnion: rows by hand, of files in which the key has two types and each has a column
// of its own.
func TestPairsOfAUnion(t *testing.T) {
	ids := files(t, 1, 1, ints("k", "5", "-1", "5", "77", "NULL"), texts("s", "a", "b", "c", "d", "e"))
	inner := []string{`5 "u" NULL "a"`, `5 "u" NULL "c"`, `5 NULL 20 "a"`, `5 NULL 20 "c"`, `-1 NULL 30 "b"`}
	right := append(slices.Clone(inner), `77 NULL NULL "d"`, `NULL NULL NULL "e"`)
	for _, c := range []struct {
		opts  join.Options
		names string
		rows  []string
	}{
		{join.Options{Type: join.Inner}, "k s n s_ids", inner},
		{join.Options{Type: join.Right}, "k s n s_ids", right},
		{join.Options{Type: join.Right, Strategy: join.Shuffle}, "k s n s_ids", right},
		{join.Options{Type: join.Left, Columns: []string{"n", "log.s"}}, "n s", []string{
			`NULL "p"`, `NULL "q"`, `NULL "r"`, `NULL "s"`, `NULL "t"`, `NULL "u"`, `NULL "u"`, "10 NULL", "20 NULL", "20 NULL", "30 NULL"}},
		{join.Options{Type: join.Full, Columns: []string{"ids.s", "k"}}, "s k", []string{
			"NULL 0", "NULL 1", "NULL 2", "NULL 3", "NULL 4", `"a" 5`, `"c" 5`, "NULL 4", `"a" 5`, `"c" 5`, `"b" -1`, `"d" 77`, `"e" NULL`}},
		{join.Options{Type: join.Inner, Columns: []string{"ids.s"}}, "s", []string{`"a"`, `"c"`, `"a"`, `"c"`, `"b"`}},
	} {
		c.opts.On, c.opts.Schema = "k", dataset.UnionByName
		got, err := onDisk(t, ids, differing(t), c.opts)
		if err != nil || got.names != c.names || !slices.Equal(got.rows, c.rows) {
			t.Errorf("%+v: %s %q, %v, want %s %q", c.opts, got.names, got.rows, err, c.names, c.rows)
		}
	}
	for _, c := range []struct {
		opts join.Options
		want string
	}{
		{join.Options{Columns: []string{"log.m"}}, "no column log.m"},
		{join.Options{Columns: []string{"s"}}, "both the log and the IDs have a column s"},
	} {
		c.opts.On, c.opts.Type, c.opts.Schema = "k", join.Left, dataset.UnionByName
		if _, err := onDisk(t, ids, differing(t), c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.opts, err, c.want)
		}
	}
}

func TestColumnsOfTheLog(t *testing.T) {
	ids := files(t, 1, 1, ints("id", "1", "2"))
	logs := files(t, 2, 2, numbers("k", arrow.PrimitiveTypes.Int64, 0, 4), texts("s", "a", "b", "c", "d"), ints("n", "5", "6", "7", "8"))
	for typ, want := range map[join.Type][]string{join.Semi: {`6 "b"`, `7 "c"`}, join.Anti: {`5 "a"`, `8 "d"`}} {
		opts := join.Options{On: "k=id", Type: typ, Columns: []string{"n", "s"}}
		got, err := run(t, ids, logs, opts)
		if err != nil || got.names != "n s" || !slices.Equal(got.rows, want) {
			t.Errorf("%s: %s %q, %v; want %q", typ, got.names, got.rows, err, want)
		}
		got, err = result(t, ids, logs, opts)
		if err != nil || got.names != "n s" || !slices.Equal(got.rows, want) {
			t.Errorf("%s, written: %s %q, %v; want %q", typ, got.names, got.rows, err, want)
		}
	}
	refused(t, "a column that is not there", ids, logs, join.Options{On: "k=id", Columns: []string{"x"}}, logs[0].Name(), `"x"`)
	union := join.Options{On: "k=id", Type: join.Left, Schema: dataset.UnionByName}
	if err := refused(t, "records of pairs of a union", ids, logs, union, "unsupported", "records"); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("%+v: %v", union, err)
	}
	refused(t, "records of a union", ids, logs, join.Options{On: "k=id", Schema: dataset.UnionByName}, "unsupported", "Parquet")
}
