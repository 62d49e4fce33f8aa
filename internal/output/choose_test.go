package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// link makes a symbolic link.
func link(t testing.TB, to, name string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Skip(err)
	}
	return name
}

// A file is read once, whatever its names are and in whatever order they are given. What
// is linked into directories with other columns has other rows; so have hard links.
func TestOneFileIsReadOnce(t *testing.T) {
	root := t.TempDir()
	log := filepath.Join(root, "log")
	for i, name := range []string{"a.parquet", "sub/b.parquet", "sub/c.parquet"} {
		sourcetest.Write(t, filepath.Join(log, name), 4, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{int64(i), 7}}))
	}
	linked := link(t, log, filepath.Join(root, "linked"))
	file := link(t, filepath.Join(log, "a.parquet"), filepath.Join(root, "one.parquet"))
	for _, names := range [][]string{
		{log, log}, {log, log + "/./"}, {log, linked}, {linked, log}, {file, log}, {log, file}, {linked, file, log},
		{log, log + "/**"}, {log + "/**/*.parquet", log + "/sub"}, {log + "/a.parquet", log + "/{a,b}.parquet", linked},
	} {
		var notes []string
		files := roomtest.Open(t, source.Opening{Note: func(n fault.Text) { notes = append(notes, n.String()) }}, names...)
		if len(files) != 3 || len(notes) != 1 || !strings.Contains(notes[0], "read once") {
			t.Errorf("%q: %d files, %q", names, len(files), notes)
		}
	}
	if files := roomtest.Open(t, source.Opening{Repeated: true}, log, file); len(files) != 4 {
		t.Errorf("a file that is named twice: %d files", len(files))
	}
	days := filepath.Join(root, "days")
	link(t, filepath.Join(log, "a.parquet"), filepath.Join(days, "dt=1/a.parquet"))
	link(t, filepath.Join(log, "a.parquet"), filepath.Join(days, "dt=2/a.parquet"))
	if files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}, Note: func(n fault.Text) { t.Error(n) }}, days); len(files) != 2 {
		t.Errorf("links in two partitions: %d files", len(files))
	}
	if err := os.Link(filepath.Join(log, "a.parquet"), filepath.Join(log, "hard.parquet")); err != nil {
		t.Skip(err)
	}
	var notes []string
	files := roomtest.Open(t, source.Opening{Note: func(n fault.Text) { notes = append(notes, n.String()) }}, log)
	if len(files) != 4 || len(notes) != 1 || !strings.Contains(notes[0], "hard links") {
		t.Errorf("a hard link: %d files, %q", len(files), notes)
	}
}

// An output that is not whole is refused by every name that leads to it.
func TestUnfinishedOutputs(t *testing.T) {
	in, root := roomtest.Logs(t), t.TempDir()
	out := filepath.Join(root, "parent/out")
	half := job{[]string{in}, Destination{Output: Output{Name: out + "/", Shard: dataset.Shard{Index: 0, Of: 2}}, Run: runOf(1)}}
	if _, err := half.do(t); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(out), "other")
	sourcetest.Write(t, filepath.Join(other, "d.parquet"), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
	for _, name := range []string{"", "/out", "/out/", "/o*", "/*", "/*/", "/{other,out}", "/**", "/**/", "/**/*.parquet"} {
		_, err := source.Open(t.Context(), []string{filepath.Dir(out) + name}, source.Opening{})
		sourcetest.Says(t, "one of two workers: "+name, err, nil, "out/: this output is not whole: 1 of 2 workers are done, without 1", "Uncommitted")
	}
	half.out.Shard.Index = 1
	if _, err := half.do(t); err != nil {
		t.Fatal(err)
	}
	cutShort(t, storage.Local(), out)
	farm := filepath.Join(root, "farm")
	link(t, out, filepath.Join(farm, "day"))
	link(t, filepath.Join(out, "a.parquet"), filepath.Join(root, "one/x.parquet"))
	for _, name := range []string{
		out, filepath.Dir(out), out + "/a.parquet", filepath.Dir(out) + "/o*", filepath.Dir(out) + "/**", filepath.Dir(out) + "/{out,x}",
		farm, farm + "/*", filepath.Join(root, "one"), root,
	} {
		_, err := source.Open(t.Context(), []string{name}, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}})
		sourcetest.Says(t, name, err, nil, "out/: this output is not whole: its commit was cut short", "Uncommitted")
		roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff, Uncommitted: true}}, name)
	}
	for _, opts := range []source.Opening{{OpenOptions: source.OpenOptions{Exclude: []string{"out/"}}}, {OpenOptions: source.OpenOptions{Include: []string{"other/"}}}, {OpenOptions: source.OpenOptions{Exclude: []string{"out"}}}} {
		if files := roomtest.Open(t, opts, filepath.Dir(out)); len(files) != 1 {
			t.Errorf("%+v: %d files", opts, len(files))
		}
	}
	if _, err := half.do(t); !errors.Is(err, ErrDone) {
		t.Fatal(err)
	}
	roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}}, out)
	// Without _SUCCESS, what the state lists is compared with what is there.
	for _, name := range []string{publish.Success, "y=1/" + publish.Success} {
		if err := os.Remove(filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}}, out)
	sourcetest.Put(t, filepath.Join(out, "y=1/stray.parquet"), sourcetest.Get(t, filepath.Join(out, "a.parquet")))
	_, err := source.Open(t.Context(), []string{out}, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}})
	sourcetest.Says(t, "a stray file", err, nil, "y=1/stray.parquet is an output that no manifest lists")
}

// An input of a list is not replaced, and patterns are lines of .gitignore.
func TestApartFromAList(t *testing.T) {
	in := roomtest.Logs(t)
	list, err := inputs.Find(t.Context(), []string{in + "/a.parquet", in + "/y=1/c.parquet"}, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff, Base: in}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	hard := filepath.Join(t.TempDir(), "hard.parquet")
	if err := os.Link(in+"/y=1/c.parquet", hard); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{in + "/y=1/c.parquet", hard, link(t, in+"/a.parquet", filepath.Join(t.TempDir(), "soft.parquet")), in + "/y=1/"} {
		run := runOf(1)
		run.List = list
		_, err := Destination{Output: Output{Name: name, Store: storage.Local(), Force: true}, Run: run}.Pending(t.Context())
		sourcetest.Says(t, name, err, nil, "the output is the input")
	}
	for exclude, want := range map[string]string{
		"y=1/": "[a.parquet]", "/c.parquet": "[a.parquet y=1/b.arrow y=1/c.parquet]", "c.parquet": "[a.parquet y=1/b.arrow]", "*/b.*": "[a.parquet y=1/c.parquet]",
		in + "/a.parquet": "[y=1/b.arrow y=1/c.parquet]", "{a,c}.parquet": "[y=1/b.arrow]",
	} {
		var got []string
		for _, f := range roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff, Exclude: []string{exclude}}}, in) {
			got = append(got, f.Rel())
		}
		sourcetest.Equal(t, exclude, fmt.Sprint(got), want)
	}
}
