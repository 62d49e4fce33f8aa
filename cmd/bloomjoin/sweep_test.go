package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

// A sweep leaves a run of which something is young, and with it what its old parts have staged; what
// another one has left, and temporary files, go. The run then completes.
func TestSweepSparesYoung(t *testing.T) {
	flights, err := filepath.Abs("../../testdata/flights")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	do := func(want int, line string) (said string) {
		t.Helper()
		var out bytes.Buffer
		if code := run(strings.Fields(line), nil, &out, &out); code != want {
			t.Errorf("%s: exit code %d: %s", line, code, &out)
		}
		return out.String()
	}
	age := func() {
		t.Helper()
		err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			at := time.Now().Add(-48 * time.Hour)
			return os.Chtimes(path, at, at)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	join := func(key string, shard int) string {
		return fmt.Sprintf("join --ids %s/airports-tx.csv --on %s=iata --shard %d/3 --quiet --no-commit -o out/ %[1]s/logs", flights, key, shard)
	}
	do(0, join("destination", 0)) // given up
	if err := os.Rename("out.bloomjoin", "given-up"); err != nil {
		t.Fatal(err)
	}
	do(0, join("origin", 0))
	for _, name := range []string{"given-up/plan-*", "given-up/shard-*"} {
		found, err := filepath.Glob(name)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if err := os.Rename(found[0], "out.bloomjoin/"+filepath.Base(found[0])); err != nil {
			t.Fatal(err)
		}
	}
	others := []string{"out/.notes.tmp", "out/_more.staged", "_x.parquet.0123456789abcdef.staged"}
	for _, name := range append(others, "out/.a.parquet.0123456789abcdef.tmp", "out.bloomjoin/.m.json.0123456789abcdef.tmp") {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	age()
	do(0, join("origin", 1)) // its part is young, the others and the plan are not
	listed := do(0, "commit --sweep out/")
	for what, n := range map[string]int{"plan ": 1, "shard ": 1, "staged ": 3, "tmp ": 2, "upload ": 0} {
		if what == "staged " {
			n = strings.Count(listed, "staged ")
			if n == 0 {
				t.Errorf("nothing that is staged: %s", listed)
			}
		}
		if got := strings.Count("\n"+listed, "\n"+what); got != n {
			t.Errorf("%d of %q, want %d: %s", got, what, n, listed)
		}
	}
	if n := strings.Count(do(0, "commit --sweep --older 3d out/"), "\n"); n != 1 {
		t.Errorf("three days ago nothing was there, yet %d lines", n)
	}
	do(0, "commit --sweep --force out/")
	if left := do(0, "commit --sweep out/"); strings.Count(left, "\n") != 1 {
		t.Errorf("left: %s", left)
	}
	do(0, join("origin", 2))
	do(0, "commit out/")
	age()
	for range 2 {
		if checked := do(0, "inspect --check out/"); !strings.Contains(checked, "complete") {
			t.Errorf("inspect: %s", checked)
		}
		if left := do(0, "commit --sweep --force out/"); strings.Count(left, "\n") != 1 {
			t.Errorf("of a committed directory: %s", left)
		}
	}
	for _, name := range others {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	do(session.ExitUsage, "commit --force out/")
	do(session.ExitUsage, "commit --older 1h out/")
	do(session.ExitUsage, "commit --sweep out/ given-up/x.json")
	do(session.ExitUsage, "commit --sweep https://host/out/")
}
