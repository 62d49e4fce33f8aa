package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// dataVersion is part of the data's names: to be raised when generate.py makes
// something else than before.
const dataVersion = 1

// store is the directory that keeps data and programs from one run to the next.
type store struct {
	dir    string
	python string // of the virtual environment, once it is there
}

// facts is what generate.py says of a log.
type facts struct {
	Rows    int64            `json:"rows"`
	Matched map[string]int64 `json:"matched"` // by the rate, without its sign
}

// environment makes a virtual environment of Python that has the packages,
// unless there is one, and returns the versions in it.
func (s *store) environment(ctx context.Context, packages []string) (err error) {
	slices.Sort(packages)
	packages = slices.Compact(packages)
	venv := filepath.Join(s.dir, "venv")
	s.python = filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(s.python); err != nil {
		say("making %s", venv)
		if _, err := execute(ctx, []step{{argv: []string{"python3", "-m", "venv", venv}}}); err != nil {
			return err
		}
	}
	have, err := exec.CommandContext(ctx, s.python, "-m", "pip", "freeze", "--all").Output()
	if err != nil {
		return fmt.Errorf("%s -m pip freeze: %w", s.python, err)
	}
	installed := strings.Split(string(have), "\n")
	missing := slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return slices.Contains(installed, p) })
	if len(missing) == 0 {
		return nil
	}
	say("installing %s", strings.Join(missing, ", "))
	_, err = execute(ctx, []step{{argv: append([]string{s.python, "-m", "pip", "install", "--quiet"}, missing...)}})
	return err
}

// build compiles a command: its binary carries no trace of where it is run.
func (s *store) build(ctx context.Context, module, pkg string) (program string, err error) {
	program = filepath.Join(s.dir, "bin", filepath.Base(pkg))
	_, err = execute(ctx, []step{{argv: []string{"go", "build", "-C", module, "-o", program, pkg}}})
	return program, err
}

// log returns the directory of a shape's data, which it makes if need be, with
// what is known of them. rows is the scale; the name has all that data depend on.
func (s *store) log(ctx context.Context, sh shape, rows int) (dir string, f facts, err error) {
	rows /= sh.part
	dir = filepath.Join(s.dir, fmt.Sprintf("%s-%d.v%d", sh.name, rows, dataVersion))
	if _, err := os.Stat(dir); err != nil {
		if err := s.generate(ctx, dir, sh.name, rows); err != nil {
			return "", f, err
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "facts.json"))
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	return dir, f, err
}

// generate makes data under another name first: what has its name is whole.
func (s *store) generate(ctx context.Context, dir, shape string, rows int) error {
	say("making %s", dir)
	begun := dir + ".new"
	if err := os.RemoveAll(begun); err != nil {
		return err
	}
	if err := os.MkdirAll(begun, 0o755); err != nil {
		return err
	}
	_, err := execute(ctx, []step{{argv: []string{s.python, "-c", script("generate"), begun, shape, fmt.Sprint(rows)}}})
	if err != nil {
		return err
	}
	return os.Rename(begun, dir)
}

// taskOf says where the data of a cell lie.
func taskOf(c cell, dir string, f facts) (t task, rows int64) {
	rate := strings.TrimSuffix(c.rate, "%")
	log := filepath.Join(dir, "log."+c.codec)
	if !c.shape.many {
		log += ".parquet"
	}
	rows = f.Matched[rate]
	return task{cell: c, log: log, ids: filepath.Join(dir, "ids-"+rate+".parquet"), share: float64(rows) / float64(f.Rows)}, rows
}

// warm reads files, or all below a directory, so that they are in memory.
func warm(roots ...string) error {
	buffer := make([]byte, 1<<20)
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			for err == nil {
				_, err = f.Read(buffer)
			}
			return f.Close()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
