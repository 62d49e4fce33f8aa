package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

// A closed standard output is an ordinary error: the process is not killed by a
// signal.
func TestClosedStandardOutput(t *testing.T) {
	for _, args := range [][]string{
		{"join", "--type", "left", "--ids", flights + "/airports.csv", "--on", "origin=iata", "-o", "-", flights + "/logs"},
		{"inspect", "--json", flights + "/logs/2001-04.parquet"},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		cmd := exec.Command("bloomjoin", args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = w, &said
		err = cmd.Run()
		w.Close()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != session.ExitFailed || !bytes.Contains(said.Bytes(), []byte("standard output was closed")) {
			t.Errorf("%s: %v: %s; want exit code 1", args[0], err, &said)
		}
	}
}

// A command that finds no row writes nothing for hours. It ends all the same once the
// reader of its rows has gone, and leaves no temporary file. Results that are written
// elsewhere do not need that reader.
func TestReaderGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a reader that has gone is noticed by the next write")
	}
	dir := t.TempDir()
	filter, ids := filepath.Join(dir, "none.bjf"), filepath.Join(dir, "ids.csv")
	if err := os.WriteFile(ids, []byte("k\nnowhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := run([]string{"build", "--key", "k", "-o", filter, ids}, nil, io.Discard, &said); code != session.ExitDone {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	for _, args := range [][]string{
		{"scan", "--filter", filter, "-o", "-", "-"},
		{"probe", "--quiet", "--filter", filter},
		{"join", "--ids", ids, "--on", "k", "-o", "-", "-"},
		{"join", "--type", "right", "--ids", "-", "--ids-format", "csv", "--on", "origin=k", "-o", "-", "FLIGHTS/logs"},
	} {
		stdin, feed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close() // the end of the log never comes
		cmd, stdout, dir := start(t, stdin, args...)
		stdin.Close()
		// More than fits in a pipe: when all is written, the command is reading.
		if _, err := feed.Write(manyKeys(t, args[0] != "join" || args[len(args)-1] == "-")); err != nil {
			t.Fatalf("%s: %v; it said %s", args, err, cmd.Stderr)
		}
		began := time.Now()
		stdout.(io.Closer).Close()
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != session.ExitFailed {
			t.Errorf("%s: %v, want exit code 1; it said %s", args, err, cmd.Stderr)
		}
		if said := fmt.Sprint(cmd.Stderr); said != "bloomjoin: "+session.ErrClosed.Error()+" [E705]\n" {
			t.Errorf("%s: it said %q", args, said)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("%s: it took %v to end", args, d)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: left behind: %v, %v", args, left, err)
		}
	}
}

// manyKeys returns more keys than fit in a pipe: an Arrow stream without its end, or text.
func manyKeys(t *testing.T, stream bool) []byte {
	t.Helper()
	if !stream {
		return append([]byte("k\n"), bytes.Repeat([]byte("4711\n"), 60_000)...)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.BinaryTypes.String}}, nil))
	defer b.Release()
	for range 100_000 {
		b.Field(0).(*array.StringBuilder).Append("4711")
	}
	rec := b.NewRecord()
	defer rec.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A run whose output is a file goes on without the reader of standard output.
func TestReaderNotNeeded(t *testing.T) {
	stdin, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, dir := start(t, stdin, "build", "--key", "id", "-o", "ids.bjf", "-")
	stdin.Close()
	stdout.(io.Closer).Close()
	if _, err := feed.Write(bytes.Repeat([]byte("4711\n"), 60_000)); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, cmd.Stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "ids.bjf")); err != nil {
		t.Error(err)
	}
}
