package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"
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
		if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !bytes.Contains(said.Bytes(), []byte("standard output was closed")) {
			t.Errorf("%s: %v: %s; want exit code 1", args[0], err, &said)
		}
	}
}
