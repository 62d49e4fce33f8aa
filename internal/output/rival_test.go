package output

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Two logs whose outputs would have the same name are refused by every worker, although
// each reads only its own part.
func TestNamesOverAllWorkers(t *testing.T) {
	dir := t.TempDir()
	for _, day := range []string{"day1", "day2"} {
		sourcetest.Write(t, filepath.Join(dir, day, "part-0.parquet"), 4, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1, 2, 3}}))
	}
	out := filepath.Join(t.TempDir(), "out") + "/"
	for i := range uint32(2) {
		j := job{[]string{filepath.Join(dir, "day1"), filepath.Join(dir, "day2")},
			Destination{Output: Output{Name: out, Shard: dataset.Shard{Index: i, Of: 2}}, Run: runOf(1)}}
		_, err := j.do(t)
		sourcetest.Says(t, "two of one name", err, nil, "part-0.parquet", "day1", "day2")
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("%s: %v", out, err)
	}
}

// Two runs that begin in one empty directory do not take each other's files for their
// own, and only the one that wrote all of them is marked complete.
func TestTwoRunsInOneDirectory(t *testing.T) {
	for _, when := range []string{"before the first file", "before the first is published"} {
		in := roomtest.Logs(t)
		out := filepath.Join(t.TempDir(), "out") + "/"
		first := job{[]string{in}, Destination{Output: Output{Name: out}, Run: runOf(1)}}
		second := job{[]string{in}, Destination{Output: Output{Name: out}, Run: runOf(2)}}
		rival := func() {
			if _, err := second.do(t); err != nil {
				t.Fatal(err)
			}
		}
		_, err := first.doWith(t, func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
			if when == "before the first file" {
				rival()
				return rows
			}
			return func(yield func(arraycopy.Rows, error) bool) {
				rival()
				rows(yield)
			}
		})
		sourcetest.Says(t, when, err, ErrExists, out)
		sourcetest.Equal(t, when, sourcetest.Tree(t, out), wholeTree)
		settled(t, out)
		if s := stateOf(t, out); s.Rows != 30 || len(s.Recipes) != 1 || s.Recipes[0].Options != second.options(t) {
			t.Errorf("%s: the quicker run: %+v", when, s)
		}
		for _, f := range stateOf(t, out).Files {
			_, schema := sourcetest.Contents(t, out+f.Name)
			sourcetest.Equal(t, when+": "+f.Name, sourcetest.Metadata(schema, source.MetaRun), second.recipe(t))
		}
	}
}

// A name that is taken by something unreadable is an error.
func TestDanglingLinkAsOutput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.parquet")
	if err := os.Symlink("/nowhere/at/all", name); err != nil {
		t.Fatal(err)
	}
	w, err := job{[]string{roomtest.Logs(t)}, Destination{Output: Output{Name: name}, Run: runOf(1)}}.do(t)
	if err == nil {
		t.Errorf("wrote %d rows into nothing", w.Rows)
	}
}

// Force replaces outputs, never other data: what no manifest lists stays, and if it is
// in the way, nothing is written.
func TestForceSparesForeignFiles(t *testing.T) {
	in := roomtest.Logs(t)
	out := filepath.Join(t.TempDir(), "out") + "/"
	if _, err := (job{[]string{in + "/a.parquet"}, Destination{Output: Output{Name: out}, Run: runOf(1), Result: source.ResultExact}}).do(t); err != nil {
		t.Fatal(err)
	}
	precious := t.TempDir()
	mine := sourcetest.Write(t, filepath.Join(precious, "mine.parquet"), 4, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(precious, "link")
	link(mine, "link.parquet")
	sourcetest.Put(t, filepath.Join(out, "zz/mine.parquet"), sourcetest.Get(t, mine))
	forced := job{[]string{in}, Destination{Output: Output{Name: out, Force: true}, Run: runOf(2)}}
	if _, err := forced.do(t); err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "files", sourcetest.Tree(t, out), []string{"_SUCCESS", "a.parquet", "link", "link.parquet", "y=1/_SUCCESS", "y=1/b.parquet", "y=1/c.parquet", "zz/mine.parquet"})
	sourcetest.Equal(t, "behind the link", sourcetest.Tree(t, precious), []string{"mine.parquet"})

	// At the name of an output: files and links of others stay.
	for what, place := range map[string]func(out string){
		"not listed in a manifest": func(out string) { sourcetest.Put(t, out+"y=1/c.parquet", sourcetest.Get(t, mine)) },
		"not a regular file":       func(out string) { link(mine, "y=1/c.parquet") },
	} {
		out = filepath.Join(t.TempDir(), "out") + "/"
		if _, err := (job{[]string{in + "/a.parquet", in + "/y=1/b.arrow"}, Destination{Output: Output{Name: out}, Run: runOf(1)}}).do(t); err != nil {
			t.Fatal(err)
		}
		place(out)
		before := snapshot(t, out)
		forced.out.Name = out
		_, err := forced.do(t)
		sourcetest.Says(t, what, err, ErrExists, "y=1/c.parquet", what)
		sourcetest.Equal(t, what, snapshot(t, out), before)
	}

	// A directory that another program has marked complete stays unchanged.
	spark := filepath.Join(t.TempDir(), "out") + "/"
	sourcetest.Put(t, spark+publish.Success, "")
	_, err := job{[]string{in}, Destination{Output: Output{Name: spark, Force: true}, Run: runOf(1)}}.do(t)
	sourcetest.Says(t, "a directory of another program", err, ErrExists, publish.Success)
	sourcetest.Equal(t, "a directory of another program", sourcetest.Tree(t, spark), []string{publish.Success})

	// A directory below the output that is a link leads elsewhere.
	other := filepath.Join(t.TempDir(), "out") + "/"
	if err := os.MkdirAll(other, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, other+"y=1"); err != nil {
		t.Fatal(err)
	}
	_, err = job{[]string{in}, Destination{Output: Output{Name: other, Force: true}, Run: runOf(1)}}.do(t)
	sourcetest.Says(t, "a directory that is a link", err, ErrExists, "y=1")
	sourcetest.Equal(t, "behind the link", sourcetest.Tree(t, precious), []string{"mine.parquet"})
}

// The _SUCCESS of an earlier run is removed before a file of another run becomes
// visible.
func TestStaleSuccess(t *testing.T) {
	in := roomtest.Logs(t)
	out := filepath.Join(t.TempDir(), "out") + "/"
	if _, err := (job{[]string{in}, Destination{Output: Output{Name: out}, Run: runOf(1)}}).do(t); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"a.parquet", "y=1/b.parquet", "y=1/c.parquet"} {
		if err := os.Remove(filepath.Join(out, f)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := job{[]string{in}, Destination{Output: Output{Name: out}, Run: runOf(2)}}.do(t)
	sourcetest.Says(t, "a manifest without its files", err, ErrExists, "a.parquet does not come from these inputs and options")
	sourcetest.Put(t, out+publish.Success, "")
	_, err = job{[]string{in}, Destination{Output: Output{Name: out, Force: true}, Run: runOf(2)}}.doWith(t, func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
		return func(yield func(arraycopy.Rows, error) bool) {
			for r, err := range rows {
				if now := sourcetest.Tree(t, out); slices.Contains(now, publish.Success) && slices.Contains(now, "a.parquet") {
					t.Error("a file stands beside another run's mark of success")
				}
				if !yield(r, err) {
					return
				}
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// An output in a directory that is read would be read by the next run.
func TestOutputBelowItsInputs(t *testing.T) {
	in := roomtest.Logs(t)
	for _, name := range []string{filepath.Join(in, "out.parquet"), filepath.Join(in, "y=1", "out") + "/"} {
		_, err := job{[]string{in}, Destination{Output: Output{Name: name}, Run: runOf(1)}}.do(t)
		sourcetest.Says(t, name, err, nil, "inside the input directory")
	}
}

// An output that was written before an input changed is not done, even if the digest is
// the same: a file is refused, and in a directory it is written again.
func TestChangedInputIsNotDone(t *testing.T) {
	in := roomtest.Logs(t)
	for _, name := range []string{filepath.Join(t.TempDir(), "out.parquet"), filepath.Join(t.TempDir(), "out") + "/"} {
		j := job{[]string{in}, Destination{Output: Output{Name: name}, Run: runOf(1)}}
		if _, err := j.do(t); err != nil {
			t.Fatal(err)
		}
		_, err := j.do(t)
		sourcetest.Says(t, "the same again", err, ErrDone)
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(filepath.Join(in, "y=1/c.parquet"), later, later); err != nil {
			t.Fatal(err)
		}
		w, err := j.do(t)
		if filepath.Ext(name) == ".parquet" {
			sourcetest.Says(t, "after a change", err, ErrExists, "c.parquet", "written later")
		} else if err != nil || len(w.Files) != 1 || w.Files[0].Name != "y=1/c.parquet" || w.Rows != 10 {
			t.Errorf("after a change: %+v, %v; want that its output alone is written again", w, err)
		}
		if err := os.Chtimes(filepath.Join(in, "y=1/c.parquet"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
}
