package arrow18_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutside compiles and runs a program in a module of its own, as users have
// it. It takes 25 lines of code at most.
func TestOutside(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("testdata/outside/join/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := linesOfCode(string(source)); n > 25 {
		t.Errorf("%d lines of code: want at most 25", n)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	const root = "github.com/bloomjoin/bloomjoin"
	_, needs, _ := strings.Cut(string(mod), "\n") // the versions that are at hand
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": string(source),
		"go.sum":  string(sum),
		"go.mod": "module outside\n" + needs + "\nrequire " + root + "/arrow18 v0.0.0\n" +
			"\nreplace " + root + "/arrow18 => " + here + "\n\nreplace " + root + " => " + filepath.Dir(here) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", "outside.exe", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "outside.exe")).CombinedOutput()
	want := "[5 2] [\"/\" \"/cart\"] [\"gold\" \"basic\"]\n"
	if string(out) != want || err != nil {
		t.Errorf("want %q, got %q, %v", want, out, err)
	}
}

// linesOfCode counts the lines after the imports that are neither empty nor only
// a comment.
func linesOfCode(source string) (n int) {
	_, code, _ := strings.Cut(source, "\n)\n")
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
