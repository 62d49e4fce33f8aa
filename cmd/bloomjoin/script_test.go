package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// quickExit makes processes under the race detector exit without a delay.
const quickExit = "atexit_sleep_ms=0"

// rareCollection halves what it takes to start a process: most of that was garbage
// collection while packages initialize. Tests of memory unset it with asUsual.
const rareCollection = "800"

// asUsual makes a command collect garbage as it does outside of tests.
func asUsual(cmd *exec.Cmd) {
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") })
}

func TestMain(m *testing.M) {
	// The command runs as separate processes of this test binary, thousands of
	// them. Under the race detector each would sleep for a second before it exits.
	os.Setenv("GORACE", quickExit)
	if filepath.Base(os.Args[0]) != "bloomjoin" { // the tests, not the command
		cases.CollectRarely()
		if os.Getenv("GOGC") == "" {
			os.Setenv("GOGC", rareCollection)
		}
		heed(os.Interrupt, syscall.SIGHUP)
	}
	testscript.Main(m, map[string]func(){"bloomjoin": main})
}

// heed makes started commands react to signals that this process ignores, as under
// nohup. Otherwise they would inherit that.
func heed(signals ...os.Signal) {
	for _, sig := range signals {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

func TestScripts(t *testing.T) {
	flights, err := filepath.Abs("../../testdata/flights")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Abs("testdata/script") // the working directory changes while they run
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: scripts,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FLIGHTS", flights)
			env.Setenv("VECTORS", filepath.Join(filepath.Dir(flights), "vectors"))
			env.Setenv("GORACE", quickExit)
			env.Setenv("GOGC", rareCollection)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "fields": fields, "field": field, "files": files, "mode": mode,
			"damage": damage, "cut": cut, "lines": lines,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits runs a command that must exit with a code: exits 64 bloomjoin …
// Its output must not look like a crash.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "bloomjoin" {
		ts.Fatalf("usage: exits CODE bloomjoin…")
	}
	code, said := inScript(ts, args[2:])
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
	for _, word := range []string{"goroutine ", "panic", "internal error"} {
		if strings.Contains(said, word) {
			ts.Fatalf("standard error has %q", word)
		}
	}
}

var workingDirectory sync.Mutex

// inScript runs the command in a script's directory and returns its exit code and standard error.
// A process of its own, which takes ten times as long, is for what reads standard input or the
// environment that a script sets, and for all cases.
func inScript(ts *testscript.TestScript, args []string) (code int, said string) {
	if cases.All() || slices.Contains(args, "-") || ts.Name() == "shard" {
		var exit *exec.ExitError
		if err := ts.Exec("bloomjoin", args...); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			ts.Fatalf("%v", err)
		}
		return code, ts.ReadFile("stderr")
	}
	workingDirectory.Lock()
	defer workingDirectory.Unlock()
	before, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(before)) }()
	var stderr strings.Builder
	code = run(args, strings.NewReader(""), ts.Stdout(), io.MultiWriter(ts.Stderr(), &stderr))
	return code, stderr.String()
}

// object parses the JSON object in the last line of a stream.
func object(ts *testscript.TestScript, stream string) map[string]any {
	all := strings.Split(strings.TrimSpace(ts.ReadFile(stream)), "\n")
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(all[len(all)-1]))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%s: %v in %q", stream, err, all[len(all)-1])
	}
	return v
}

// fields checks that the JSON object of a stream has fields: fields stdout
// rows_in rows_out
func fields(ts *testscript.TestScript, neg bool, args []string) {
	v := object(ts, args[0])
	for _, name := range args[1:] {
		if _, ok := v[name]; ok == neg {
			ts.Fatalf("field %s: there: %v, in %v", name, ok, v)
		}
	}
}

// field compares a field of the JSON object: field stdout rows_out 5867. The
// name may be a path: files.0.checked.
func field(ts *testscript.TestScript, neg bool, args []string) {
	var v any = object(ts, args[0])
	for _, name := range strings.Split(args[1], ".") {
		switch x := v.(type) { // a path that does not exist ends at nil
		case map[string]any:
			v = x[name]
		case []any:
			i, err := strconv.Atoi(name)
			ts.Check(err)
			v = nil
			if i < len(x) {
				v = x[i]
			}
		default:
			v = nil
		}
	}
	if (fmt.Sprint(v) == args[2]) == neg {
		ts.Fatalf("field %s is %v, compared with %s", args[1], v, args[2])
	}
}

// files compares the names of all files below a directory, including hidden ones:
// files out a.parquet b/c.parquet
func files(ts *testscript.TestScript, neg bool, args []string) {
	root := ts.MkAbs(args[0])
	got := []string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		got = append(got, filepath.ToSlash(rel))
		return err
	})
	ts.Check(err)
	want := slices.Sorted(slices.Values(args[1:]))
	slices.Sort(got)
	if slices.Equal(got, want) == neg {
		ts.Fatalf("%s holds %q, compared with %q", args[0], got, want)
	}
}

// mode compares a file's permissions: mode 600 file
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// damage copies a file with one bit flipped at a position in thousandths of its
// length: damage 500 from to
func damage(ts *testscript.TestScript, _ bool, args []string) {
	at, err := strconv.Atoi(args[0])
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	b[(len(b)-1)*at/1000] ^= 0x10
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b, 0o600))
}

// cut copies a file without its last bytes: cut 9 from to
func cut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b[:len(b)-n], 0o600))
}

// lines checks the number of lines of a stream or file: lines stderr 0
func lines(ts *testscript.TestScript, _ bool, args []string) {
	if got := bytes.Count([]byte(ts.ReadFile(args[0])), []byte("\n")); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%s has %d lines, want %s", args[0], got, args[1])
	}
}
