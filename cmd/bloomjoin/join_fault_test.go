package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// bothSides writes a log and IDs that share about a tenth of n keys.
func bothSides(t *testing.T, n int64) (ids, log string) {
	t.Helper()
	dir := t.TempDir()
	side := func(name string, seed uint64) string {
		rng, left := rand.New(rand.NewPCG(seed, 1)), n
		return putInts(t, filepath.Join(dir, name), func() (int64, bool) {
			left--
			return rng.Int64N(10*n) * 7, left >= 0
		})
	}
	return side("ids.parquet", 1), side("log.parquet", 2)
}

// shuffling returns a join that shuffles on disk.
func shuffling(ids, log, temp, out string, more ...string) []string {
	return append([]string{
		"join", "--quiet", "--json", "--on", "k", "--type", "full", "--strategy", "shuffle", "--memory", "16MiB", "--ids", ids,
		"--temp-dir", temp, "-o", out, log,
	}, more...)
}

// waitsOnDisk waits until a process has opened a file below the directory, which
// only Linux shows. It returns false if the process ends first.
func waitsOnDisk(t *testing.T, cmd *exec.Cmd, temp string) bool {
	t.Helper()
	fds := fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		open, err := filepath.Glob(fds)
		if err != nil || len(open) == 0 {
			return false
		}
		for _, fd := range open {
			if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, temp) {
				return true
			}
		}
	}
	t.Error("nothing waits on disk: the test shows nothing")
	return false
}

// Spill files of a join are gone when the process ends, at any time and for every
// kind of end, and there is no output.
func TestShuffleInterrupted(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("what a process has open cannot be seen here")
	}
	ids, log := bothSides(t, 200_000)
	began := time.Now()
	ref := filepath.Join(t.TempDir(), "ref.parquet")
	must(t, shuffling(ids, log, t.TempDir(), ref)...)
	took := time.Since(began)
	whole := func(dir string) bool { // killed after the output was published
		want, err1 := os.ReadFile(ref)
		got, err2 := os.ReadFile(filepath.Join(dir, "out.parquet"))
		return err1 == nil && err2 == nil && bytes.Equal(got, want)
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, os.Kill} {
		ended := 0
		for round := 0; round < cases.Count(1, 2, 3) || ended == 0 && round < maxRounds; round++ {
			temp := t.TempDir()
			cmd, _, dir := start(t, nil, shuffling(ids, log, temp, "out.parquet")...)
			if !waitsOnDisk(t, cmd, temp) {
				_ = cmd.Wait()
				continue
			}
			time.Sleep(took * time.Duration(round%3) / 6)
			if err := cmd.Process.Signal(sig); err != nil && !strings.Contains(err.Error(), "already finished") {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			code, left := cmd.ProcessState.ExitCode(), names(t, dir)
			switch {
			case code == session.ExitDone && slices.Equal(left, []string{"out.parquet"}): // as good as done
			case sig == os.Kill && code < 0 && slices.Equal(left, []string{"out.parquet"}) && whole(dir):
			case sig == os.Kill && code < 0 && !slices.Contains(left, "out.parquet"):
				ended++
			case code == signalled(sig) && len(left) == 0:
				ended++
			default:
				t.Errorf("%v: exit code %d, and there is %v: %s", sig, code, left, cmd.Stderr)
			}
			if left := names(t, temp); len(left) != 0 {
				t.Errorf("%v: left behind on disk: %v", sig, left)
			}
		}
		if ended == 0 {
			t.Errorf("%v ended no join that had something on disk", sig)
		}
	}
}

// If the disk for spill files or the output is full, the join exits with 75 and
// leaves nothing.
func TestShuffleOnFullDisk(t *testing.T) {
	ids, log := bothSides(t, 200_000)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.parquet")
	for _, size := range []string{"64k", "200k"} {
		code, said := onSmallDisk(t, size, shuffling(ids, log, ".", out)...)
		if code != session.ExitTryAgain || !strings.Contains(said, "no space left") || !strings.Contains(said, "--temp-dir") {
			t.Errorf("%s to wait on: exit code %d, want 75: %s", size, code, said)
		}
		if lines := strings.Split(strings.TrimSpace(said), "\n"); len(lines) != 2 || !strings.Contains(said, `"code":"E701"`) { // the error, and its report
			t.Errorf("%s to wait on: left behind: %s", size, lines[1:])
		}
		if left := names(t, dir); len(left) != 0 {
			t.Errorf("%s to wait on: left behind: %s", size, left)
		}
	}
	for _, size := range []string{"4k", "1m"} {
		temp := t.TempDir()
		code, said := onSmallDisk(t, size, shuffling(ids, log, temp, "out.parquet")...)
		if code != session.ExitTryAgain || !strings.Contains(said, "no space left") {
			t.Errorf("%s for the answer: exit code %d, want 75: %s", size, code, said)
		}
		if lines := strings.Split(strings.TrimSpace(said), "\n"); len(lines) != 2 || !strings.Contains(said, `"code":"E701"`) { // the error, and its report
			t.Errorf("%s for the answer: left behind: %s", size, lines[1:])
		}
		if left := names(t, temp); len(left) != 0 {
			t.Errorf("%s for the answer: left behind on disk: %s", size, left)
		}
	}
	if code, said := onSmallDisk(t, "200m", shuffling(ids, log, ".", "out.parquet")...); code != session.ExitDone || !strings.HasSuffix(said, "\nout.parquet\n") {
		t.Errorf("with room: exit code %d: %s", code, said)
	}
}

// Of two joins into one file, one publishes its answer whole, and the other reports
// that the file exists. If they have the same inputs, both succeed, whatever their
// strategies.
func TestRivalJoins(t *testing.T) {
	ids, log := bothSides(t, 100_000)
	_, others := bothSides(t, 50_000)
	reference := func(ids string) []byte {
		ref := filepath.Join(t.TempDir(), "ref.parquet")
		must(t, shuffling(ids, log, t.TempDir(), ref)...)
		return read(t, ref)
	}
	want := [2][]byte{reference(ids), reference(others)}
	for round := range cases.Count(2, 2, 4) {
		dir := t.TempDir()
		out := filepath.Join(dir, "out.parquet")
		same := round%2 == 1
		args := [2][]string{shuffling(ids, log, dir, out), shuffling(others, log, dir, out)}
		if same {
			args[1] = shuffling(ids, log, dir, out)
			args[1][slices.Index(args[1], "shuffle")], args[1][slices.Index(args[1], "16MiB")] = "lookup", "1GiB"
		}
		var cmds [2]*exec.Cmd
		var said [2]bytes.Buffer
		for i := range cmds {
			cmds[i] = exec.Command("bloomjoin", args[i]...)
			cmds[i].Stderr = &said[i]
			if err := cmds[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		var codes [2]int
		for i, cmd := range cmds {
			_ = cmd.Wait()
			codes[i] = cmd.ProcessState.ExitCode()
		}
		if left := names(t, dir); len(left) != 1 {
			t.Errorf("round %d: left behind: %v", round, left)
		}
		got := read(t, out)
		if same {
			if codes != [2]int{} || !bytes.Equal(got, want[0]) {
				t.Errorf("round %d: two of the same: exit codes %v: %s%s", round, codes, &said[0], &said[1])
			}
			continue
		}
		winner := 0
		if codes[0] != session.ExitDone {
			winner = 1
		}
		if codes[winner] != session.ExitDone || codes[1-winner] != session.ExitFailed || !bytes.Equal(got, want[winner]) {
			t.Errorf("round %d: exit codes %v; is it the first's file: %v, the second's: %v", round, codes, bytes.Equal(got, want[0]), bytes.Equal(got, want[1]))
		}
		if s := said[1-winner].String(); !strings.Contains(s, "out.parquet") || !strings.Contains(s, "--force") {
			t.Errorf("round %d: the loser says %q", round, s)
		}
	}
}

// If an input changes while a join reads it several times, the join either exits
// with 75 or 1, or returns the answer for one version of the input.
func TestSideChangesDuringJoin(t *testing.T) {
	ids, log := bothSides(t, 100_000)
	otherIDs, otherLog := bothSides(t, 70_000)
	was := map[string][]byte{ids: read(t, ids), log: read(t, log)}
	is := map[string][]byte{ids: read(t, otherIDs), log: read(t, otherLog)}
	rng := rand.New(rand.NewPCG(5, 5))
	for _, strategy := range []string{"reverse", "shuffle", "broadcast"} {
		args := func(out string) []string {
			return []string{"join", "--quiet", "--on", "k", "--type", "inner", "--strategy", strategy, "--ids", ids, "--temp-dir", t.TempDir(), "-o", out, log}
		}
		ref := filepath.Join(t.TempDir(), "ref.parquet")
		began := time.Now()
		must(t, args(ref)...)
		took := time.Since(began)
		failed := 0
		for round := 0; round < cases.Count(2, 2, 4) || failed == 0 && round < maxRounds; round++ {
			dir := t.TempDir()
			out := filepath.Join(dir, "out.parquet")
			side := []string{ids, log}[round%2]
			var said bytes.Buffer
			cmd := exec.Command("bloomjoin", args(out)...)
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rng.Int64N(int64(took))))
			if err := os.WriteFile(side, is[side], 0o600); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			switch code := cmd.ProcessState.ExitCode(); {
			case code == session.ExitDone:
				// The join had read everything, or started after the change.
				if got := read(t, out); !bytes.Equal(got, read(t, ref)) {
					fresh := filepath.Join(t.TempDir(), "fresh.parquet")
					must(t, args(fresh)...)
					if !bytes.Equal(got, read(t, fresh)) {
						t.Errorf("%s: the answer is neither that of the file as it was nor as it is", strategy)
					}
				}
			case code != session.ExitTryAgain && code != session.ExitFailed || len(names(t, dir)) > 0:
				t.Errorf("%s: exit code %d, left %v: %s", strategy, code, names(t, dir), &said)
			default:
				failed++
			}
			if err := os.WriteFile(side, was[side], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if failed == 0 {
			t.Errorf("%s: no join has met the change", strategy)
		}
	}
}
