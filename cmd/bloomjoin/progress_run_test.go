package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// TestProgressOfARun: lines are printed while a command works, and none after it.
func TestProgressOfARun(t *testing.T) {
	dir := t.TempDir()
	n, rows := int64(-1), int64(1_500_000)
	if cases.Race { // which takes longer
		rows /= 5
	}
	log := putInts(t, filepath.Join(dir, "log.parquet"), func() (int64, bool) {
		n++
		return n, n < rows
	})
	var out, said bytes.Buffer
	if code := run([]string{"join", "--ids", log, "--on", "k", "--strategy", "lookup", "--progress-interval", "10ms", "-o", filepath.Join(dir, "out.parquet"), log}, strings.NewReader(""), &out, &said); code != session.ExitDone {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	progress, last, phases, seen := 0, 0, []string{"reading IDs: ", "joining: "}, [2]bool{}
	for i, l := range lines {
		phase := slices.IndexFunc(phases, func(p string) bool { return strings.HasPrefix(l, p) })
		if phase < 0 {
			continue
		}
		if i != progress {
			t.Errorf("progress after %q", lines[i-1])
		}
		progress++
		seen[phase] = true
		if phase < last {
			t.Errorf("%q after %q", l, lines[i-1])
		}
		last = phase
	}
	if seen[0] != true || seen[1] != true {
		t.Errorf("phases %v in %q", seen, lines)
	}
}
