package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

const flights = "../../testdata/flights"

// start starts the command as a process in a new directory and returns both.
func start(t *testing.T, stdin io.Reader, args ...string) (cmd *exec.Cmd, stdout io.Reader, dir string) {
	t.Helper()
	abs, err := filepath.Abs(flights)
	if err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "FLIGHTS", abs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, "bloomjoin", args...)
	dir = t.TempDir()
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, stdin, &bytes.Buffer{}
	if stdout, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdout, dir
}

// signalled returns the exit code of a command that was interrupted by a signal.
func signalled(sig os.Signal) int {
	return map[os.Signal]int{syscall.SIGHUP: 129, os.Interrupt: 130, syscall.SIGTERM: 143}[sig]
}

// interrupted sends the signal and expects the process to exit with 128 plus the
// number of the signal, and to leave nothing in its directory.
func interrupted(t *testing.T, cmd *exec.Cmd, sig os.Signal, dir string) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != signalled(sig) {
		t.Errorf("%v: %v, want 128 and the signal; it said %s", sig, err, cmd.Stderr)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %v to end", d)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A signal ends a command whose standard input never delivers.
func TestInterruptedWhileReading(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		for _, args := range [][]string{
			{"build", "--key", "id", "-o", "out.bjf", "-"},
			{"join", "--ids", "-", "--on", "origin", "-o", "out.parquet", "FLIGHTS/logs"},
		} {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			cmd, _, dir := start(t, r, args...)
			r.Close()
			// More than fits in a pipe: when all is written, the command is reading.
			if _, err := w.Write(bytes.Repeat([]byte("4711\n"), 60_000)); err != nil {
				t.Fatal(err)
			}
			interrupted(t, cmd, sig, dir)
		}
	}
}

// A signal ends a command whose standard output is never read.
func TestInterruptedWhileWriting(t *testing.T) {
	cmd, stdout, dir := start(t, nil, "join", "--type", "left", "--ids", "FLIGHTS/airports.csv", "--on", "origin=iata", "-o", "-", "FLIGHTS/logs")
	if _, err := io.ReadFull(stdout, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	interrupted(t, cmd, os.Interrupt, dir)
}

// A signal in the middle of the work leaves nothing. The temporary file shows that
// the work has started.
func TestInterruptedAtWork(t *testing.T) {
	var ids strings.Builder // enough pairs to take a while
	ids.WriteString("iata\n")
	for range 2000 {
		ids.WriteString("ORD\nATL\nDFW\n")
	}
	list := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(list, []byte(ids.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _, dir := start(t, nil, "join", "--type", "inner", "--ids", list, "--on", "origin=iata", "-o", "out.parquet", "FLIGHTS/logs")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) > 0 {
			if name := left[0].Name(); !strings.HasPrefix(name, ".") {
				t.Errorf("%s is seen before it is whole", name)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no attempt is seen")
		}
	}
	interrupted(t, cmd, os.Interrupt, dir)
}

// Readers ignore what a killed process leaves, and the next attempt succeeds.
func TestKilled(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd, stdout, dir := start(t, r, "join", "--type", "left", "--ids", "FLIGHTS/airports.csv", "--on", "origin=iata", "-o", "-", "FLIGHTS/logs")
	if _, err := io.ReadFull(stdout, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := os.WriteFile(filepath.Join(dir, ".out.parquet.0123456789abcdef.tmp"), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := exec.Command("bloomjoin", "join", "--ids", mustAbs(t, flights+"/airports-tx.csv"), "--on", "origin=iata", "-o", dir+"/out.parquet", mustAbs(t, flights+"/logs"))
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := exec.Command("bloomjoin", "inspect", "--check", dir+"/out.parquet").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func mustAbs(t *testing.T, name string) string {
	t.Helper()
	abs, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// A file size limit stands in for a quota or a full disk, and needs no privileges.
// Its EFBIG is an error that would recur.
func TestFileSizeLimit(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Fatal("the test needs a shell")
	}
	dir := t.TempDir()
	script := fmt.Sprintf(`trap '' XFSZ; ulimit -f 8; exec bloomjoin join --type left --ids %s/airports.csv --on origin=iata -o %s/out.parquet %s/logs`, mustAbs(t, flights), dir, mustAbs(t, flights))
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != session.ExitFailed || !bytes.Contains(out, []byte("too large")) {
		t.Errorf("%v: %s; want exit code 1", err, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Standard output may be full, as /dev/full is.
func TestFullStandardOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return // not on this system; TestExitCode covers the rule
	}
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	filter := filepath.Join(t.TempDir(), "airports.bjf")
	for _, args := range [][]string{
		{"join", "--ids", flights + "/airports.csv", "--on", "origin=iata", "-o", "-", flights + "/logs"},
		{"inspect", "--json", flights + "/logs/2001-04.parquet"},
		{"inspect", flights + "/logs/2001-04.parquet"},
		{"plan", "--ids", flights + "/airports.csv", "--on", "origin=iata", flights + "/logs"},
		{"join", "--json", "--ids", flights + "/airports.csv", "--on", "origin=iata", "-o", t.TempDir() + "/", flights + "/logs"},
		{"build", "--json", "--key", "iata", "-o", filter, flights + "/airports.csv"},
		{"scan", "--count", "--filter", filter, "--key", "origin", flights + "/logs"},
		{"inspect", "--compare", filter, filter},
		{"merge", "--json", "--union", "-o", filter + "2", filter, filter},
	} {
		cmd := exec.Command("bloomjoin", args...)
		cmd.Stdout = full
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != session.ExitTryAgain {
			t.Errorf("%s: %v, want exit code 75", args[0], err)
		}
	}
}
