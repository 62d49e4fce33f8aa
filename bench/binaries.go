package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// library is the path of the module.
const library = "github.com/bloomjoin/bloomjoin"

func binaries() *Table {
	return &Table{Name: "binaries", Title: "Sizes of binaries", Grid: binaryGrid,
		Text: "The command, and the smallest programs that import a package: their size, and the modules in them beside the library, with the size of the zips that are downloaded. Built with -trimpath."}
}

func binaryGrid(h *Harness) (g Grid, err error) {
	dir, err := os.MkdirTemp("", "bloomjoin-bench-")
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g.Head = []string{"program", "MB", "MB stripped", "modules", "MB of zips"}
	for _, pkg := range []string{"cmd/bloomjoin", "", "join", "filterbuild"} {
		text, source := "`import \""+strings.TrimSuffix(library+"/"+pkg, "/")+"\"`", filepath.Join(dir, "main.go")
		if pkg == "cmd/bloomjoin" {
			text, source = "the command", "./"+pkg
		} else if h.quick {
			break
		}
		program := "package main\n\nimport _ \"" + strings.TrimSuffix(library+"/"+pkg, "/") + "\"\n\nfunc main() {}\n"
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
			return g, err
		}
		row, err := binaryRow(h, source, filepath.Join(dir, "program"))
		if err != nil {
			return g, err
		}
		g.Row(append([]string{text}, row...)...)
	}
	return g, nil
}

// binaryRow builds a program in the library's module and returns its figures.
func binaryRow(h *Harness, source, out string) (row []string, err error) {
	for _, flags := range []string{"", "-s -w"} {
		if err := h.do("go", "build", "-C", "..", "-trimpath", "-ldflags="+flags, "-o", out, source); err != nil {
			return nil, err
		}
		size, err := sizeOf(out)
		if err != nil {
			return nil, err
		}
		if row = append(row, megabytes(size)); h.quick {
			row = append(row, none)
			break
		}
	}
	info, err := buildinfo.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var modules int
	var zips int64
	cache, err := cacheOf(h.ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if m.Path == library {
			continue
		}
		size, err := sizeOf(filepath.Join(cache, escaped(m.Path), "@v", escaped(m.Version)+".zip"))
		if err != nil || size == 0 {
			return nil, fmt.Errorf("%s %s is not in the module cache: %w", m.Path, m.Version, errors.Join(err, os.ErrNotExist))
		}
		modules, zips = modules+1, zips+size
	}
	return append(row, fmt.Sprint(modules), megabytes(zips)), nil
}

// cacheOf returns the directory of downloaded modules.
func cacheOf(ctx context.Context) (string, error) {
	_, out, err := Command{Argv: []string{"go", "env", "GOMODCACHE"}}.Execute(ctx)
	return filepath.Join(strings.TrimSpace(string(out)), "cache", "download"), err
}

// escaped returns a path or version as the cache has it: capitals as ! and the small letter.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('!')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
