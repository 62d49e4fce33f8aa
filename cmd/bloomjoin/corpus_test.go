package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// Limits that the command must keep for every file.
const (
	maxTime   = 10 * time.Second
	maxMemory = int64(2 << 30) // bytes, peak of the resident set
	busy      = 6              // times as long as a command may take on a machine that does other things
)

// corpus returns the Parquet and Arrow files of the corpora, valid and hostile.
func corpus(t *testing.T) []string {
	shared := os.Getenv("BLOOMJOIN_SHARED")
	if shared == "" {
		t.Skip("BLOOMJOIN_SHARED is not set: no corpora")
	}
	var names []string
	for _, dir := range []string{"parquet-testing", "arrow-testing/data"} {
		err := filepath.WalkDir(filepath.Join(shared, "corpora", dir), func(path string, d fs.DirEntry, err error) error {
			switch filepath.Ext(path) {
			case ".md", ".py", ".json", ".csv", ".yaml", ".txt", ".proto", ".gz", ".value", ".metadata":
				return err
			}
			if err == nil && d.Type().IsRegular() {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(names) < 500 {
		t.Fatalf("the corpora have only %d files", len(names))
	}
	return names
}

// tally counts exit codes and records the highest resource usage.
type tally struct {
	mu     sync.Mutex
	ends   map[string]int // verb and exit code
	memory int64
	time   time.Duration
	most   [2]string // the files that needed the most memory and time
}

// attempt runs the command and checks the limits.
func (c *tally) attempt(t *testing.T, file string, args ...string) (stdout []byte, code int) {
	execute := inProcess
	if cases.All() {
		execute = asProcess
	}
	var out, errs bytes.Buffer
	code, used, peak := execute(t, &out, &errs, args)
	said := errs.String()
	if code != session.ExitDone && code != session.ExitFailed || strings.Contains(said, "goroutine ") || strings.Contains(said, "internal error") {
		t.Errorf("%s: %s: exit code %d: %.2000s", file, args[0], code, said)
	}
	if code == session.ExitFailed && !strings.Contains(said, filepath.Base(file)) && !strings.Contains(said, "writing ") {
		t.Errorf("%s: %s: the error does not name the file: %s", file, args[0], said)
	}
	if used > maxTime || peak > maxMemory {
		t.Errorf("%s: %s took %v and %d MiB", file, args[0], used, peak>>20)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[fmt.Sprintf("%s exit %d", args[0], code)]++
	if peak > c.memory {
		c.memory, c.most[0] = peak, filepath.Base(file)
	}
	if used > c.time {
		c.time, c.most[1] = used, filepath.Base(file)
	}
	return out.Bytes(), code
}

// asProcess runs the command as a separate process, and returns its processor time
// and memory.
func asProcess(t *testing.T, stdout, stderr io.Writer, args []string) (code int, used time.Duration, peak int64) {
	ctx, cancel := context.WithTimeout(t.Context(), busy*maxTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bloomjoin", args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	asUsual(cmd)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return cmd.ProcessState.ExitCode(), used, peakOf(cmd.ProcessState)
}

// inProcess runs the command in this process, which takes a tenth of the time.
// It returns the time that passed as processor time, less what a busy machine
// may add, and the peak memory of all commands so far.
func inProcess(t *testing.T, stdout, stderr io.Writer, args []string) (code int, used time.Duration, peak int64) {
	began := time.Now()
	code = run(args, strings.NewReader(""), stdout, stderr)
	used = time.Since(began) / busy
	peak = ownPeak(t)
	if cases.Race { // which doubles it, at the least
		peak /= 2
	}
	return code, used, peak
}

// keyFor returns a column that can be a key, and a type and an ID for it.
func keyFor(report []byte) (column, typ, id string) {
	var r struct {
		Files []struct {
			Table struct {
				Columns []struct{ Name, Type string }
			}
		}
	}
	if err := json.Unmarshal(report, &r); err != nil || len(r.Files) != 1 {
		return "", "", ""
	}
	for _, c := range r.Files[0].Table.Columns {
		for _, k := range []struct{ prefix, typ, id string }{
			{"interval", "", ""}, {"int", "int64", "1"}, {"uint", "uint64", "1"}, {"utf8", "string", "a"}, {"large_utf8", "string", "a"},
			{"binary_view", "", ""}, {"binary", "binary", "a"}, {"bool", "bool", "true"}, {"date", "date", "2020-01-01"},
			{"decimal", "decimal(38,9)", "1.5"}, {"float", "double", "0.5"}, {"double", "double", "0.5"},
		} {
			if !strings.HasPrefix(c.Type, k.prefix) || c.Name == "" {
				continue
			}
			if k.id == "" {
				break
			}
			return `"` + strings.ReplaceAll(c.Name, `"`, `""`) + `"`, k.typ, k.id
		}
	}
	return "", "", ""
}

// asIDs builds a filter from a file's column, whole and in shards, and scans the
// file with it: every row with a key must pass. It reports whether a filter could
// be built.
func (c *tally) asIDs(t *testing.T, name, column string) bool {
	dir := t.TempDir()
	whole, merged := filepath.Join(dir, "whole"), filepath.Join(dir, "merged")
	build := []string{"build", "--quiet", "--json", "--key", column, "-o"}
	said, code := c.attempt(t, name, append(build, whole, name)...)
	var built, scanned struct {
		Rows, Keys int64
		Null       int64 `json:"keys_null"`
		In         int64 `json:"rows_in"`
		Out        int64 `json:"rows_out"`
	}
	merge := []string{"merge", "--quiet", "-o", merged}
	for _, shard := range []string{"0/2", "1/2"} {
		part := filepath.Join(dir, "part-"+shard[:1])
		if _, partCode := c.attempt(t, name, append(build, part, "--shard", shard, name)...); code == 0 && partCode != 0 {
			// Only streams have an unknown number of keys.
			part = ""
		}
		merge = append(merge, part)
	}
	if code != 0 {
		if left, err := os.ReadDir(dir); err != nil || len(left) == 2 {
			t.Errorf("%s: all shards of what is no whole: %v, %v", name, left, err)
		}
		return false
	}
	if err := json.Unmarshal(said, &built); err != nil || built.Rows != built.Keys+built.Null {
		t.Errorf("%s: build says %s: %v", name, said, err)
	}
	said, code = c.attempt(t, name, "scan", "--quiet", "--json", "--count", "--filter", whole, "--key", column, name)
	if err := json.Unmarshal(said, &scanned); code == 0 && (err != nil || scanned.In != built.Rows || scanned.Out != built.Keys) {
		t.Errorf("%s: of %d rows, %d with a key, %d of %d pass: %v", name, built.Rows, built.Keys, scanned.Out, scanned.In, err)
	}
	if !slices.Contains(merge, "") {
		if _, code := c.attempt(t, merged, merge...); code != 0 || !bytes.Equal(read(t, merged), read(t, whole)) {
			t.Errorf("%s: shards came to another filter", name)
		}
	}
	return code == 0
}

// For every file, the command exits with 0 or 1 within its limits. The commands run
// in this process, or, if all cases are asked for, each in one of its own.
func TestCorpora(t *testing.T) {
	names := corpus(t)
	limit := debug.SetMemoryLimit(-1) // each command sets its own
	defer debug.SetMemoryLimit(limit)
	c := &tally{ends: map[string]int{}}
	var keyed, built atomic.Int64
	next := make(chan string)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for name := range next {
				c.attempt(t, name, "inspect", "--check", name)
				report, code := c.attempt(t, name, "inspect", "--json", name)
				if code != 0 {
					none := filepath.Join(t.TempDir(), "filter")
					if _, code := c.attempt(t, name, "build", "--key", "id", "-o", none, name); code == 0 && !utf8.Valid(read(t, name)) {
						t.Errorf("%s: a filter of a file that cannot be read and is no text", name)
					}
					continue
				}
				column, typ, id := keyFor(report)
				if column == "" {
					continue
				}
				keyed.Add(1)
				dir := t.TempDir()
				list := filepath.Join(dir, "ids.csv")
				if err := os.WriteFile(list, []byte("id\n"+id+"\n"), 0o600); err != nil {
					t.Error(err)
					return
				}
				// All rows of a readable file, in both formats.
				for _, out := range []string{"out.parquet", "out.arrow"} {
					path := filepath.Join(dir, out)
					_, code := c.attempt(t, name, "join", "--quiet", "--type", "anti", "--ids", list, "--on", column+"=id", "-o", path, name)
					left, err := os.ReadDir(dir)
					if err != nil || code != 0 && len(left) > 2 {
						t.Errorf("%s: left behind: %v, %v", name, left, err)
					}
					if code == 0 {
						if _, code := c.attempt(t, path, "inspect", "--check", path); code != 0 {
							t.Errorf("%s: the output %s cannot be read", name, out)
						}
					}
				}
				filter := filepath.Join(dir, "filter")
				if _, code := c.attempt(t, list, "build", "--quiet", "--key", "id", "--key-type", typ, "-o", filter, list); code == 0 {
					c.attempt(t, name, "scan", "--quiet", "--filter", filter, "--key", column, "-o", filepath.Join(dir, "scan.parquet"), name)
				}
				if c.asIDs(t, name, column) {
					built.Add(1)
				}
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	workers.Wait()
	t.Logf("%d files, %d of them with a key, %d with a filter of it: %v; at most %d MiB (%s) and %v of processor time (%s)",
		len(names), keyed.Load(), built.Load(), c.ends, c.memory>>20, c.most[0], c.time, c.most[1])
	if keyed.Load() < 150 || built.Load() < 100 || c.ends["inspect exit 0"] < 200 || c.ends["inspect exit 1"] < 200 {
		t.Error("the corpora are not what they were")
	}
}
