package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// A log may have more files than a process may open, also where all outputs are
// published at the end.
func TestFewDescriptors(t *testing.T) {
	dir := t.TempDir()
	for i := range int64(80) {
		left := true
		putInts(t, filepath.Join(dir, fmt.Sprintf("%03d.parquet", i)), func() (int64, bool) {
			defer func() { left = false }()
			return i, left
		})
	}
	for _, more := range []string{"--type inner", "--type left --strategy shuffle", "--type semi --require-rows 1"} {
		out := filepath.Join(t.TempDir(), "out")
		script := fmt.Sprintf("ulimit -n 64; exec bloomjoin join %s --ids %s --on k -o %s/ %s", more, dir, out, dir)
		said, err := exec.Command("sh", "-c", script).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", more, err, said)
			continue
		}
		if n := len(names(t, out)); n != 81 {
			t.Errorf("%s: %d files, want 80 outputs and _SUCCESS", more, n)
		}
	}
}
