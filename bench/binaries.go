package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func binaries() *Table {
	return &Table{Name: "binaries", Title: "Sizes of binaries", Grid: binaryGrid,
		Text: "What a program costs that imports a package: the size of the smallest one, and the modules that building it downloads, go.mod files apart. Built with -trimpath."}
}

// module is the path of the library.
const module = "github.com/bloomjoin/bloomjoin"

// program is something to build.
type program struct {
	text   string
	source string // directory below the library's that is copied; "": imports
	// imports are the packages that a program of its own imports, for source "".
	imports []string
}

func binaryGrid(h *Harness) (Grid, error) {
	g := Grid{Head: []string{"program", "MB", "MB stripped", "modules in it", "modules downloaded", "MB of zips"}}
	library, err := filepath.Abs("..")
	if err != nil {
		return g, err
	}
	programs := []program{
		{text: "the command", source: "cmd/bloomjoin"},
		{text: "`import \"" + module + "/join\"`", imports: []string{module + "/join"}},
		{text: "`import \"" + module + "\"`", imports: []string{module}},
	}
	if h.quick {
		programs = programs[:1]
	}
	for _, p := range programs {
		f, err := p.measure(h.ctx, library, h.quick)
		if err != nil {
			return g, fmt.Errorf("%s: %w", p.text, err)
		}
		g.Row(p.text, megabytes(f.size), megabytes(f.stripped), fmt.Sprint(f.contains), fmt.Sprint(f.downloads), megabytes(f.zips))
	}
	return g, nil
}

// figures are what a program costs.
type figures struct {
	size, stripped int64
	contains       int // modules that are linked into it
	downloads      int
	zips           int64
}

// measure builds a program in a new module, with an empty module cache.
func (p program) measure(ctx context.Context, library string, quick bool) (f figures, err error) {
	dir, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	where, err := p.write(dir, library)
	if err != nil {
		return f, err
	}
	cache := filepath.Join(dir, "cache")
	environment, err := offline(ctx, cache)
	if err != nil {
		return f, err
	}
	if quick { // with the modules of this machine's cache
		environment = os.Environ()
	}
	for _, b := range []struct {
		size  *int64
		flags []string
	}{{&f.stripped, []string{"-ldflags=-s -w"}}, {&f.size, nil}} {
		if quick && b.flags != nil {
			continue
		}
		out := filepath.Join(dir, "program")
		cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-mod=mod", "-trimpath", "-o", out}, b.flags...), ".")...)
		cmd.Dir, cmd.Env = where, environment
		if text, err := cmd.CombinedOutput(); err != nil {
			return f, fmt.Errorf("go build: %w\n%s", err, text)
		}
		info, err := os.Stat(out)
		if err != nil {
			return f, err
		}
		*b.size = info.Size()
	}
	if f.contains, err = linked(filepath.Join(dir, "program")); err != nil {
		return f, err
	}
	f.downloads, f.zips, err = zips(cache)
	return f, err
}

// write puts the program into a module below dir, or chooses the library's own
// directory for its command. It returns the directory to build in.
func (p program) write(dir, library string) (string, error) {
	if strings.HasPrefix(p.source, "cmd/") {
		return filepath.Join(library, p.source), nil
	}
	here := filepath.Join(dir, "outside")
	if p.source == "" {
		text := "package main\n\nimport (\n"
		for _, i := range p.imports {
			text += "\t_ \"" + i + "\"\n"
		}
		if err := os.MkdirAll(here, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(here, "main.go"), []byte(text+")\n\nfunc main() {}\n"), 0o644); err != nil {
			return "", err
		}
	} else if err := os.CopyFS(here, os.DirFS(filepath.Join(library, p.source))); err != nil {
		return "", err
	}
	// The versions that the library wants, which are in the cache.
	mod, err := os.ReadFile(filepath.Join(library, "go.mod"))
	if err != nil {
		return "", err
	}
	sum, err := os.ReadFile(filepath.Join(library, "go.sum"))
	if err != nil {
		return "", err
	}
	_, needs, _ := strings.Cut(string(mod), "\n")
	text := "module outside\n" + needs + "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + library + "\n"
	return here, errors.Join(os.WriteFile(filepath.Join(here, "go.mod"), []byte(text), 0o644), os.WriteFile(filepath.Join(here, "go.sum"), sum, 0o644))
}

// offline returns the environment of go commands with an empty module cache, which is
// filled from this machine's.
func offline(ctx context.Context, cache string) ([]string, error) {
	text, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	have := filepath.Join(strings.TrimSpace(string(text)), "cache", "download")
	return append(os.Environ(), "GOMODCACHE="+cache, "GOPROXY=file://"+filepath.ToSlash(have), "GOSUMDB=off", "GOWORK=off", "GOFLAGS=-modcacherw"), nil
}

// linked returns how many modules a program contains besides itself and the library.
func linked(path string) (n int, err error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for _, d := range info.Deps {
		if d.Path != module {
			n++
		}
	}
	return n, nil
}

// zips returns the number of modules that a cache holds, and the size of their zips.
func zips(cache string) (n int, size int64, err error) {
	err = filepath.WalkDir(filepath.Join(cache, "cache", "download"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".zip" {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			n, size = n+1, size+info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, size, err
}
