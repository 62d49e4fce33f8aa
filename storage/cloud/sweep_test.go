package cloud

import (
	"context"
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
		fmt.Println(unfinished(name))
		select {}
	}
	goleak.VerifyTestMain(m)
}

// unfinished uploads a part of an object.
func unfinished(name string) error {
	s := made(Options{})
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	w, err := s.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		return err
	}
	if err := write(w, noise(firstPart+1)); err != nil {
		return err
	}
	return objects.Rest(w)
}

// Uploads of processes that have ended are dropped, those of living ones are not.
func TestSweepUploads(t *testing.T) {
	if _, ok := process.This(); !ok {
		t.Skip("this system does not identify processes")
	}
	g, s := gateway(t)
	start := func(key string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "STORE_TEST_UPLOAD="+g.Name(key))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { kill(cmd) })
		var line string
		if _, err := fmt.Fscanln(out, &line); err != nil || line != "<nil>" {
			t.Fatal(line, err)
		}
		return cmd
	}
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
		processes = append(processes, start(key))
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
