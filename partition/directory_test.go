package partition

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

// Runs over different inputs share a directory, whatever their shards, and _SUCCESS
// covers all of them. Force replaces only the outputs of its own inputs, including
// those that it does not write again.
func TestRunsShareADirectory(t *testing.T) {
	in, out := logs(t), filepath.Join(t.TempDir(), "out")+"/"
	run := func(b byte, s Shard, input string) job {
		return job{[]string{input}, Output{Name: out, Run: runOf(b), Shard: s, Force: true, Result: ResultExact}}
	}
	did := func(j job) {
		t.Helper()
		if _, err := j.do(t); err != nil {
			t.Fatal(err)
		}
	}
	did(run(1, Shard{0, 2}, in+"/y=1"))
	did(run(2, Shard{}, in+"/a.parquet"))
	if slices.Contains(tree(t, out), publish.Success) {
		t.Error("_SUCCESS before the other shard has finished")
	}
	did(run(1, Shard{1, 2}, in+"/y=1"))
	var sum publish.Manifest
	if err := json.Unmarshal([]byte(get(t, out+publish.Success)), &sum); err != nil || sum.Rows != 30 || !strings.Contains(get(t, out+publish.Success), run(2, Shard{}, in+"/a.parquet").digest(t)) {
		t.Errorf("_SUCCESS %+v, %v", sum, err)
	}
	// As Arrow files, which have other names; the old files are removed.
	arrow := run(3, Shard{}, in+"/y=1")
	arrow.out.Format = ArrowFile
	did(arrow)
	equal(t, "files", tree(t, out), []string{"_SUCCESS", "_manifest.json", "_manifest.json", "a.parquet", "y=1/b.arrow", "y=1/c.arrow"})
	// A finished run repairs its part, although the directory has others.
	if err := os.Truncate(out+"a.parquet", 100); err != nil {
		t.Fatal(err)
	}
	healed := run(2, Shard{}, in+"/a.parquet")
	healed.out.Force = false
	if w, err := healed.do(t); err != nil || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "a.parquet is cut") {
		t.Errorf("healing: %v, %v", w.Notes, err)
	}
	equal(t, "healed", slices.Contains(tree(t, out), publish.Success), true)
	// What another run has replaced since belongs to that run.
	did(run(5, Shard{}, in+"/a.parquet"))
	_, err := healed.do(t)
	says(t, "replaced since", err, ErrExists, "does not come from these inputs and options", "Force")
	// Without Force another run is refused.
	write(t, filepath.Join(in, "z/a.parquet"), 1, record(t, checked(t), col{"id", []int64{1}}))
	other := run(4, Shard{}, in+"/z")
	other.out.Force = false
	_, err = other.do(t)
	says(t, "without force", err, ErrExists, "Force")
}

// contentsOf returns the names and contents of the files of a directory.
func contentsOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, name := range tree(t, dir) {
		if !strings.HasPrefix(name, "_manifest") {
			name += get(t, filepath.Join(dir, name))
		}
		all = append(all, name)
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
		in, out := logs(t), filepath.Join(t.TempDir(), "out")+"/"
		whole := job{[]string{in}, Output{Name: out, Run: runOf(1)}}
		if _, err := whole.do(t); err != nil {
			t.Fatal(err)
		}
		before := contentsOf(t, out)
		if err := harm(out + "y=1/c.parquet"); err != nil {
			t.Fatal(err)
		}
		// A run over other inputs notices it but cannot repair it.
		_, err := job{[]string{in + "/a.parquet"}, Output{Name: out, Run: runOf(2)}}.do(t)
		says(t, what, err, ErrExists)
		if slices.Contains(tree(t, out), publish.Success) {
			t.Errorf("%s: _SUCCESS stands", what)
		}
		w, err := whole.do(t)
		if err != nil || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "y=1/c.parquet is "+what) {
			t.Errorf("%s: %v, %v", what, w.Notes, err)
		}
		equal(t, what, contentsOf(t, out), before)
	}
	in, out := logs(t), filepath.Join(t.TempDir(), "out")+"/"
	whole := job{[]string{in}, Output{Name: out, Run: runOf(1)}}
	if _, err := whole.do(t); err != nil {
		t.Fatal(err)
	}
	// The change is still known after another run has removed files from the manifest.
	was := get(t, out+"y=1/c.parquet")
	put(t, out+"y=1/c.parquet", was[:30]+string([]byte{was[30] ^ 1})+was[31:])
	if w, err := (job{[]string{in + "/a.parquet"}, Output{Name: out, Run: runOf(2), Force: true}}).do(t); err != nil || len(w.Notes) != 1 || slices.Contains(tree(t, out), publish.Success) {
		t.Errorf("beside a file that was changed: %v, %v, %v", w.Notes, err, tree(t, out))
	}
	whole.out.Force = true
	if _, err := whole.do(t); err != nil {
		t.Fatal(err)
	}
	whole.out.Force = false
	mine := get(t, filepath.Join(in, "a.parquet"))
	put(t, out+"a.parquet", mine)
	_, err := whole.do(t)
	says(t, "a table of somebody's", err, ErrExists, "a.parquet has changed", "Force")
	equal(t, "a table of somebody's", get(t, out+"a.parquet") == mine, true)
}

// A manifest's content is not trusted.
func TestManifestLeadsNowhere(t *testing.T) {
	in, precious := logs(t), t.TempDir()
	mine := put(t, filepath.Join(precious, "a.parquet"), "mine")
	for _, name := range []string{"../" + filepath.Base(precious) + "/a.parquet", mine, "..", ".", "", "x/../../a", "a//b", "_SUCCESS", "_manifest-1.json", "a\x00"} {
		out := filepath.Join(filepath.Dir(precious), t.Name()+"-out") + "/"
		b, err := json.Marshal(publish.Manifest{Version: 2, Run: "1", Of: 1, Done: true, Files: []publish.File{{Name: name, Input: "a.parquet"}}})
		if err != nil {
			t.Fatal(err)
		}
		put(t, out+"_manifest-1.json", string(b))
		_, err = job{[]string{in}, Output{Name: out, Run: runOf(1), Force: true}}.do(t)
		says(t, name, err, fault.ErrCorrupt, "_manifest-1.json")
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
	// Nothing is removed through a link.
	out := filepath.Join(t.TempDir(), "out") + "/"
	put(t, out+"_manifest-1.json", `{"version":2,"run":"1","of":1,"done":true,"files":[{"name":"link/a.parquet","input":"a.parquet"}]}`)
	if err := os.Symlink(precious, out+"link"); err != nil {
		t.Fatal(err)
	}
	if _, err := (job{[]string{in}, Output{Name: out, Run: runOf(1), Force: true}}).do(t); err != nil {
		t.Error(err)
	}
	equal(t, "behind the link", get(t, mine), "mine")
	put(t, out+"_manifest-1.json", `{"version":2,"run":"1","of":1,"done":true,"files":[{"name":"other.parquet","input":"a.parquet"}]}`)
	if err := os.Symlink(mine, out+"other.parquet"); err != nil {
		t.Fatal(err)
	}
	_, err := job{[]string{in}, Output{Name: out, Run: runOf(2), Force: true}}.do(t)
	says(t, "a link in the place of an output", err, ErrExists, "other.parquet is a link or device")
	equal(t, "behind the link", get(t, mine), "mine")
	for _, bad := range []string{"{", `{"version":9,"of":1}`, `{"version":2,"of":0}`, `{"version":2,"of":2,"shard":2}`} {
		put(t, out+"_manifest-1.json", bad)
		_, err := job{[]string{in}, Output{Name: out, Run: runOf(1), Force: true}}.do(t)
		says(t, bad, err, nil, "_manifest-1.json")
	}
}

// Directories written by version 1 are recognised: they are done, or replaced.
func TestManifestVersion1(t *testing.T) {
	in, out := logs(t), filepath.Join(t.TempDir(), "out")+"/"
	j := job{[]string{in}, Output{Name: out, Run: runOf(1)}}
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	var m publish.Manifest
	if err := json.Unmarshal([]byte(get(t, manifestOf(t, out))), &m); err != nil {
		t.Fatal(err)
	}
	type file struct {
		Name  string `json:"name"`
		Input string `json:"input"`
		Bytes int64  `json:"bytes"`
	}
	old := struct {
		Version int    `json:"version"`
		Run     string `json:"run"`
		Of      int    `json:"of"`
		Files   []file `json:"files"`
	}{1, m.Run, 1, nil}
	for _, f := range m.Files {
		old.Files = append(old.Files, file{f.Name, f.Input, f.Bytes})
	}
	b, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(manifestOf(t, out)); err != nil {
		t.Fatal(err)
	}
	put(t, out+"_manifest.json", string(b))
	put(t, out+publish.Success, string(b))
	_, err = j.do(t)
	says(t, "the run of version 1", err, ErrDone)
	j.out.Run = runOf(2)
	_, err = j.do(t)
	says(t, "another run", err, ErrExists)
	j.inputs, j.out.Force = []string{in + "/a.parquet"}, true
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	j.inputs = []string{in}
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	equal(t, "files", tree(t, out), []string{"_SUCCESS", "_manifest.json", "a.parquet", "y=1/b.parquet", "y=1/c.parquet"})
}

// File names may have any bytes, and any length that the system allows.
func TestOutputNamesOfAnyBytes(t *testing.T) {
	names := []string{"bad\xff\xfe.parquet", `a\xFF.parquet`, `back\\slash.parquet`, "esc\x1b[31m.parquet", strings.Repeat("n", 247) + ".parquet", "grün\u202e.parquet"}
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "out")+"/"
	for _, name := range names {
		write(t, filepath.Join(in, name), 1, record(t, checked(t), col{"id", []int64{1}}))
	}
	j := job{[]string{in}, Output{Name: out, Run: runOf(1)}}
	if _, err := j.do(t); err != nil {
		t.Fatal(err)
	}
	got := tree(t, out)
	equal(t, "files", got[2:], slices.Sorted(slices.Values(names)))
	_, err := j.do(t)
	says(t, "again", err, ErrDone)
	j.out.Force = true
	if _, err := j.do(t); err != nil {
		t.Error(err)
	}
}
