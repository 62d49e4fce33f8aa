package cloud

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/process"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestMain lets the test binary be a process that is killed while it uploads.
func TestMain(m *testing.M) {
	if name := os.Getenv("STORE_TEST_UPLOAD"); name != "" {
		fmt.Println(unfinished(name, os.Getenv("STORE_TEST_OWNER")))
		select {}
	}
	goleak.VerifyTestMain(m)
}

// unfinished uploads a part of an object or, with an owner, stages a whole one. It returns the token.
func unfinished(name, owner string) (token string, err error) {
	s := made(Options{})
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var w storage.Writer
	seal := func() (string, string, func() error, error) { return "", "", nil, objects.Rest(w) }
	if owner == "" {
		w, err = s.Create(ctx, name, storage.CreateOptions{})
	} else {
		w, seal, err = objects.Stage(ctx, s, name, owner)
	}
	if err == nil {
		err = write(w, noise(firstPart+1))
	}
	if err == nil {
		token, _, _, err = seal()
	}
	return token, err
}

// started runs the test binary until it has uploaded a part of an object, or staged it for an owner.
func started(t *testing.T, name, owner string) (cmd *exec.Cmd, token string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_UPLOAD="+name, "STORE_TEST_OWNER="+owner)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	line, err := bufio.NewReader(out).ReadString('\n')
	token, ok := strings.CutSuffix(line, " <nil>\n")
	if !ok {
		t.Fatal(line, err)
	}
	return cmd, token
}

// What a process that has ended has staged is dropped by its owner alone, once nobody keeps the token.
func TestSweepStaged(t *testing.T) {
	if _, ok := process.This(); !ok {
		t.Skip("this system does not identify processes")
	}
	g, s := gateway(t)
	p, token := started(t, g.Name("dir/a"), "out.bloomjoin")
	broken := errors.New("broken")
	sweep := func(what, owner string, stays bool, kept map[string]bool, failed error) {
		t.Helper()
		err := objects.SweepStaged(t.Context(), s, g.Name("dir"), owner, func() (map[string]bool, error) { return kept, failed })
		if !errors.Is(err, failed) {
			t.Errorf("%s: %v", what, err)
		}
		if got := g.Uploads(t); (len(got) > 0) != stays || len(recorded(t)) != len(got) {
			t.Errorf("%s: left %q, recorded %q", what, got, recorded(t))
		}
	}
	sweep("while its process lives", "out.bloomjoin", true, nil, nil)
	kill(p)
	if err := objects.Sweep(t.Context(), s, g.Name("dir/")); err != nil {
		t.Error(err)
	}
	sweep("of another owner", "other.bloomjoin", true, nil, nil)
	sweep("kept", "out.bloomjoin", true, map[string]bool{token: true}, nil)
	sweep("perhaps kept", "out.bloomjoin", true, nil, broken)
	sweep("kept no longer", "out.bloomjoin", false, nil, nil)
}

// Uploads of processes that have ended are dropped, those of living ones are not.
func TestSweepUploads(t *testing.T) {
	if _, ok := process.This(); !ok {
		t.Skip("this system does not identify processes")
	}
	g, s := gateway(t)
	sweep := func(key string) []string {
		t.Helper()
		if err := objects.Sweep(t.Context(), s, g.Name(key)); err != nil {
			t.Fatal(err)
		}
		left := g.Uploads(t)
		slices.Sort(left)
		return left
	}
	keys := []string{"dir/a", "dir/ab", "dir/sub/a", "other"}
	var processes []*exec.Cmd
	for _, key := range keys {
		p, _ := started(t, g.Name(key), "")
		processes = append(processes, p)
	}
	if got := sweep(""); !slices.Equal(got, keys) {
		t.Errorf("while their processes live: %q, want %q", got, keys)
	}
	for _, p := range processes[:3] {
		kill(p)
	}
	for _, step := range []struct {
		name string
		left []string
	}{
		{"dir/b", keys}, {"di", keys}, {"dir/a", keys[1:]}, {"dir/", keys[3:]}, {"", keys[3:]},
	} {
		if got := sweep(step.name); !slices.Equal(got, step.left) {
			t.Errorf("swept %q: %q is left, want %q", step.name, got, step.left)
		}
	}
	if got := recorded(t); len(got) != 1 {
		t.Errorf("recorded: %q", got)
	}
	// An upload that is not recorded is dropped when it is a week old.
	kill(processes[3])
	for _, name := range recorded(t) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := sweep(""); !slices.Equal(got, keys[3:]) {
		t.Errorf("without a record: %q, want %q", got, keys[3:])
	}
	age(t, g.Dir, 8*24*time.Hour)
	if got := sweep("oth"); !slices.Equal(got, keys[3:]) {
		t.Errorf("another object's: %q, want %q", got, keys[3:])
	}
	if got := sweep("other"); len(got) > 0 {
		t.Errorf("a week later: %q is left", got)
	}
}

// kill kills a process and waits for its end.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// age makes all that the server keeps in hidden directories older.
func age(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, string(filepath.Separator)+".") {
			return err
		}
		at := time.Now().Add(-by)
		return os.Chtimes(path, at, at)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Uploads of other machines are listed by what they would become and since when, without sizes (S3 does
// not list them), except those that are kept. Each can be dropped by its identity.
func TestUnfinished(t *testing.T) {
	g, s := gateway(t)
	begun := time.Now().Add(-time.Minute)
	whole, token := started(t, g.Name("dir/a"), "out.bloomjoin")
	part, _ := started(t, g.Name("dir/sub/b"), "")
	for _, key := range []string{"dirt", "other"} {
		p, _ := started(t, g.Name(key), "")
		kill(p)
	}
	kill(whole)
	kill(part)
	for _, name := range recorded(t) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	list := func(dir string, kept map[string]bool, want ...string) (found []storage.Object) {
		t.Helper()
		found, err := objects.Unfinished(t.Context(), s, g.Name(dir), kept)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range found {
			names = append(names, strings.TrimPrefix(o.Name, g.Name("")))
			if o.Size != -1 || o.ModTime.Before(begun) || o.ModTime.After(time.Now().Add(time.Minute)) {
				t.Errorf("%+v", o)
			}
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%s: %q, want %q", dir, names, want)
		}
		return found
	}
	list("", nil, "dir/a", "dir/sub/b", "dirt", "other")
	list("dir", map[string]bool{token: true}, "dir/sub/b")
	list("di", nil)
	for _, o := range list("dir/", nil, "dir/a", "dir/sub/b") {
		if err := objects.Discard(t.Context(), s, o.Name, o.Identity); err != nil {
			t.Error(err)
		}
	}
	if got := g.Uploads(t); len(got) != 2 {
		t.Errorf("%q", got)
	}
}
