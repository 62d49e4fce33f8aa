package main

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// oldRuns are the commands that an earlier version has run in testdata/done,
// without -o OUT. The earlier version had no columns of name=value directories.
var oldRuns = map[string]string{
	"users.bjf":     "build --key user_id --key-type int64 ids.csv",
	"scan.parquet":  "scan --filter users.bjf --hive-partitioning off log/",
	"scan/":         "scan --filter users.bjf --columns user_id --hive-partitioning off log/",
	"shards/":       "scan --filter users.bjf --shard 1/2 --hive-partitioning off log/",
	"inner.parquet": "join --ids ids.csv --on user_id --type inner --hive-partitioning off log/",
	"semi/":         "join --ids ids.csv --on user_id --hive-partitioning off log/",
	"left.arrow":    "join --ids ids.csv --on user_id --type left --suffix _x --hive-partitioning off log/",
}

// inOldRuns copies testdata/done to a new directory and makes it the working
// directory. The inputs are older than the outputs.
func inOldRuns(t *testing.T) {
	t.Helper()
	from, err := filepath.Abs("testdata/done")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS(".", os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, in := range []string{"ids.csv", "log/dt=1/part.parquet", "log/dt=2/part.parquet"} {
		if err := os.Chtimes(in, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// contents reads the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestOldRunsAreDone: outputs of an earlier version are recognised as those of
// the same run, and nothing is written.
func TestOldRunsAreDone(t *testing.T) {
	inOldRuns(t)
	before := contents(t, ".")
	for out, command := range oldRuns {
		var said bytes.Buffer
		if strings.HasSuffix(out, "/") {
			continue // without manifests, they are outputs of which nothing is known
		}
		if code := run(append(strings.Fields(command), "-o", out), nil, &said, &said); code != session.ExitDone || !strings.Contains(said.String(), "already done") {
			t.Errorf("%s: exit code %d: %s", out, code, &said)
		}
	}
	after := contents(t, ".")
	if len(after) != len(before) {
		t.Errorf("%d files were there, now %d", len(before), len(after))
	}
	for name, b := range before {
		if after[name] != b {
			t.Errorf("%s was written", name)
		}
	}
}

// otherBytes reports whether an output has the same rows in other bytes: that of a join
// that made records in the earlier version and copies pages now, and files of directories,
// which do not name their inputs any more.
func otherBytes(out string) bool { return out == "inner.parquet" || strings.HasSuffix(out, "/") }

// recordsOf reads a file.
func recordsOf(t *testing.T, name string) (out []arrow.Record) {
	t.Helper()
	files, err := source.Open(t.Context(), []string{name}, source.Opening{OpenOptions: source.OpenOptions{Uncommitted: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	for g := range files[0].NumGroups() {
		for rec, err := range rowfilter.Read(t.Context(), files[0], g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rec.Retain()
			t.Cleanup(rec.Release)
			out = append(out, rec)
		}
	}
	return out
}

// TestOldRunsAgain: the same runs write the same bytes into other places, and
// the digests of other options, inputs and shards differ.
func TestOldRunsAgain(t *testing.T) {
	inOldRuns(t)
	for out, command := range oldRuns {
		var said bytes.Buffer
		again := "again-" + out
		if code := run(append(strings.Fields(command), "-o", again), nil, &said, &said); code != session.ExitDone {
			t.Errorf("%s: exit code %d: %s", out, code, &said)
		}
		got := contents(t, filepath.Clean(again))
		if len(got) == 0 {
			t.Errorf("%s: nothing was written", out)
		}
		for name, b := range got {
			was := published(strings.TrimPrefix(name, "again-"))
			if otherBytes(out) {
				if path.Base(name) != "_SUCCESS" && !slices.EqualFunc(recordsOf(t, name), recordsOf(t, was), func(a, b arrow.Record) bool { return a.NumRows() > 0 && array.RecordEqual(a, b) }) {
					t.Errorf("%s has not the rows that an earlier version has written", name)
				}
				continue
			}
			want, err := os.ReadFile(was)
			if err != nil || string(want) != b {
				t.Errorf("%s differs from what an earlier version has written (%v)", name, err)
			}
		}
	}
	for out, change := range map[string]string{
		"inner.parquet": "--suffix _y", "scan.parquet": "--exclude dt=1/*",
	} {
		var said bytes.Buffer
		args := append(strings.Fields(oldRuns[out]+" "+change), "-o", out)
		if code := run(args, nil, &said, &said); code != session.ExitFailed || !strings.Contains(said.String(), "does not come from these inputs and options") {
			t.Errorf("%v: exit code %d: %s", args, code, &said)
		}
	}
}

// published returns the name that a staged file will have.
func published(name string) string {
	base, staged := strings.CutSuffix(path.Base(stagedAs.ReplaceAllString(name, "staged")), ".staged")
	if !staged {
		return name
	}
	return path.Join(path.Dir(name), strings.TrimPrefix(base, "_"))
}
