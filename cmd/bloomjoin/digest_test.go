package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

// A run whose input is standard input is recognised by --stdin-digest alone. Without it, and
// with that of other content, an output is not replaced.
func TestStdinDigest(t *testing.T) {
	dir := t.TempDir()
	log := flights + "/logs/2001-04.parquet"
	for _, run := range [][]string{
		{"join", "--ids", "-", "--on", "origin", "-o", dir + "/join.parquet", log},
		{"join", "--ids", "-", "--on", "origin", "-o", dir + "/join/", log},
		{"build", "--key", "iata", "--ids-format", "lines", "-o", dir + "/ids.bjf", "-"},
	} {
		works(t, "DFW\n", append(run, "--stdin-digest", "0a0b")...)
		if out := works(t, "DFW\n", append(run, "--stdin-digest", "0a0b", "--json")...); !strings.Contains(out, `"already_done":true`) {
			t.Errorf("%v again: %s", run, out)
		}
		for _, other := range [][]string{{"--stdin-digest", "0a0c"}, nil} {
			if _, stderr, code := called(t, "DFW\n", append(run, other...)...); code != 1 || !strings.Contains(stderr, "exists") {
				t.Errorf("%v %v: exit code %d, %s", run, other, code, stderr)
			}
		}
	}
	if _, stderr, code := called(t, "", "inspect", "--stdin-digest", "odd", filepath.Join(dir, "ids.bjf")); code != session.ExitUsage {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
