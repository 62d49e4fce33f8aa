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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// idFile writes n sparse IDs, one a line, starting at from.
func idFile(t *testing.T, n int, from uint64) string {
	t.Helper()
	var b bytes.Buffer
	for i := range uint64(n) {
		b.Write(append(strconv.AppendUint(b.AvailableBuffer(), (from+i)*0x9e3779b97f4a7c15>>1, 10), '\n'))
	}
	name := filepath.Join(t.TempDir(), "ids.txt")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// slowShard returns a build whose filter is large for its number of keys, so it
// spends most of its time writing.
func slowShard(ids, out string) []string {
	return []string{
		"build", "--quiet", "--key", "id", "--key-type", "int64", "--kind", "bloom", "--expect", "20000000",
		"--fpr", "0.01", "--uncompressed", "--shard", "0/2", "-o", out, ids,
	}
}

// must runs the command and fails the test if it fails.
func must(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("bloomjoin", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names returns the names in a directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// attempted waits until the directory has a temporary file.
func attempted(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); len(names(t, dir)) == 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatal("no attempt is seen")
		}
	}
}

// A killed shard leaves either no filter or a complete one, at any time, and
// running it again produces the same bytes.
func TestShardKilled(t *testing.T) {
	ids := idFile(t, 20_000, 1)
	ref := filepath.Join(t.TempDir(), "ref.bjf")
	began := time.Now()
	must(t, slowShard(ids, ref)...)
	took := time.Since(began)
	want := read(t, ref)
	rng := rand.New(rand.NewPCG(6, 1))
	rounds := cases.Count(4, 8, 24)
	var before, during, after int
	for round := 0; round < rounds || during < 3 && round < maxRounds; round++ {
		dir := t.TempDir()
		out := filepath.Join(dir, "part.bjf")
		cmd := exec.Command("bloomjoin", slowShard(ids, out)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		switch {
		case round < rounds && round%2 == 0:
			time.Sleep(time.Duration(rng.Int64N(int64(took) * 5 / 4)))
		case round < rounds && round%4 == 1: // while it writes, or after
			attempted(t, dir)
			time.Sleep(time.Duration(rng.Int64N(int64(took) / 2)))
		default: // while it writes, unless the machine is busy
			attempted(t, dir)
		}
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		left := names(t, dir)
		done := false
		for _, name := range left {
			switch {
			case name == "part.bjf":
				done = true
				if !bytes.Equal(read(t, out), want) {
					t.Fatalf("round %d: a file that is not whole", round)
				}
			case !strings.HasPrefix(name, ".part.bjf.") || !strings.HasSuffix(name, ".tmp"):
				t.Errorf("round %d: %s is left behind", round, name)
			}
		}
		switch {
		case done:
			after++
		case len(left) > 0:
			during++
		default:
			before++
		}
		must(t, slowShard(ids, out)...)
		if !bytes.Equal(read(t, out), want) {
			t.Errorf("round %d: the next attempt made other bytes", round)
		}
	}
	t.Logf("killed %d times before the file was begun, %d while it was written, %d when it stood", before, during, after)
	if during == 0 {
		t.Error("never killed while the file was written")
	}
}

// maxRounds bounds the attempts of tests that depend on timing.
const maxRounds = 100

// A build that is interrupted while writing exits with 128 plus the signal and
// leaves nothing, unless it was just finishing.
func TestInterruptedBuild(t *testing.T) {
	ids := idFile(t, 20_000, 1)
	ref := filepath.Join(t.TempDir(), "ref.bjf")
	must(t, slowShard(ids, ref)...)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		ended := 0
		for round := 0; round < cases.Count(2, 4, 10) || ended == 0 && round < maxRounds; round++ {
			dir := t.TempDir()
			out := filepath.Join(dir, "part.bjf")
			cmd := exec.Command("bloomjoin", slowShard(ids, out)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			attempted(t, dir)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			code, left := cmd.ProcessState.ExitCode(), names(t, dir)
			switch {
			case code == signalled(sig) && len(left) == 0:
				ended++
			case code != session.ExitDone || !slices.Equal(left, []string{"part.bjf"}) || !bytes.Equal(read(t, out), read(t, ref)):
				t.Errorf("%v: exit code %d, and there is %v", sig, code, left)
			}
		}
		if ended == 0 {
			t.Errorf("%v ended no build while it wrote", sig)
		}
	}
}

// Of two processes that write one file, one publishes its file whole, and the
// other reports that the file exists.
func TestRivalShards(t *testing.T) {
	ids := []string{idFile(t, 20_000, 1), idFile(t, 20_000, 100_000)}
	var want [2][]byte
	for i := range ids {
		ref := filepath.Join(t.TempDir(), "ref.bjf")
		must(t, slowShard(ids[i], ref)...)
		want[i] = read(t, ref)
	}
	wins := [2]int{}
	for round := range cases.Count(4, 4, 12) {
		dir := t.TempDir()
		out := filepath.Join(dir, "part.bjf")
		same := round%4 == 3 // both read the same IDs
		var cmds [2]*exec.Cmd
		var said [2]bytes.Buffer
		for i := range cmds {
			args := slowShard(ids[i], out)
			if same {
				args = slowShard(ids[0], out)
			}
			cmds[i] = exec.Command("bloomjoin", args...)
			cmds[i].Stderr = &said[i]
			if err := cmds[i].Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(round%3) * time.Millisecond)
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
		if codes[0] != 0 {
			winner = 1
		}
		wins[winner]++
		loser := 1 - winner
		if codes[winner] != session.ExitDone || codes[loser] != session.ExitFailed || !bytes.Equal(got, want[winner]) {
			t.Errorf("round %d: exit codes %v; is it the first's file: %v, the second's: %v", round, codes, bytes.Equal(got, want[0]), bytes.Equal(got, want[1]))
		}
		if s := said[loser].String(); !strings.Contains(s, "part.bjf") || !strings.Contains(s, "--force") {
			t.Errorf("round %d: the loser says %q", round, s)
		}
	}
	t.Logf("the first won %d times, the second %d", wins[0], wins[1])
}

// mountSmall is a script that mounts a private disk of size $1 on directory $2 and
// runs the other arguments there. It exits with 99 if mounting is not allowed.
const mountSmall = `
size=$1 dir=$2; shift 2
mount -t tmpfs -o size=$size tmpfs "$dir" 2>/dev/null || exit 99
cd "$dir" || exit 98
"$@"
code=$?
ls -A
exit $code`

// onSmallDisk runs the command on a disk of the given size, and returns its exit
// code, its output and the files that it left.
func onSmallDisk(t *testing.T, size string, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", mountSmall, "sh", size, t.TempDir(), "bloomjoin"}, args...)...)
	inNewNamespace(cmd)
	out, err := cmd.CombinedOutput()
	code = cmd.ProcessState.ExitCode()
	if code == 98 {
		t.Fatalf("%v: %s", err, out)
	}
	if code == 99 || errors.Is(err, os.ErrPermission) || code < 0 && err != nil {
		t.Skipf("a disk of its own cannot be mounted here: %v", err)
	}
	return code, string(out)
}

// A full disk exits with 75 and leaves nothing on it.
func TestFullDisk(t *testing.T) {
	ids := idFile(t, 20_000, 1)
	code, said := onSmallDisk(t, "64m", slowShard(ids, "part.bjf")...)
	if code != session.ExitDone || !strings.HasSuffix(said, "part.bjf\n") {
		t.Fatalf("with room: exit code %d: %s", code, said)
	}
	for _, size := range []string{"4k", "64k", "1m", "20m"} {
		code, said := onSmallDisk(t, size, slowShard(ids, "part.bjf")...)
		if code != session.ExitTryAgain || !strings.Contains(said, "no space left") {
			t.Errorf("%s: exit code %d, want 75: %s", size, code, said)
		}
		if lines := strings.Split(strings.TrimSpace(said), "\n"); len(lines) != 1 || !strings.HasSuffix(lines[0], "[E701]") {
			t.Errorf("%s: left behind: %s", size, lines[1:])
		}
	}
}

// A log that cannot be written is said, and fails no run.
func TestLogBeyondFileSizeLimit(t *testing.T) {
	cmd := exec.Command("sh", "-c", `trap '' XFSZ; ulimit -f 0; exec bloomjoin size --keys 100 --log "$0"`, filepath.Join(t.TempDir(), "run.jsonl"))
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("warning: --log: ")) {
		t.Errorf("%v: %s", err, out)
	}
}

// A write that exceeds the file size limit leaves nothing either.
func TestBuildBeyondFileSizeLimit(t *testing.T) {
	ids, dir := idFile(t, 20_000, 1), t.TempDir()
	script := `trap '' XFSZ; ulimit -f 8; exec bloomjoin "$@"`
	cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, slowShard(ids, dir+"/part.bjf")...)...)
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != session.ExitFailed || !bytes.Contains(out, []byte("too large")) {
		t.Errorf("exit code %d: %s; want 1", code, out)
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// spilling returns a build with an unknown number of keys that exceed its memory.
func spilling(ids, temp, out string) []string {
	return []string{
		"build", "--quiet", "--json", "--key", "id", "--key-type", "int64", "--memory", "16MiB", "--fpr", "0.01",
		"--temp-dir", temp, "-o", out, ids,
	}
}

// If the disk for spilled keys is full, the build exits with 75 and leaves nothing
// there and no output.
func TestFullTemporaryDisk(t *testing.T) {
	ids, dir := idFile(t, 1_000_000, 1), t.TempDir()
	out := filepath.Join(dir, "ids.bjf")
	for _, size := range []string{"64k", "1m", "7m"} {
		code, said := onSmallDisk(t, size, spilling(ids, ".", out)...)
		if code != session.ExitTryAgain || !strings.Contains(said, "no space left") || !strings.Contains(said, "--temp-dir") {
			t.Errorf("%s: exit code %d, want 75: %s", size, code, said)
		}
		if lines := strings.Split(strings.TrimSpace(said), "\n"); len(lines) != 2 || !strings.Contains(said, `"code":"E701"`) { // the error, and its report
			t.Errorf("%s: left behind: %s", size, lines[1:])
		}
		if left := names(t, dir); len(left) != 0 {
			t.Errorf("%s: left behind: %s", size, left)
		}
	}
	if code, said := onSmallDisk(t, "9m", spilling(ids, ".", out)...); code != session.ExitDone || !strings.Contains(said, `"spilled_bytes":8`) {
		t.Errorf("with room: exit code %d: %s", code, said)
	}
}

// Spilled keys are gone when the process ends, for every kind of end.
func TestKeysOnDiskAreGone(t *testing.T) {
	ids := read(t, idFile(t, 1_000_000, 1))
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, os.Kill} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		temp := t.TempDir()
		cmd, _, dir := start(t, r, spilling("-", temp, "ids.bjf")...)
		r.Close()
		if _, err := w.Write(ids); err != nil {
			t.Fatal(err)
		}
		// On Linux, /proc shows when keys have been spilled.
		fds := fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid)
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			open, err := filepath.Glob(fds)
			if err != nil || len(open) == 0 {
				break
			}
			if slices.ContainsFunc(open, func(fd string) bool {
				name, err := os.Readlink(fd)
				return err == nil && strings.HasPrefix(name, temp)
			}) {
				break
			}
			if time.Now().After(deadline) {
				t.Error("no keys wait on disk: the test shows nothing")
				break
			}
		}
		if sig == os.Kill {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if left := names(t, dir); len(left) != 0 {
				t.Errorf("%v: left behind: %v", sig, left)
			}
		} else {
			interrupted(t, cmd, sig, dir)
		}
		if left := names(t, temp); len(left) != 0 {
			t.Errorf("%v: left behind: %v", sig, left)
		}
	}
}
