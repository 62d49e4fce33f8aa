package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Harness has what all races need.
type Harness struct {
	ctx      context.Context
	dir      string // keeps data and programs between runs
	self     string // this program, which has tools
	ours     string
	python   string
	quick    bool
	large    bool
	rounds   int // 0: those of the tables
	threads  int
	without  []string // tools that are left out
	checker  *Checker
	server   *Server         // nil until it is needed
	packaged bool            // our package for Python is installed
	met      map[string]bool // with quick: peers that ran, by table and type of join
}

// Prepare makes the programs. Without a Python it makes a virtual environment.
func (h *Harness) Prepare() (err error) {
	if h.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		h.dir = filepath.Join(cache, "bloomjoin-bench")
	}
	if h.dir, err = filepath.Abs(h.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(h.bucket(), 0o755); err != nil {
		return err
	}
	if h.self, err = os.Executable(); err != nil {
		return err
	}
	h.threads, h.met = min(runtime.GOMAXPROCS(0), 2), map[string]bool{}
	if h.ours == "" {
		h.ours = filepath.Join(h.dir, "bin", "bloomjoin")
		if err := h.do("go", "build", "-C", "..", "-o", h.ours, "./cmd/bloomjoin"); err != nil {
			return err
		}
	}
	if h.python == "" {
		if h.python, err = h.environment(); err != nil {
			return err
		}
	}
	h.checker, err = NewChecker(h.python)
	return err
}

// Close ends the servers.
func (h *Harness) Close() {
	if h.checker != nil {
		_ = h.checker.Close()
	}
	if h.server != nil {
		h.server.close()
	}
}

// bucket returns the directory of data, which is also a bucket of the object store.
func (h *Harness) bucket() string { return filepath.Join(h.dir, "store", bucket) }

// do runs a command whose output does not matter.
func (h *Harness) do(argv ...string) error {
	_, _, err := Command{Argv: argv}.Execute(h.ctx)
	return err
}

// tool returns a process of one of this program's tools.
func (h *Harness) tool(args ...string) Command {
	return Command{Argv: append([]string{h.self}, args...)}
}

// Requirements of Python packages. Those that CI has as well are in its list.
const (
	requirements = "../.ci/requirements.txt"
	chdbVersion  = "chdb==4.4.0"
	storeDuckDB  = "1.5.5"
)

// environment makes a virtual environment and returns its interpreter.
func (h *Harness) environment() (python string, err error) {
	text, err := os.ReadFile(requirements)
	if err != nil {
		return "", fmt.Errorf("run this in the directory bench: %w", err)
	}
	wanted := []string{chdbVersion}
	for _, line := range strings.Fields(string(text)) {
		if name, _, _ := strings.Cut(line, "=="); slices.Contains([]string{"duckdb", "polars", "pyarrow", "datafusion", "numpy"}, name) {
			wanted = append(wanted, line)
		}
	}
	venv := filepath.Join(h.dir, "venv")
	python = filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		if err := h.do("python3", "-m", "venv", venv); err != nil {
			return "", err
		}
	}
	have, err := exec.CommandContext(h.ctx, python, "-m", "pip", "freeze", "--all").Output()
	if err != nil {
		return "", fmt.Errorf("%s -m pip freeze: %w", python, err)
	}
	installed := strings.Split(string(have), "\n")
	wanted = slices.DeleteFunc(wanted, func(p string) bool { return slices.Contains(installed, p) })
	if len(wanted) == 0 {
		return python, nil
	}
	say("installing %s", strings.Join(wanted, ", "))
	return python, h.do(append([]string{python, "-m", "pip", "install", "--quiet"}, wanted...)...)
}

// httpfs returns the directory with the DuckDB that can read from object stores.
func (h *Harness) httpfs() string { return filepath.Join(h.dir, "httpfs") }

// installHTTPFS installs it, unless it is there.
func (h *Harness) installHTTPFS() error {
	if _, err := os.Stat(h.httpfs()); err == nil || slices.Contains(h.without, "httpfs") {
		return nil
	}
	return h.do(h.python, "-m", "pip", "install", "--quiet", "--target", h.httpfs(), "duckdb=="+storeDuckDB, "duckdb_extension_httpfs=="+storeDuckDB)
}

// admitted returns the contenders of a cell that are not left out. Quick runs need each
// peer once for each type of join in a table.
func (h *Harness) admitted(t *Table, c Cell) (all []Contender) {
	for _, who := range c.Contenders {
		if slices.Contains(h.without, who.Tool) {
			continue
		}
		name := strings.Join([]string{t.Name, who.Name, c.Job.Type}, "/")
		if h.quick && who.Kind != Ours && h.met[name] {
			continue
		}
		h.met[name] = true
		all = append(all, who)
	}
	return all
}

func (h *Harness) roundsOf(t *Table) int {
	switch {
	case h.rounds > 0:
		return h.rounds
	case h.quick:
		return 1
	case t.Rounds > 0:
		return t.Rounds
	}
	return defaultRounds
}

// Machine returns a line about this machine, from Linux's /proc.
func Machine() (string, error) {
	cpu, err := procField("/proc/cpuinfo", "model name")
	if err != nil {
		return "", err
	}
	memory, err := procField("/proc/meminfo", "MemTotal")
	if err != nil {
		return "", err
	}
	kib, err := strconv.ParseUint(strings.TrimSuffix(memory, " kB"), 10, 64)
	if err != nil {
		return "", err
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s, %d processors, %.1f GiB of memory, Linux %s, %s", cpu, runtime.GOMAXPROCS(0),
		float64(kib)/(1<<20), strings.TrimSpace(string(kernel)), runtime.Version()), err
}

// procField returns the value of a line "name: value" in a file below /proc.
func procField(path, name string) (value string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no line %q", path, name)
}

// git returns the output of a git command.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Commit returns the commit of the checkout, and the files that differ from it, apart
// from results.
func Commit(ctx context.Context) (commit, changed string, err error) {
	if commit, err = git(ctx, "rev-parse", "--short=12", "HEAD"); err != nil {
		return "", "", err
	}
	changed, err = git(ctx, "status", "--porcelain", "--", ":/", ":(exclude)"+resultsDir, ":(exclude)"+document, ":(exclude)"+image)
	return commit, changed, err
}
