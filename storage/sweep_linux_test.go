package storage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/process"
)

func TestTmpName(t *testing.T) {
	for _, base := range []string{"out.parquet", "a.b-c", strings.Repeat("x", 255), strings.Repeat("ü", 127)} {
		name := tmpName(base, "", tmpEnding)
		stem, o, ok := ownerOf(name)
		this, _ := process.This()
		if len(name) > maxName || !ok || stem != stemOf(base) || o != this || o.PID != os.Getpid() || o.Gone() || !Marker(name) {
			t.Errorf("%s: %s (%d bytes) is of %+v, %v", base, name, len(name), o, ok)
		}
		if len(base) < 150 && stem != base {
			t.Errorf("%s is shortened to %s", base, stem)
		}
	}
	if stemOf(strings.Repeat("x", 255)) == stemOf(strings.Repeat("x", 254)) {
		t.Error("two long names have one stem")
	}
	for _, name := range []string{".a.0123456789abcdef.tmp", ".a.tmp", "a.0123456789abcdef-1-1-0123456789abcdef.tmp", ".a.0123456789abcdef-0-1-0123456789abcdef.tmp", ".a.0123456789abcdef-x-1-0123456789abcdef.tmp", ".0123456789abcdef-1-1-0123456789abcdef.tmp"} {
		if _, o, ok := ownerOf(name); ok {
			t.Errorf("%s is of %+v", name, o)
		}
	}
}

// Only temporary files whose process has surely ended are removed.
func TestSweep(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	this, ok := process.This()
	start, ok2 := process.Start(child.Process.Pid)
	if !ok || !ok2 {
		t.Fatal("the system says nothing of processes")
	}
	name := func(stem string, o process.ID) string {
		return fmt.Sprintf(".%s.%s-0123456789abcdef.tmp", stem, o)
	}
	childs := process.ID{Host: this.Host, PID: child.Process.Pid, Start: start}
	elsewhere := process.ID{Host: "0123456789abcdef", PID: child.Process.Pid, Start: start}
	recycled := process.ID{Host: this.Host, PID: os.Getpid(), Start: this.Start + 1}
	files := []string{
		name("out.parquet", childs), name("out.parquet", elsewhere), name("out.parquet", recycled), name("out.parquet", this),
		name("other.parquet", childs), ".out.parquet.0123456789abcdef.tmp", "out.parquet", "sub/" + name("x.parquet", childs),
	}
	for _, asDir := range []bool{false, true} {
		dir := t.TempDir()
		for _, f := range files {
			put(t, filepath.Join(dir, f), "")
		}
		if err := os.Symlink(filepath.Join(dir, "out.parquet"), filepath.Join(dir, name("out.parquet", process.ID{Host: this.Host, PID: 1 << 30, Start: 1}))); err != nil {
			t.Fatal(err)
		}
		sweep := func() []string {
			out := filepath.Join(dir, "out.parquet")
			if asDir {
				out = dir
			}
			before := tree(t, dir)
			if err := (local{}).Sweep(t.Context(), out); err != nil {
				t.Fatal(err)
			}
			after := tree(t, dir)
			return slices.DeleteFunc(before, func(f string) bool { return slices.Contains(after, f) })
		}
		if child.ProcessState == nil {
			equal(t, "while it lives", sweep(), []string{name("out.parquet", recycled)})
			if err := child.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = child.Wait()
			equal(t, "when it is gone", sweep(), []string{name("out.parquet", childs)})
			continue
		}
		gone := []string{name("other.parquet", childs), name("out.parquet", recycled), name("out.parquet", childs), "sub/" + name("x.parquet", childs)}
		equal(t, "of a directory", slices.Sorted(slices.Values(sweep())), slices.Sorted(slices.Values(gone)))
	}
}

// A sweep removes staged files only of its owner, and only those that nobody keeps.
func TestSweepStaged(t *testing.T) {
	dir := t.TempDir()
	this, ok := process.This()
	if !ok {
		t.Fatal("the system says nothing of processes")
	}
	gone := process.ID{Host: this.Host, PID: os.Getpid(), Start: this.Start + 1}
	staged := func(stem, owner string, o process.ID) string {
		return fmt.Sprintf("_%s.%s-%s01234567.staged", stem, o, process.Tag(owner))
	}
	stays := []string{
		staged("lives", "out.bloomjoin", this), staged("kept", "out.bloomjoin", gone), staged("other", "elsewhere", gone), "sub/" + staged("nested", "out/sub.bloomjoin", gone),
		"_of." + gone.String() + "-0123456789abcdef.staged",
	}
	goes := []string{staged("a", "out.bloomjoin", gone), "dt=1/" + staged("b", "out.bloomjoin", gone)}
	for _, f := range slices.Concat(stays, goes) {
		put(t, filepath.Join(dir, f), "")
	}
	w, seal, err := local{}.Stage(t.Context(), filepath.Join(dir, "made"), "out.bloomjoin")
	if err != nil {
		t.Fatal(err)
	}
	token, _, _, err := seal()
	if err != nil || !strings.HasPrefix(token[strings.LastIndexByte(token, '-')+1:], process.Tag("out.bloomjoin")) {
		t.Errorf("%s: %v", token, err)
	}
	defer w.Abort()
	err = local{}.SweepStaged(t.Context(), dir, "out.bloomjoin", func() (map[string]bool, error) { return map[string]bool{stays[1]: true}, nil })
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "what stays", tree(t, dir), slices.Sorted(slices.Values(append(stays, token))))
}
