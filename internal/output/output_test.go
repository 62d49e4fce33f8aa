package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// job is a run that copies its inputs.
type job struct {
	inputs []string
	out    Destination
}

// do checks and writes as the command does.
func (j job) do(t testing.TB) (dataset.Written, error) {
	t.Helper()
	return j.doWith(t, func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] { return rows })
}

func (j job) doWith(t testing.TB, through func(iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error]) (dataset.Written, error) {
	t.Helper()
	files, err := source.Open(t.Context(), j.inputs, source.Opening{OpenOptions: source.OpenOptions{Mem: sourcetest.Checked(t), Hive: dataset.HiveOff}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	run := new(Run)
	if j.out.Run != nil {
		*run = *j.out.Run
	}
	run.Log = files
	j.out.Run = run
	todo, err := j.out.Pending(t.Context())
	if err != nil {
		return dataset.Written{}, err
	}
	pieces := source.Split(todo, j.out.Shard)
	var parts []Part
	for _, p := range pieces {
		parts = append(parts, Part{Piece: p, Schema: p.File.Schema()})
	}
	if len(parts) == 0 && !j.out.IsDir(t.Context()) {
		parts = append(parts, Part{Name: "empty", Schema: files[0].Schema()})
	}
	return j.out.Write(t.Context(), parts, through(roomtest.Map(t.Context(), pieces, 0, nil, roomtest.Pass)))
}

// wholeTree are the files of an output directory of logs.
var wholeTree = []string{"_SUCCESS", "a.parquet", "y=1/_SUCCESS", "y=1/b.parquet", "y=1/c.parquet"}

// allRows returns the rows of logs.
var allRows = sourcetest.Numbers(30, func(i int) string { return fmt.Sprintf("%d|t%d", i, i) })

// runOf returns a run that is different for each number.
func runOf(b byte) *Run { return &Run{Options: []string{fmt.Sprint("run ", b)}} }

// recipe returns the digest of the job's recipe in hexadecimal, which marks its files in a
// directory.
func (j job) recipe(t testing.TB) string {
	t.Helper()
	run := *j.out.Run
	run.Log = roomtest.Open(t, source.Opening{}, j.inputs...)
	sum, known, err := run.recipe()
	if err != nil || !known {
		t.Fatal(known, err)
	}
	return fmt.Sprintf("%x", sum)
}

// options returns the digest of the job's options in hexadecimal.
func (j job) options(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%x", j.out.Run.options())
}

// digest returns the digest of the job's run in hexadecimal.
func (j job) digest(t testing.TB) string {
	t.Helper()
	run := *j.out.Run
	run.Log = roomtest.Open(t, source.Opening{}, j.inputs...)
	sum, known, err := run.Digest()
	if err != nil || !known {
		t.Fatal(known, err)
	}
	return fmt.Sprintf("%x", sum)
}

func TestOutputFile(t *testing.T) {
	in := roomtest.Logs(t)
	for _, name := range []string{"out.parquet", "out.arrow", "out"} {
		path := filepath.Join(t.TempDir(), name)
		j := job{[]string{in}, Destination{Output: Output{Name: path}, Result: source.ResultCandidates, Filter: [32]byte{7}, Run: runOf(1)}}
		w, err := j.do(t)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || w.Rows != 30 || w.Bytes != info.Size() || len(w.Files) != 1 {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
		readable := path
		if name == "out" {
			readable += ".parquet"
			if err := os.Rename(path, readable); err != nil {
				t.Fatal(err)
			}
		}
		rows, schema := sourcetest.Contents(t, readable)
		sourcetest.Equal(t, name, rows, allRows)
		sourcetest.Equal(t, source.MetaResult, sourcetest.Metadata(schema, source.MetaResult), source.ResultCandidates)
		sourcetest.Equal(t, source.MetaFilter, sourcetest.Metadata(schema, source.MetaFilter), fmt.Sprintf("%x", [32]byte{7}))
		sourcetest.Equal(t, source.MetaRun, sourcetest.Metadata(schema, source.MetaRun), j.digest(t))
		sourcetest.Equal(t, "files", len(sourcetest.Tree(t, filepath.Dir(path))), 1)
	}
}

// If a finished output becomes an input, its metadata about its run is not copied.
func TestOutputOfAnOutput(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "1.parquet"), filepath.Join(dir, "2.parquet")
	if _, err := (job{[]string{roomtest.Logs(t)}, Destination{Output: Output{Name: first}, Result: source.ResultCandidates, Filter: [32]byte{7}, Run: runOf(1)}}).do(t); err != nil {
		t.Fatal(err)
	}
	if _, err := (job{[]string{first}, Destination{Output: Output{Name: second}, Result: source.ResultExact, Run: runOf(2)}}).do(t); err != nil {
		t.Fatal(err)
	}
	_, schema := sourcetest.Contents(t, second)
	sourcetest.Equal(t, source.MetaResult, sourcetest.Metadata(schema, source.MetaResult), source.ResultExact)
	sourcetest.Equal(t, source.MetaFilter, sourcetest.Metadata(schema, source.MetaFilter), "")
	md := schema.Metadata()
	n := 0
	for _, k := range md.Keys() {
		if k == source.MetaRun {
			n++
		}
	}
	sourcetest.Equal(t, "runs named", n, 1)
}

func TestOutputStream(t *testing.T) {
	var b bytes.Buffer
	w, err := job{[]string{roomtest.Logs(t)}, Destination{Output: Output{Name: "-", Stdout: &b}, Result: source.ResultExact, Run: runOf(1)}}.do(t)
	if err != nil || w.Rows != 30 || w.Bytes != int64(b.Len()) {
		t.Errorf("%+v, %v", w, err)
	}
	r, err := ipc.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	if bits.UintSize == 64 { // on 32 bits the reader panics because of an unaligned counter
		defer r.Release()
	}
	var rows []string
	for r.Next() {
		rows = append(rows, sourcetest.Rows(r.Record())...)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "rows", rows, allRows)
	sourcetest.Equal(t, source.MetaResult, sourcetest.Metadata(r.Schema(), source.MetaResult), source.ResultExact)
}

// A stream that failed has no end marker, so its reader knows that it is incomplete.
func TestOutputStreamFails(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	ids.AppendValues([]int64{1, 2}, nil)
	column := ids.NewArray()
	defer column.Release()
	for _, failed := range []error{nil, errors.New("a bad page")} {
		var b bytes.Buffer
		_, err := Destination{Output: Output{Name: "-", Stdout: &b}}.Write(t.Context(), []Part{{Name: "in", Schema: schema}}, func(yield func(arraycopy.Rows, error) bool) {
			if yield(arraycopy.Rows{Record: array.NewRecord(schema, []arrow.Array{column}, 2)}, nil) && failed != nil {
				yield(arraycopy.Rows{}, failed)
			}
		})
		if !errors.Is(err, failed) {
			t.Errorf("%v, want %v", err, failed)
		}
		sourcetest.Equal(t, "has an end marker", bytes.HasSuffix(b.Bytes(), []byte("\xff\xff\xff\xff\x00\x00\x00\x00")), failed == nil)
	}
}

// An existing output: if it is the same run's, it is done; another's stays unless Force
// is set.
func TestOutputFileAgain(t *testing.T) {
	in, path := roomtest.Logs(t), filepath.Join(t.TempDir(), "out.parquet")
	first := job{[]string{in}, Destination{Output: Output{Name: path}, Result: source.ResultExact, Run: runOf(1)}}
	if _, err := first.do(t); err != nil {
		t.Fatal(err)
	}
	before := sourcetest.Get(t, path)
	_, err := first.do(t)
	sourcetest.Says(t, "the same run", err, ErrDone)
	first.out.Force = true
	if w, err := first.do(t); err != nil || w.Rows != 30 {
		t.Errorf("the same run, forced: %+v, %v; want that it is done again", w, err)
	}
	other := first
	other.out.Run, other.out.Force = runOf(2), false
	_, err = other.do(t)
	sourcetest.Says(t, "another run", err, ErrExists, path, "Force")
	shard := first
	shard.out.Shard, shard.out.Force = dataset.Shard{Index: 0, Of: 2}, false
	_, err = shard.do(t)
	sourcetest.Says(t, "a shard of the run", err, ErrExists)
	sourcetest.Equal(t, "unchanged", sourcetest.Get(t, path) == before, true)
	other.out.Force = true
	if _, err := other.do(t); err != nil {
		t.Error(err)
	}
	sourcetest.Equal(t, "replaced", sourcetest.Get(t, path) == before, false)
	for _, foreign := range []string{"PAR1 damaged", "", "something else"} {
		sourcetest.Put(t, path, foreign)
		_, err = first.do(t)
		if first.out.Force = false; err != nil {
			t.Error(err)
		}
		sourcetest.Put(t, path, foreign)
		_, err = first.do(t)
		sourcetest.Says(t, "a foreign file", err, ErrExists)
		sourcetest.Equal(t, "foreign file", sourcetest.Get(t, path), foreign)
		first.out.Force = true
	}
	sourcetest.Equal(t, "files", sourcetest.Tree(t, filepath.Dir(path)), []string{"out.parquet"})
}

// A run without an identity, such as one with IDs on standard input, is never done
// already.
func TestOutputWithoutIdentity(t *testing.T) {
	in, dir := roomtest.Logs(t), t.TempDir()
	for _, name := range []string{filepath.Join(dir, "out.parquet"), filepath.Join(dir, "out") + "/"} {
		j := job{[]string{in}, Destination{Output: Output{Name: name}, Result: source.ResultExact}}
		if _, err := j.do(t); err != nil {
			t.Fatal(err)
		}
		_, err := j.do(t)
		sourcetest.Says(t, name, err, ErrExists)
		j.out.Force = true
		if w, err := j.do(t); err != nil || w.Rows != 30 {
			t.Errorf("%s: forced: %+v, %v", name, w, err)
		}
	}
}

// While a run writes, a rival may publish the same name. The second one leaves it
// alone, and succeeds if it is the same run.
func TestOutputRival(t *testing.T) {
	in := roomtest.Logs(t)
	for _, rival := range []byte{1, 2} {
		path := filepath.Join(t.TempDir(), "out.parquet")
		j := job{[]string{in}, Destination{Output: Output{Name: path}, Result: source.ResultExact, Run: runOf(1)}}
		_, err := j.doWith(t, func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
			other := job{[]string{in}, Destination{Output: Output{Name: path}, Result: source.ResultExact, Run: runOf(rival)}}
			if _, err := other.do(t); err != nil {
				t.Fatal(err)
			}
			return rows
		})
		_, schema := sourcetest.Contents(t, path)
		sourcetest.Equal(t, "the rival's file", sourcetest.Metadata(schema, source.MetaRun), job{[]string{in}, Destination{Run: runOf(rival)}}.digest(t))
		sourcetest.Equal(t, "files", sourcetest.Tree(t, filepath.Dir(path)), []string{"out.parquet"})
		if rival == 1 && err != nil {
			t.Errorf("the rival ran the same: %v", err)
		} else if rival == 2 {
			sourcetest.Says(t, "the rival ran another", err, ErrExists)
		}
	}
}

// Nothing is left of an unfinished file.
func TestOutputFailure(t *testing.T) {
	in := roomtest.Logs(t)
	boom := errors.New("boom")
	failing := func(after int) func(iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
		return func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
			return func(yield func(arraycopy.Rows, error) bool) {
				n := 0
				for r, err := range rows {
					if n++; n > after {
						r.Record.Release()
						yield(arraycopy.Rows{}, boom)
						return
					}
					if !yield(r, err) {
						return
					}
				}
			}
		}
	}
	for after := range 8 {
		dir := t.TempDir()
		_, err := job{[]string{in}, Destination{Output: Output{Name: filepath.Join(dir, "out.parquet")}, Run: runOf(1)}}.doWith(t, failing(after))
		sourcetest.Says(t, "a file", err, boom)
		sourcetest.Equal(t, "what is left", sourcetest.Tree(t, dir), nil)
		j := job{[]string{in}, Destination{Output: Output{Name: dir + "/"}, Run: runOf(1)}}
		_, err = j.doWith(t, failing(after))
		sourcetest.Says(t, "a directory", err, boom)
		for _, name := range sourcetest.Tree(t, dir) { // files of a directory are whole or missing
			if !slices.Contains([]string{"a.parquet", "y=1/b.parquet", "y=1/c.parquet"}, name) {
				t.Errorf("%s is left of a directory that is not finished", name)
				continue
			}
			if rows, _ := sourcetest.Contents(t, filepath.Join(dir, name)); len(rows) != 10 {
				t.Errorf("%s has %d rows", name, len(rows))
			}
		}
		if w, err := j.do(t); err != nil || w.Rows != 30 { // the next attempt succeeds
			t.Errorf("the next attempt: %+v, %v", w, err)
		}
		sourcetest.Equal(t, "after it", sourcetest.Tree(t, dir), wholeTree)
		settled(t, dir)
	}
}

// fullStore is a disk that is full after the given number of bytes.
type fullStore struct {
	storage.Storage // local
	left            *int
}

type fullSink struct {
	storage.Writer
	left *int
}

func (s fullStore) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	sink, err := s.Storage.Create(ctx, name, o)
	return fullSink{sink, s.left}, err
}

func (s fullSink) Write(p []byte) (int, error) {
	if *s.left -= len(p); *s.left < 0 {
		return 0, fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return s.Writer.Write(p)
}

func TestOutputOnAFullDisk(t *testing.T) {
	in := roomtest.Logs(t)
	for _, name := range []string{"out.parquet", "out.arrow", "out/"} {
		for _, space := range []int{4, 100, 300, 500} {
			dir := t.TempDir()
			_, err := job{[]string{in}, Destination{Output: Output{Name: dir + "/" + name, Store: fullStore{Storage: storage.Local(), left: &space}}, Run: runOf(1)}}.do(t)
			sourcetest.Says(t, name, err, syscall.ENOSPC)
			for _, left := range sourcetest.Tree(t, dir) {
				if strings.Contains(left, "/.") || strings.HasPrefix(left, ".") || strings.Contains(left, "_SUCCESS") || name != "out/" {
					t.Errorf("%s: %s is left behind", name, left)
				}
			}
		}
	}
}

func TestOutputDirectory(t *testing.T) {
	in, dir := roomtest.Logs(t), t.TempDir()+"/out/"
	j := job{[]string{in}, Destination{Output: Output{Name: dir}, Result: source.ResultCandidates, Filter: [32]byte{7}, Run: runOf(1)}}
	w, err := j.do(t)
	if err != nil || w.Rows != 30 || len(w.Files) != 3 {
		t.Fatalf("%+v, %v", w, err)
	}
	sourcetest.Equal(t, "files", sourcetest.Tree(t, dir), wholeTree)
	var rows []string
	for _, name := range []string{"a.parquet", "y=1/b.parquet", "y=1/c.parquet"} {
		r, schema := sourcetest.Contents(t, dir+name)
		rows = append(rows, r...)
		sourcetest.Equal(t, source.MetaResult, sourcetest.Metadata(schema, source.MetaResult), source.ResultCandidates)
	}
	sourcetest.Equal(t, "rows", rows, allRows)
	settled(t, dir)
	s := stateOf(t, dir)
	recipe, f, e := s.Recipes[0], s.Files[1], s.Inputs[1]
	if s.Version != 5 || s.Generation != 1 || s.Rows != 30 || s.Bytes != w.Bytes || len(s.Recipes) != 1 || len(s.Inputs) != 3 || len(s.Files) != 3 ||
		recipe.Result != source.ResultCandidates || recipe.Filter != fmt.Sprintf("%x", [32]byte{7}) || recipe.Options != j.options(t) ||
		f.Name != "y=1/b.parquet" || !slices.Equal(f.Inputs, []string{"y=1/b.arrow"}) || f.Rows != 10 || f.Bytes != int64(len(sourcetest.Get(t, dir+f.Name))) || len(f.Sum) != 32 ||
		e.Input != "y=1/b.arrow" || e.Size != int64(len(sourcetest.Get(t, filepath.Join(in, e.Input)))) || len(e.Print) != 32 || e.Groups != 3 || e.Recipe != 0 ||
		e.RowsIn != 10 || e.RowsKept != 10 || e.RowsOut != 10 || !slices.Equal(e.Files, []string{f.Name}) {
		t.Errorf("manifest %+v", s)
	}
	before := sourcetest.Tree(t, dir)
	_, err = j.do(t)
	sourcetest.Says(t, "the same run", err, ErrDone)
	// A lost _SUCCESS is written again.
	if err := os.Remove(dir + "_SUCCESS"); err != nil {
		t.Fatal(err)
	}
	_, err = j.do(t)
	sourcetest.Says(t, "the same run without its mark", err, ErrDone)
	sourcetest.Equal(t, "files", sourcetest.Tree(t, dir), before)
	// A lost file is written again.
	if err := os.Remove(dir + "y=1/b.parquet"); err != nil {
		t.Fatal(err)
	}
	if _, err = j.do(t); err != nil {
		t.Errorf("the same run with a file lost: %v; want that it is written again", err)
	}
	sourcetest.Equal(t, "files", sourcetest.Tree(t, dir), before)

	other := j
	other.out.Run = runOf(2)
	_, err = other.do(t)
	sourcetest.Says(t, "another run", err, ErrExists, "a.parquet", "Force")
	other.inputs, other.out.Force = []string{in + "/a.parquet"}, true
	if _, err := other.do(t); err != nil {
		t.Fatal(err)
	}
	// It has replaced the output of its input, and kept the others.
	sourcetest.Equal(t, "files of both runs", sourcetest.Tree(t, dir), wholeTree)
	for name, run := range map[string]job{"a.parquet": other, "y=1/b.parquet": j, "y=1/c.parquet": j} {
		_, schema := sourcetest.Contents(t, dir+name)
		sourcetest.Equal(t, name, sourcetest.Metadata(schema, source.MetaRun), run.recipe(t))
	}
	_, err = j.do(t)
	sourcetest.Says(t, "the first run, of which a file was replaced", err, ErrExists, "Force")
	// Files that are not outputs stay, even with Force.
	sourcetest.Put(t, dir+"notes.txt", "mine")
	_, err = j.do(t)
	sourcetest.Says(t, "a foreign file", err, ErrExists)
	j.out.Force = true
	if _, err := j.do(t); err != nil {
		t.Error(err)
	}
	sourcetest.Equal(t, "all of the first run", sourcetest.Tree(t, dir), slices.Sorted(slices.Values(append(slices.Clone(before), "notes.txt"))))
	sourcetest.Equal(t, "notes", sourcetest.Get(t, dir+"notes.txt"), "mine")
}

// Workers that each write a shard fill one directory, and the last one writes _SUCCESS.
func TestOutputShards(t *testing.T) {
	in := roomtest.Logs(t)
	for _, of := range []uint32{2, 3, 5, 20} {
		dir := t.TempDir() + "/out/"
		jobOf := func(i uint32, run byte) job {
			return job{[]string{in}, Destination{Output: Output{Name: dir, Shard: dataset.Shard{Index: i, Of: of}}, Result: source.ResultExact, Run: runOf(run)}}
		}
		var order []uint32
		for i := range of {
			order = append(order, (i*7+3)%of)
		}
		for n, i := range order {
			if _, err := jobOf(i, 1).do(t); err != nil {
				t.Fatalf("shard %d/%d: %v", i, of, err)
			}
			_, err := os.Stat(dir + "_SUCCESS")
			if done := n == len(order)-1; (err == nil) != done {
				t.Errorf("after %d of %d shards: _SUCCESS: %v", n+1, of, err)
			}
			if n == 0 {
				_, err := jobOf(i, 1).do(t)
				sourcetest.Says(t, "a shard again", err, ErrDone)
				if _, err = jobOf(order[1], 2).do(t); err != nil { // it is never committed
					t.Error(err)
				}
			}
		}
		var rows []string
		for _, f := range roomtest.Open(t, source.Opening{}, dir) {
			r, _ := sourcetest.Contents(t, f.Name())
			rows = append(rows, r...)
		}
		sourcetest.Equal(t, fmt.Sprint(of, " shards"), rows, allRows)
		settled(t, dir)
		sourcetest.Equal(t, "_SUCCESS", sourcetest.Get(t, dir+"_SUCCESS"), "")
		if s := stateOf(t, dir); s.Rows != 30 || len(s.Inputs) != 3 || s.Inputs[0].RowsIn != 10 || s.Inputs[0].Groups != 3 {
			t.Errorf("%+v", s)
		}
		// All rows are there, so the same run with another number of shards has nothing to do.
		whole := jobOf(0, 1)
		whole.out.Shard = dataset.Shard{}
		_, err := whole.do(t)
		sourcetest.Says(t, "the run undivided", err, ErrDone)
		whole.out.Force = true
		if _, err := whole.do(t); err != nil {
			t.Fatal(err)
		}
		sourcetest.Equal(t, "after it", sourcetest.Tree(t, dir), wholeTree)
	}
}

// Inputs are never overwritten, under whatever name they are found.
func TestOutputSparesItsInputs(t *testing.T) {
	in := roomtest.Logs(t)
	elsewhere := t.TempDir()
	link := func(target, name string) string {
		path := filepath.Join(elsewhere, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := filepath.Join(in, "a.parquet")
	before := map[string]string{}
	for _, name := range sourcetest.Tree(t, in) {
		before[name] = sourcetest.Get(t, filepath.Join(in, name))
	}
	t.Chdir(in)
	for _, c := range []struct{ input, out string }{
		{a, a}, {"a.parquet", a}, {a, "./y=1/../a.parquet"}, {in, in}, {in, in + "/"}, {a, in + "/"}, {in, a}, {a, filepath.Dir(in) + "/"}, {"*.parquet", "."},
		{link(a, "file.parquet"), a}, {a, link(a, "same.parquet")},
		{link(in, "dir"), in + "/"}, {in, link(in, "alias") + "/"}, {in, link(in, "alias2")},
		// links below the output directory are names of its own
		{elsewhere + "/file.parquet", elsewhere + "/"}, {elsewhere + "/file.parquet", elsewhere + "/file.parquet"}, {elsewhere + "/dir", elsewhere + "/dir/"},
	} {
		_, err := job{[]string{c.input}, Destination{Output: Output{Name: c.out, Force: true}, Run: runOf(1)}}.do(t)
		if err == nil || errors.Is(err, ErrDone) || !strings.Contains(err.Error(), "the output is the input") {
			t.Errorf("%s into %s: %v", c.input, c.out, err)
		}
	}
	for name, content := range before {
		if sourcetest.Get(t, filepath.Join(in, name)) != content {
			t.Errorf("%s was written over", name)
		}
	}
	sourcetest.Equal(t, "files", len(sourcetest.Tree(t, in)), len(before))
	if info, err := os.Lstat(elsewhere + "/file.parquet"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	// A neighbour whose name starts the same is not an input.
	if _, err := (job{[]string{in}, Destination{Output: Output{Name: in + "-out/"}, Run: runOf(1)}}).do(t); err != nil {
		t.Error(err)
	}
}

func TestOutputNames(t *testing.T) {
	in := t.TempDir()
	rec := func() arrow.Record {
		return sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}})
	}
	for _, name := range []string{"d1/a.parquet", "d2/a.parquet", "x/b.parquet", "x/b.arrow"} {
		sourcetest.Write(t, filepath.Join(in, name), 1, rec())
	}
	dir := t.TempDir() + "/out/"
	_, err := job{[]string{in + "/d1", in + "/d2"}, Destination{Output: Output{Name: dir}, Run: runOf(1)}}.do(t)
	sourcetest.Says(t, "two of one name", err, nil, in+"/d1/a.parquet", in+"/d2/a.parquet", "name their common directory")
	_, err = job{[]string{in + "/x"}, Destination{Output: Output{Name: dir}, Run: runOf(1)}}.do(t)
	sourcetest.Says(t, "two of one stem", err, nil, "b.parquet", "b.arrow")
	sourcetest.Equal(t, "what is left", sourcetest.Tree(t, dir), nil)
	if _, err = (job{[]string{in + "/d1", in + "/d2"}, Destination{Output: Output{Name: t.TempDir() + "/out.parquet"}, Run: runOf(1)}}).do(t); err != nil {
		t.Errorf("into one file: %v", err)
	}
	// Only the suffix of a format is removed from a name.
	for _, name := range []string{"log.2001", "log.2002", "part-0"} {
		sourcetest.Put(t, filepath.Join(in, "n", name), sourcetest.Get(t, filepath.Join(in, "d1/a.parquet")))
	}
	if _, err = (job{[]string{in + "/n"}, Destination{Output: Output{Name: dir}, Run: runOf(2)}}).do(t); err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "files", sourcetest.Tree(t, dir), []string{"_SUCCESS", "log.2001.parquet", "log.2002.parquet", "part-0.parquet"})
}

func TestOutputOfNothing(t *testing.T) {
	in := roomtest.Logs(t)
	none := func(iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
		return func(func(arraycopy.Rows, error) bool) {}
	}
	for _, name := range []string{"out.parquet", "out.arrow"} {
		path := filepath.Join(t.TempDir(), name)
		w, err := job{[]string{in}, Destination{Output: Output{Name: path}, Result: source.ResultExact, Run: runOf(1)}}.doWith(t, none)
		if err != nil || w.Rows != 0 {
			t.Errorf("%+v, %v", w, err)
		}
		rows, schema := sourcetest.Contents(t, path)
		sourcetest.Equal(t, "rows", len(rows), 0)
		sourcetest.Equal(t, "columns", describe(schema), "(id int64, text utf8)")
		sourcetest.Equal(t, source.MetaResult, sourcetest.Metadata(schema, source.MetaResult), source.ResultExact)
	}
	for empty, want := range map[bool][]string{false: {"_SUCCESS", "y=1/_SUCCESS"}, true: wholeTree} {
		dir := t.TempDir() + "/out/"
		j := job{[]string{in}, Destination{Output: Output{Name: dir, WriteEmpty: empty}, Run: runOf(1)}}
		w, err := j.doWith(t, none)
		if err != nil || len(w.Files) != len(want)-2 || len(w.Inputs) != 3 || w.Inputs[0].RowsIn != 10 {
			t.Errorf("%t: %+v, %v", empty, w, err)
		}
		sourcetest.Equal(t, fmt.Sprint("files ", empty), sourcetest.Tree(t, dir), want)
		settled(t, dir)
		sourcetest.Equal(t, "inputs", len(stateOf(t, dir).Inputs), 3)
		_, err = j.doWith(t, none)
		sourcetest.Says(t, "the same run", err, ErrDone)
	}
	for _, name := range []string{"-", filepath.Join(t.TempDir(), "out.parquet")} {
		_, err := Destination{Output: Output{Name: name, Stdout: &bytes.Buffer{}}}.Write(t.Context(), nil, func(func(arraycopy.Rows, error) bool) {})
		sourcetest.Says(t, "no part, and so no schema", err, nil, "schema")
	}
}

func TestOutputSchemas(t *testing.T) {
	in := t.TempDir()
	sourcetest.Write(t, filepath.Join(in, "a.parquet"), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
	sourcetest.Write(t, filepath.Join(in, "b.parquet"), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []string{"1"}}))
	path := filepath.Join(t.TempDir(), "out.parquet")
	for _, name := range []string{path, "-"} {
		_, err := job{[]string{in}, Destination{Output: Output{Name: name, Stdout: &bytes.Buffer{}}, Run: runOf(1)}}.do(t)
		sourcetest.Says(t, "unlike schemas", err, fault.ErrMismatch, "b.parquet", "id int64", "as in "+in+"/a.parquet", "id utf8", "OUT/")
	}
	sourcetest.Equal(t, "what is left", sourcetest.Tree(t, filepath.Dir(path)), nil)
	if _, err := (job{[]string{in}, Destination{Output: Output{Name: filepath.Dir(path) + "/"}, Run: runOf(1)}}).do(t); err != nil {
		t.Error(err)
	}
}

// Rows that belong to no part are an error.
func TestOutputOutOfOrder(t *testing.T) {
	files := roomtest.Open(t, source.Opening{}, roomtest.Logs(t))
	var parts []Part
	for _, p := range source.Split(files, dataset.Shard{}) {
		parts = append(parts, Part{Piece: p, Schema: p.File.Schema()})
	}
	for _, pieces := range [][]int{{1, 0}, {0, 3}, {5}} {
		dir := t.TempDir() + "/out/"
		_, err := Destination{Output: Output{Name: dir}, Run: runOf(1)}.Write(t.Context(), parts, func(yield func(arraycopy.Rows, error) bool) {
			for _, i := range pieces {
				if !yield(arraycopy.Rows{Piece: i, Record: sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}, sourcetest.Col{Name: "text", Values: []string{""}})}, nil) {
					return
				}
			}
		})
		sourcetest.Says(t, fmt.Sprint(pieces), err, nil, "out of order")
		if slices.Contains(sourcetest.Tree(t, dir), "_SUCCESS") {
			t.Error("marked finished")
		}
	}
}
