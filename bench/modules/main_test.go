package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// This test's own program is made of modules; an archive in a cache counts as one.
func TestFigures(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := linked(program); err != nil || n > 5 {
		t.Errorf("%d modules are linked into a program that needs none, %v", n, err)
	}
	cache := t.TempDir()
	if n, size, err := zips(cache); n != 0 || size != 0 || err != nil {
		t.Errorf("an empty cache: %d of %d bytes, %v", n, size, err)
	}
	at := filepath.Join(cache, "cache", "download", "example.com", "m", "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v1.0.0.zip", "v1.0.0.mod", "v1.0.0.info"} {
		if err := os.WriteFile(filepath.Join(at, name), make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, size, err := zips(cache); n != 1 || size != 10 || err != nil {
		t.Errorf("%d of %d bytes, %v, want 1 of 10", n, size, err)
	}
}

// A program of its own has the versions of the library's dependencies.
func TestWrite(t *testing.T) {
	library, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26.0\n", "go.sum": "sum\n"} {
		if err := os.WriteFile(filepath.Join(library, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here, err := program{imports: []string{module + "/join"}}.write(dir, library)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"go.mod":  "module outside\n\ngo 1.26.0\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + library + "\n",
		"go.sum":  "sum\n",
		"main.go": "package main\n\nimport (\n\t_ \"" + module + "/join\"\n)\n\nfunc main() {}\n",
	} {
		if got, err := os.ReadFile(filepath.Join(here, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	if here, err := (program{source: "cmd/x"}).write(dir, library); err != nil || here != filepath.Join(library, "cmd/x") {
		t.Errorf("the command: %s, %v", here, err)
	}
}

func TestUsage(t *testing.T) {
	if err := run(context.Background(), []string{"x"}); err == nil {
		t.Error("want an error")
	}
}
