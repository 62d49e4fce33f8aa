package race

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Versions of the Python packages, as requirements of pip.
const (
	DuckDB     = "duckdb==2.0.0"
	Polars     = "polars==2.1.0"
	Pyarrow    = "pyarrow==26.0.1"
	Numpy      = "numpy==2.4.6"
	DataFusion = "datafusion==55.0.0"
	Chdb       = "chdb==4.4.0"
)

// Store creates the directory that keeps data and programs between runs, and
// returns its absolute path. The default is in the user's cache directory.
func Store(dir string) (string, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "bloomjoin-bench")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// Environment creates a Python virtual environment with the packages below dir,
// unless it exists, and returns its interpreter.
func Environment(ctx context.Context, dir string, packages []string) (python string, err error) {
	slices.Sort(packages)
	packages = slices.Compact(packages)
	venv := filepath.Join(dir, "venv")
	python = filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		Say("making %s", venv)
		if _, err := Execute(ctx, Step{Argv: []string{"python3", "-m", "venv", venv}}); err != nil {
			return "", err
		}
	}
	have, err := exec.CommandContext(ctx, python, "-m", "pip", "freeze", "--all").Output()
	if err != nil {
		return "", fmt.Errorf("%s -m pip freeze: %w", python, err)
	}
	installed := strings.Split(string(have), "\n")
	missing := slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return slices.Contains(installed, p) })
	if len(missing) == 0 {
		return python, nil
	}
	Say("installing %s", strings.Join(missing, ", "))
	_, err = Execute(ctx, Step{Argv: append([]string{python, "-m", "pip", "install", "--quiet"}, missing...)})
	return python, err
}

// Make creates dir and calls fill with it, unless it exists. fill gets a temporary
// name, so an existing directory is complete.
func Make(dir string, fill func(dir string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	Say("making %s", dir)
	begun := dir + ".new"
	if err := os.RemoveAll(begun); err != nil {
		return err
	}
	if err := os.MkdirAll(begun, 0o755); err != nil {
		return err
	}
	if err := fill(begun); err != nil {
		return err
	}
	return os.Rename(begun, dir)
}

// Warm reads files, or all files below a directory, into the page cache.
func Warm(roots ...string) error {
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
