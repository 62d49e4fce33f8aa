package main

import (
	"bytes"
	"errors"
	"fmt"
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

// A merge names the file that it cannot use, and writes nothing.
func TestMergeRefusesDamage(t *testing.T) {
	dir := t.TempDir()
	ids, other := idFile(t, 300, 1), idFile(t, 300, 1000)
	file := func(name string) string { return filepath.Join(dir, name) }
	build := func(name, ids string, flags ...string) {
		args := append([]string{"build", "--quiet", "--key", "id", "--key-type", "int64", "--expect", "300"}, flags...)
		must(t, append(args, "-o", file(name), ids)...)
	}
	build("good", ids, "--shard", "0/2", "--kind", "bloom")
	build("rest", ids, "--shard", "1/2", "--kind", "bloom")
	build("foreign", other, "--shard", "1/2", "--kind", "bloom")
	build("otherwise", ids, "--shard", "1/2", "--kind", "bloom", "--fpr", "0.01")
	build("third", ids, "--shard", "1/3", "--kind", "bloom")
	build("sealed", ids)
	whole := read(t, file("rest"))
	put := func(name string, b []byte) {
		if err := os.WriteFile(file(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("empty", nil)
	put("zeros", make([]byte, len(whole)))
	put("short", whole[:len(whole)-1])
	put("head", whole[:len(whole)/2])
	put("long", append(bytes.Clone(whole), 0))
	put("twice", append(bytes.Clone(whole), whole...))
	if err := os.Mkdir(file("directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	log := mustAbs(t, flights+"/logs/2001-04.parquet")
	out := file("out")
	refused := func(bad string) {
		t.Helper()
		for _, args := range [][]string{{bad, file("good")}, {file("good"), bad}} {
			for _, flag := range []string{"--partial=false", "--partial", "--union"} {
				var said bytes.Buffer
				if code := run(append([]string{"merge", flag, "-o", out}, args...), nil, &said, &said); code != session.ExitFailed {
					t.Fatalf("%s %s: exit code %d, want 1: %s", flag, args, code, &said)
				}
				// Either of two incompatible files may be named first; a set
				// operation accepts neither.
				if flag != "--union" && !bytes.Contains(said.Bytes(), []byte(filepath.Base(bad))) {
					t.Errorf("%s %s: the error does not name the file: %s", flag, args, &said)
				}
				if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
					t.Fatalf("%s %s: there is an output", flag, args)
				}
			}
		}
	}
	for _, name := range []string{"empty", "zeros", "short", "head", "long", "twice", "directory", "foreign", "otherwise", "third", "sealed", "none"} {
		refused(file(name))
	}
	refused(log)
	refused(ids)
	rng := rand.New(rand.NewPCG(6, 2))
	for range 10 { // the tests of codec flip every bit
		bit := rng.IntN(8 * len(whole))
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		put("flipped", b)
		refused(file("flipped"))
	}
	must(t, "merge", "--quiet", "-o", out, file("rest"), file("good"))
}

// A killed merge leaves no filter or a complete one. With --force it leaves the old
// or the new filter. On a full disk it leaves nothing.
func TestMergeFaults(t *testing.T) {
	dir := t.TempDir()
	parts := []string{filepath.Join(dir, "0.bjf"), filepath.Join(dir, "1.bjf")}
	ids := idFile(t, 20_000, 1)
	for i, part := range parts {
		args := slowShard(ids, part)
		args[slices.Index(args, "0/2")] = fmt.Sprintf("%d/2", i)
		must(t, args...)
	}
	merge := func(out string, flags ...string) []string {
		return append(append([]string{"merge", "--quiet", "--partial", "--uncompressed"}, flags...), "-o", out, parts[1], parts[0])
	}
	ref := filepath.Join(dir, "ref.bjf")
	began := time.Now()
	must(t, merge(ref)...)
	took := time.Since(began)
	want, older := read(t, ref), []byte("an older file")
	rng := rand.New(rand.NewPCG(6, 3))
	var before, during, after int
	for round := range cases.Count(2, 6, 10) {
		dir := t.TempDir()
		out := filepath.Join(dir, "all.bjf")
		args := merge(out)
		if round%2 == 0 {
			args = merge(out, "--force")
			if err := os.WriteFile(out, older, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("bloomjoin", args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(took) * 5 / 4)))
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		tmp := slices.ContainsFunc(names(t, dir), func(name string) bool { return strings.HasSuffix(name, ".tmp") })
		switch b, err := os.ReadFile(out); {
		case err == nil && bytes.Equal(b, want):
			after++
		case round%2 == 0 && !bytes.Equal(b, older), round%2 != 0 && !errors.Is(err, os.ErrNotExist):
			t.Fatalf("round %d: a file that is not whole: %d bytes, %v", round, len(b), err)
		case tmp:
			during++
		default:
			before++
		}
		must(t, append(args, "--force")...)
		if !bytes.Equal(read(t, out), want) {
			t.Errorf("round %d: the next attempt made other bytes", round)
		}
	}
	t.Logf("killed %d times before the file was begun, %d while it was written, %d when it stood", before, during, after)
	interrupts, rounds := 0, cases.Count(2, 4, 8)
	for round := 0; round < rounds || interrupts == 0 && round < maxRounds; round++ {
		dir := t.TempDir()
		cmd := exec.Command("bloomjoin", merge(filepath.Join(dir, "all.bjf"))...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if round < rounds {
			time.Sleep(time.Duration(rng.Int64N(int64(took) * 5 / 4)))
		} else {
			attempted(t, dir)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		code, left := cmd.ProcessState.ExitCode(), names(t, dir)
		if code == signalled(os.Interrupt) {
			interrupts++
		}
		// A signal before the handler is installed kills the process: -1.
		if !((code == signalled(os.Interrupt) || code < 0) && len(left) == 0 || code == session.ExitDone && slices.Equal(left, []string{"all.bjf"})) {
			t.Errorf("interrupted, round %d: exit code %d, and there is %v", round, code, left)
		}
	}
	if interrupts == 0 {
		t.Error("no merge was interrupted")
	}
	t.Run("full disk", func(t *testing.T) {
		for _, size := range []string{"64k", "10m"} {
			code, said := onSmallDisk(t, size, merge("all.bjf")...)
			if code != session.ExitTryAgain || !strings.Contains(said, "no space left") {
				t.Errorf("%s: exit code %d, want 75: %s", size, code, said)
			}
			if lines := strings.Split(strings.TrimSpace(said), "\n"); len(lines) != 1 {
				t.Errorf("%s: left behind: %s", size, lines[1:])
			}
		}
	})
}
