package output

import (
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// textJob returns a run that writes a text file.
func textJob(t testing.TB, name string, run byte) job {
	return job{[]string{roomtest.Logs(t)}, Destination{Output: Output{Name: name}, Result: source.ResultExact, Run: runOf(run)}}
}

// Names say the format, and a compression. Text has the same rows as other formats.
func TestTextFile(t *testing.T) {
	for name, want := range map[string]string{"out.csv": "id,text\n0,t0\n1,t1\n", "out.TSV.gz": "id\ttext\n0\tt0\n1\tt1\n", "out.jsonl": "{\"id\":0,\"text\":\"t0\"}\n", "out.ndjson.gz": "{\"id\":0,\"text\":\"t0\"}\n"} {
		path := filepath.Join(t.TempDir(), name)
		w, err := textJob(t, path, 1).do(t)
		if err != nil || w.Rows != 30 || len(w.Files) != 1 {
			t.Fatalf("%s: %+v, %v", name, w, err)
		}
		s := sourcetest.Get(t, path)
		sourcetest.Equal(t, name+": bytes", w.Bytes, int64(len(s)))
		if strings.HasSuffix(name, ".gz") {
			r, err := gzip.NewReader(strings.NewReader(s))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			s = string(b)
		}
		if !strings.HasPrefix(s, want) || !strings.Contains(s, "t29") {
			t.Errorf("%s: %q, want that it begins with %q and ends with t29", name, s, want)
		}
	}
}

// A text file is of the run whose digest and checksum stand beside it, and of no other once one
// byte of it is different.
func TestTextFileAgain(t *testing.T) {
	for _, name := range []string{"out.csv", "out.ndjson.gz"} {
		path := filepath.Join(t.TempDir(), name)
		mark := filepath.Join(filepath.Dir(path), "."+name+".bloomjoin")
		first, other := textJob(t, path, 1), textJob(t, path, 2)
		other.inputs = first.inputs
		if _, err := first.do(t); err != nil {
			t.Fatal(err)
		}
		whole, about := sourcetest.Get(t, path), sourcetest.Get(t, mark)
		again := func(what string, j job, want error) {
			t.Helper()
			_, err := j.do(t)
			sourcetest.Says(t, name+": "+what, err, want)
			sourcetest.Equal(t, name+": files after "+what, sourcetest.Tree(t, filepath.Dir(path)), []string{"." + name + ".bloomjoin", name})
		}
		again("the same run", first, ErrDone)
		again("another run", other, ErrExists)
		shard := first
		shard.out.Shard = dataset.Shard{Index: 0, Of: 2}
		again("a shard", shard, ErrExists)
		again("the same run once more", first, ErrDone)
		for what, text := range map[string]string{"a changed byte": whole[:9] + "x" + whole[10:], "a byte too many": whole + "\n", "a cut": whole[:len(whole)-1], "nothing": ""} {
			sourcetest.Put(t, path, text)
			again(what, first, ErrExists)
			sourcetest.Equal(t, what, sourcetest.Get(t, path), text)
		}
		sourcetest.Put(t, path, whole)
		for _, junk := range []string{"", "{", `{"version":2}`, `{"version":1}`, strings.Repeat(" ", maxMark+1) + about, strings.Replace(about, "bloomjoin.run", "run", 1)} {
			sourcetest.Put(t, mark, junk)
			again("a mark that is none", first, ErrExists)
		}
		sourcetest.Put(t, mark, about)
		again("all as it was", first, ErrDone)
		other.out.Force = true
		if _, err := other.do(t); err != nil {
			t.Error(err)
		}
		other.out.Force = false
		again("the run that has replaced it", other, ErrDone)
		again("the run that was replaced", first, ErrExists)
	}
}

// A run that ends after its mark is published and before its text is done again, unless another
// text is there.
func TestMarkWithoutText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	j := textJob(t, path, 1)
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if w, err := j.do(t); err != nil || w.Rows != 30 {
		t.Errorf("%+v, %v", w, err)
	}
}

// While a run writes, a rival may publish the same name. The second one leaves it and what is
// known of it alone, and succeeds if it is the same run.
func TestTextRival(t *testing.T) {
	for _, rival := range []byte{1, 2} {
		path := filepath.Join(t.TempDir(), "out.csv")
		j, other := textJob(t, path, 1), textJob(t, path, rival)
		other.inputs = j.inputs
		_, err := j.doWith(t, func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
			if _, err := other.do(t); err != nil {
				t.Fatal(err)
			}
			return rows
		})
		if rival == 1 && err != nil {
			t.Errorf("the rival ran the same: %v", err)
		} else if rival == 2 {
			sourcetest.Says(t, "the rival ran another", err, ErrExists)
		}
		_, err = other.do(t)
		sourcetest.Says(t, "the rival's run", err, ErrDone)
	}
}

// Nothing of a text is left that lacks rows, and what stood there stays.
func TestTextFailure(t *testing.T) {
	boom := errors.New("boom")
	path := filepath.Join(t.TempDir(), "out.csv.gz")
	j := textJob(t, path, 1)
	failing := func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
		return func(yield func(arraycopy.Rows, error) bool) {
			for r, err := range rows {
				if !yield(r, err) {
					return
				}
				break
			}
			yield(arraycopy.Rows{}, boom)
		}
	}
	_, err := j.doWith(t, failing)
	sourcetest.Says(t, "rows that fail", err, boom)
	sourcetest.Equal(t, "what is left", sourcetest.Tree(t, filepath.Dir(path)), nil)
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	j.out.Force = true
	_, err = j.doWith(t, failing)
	sourcetest.Says(t, "rows that fail, forced", err, boom)
	j.out.Force = false
	_, err = j.do(t)
	sourcetest.Says(t, "after that", err, ErrDone)
}

// Text that would not be as its name says, and text where an identity has no place.
func TestTextRefused(t *testing.T) {
	dir := t.TempDir()
	for name, format := range map[string]dataset.Format{dir + "/": dataset.CSV, filepath.Join(dir, "x.csv.zst"): ""} {
		j := textJob(t, name, 1)
		j.out.Format = format
		_, err := j.do(t)
		sourcetest.Says(t, name, err, fault.ErrUnsupported)
	}
	sourcetest.Equal(t, "files", sourcetest.Tree(t, dir), nil)
}

// A directory may be called as a text file is. Its files are tables, and it is seen to be whole.
func TestDirectoryNamedAsText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out.csv")
	j := textJob(t, dir, 1)
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	j.out.NoCommit = true
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	out := Destination{Output: Output{Name: dir}}
	if d, err := Commit(t.Context(), out, nil); err != nil || d.Rows != 30 {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := InspectDirectory(t.Context(), out, true); err != nil || !d.Complete {
		t.Errorf("%+v, %v", d, err)
	}
	sourcetest.Equal(t, "files", sourcetest.Tree(t, dir), wholeTree)
	_, err := j.do(t)
	sourcetest.Says(t, "the same run", err, ErrDone)
}

// A storage that is not a file system has text, too.
func TestTextInMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	s := memoryLogs(t)
	out := Destination{Output: Output{Name: "mem://bucket/a.b/out.csv"}}
	for _, want := range []error{nil, ErrDone} {
		if _, err := scanIn(t, s, out, 3, 14, 25); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	var b strings.Builder
	r, err := s.Open(t.Context(), storage.Object{Name: "mem://bucket/a.b/out.csv"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.Copy(&b, io.NewSectionReader(r, 0, r.Object().Size)); err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "the text", b.String(), "id,text\n3,t3\n14,t14\n25,t25\n")
	if _, err := s.Stat(t.Context(), "mem://bucket/a.b/.out.csv.bloomjoin"); err != nil {
		t.Error(err)
	}
}
