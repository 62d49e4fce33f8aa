package output

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Runs over different inputs share a directory, whatever their shards, and _SUCCESS
// covers all of them. Force replaces only the outputs of its own inputs, including
// those that it does not write again.
func TestRunsShareADirectory(t *testing.T) {
	in, out := roomtest.Logs(t), filepath.Join(t.TempDir(), "out")+"/"
	run := func(b byte, s dataset.Shard, input string) job {
		return job{[]string{input}, Destination{Output: Output{Name: out, Shard: s, Force: true}, Run: runOf(b), Result: source.ResultExact}}
	}
	did := func(j job) {
		t.Helper()
		if _, err := j.do(t); err != nil {
			t.Fatal(err)
		}
	}
	did(run(1, dataset.Shard{Index: 0, Of: 2}, in+"/y=1"))
	did(run(2, dataset.Shard{}, in+"/a.parquet"))
	sourcetest.Equal(t, "files before the other shard has finished", visible(sourcetest.Tree(t, out)), []string{"_SUCCESS", "a.parquet"})
	did(run(1, dataset.Shard{Index: 1, Of: 2}, in+"/y=1"))
	sourcetest.Equal(t, "files of both", sourcetest.Tree(t, out)[0], publish.Success)
	sourcetest.Equal(t, "_SUCCESS", sourcetest.Get(t, out+publish.Success), "")
	settled(t, out)
	if s := stateOf(t, out); s.Generation != 2 || s.Rows != 30 || len(s.Inputs) != 3 || len(s.Recipes) != 2 {
		t.Errorf("state %+v", s)
	}
	// As Arrow files, which have other names; the old files are removed.
	arrow := run(3, dataset.Shard{}, in+"/y=1")
	arrow.out.Format = dataset.ArrowFile
	did(arrow)
	sourcetest.Equal(t, "files", sourcetest.Tree(t, out), []string{"_SUCCESS", "a.parquet", "y=1/_SUCCESS", "y=1/b.arrow", "y=1/c.arrow"})
	// A finished run repairs its part, although the directory has others.
	if err := os.Truncate(out+"a.parquet", 100); err != nil {
		t.Fatal(err)
	}
	healed := run(2, dataset.Shard{}, in+"/a.parquet")
	healed.out.Force = false
	if w, err := healed.do(t); err != nil || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "a.parquet is cut") {
		t.Errorf("healing: %v, %v", w.Notes, err)
	}
	sourcetest.Equal(t, "healed", slices.Contains(sourcetest.Tree(t, out), publish.Success), true)
	// What another run has replaced since belongs to that run.
	did(run(5, dataset.Shard{}, in+"/a.parquet"))
	_, err := healed.do(t)
	sourcetest.Says(t, "replaced since", err, ErrExists, "does not come from these inputs and options", "Force")
	// Without Force another run is refused.
	sourcetest.Write(t, filepath.Join(in, "z/a.parquet"), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
	other := run(4, dataset.Shard{}, in+"/z")
	other.out.Force = false
	_, err = other.do(t)
	sourcetest.Says(t, "without force", err, ErrExists, "Force")
}

// contentsOf returns the names and contents of the files of a directory.
func contentsOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, name := range sourcetest.Tree(t, dir) {
		all = append(all, name+sourcetest.Get(t, filepath.Join(dir, name)))
	}
	return all
}

// If a file is missing, truncated or changed, _SUCCESS is false and is removed. The
// error or note says what has happened, and the run writes the file again, unless
// somebody has put a file of their own there.
func TestFalseSuccessIsHealed(t *testing.T) {
	for what, harm := range map[string]func(name string) error{
		"missing": os.Remove,
		"cut":     func(name string) error { return os.Truncate(name, 100) },
		"changed": func(name string) error {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			b[30] ^= 1 // same size, same footer
			return os.WriteFile(name, b, 0o600)
		},
	} {
		in, out := roomtest.Logs(t), filepath.Join(t.TempDir(), "out")+"/"
		whole := job{[]string{in}, Destination{Output: Output{Name: out}, Run: runOf(1)}}
		if _, err := whole.do(t); err != nil {
			t.Fatal(err)
		}
		before := contentsOf(t, out)
		if err := harm(out + "y=1/c.parquet"); err != nil {
			t.Fatal(err)
		}
		// A run over another input notices it but cannot repair it.
		_, err := job{[]string{in + "/a.parquet"}, Destination{Output: Output{Name: out}, Run: runOf(1)}}.do(t)
		sourcetest.Says(t, what, err, ErrDone, "no _SUCCESS", "y=1/c.parquet is "+what)
		sourcetest.Equal(t, what, slices.DeleteFunc(sourcetest.Tree(t, out), func(name string) bool { return filepath.Base(name) != publish.Success }), nil)
		w, err := whole.do(t)
		if err != nil || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "y=1/c.parquet is "+what) {
			t.Errorf("%s: %v, %v", what, w.Notes, err)
		}
		sourcetest.Equal(t, what, contentsOf(t, out), before)
	}
	in, out := roomtest.Logs(t), filepath.Join(t.TempDir(), "out")+"/"
	whole := job{[]string{in}, Destination{Output: Output{Name: out}, Run: runOf(1)}}
	if _, err := whole.do(t); err != nil {
		t.Fatal(err)
	}
	// The change is still known after another run has changed the state.
	was := sourcetest.Get(t, out+"y=1/c.parquet")
	sourcetest.Put(t, out+"y=1/c.parquet", was[:30]+string([]byte{was[30] ^ 1})+was[31:])
	if w, err := (job{[]string{in + "/a.parquet"}, Destination{Output: Output{Name: out, Force: true}, Run: runOf(2)}}).do(t); err != nil || len(w.Notes) != 1 || slices.Contains(sourcetest.Tree(t, out), publish.Success) {
		t.Errorf("beside a file that was changed: %v, %v, %v", w.Notes, err, sourcetest.Tree(t, out))
	}
	whole.out.Force = true
	if _, err := whole.do(t); err != nil {
		t.Fatal(err)
	}
	whole.out.Force = false
	mine := sourcetest.Get(t, filepath.Join(in, "a.parquet"))
	sourcetest.Put(t, out+"a.parquet", mine)
	_, err := whole.do(t)
	sourcetest.Says(t, "a table of somebody's", err, ErrExists, "a.parquet has changed", "Force")
	sourcetest.Equal(t, "a table of somebody's", sourcetest.Get(t, out+"a.parquet") == mine, true)
}

// A manifest's content is not trusted.
func TestManifestLeadsNowhere(t *testing.T) {
	in, precious := roomtest.Logs(t), t.TempDir()
	mine := sourcetest.Put(t, filepath.Join(precious, "a.parquet"), "mine")
	const generation, part = "out.bloomjoin/manifest-00000001.json", "out.bloomjoin/shard-0123456789abcdef-00000-of-00001.json"
	// manifests returns each kind of manifest that lists a file, by its name.
	manifests := func(name string) map[string]string {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		file := func(format string) string { return strings.ReplaceAll(format, "NAME", string(quoted)) }
		return map[string]string{
			generation: file(`{"version":5,"generation":1,"recipes":[{}],"inputs":[{"input":"a.parquet","files":[NAME]}],"files":[{"name":NAME,"inputs":["a.parquet"]}]}`),
			part:       file(`{"version":5,"run":"0123456789abcdef","of":1,"inputs":[{"input":"a.parquet","files":[NAME]}],"files":[{"name":NAME,"inputs":["a.parquet"]}]}`),
		}
	}
	for _, name := range []string{"../" + filepath.Base(precious) + "/a.parquet", mine, "..", ".", "", "x/../../a", "a//b", "_SUCCESS", "a\x00"} {
		all := manifests(name)
		all["out.bloomjoin/manifest-00000002.json"] = strings.Replace(`{"version":5,"generation":2,"removing":[{"name":NAME}]}`, "NAME", strconv.Quote(name), 1)
		if name == "a\x00" {
			delete(all, "out.bloomjoin/manifest-00000002.json") // JSON has no \x00
		}
		for manifest, content := range all {
			dir := filepath.Join(filepath.Dir(precious), t.Name())
			sourcetest.Put(t, filepath.Join(dir, manifest), content)
			_, err := job{[]string{in}, Destination{Output: Output{Name: dir + "/out/", Force: true}, Run: runOf(1)}}.do(t)
			sourcetest.Says(t, manifest+": "+name, err, fault.ErrCorrupt, filepath.Base(manifest), "outside the directory or not an output")
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Nothing is removed through a link.
	for manifest, content := range manifests("link/a.parquet") {
		dir := t.TempDir()
		sourcetest.Put(t, filepath.Join(dir, manifest), content)
		if err := os.MkdirAll(dir+"/out", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(precious, dir+"/out/link"); err != nil {
			t.Fatal(err)
		}
		if _, err := (job{[]string{in}, Destination{Output: Output{Name: dir + "/out/", Force: true}, Run: runOf(1)}}).do(t); err != nil {
			t.Error(manifest, err)
		}
		sourcetest.Equal(t, manifest, stateOf(t, dir+"/out/").Rows, 30)
		sourcetest.Equal(t, "behind the link", sourcetest.Get(t, mine), "mine")
	}
	for manifest, content := range manifests("y=1/c.parquet") {
		dir := t.TempDir()
		sourcetest.Put(t, filepath.Join(dir, manifest), strings.ReplaceAll(content, "\"a.parquet\"", "\"y=1/c.parquet\""))
		if err := os.MkdirAll(dir+"/out/y=1", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(mine, dir+"/out/y=1/c.parquet"); err != nil {
			t.Fatal(err)
		}
		_, err := job{[]string{in}, Destination{Output: Output{Name: dir + "/out/", Force: true}, Run: runOf(2)}}.do(t)
		sourcetest.Says(t, "a link in the place of an output", err, ErrExists, "y=1/c.parquet is a link or device")
		sourcetest.Equal(t, "behind the link", sourcetest.Get(t, mine), "mine")
	}
	for manifest, contents := range map[string][]string{
		part:       {"{", `{"version":2}`, `{"version":5,"of":0}`, `{"version":5,"of":2,"shard":2,"run":"0123456789abcdef"}`, `{"version":5,"of":1,"run":"0"}`},
		generation: {"{", `{"version":5}`, `{"version":5,"inputs":[{"input":"a"}]}`},
	} {
		for _, bad := range contents {
			dir := t.TempDir()
			sourcetest.Put(t, filepath.Join(dir, manifest), bad)
			_, err := job{[]string{in}, Destination{Output: Output{Name: dir + "/out/", Force: true}, Run: runOf(1)}}.do(t)
			sourcetest.Says(t, bad, err, nil, filepath.Base(manifest))
			sourcetest.Equal(t, bad, sourcetest.Get(t, filepath.Join(dir, manifest)), bad)
		}
	}
}

// File names may have any bytes, and any length that the system allows.
func TestOutputNamesOfAnyBytes(t *testing.T) {
	names := []string{"bad\xff\xfe.parquet", `a\xFF.parquet`, `back\\slash.parquet`, "esc\x1b[31m.parquet", strings.Repeat("n", 247) + ".parquet", "grün\u202e.parquet"}
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "out")+"/"
	for _, name := range names {
		sourcetest.Write(t, filepath.Join(in, name), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
	}
	j := job{[]string{in}, Destination{Output: Output{Name: out}, Run: runOf(1)}}
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	got := sourcetest.Tree(t, out)
	sourcetest.Equal(t, "files", got[1:], slices.Sorted(slices.Values(names)))
	_, err := j.do(t)
	sourcetest.Says(t, "again", err, ErrDone)
	j.out.Force = true
	if _, err := j.do(t); err != nil {
		t.Error(err)
	}
}

// Manifests of the version before have other digests of inputs: only Force writes over their
// outputs, and then all of them.
func TestManifestsOfTheVersionBefore(t *testing.T) {
	dir := t.TempDir()
	j := job{[]string{roomtest.Logs(t)}, Destination{Output: Output{Name: dir + "/out/"}, Run: runOf(1)}}
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, name := range sourcetest.Tree(t, dir+"/out.bloomjoin/") {
		path := filepath.Join(dir, "out.bloomjoin", name)
		before := sourcetest.Get(t, path)
		if after := strings.Replace(before, `"version":5`, `"version":4`, 1); after != before {
			sourcetest.Put(t, path, after)
			changed++
		}
	}
	if changed == 0 {
		t.Fatal("no manifest has the version")
	}
	_, err := j.do(t)
	sourcetest.Says(t, "without force", err, fault.ErrUnsupported, "version 4", "Force")
	j.out.Force = true
	w, err := j.do(t)
	if err != nil || len(w.Files) != 3 {
		t.Fatalf("%d files, %v", len(w.Files), err)
	}
	j.out.Force = false
	_, err = j.do(t)
	sourcetest.Says(t, "again", err, ErrDone)
}
