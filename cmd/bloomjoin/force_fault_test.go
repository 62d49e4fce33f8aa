package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// days writes a log of two days with four files each, and two ID sets.
func days(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for day := range int64(2) {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("logs/dt=%d", day+1)), 0o777); err != nil {
			t.Fatal(err)
		}
		for file := range int64(4) {
			left := int64(500)
			putInts(t, filepath.Join(dir, fmt.Sprintf("logs/dt=%d/%d.parquet", day+1, file)), func() (int64, bool) {
				left--
				return left*8 + file*2 + day, left >= 0
			})
		}
	}
	for i := range int64(2) {
		left := int64(100)
		putInts(t, filepath.Join(dir, fmt.Sprintf("ids%d.parquet", i)), func() (int64, bool) {
			left--
			return left*20 + i, left >= 0
		})
	}
	return dir
}

// forced returns a join of one day into a directory that replaces its outputs.
func forced(dir, out string, day, ids int, format string) []string {
	return []string{
		"join", "--quiet", "--force", "--empty", "write", "--format", format, "--ids", fmt.Sprintf("%s/ids%d.parquet", dir, ids), "--on", "k",
		"-o", out, fmt.Sprintf("%s/logs/dt=%d", dir, day),
	}
}

// snapshotOf returns the content of all files below a directory, by path. It does
// not follow links.
func snapshotOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			files[rel], err = os.Readlink(path)
			return err
		}
		b, err := os.ReadFile(path)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// outputState is the state of an output directory, as far as tests read it.
type outputState struct {
	Inputs []struct {
		Input  string `json:"input"`
		Recipe int    `json:"recipe"`
	} `json:"inputs"`
	Files []struct {
		Name  string `json:"name"`
		Bytes int    `json:"bytes"`
	} `json:"files"`
}

// stateOf reads the newest state of an output directory.
func stateOf(t *testing.T, out string) (s outputState) {
	t.Helper()
	all, err := filepath.Glob(out + ".bloomjoin/manifest-*.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("no state beside %s: %v", out, err)
	}
	if err := json.Unmarshal(read(t, slices.Max(all)), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// settledAt reports whether the files of an output directory's state are published.
func settledAt(t *testing.T, out string) bool {
	newest, beside := "", names(t, out+".bloomjoin")
	for _, name := range beside {
		if number, ok := strings.CutPrefix(name, "manifest-"); ok {
			newest = number
		}
	}
	return slices.Contains(beside, "settled-"+newest)
}

// Runs with --force over two days are killed at random times. Outputs of the other
// day and unrelated files never change, every output is complete and from one run,
// and _SUCCESS exists only while everything that the state lists does. The next undisturbed run
// repairs the directory and removes what killed runs left.
func TestForceKilled(t *testing.T) {
	dir := days(t)
	formats := []string{"parquet", "arrow"}
	whole := map[string]map[string]bool{} // possible contents of an output
	var took time.Duration
	for day := 1; day <= 2; day++ {
		for ids := range 2 {
			for _, format := range formats {
				ref := t.TempDir()
				began := time.Now()
				must(t, forced(dir, ref+"/", day, ids, format)...)
				took = max(took, time.Since(began))
				for name, content := range snapshotOf(t, ref) {
					if whole[name] == nil {
						whole[name] = map[string]bool{}
					}
					whole[name][content] = true
				}
			}
		}
	}
	precious, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	putInts(t, filepath.Join(precious, "0.parquet"), func() (int64, bool) { return 0, false })
	kept := snapshotOf(t, precious)
	must(t, forced(dir, out+"/", 1, 0, "parquet")...)
	must(t, forced(dir, out+"/", 2, 0, "parquet")...)
	foreign := map[string]string{"link": precious, "dt=1/link.parquet": precious + "/0.parquet", "dt=2/mine.parquet": "not ours", "dt=3/0.parquet": "not ours"}
	for name, content := range foreign {
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasPrefix(content, "/") {
			err = os.Symlink(content, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(13, 2))
	rounds, killed, between := cases.Count(6, 12, 30), 0, 0
	if n := os.Getenv("BLOOMJOIN_KILLS"); n != "" {
		if _, err := fmt.Sscan(n, &rounds); err != nil {
			t.Fatal(err)
		}
	}
	for round := 0; round < rounds || between == 0 && round < maxRounds; round++ {
		before, listed, settled := snapshotOf(t, out), map[string]bool{}, settledAt(t, out)
		for _, f := range stateOf(t, out).Files {
			listed[f.Name] = true // and not by a run that was killed
		}
		day := 1 + rng.IntN(2)
		cmd := exec.Command("bloomjoin", forced(dir, out+"/", day, rng.IntN(2), formats[rng.IntN(2)])...)
		cmd.Stderr = &bytes.Buffer{}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(took))))
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		after := snapshotOf(t, out)
		if cmd.ProcessState.ExitCode() < 0 {
			killed++
			if !has(after, "_SUCCESS") {
				between++
			}
		} else if code := cmd.ProcessState.ExitCode(); code != session.ExitDone {
			t.Errorf("round %d: exit code %d: %s", round, code, cmd.Stderr)
		}
		for name, content := range foreign {
			if after[name] != content {
				t.Fatalf("round %d: %s has changed", round, name)
			}
		}
		for name, content := range before {
			// Before it begins, a run publishes what one that was killed has committed.
			if strings.HasPrefix(name, fmt.Sprintf("dt=%d/", 3-day)) && listed[name] && after[name] != content && settled {
				t.Fatalf("round %d: %s of the other day has changed", round, name)
			}
		}
		outputs := 0
		for name, content := range after {
			base := filepath.Base(name)
			if _, ok := foreign[name]; ok || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
				continue
			}
			if outputs++; !whole[name][content] {
				t.Fatalf("round %d: %s is the output of no run", round, name)
			}
		}
		if !has(after, "_SUCCESS") || !settledAt(t, out) { // a _SUCCESS of the state before
			continue
		}
		state := stateOf(t, out)
		if len(state.Files) != 8 || outputs != 8 {
			t.Fatalf("round %d: _SUCCESS with a state of %d files, and %d outputs", round, len(state.Files), outputs)
		}
		for _, f := range state.Files {
			if len(after[f.Name]) != f.Bytes {
				t.Fatalf("round %d: %s has %d bytes, and the state says %d", round, f.Name, len(after[f.Name]), f.Bytes)
			}
		}
	}
	if got := snapshotOf(t, precious); len(got) != 1 || got["0.parquet"] != kept["0.parquet"] {
		t.Error("what a link leads to has changed")
	}
	t.Logf("%d of %d were killed, %d of them between the first and the last file or before they had healed", killed, rounds, between)
	if killed == 0 || between == 0 {
		t.Error("no run was killed at work: the test shows nothing")
	}
	for day := 1; day <= 2; day++ {
		must(t, forced(dir, out+"/", day, 1, "parquet")...)
	}
	healed := snapshotOf(t, out)
	for name := range healed {
		_, theirs := foreign[name]
		switch base := filepath.Base(name); {
		case theirs || whole[name][healed[name]] && strings.HasSuffix(name, ".parquet"), base == "_SUCCESS":
		default:
			t.Errorf("left behind: %s", name)
		}
	}
	if _, ok := healed["_SUCCESS"]; !ok || len(healed) != 8+len(foreign)+3 {
		t.Errorf("%d files, _SUCCESS: %v", len(healed), ok)
	}
	if left := names(t, out+".bloomjoin"); len(left) != 3 || left[1] != "manifest.json" {
		t.Errorf("beside it: %q, want a settled state and its copy", left)
	}
}

// A run with --force is killed after its state is published and before it has removed the
// files of the state before. A run that writes files of those names replaces them.
func TestForceKilledAtTheEnd(t *testing.T) {
	dir := days(t)
	out := filepath.Join(t.TempDir(), "out")
	must(t, forced(dir, out+"/", 1, 0, "arrow")...)
	before := snapshotOf(t, out)
	must(t, forced(dir, out+"/", 1, 1, "parquet")...)
	for name, content := range before {
		if name != "_SUCCESS" && !strings.HasSuffix(name, "/_SUCCESS") {
			if err := os.WriteFile(filepath.Join(out, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var said bytes.Buffer
	if code := run(forced(dir, out+"/", 1, 1, "arrow"), nil, io.Discard, &said); code != session.ExitFailed || !strings.Contains(said.String(), "is not listed in a manifest") {
		t.Errorf("files that appeared later: exit code %d: %s; want them kept", code, &said)
	}
	if err := os.Remove(out + ".bloomjoin/settled-00000002.json"); err != nil {
		t.Fatal(err)
	}
	must(t, forced(dir, out+"/", 1, 1, "arrow")...)
	fresh := filepath.Join(t.TempDir(), "out")
	must(t, forced(dir, fresh+"/", 1, 1, "arrow")...)
	if now, want := snapshotOf(t, out), snapshotOf(t, fresh); !maps.Equal(now, want) {
		t.Errorf("there are %q, want %q", slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(want)))
	}
}

// Two concurrent runs over different days both succeed and complete the directory.
// Over one day both may fail, but every output is from one run, and _SUCCESS exists
// only if one run has written all of them.
func TestForceRivals(t *testing.T) {
	dir := days(t)
	for round := range cases.Count(6, 6, 12) { // six kinds
		out := filepath.Join(t.TempDir(), "out")
		same := round%2 == 1
		if round%3 > 0 {
			for day := 1; day <= 2; day++ {
				must(t, forced(dir, out+"/", day, 0, "parquet")...)
			}
		}
		var cmds [2]*exec.Cmd
		for i := range cmds {
			day := 1 + i
			if same {
				day = 1
			}
			cmds[i] = exec.Command("bloomjoin", forced(dir, out+"/", day, i, "parquet")...)
			if err := cmds[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		var codes [2]int
		for i, cmd := range cmds {
			_ = cmd.Wait()
			codes[i] = cmd.ProcessState.ExitCode()
		}
		files := snapshotOf(t, out)
		_, success := files["_SUCCESS"]
		if !same && (codes != [2]int{} || !success) {
			t.Errorf("round %d: two days: exit codes %v, _SUCCESS: %v", round, codes, success)
		}
		if same && success && codes[0] != session.ExitDone && codes[1] != session.ExitDone {
			t.Errorf("round %d: both runs failed, and there is _SUCCESS", round)
		}
		if !success {
			continue
		}
		// All outputs of the day were made with the same IDs.
		recipes := map[int]bool{}
		for _, e := range stateOf(t, out).Inputs {
			if strings.HasPrefix(e.Input, "dt=1/") {
				recipes[e.Recipe] = true
			}
		}
		if len(recipes) != 1 {
			t.Errorf("round %d: _SUCCESS beside a day of %d runs", round, len(recipes))
		}
	}
}
