package bloomjoin_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outside lists programs in a separate module, like those of users: what they print,
// and the maximum number of lines of code of one of their files.
var outside = []struct {
	name   string
	file   string
	lines  int
	args   func(t *testing.T) []string
	output string
}{
	{"filter", "main.go", 25, nil, "[true false true] <nil>\n" +
		"[] mismatch: key class: want integer, got text or binary (convert the values to the class of the key)\n" +
		"[true false] <nil>\n"},
	{"http", "web.go", 60, overHTTP, "2906 rows <nil>\n"},
	{"stores", "main.go", 25, storesHTTP, "2906 rows; true <nil>\n"},
}

// clouds are modules that only programs with package store may contain.
var clouds = []string{"gocloud.dev/", "github.com/aws/", "github.com/Azure/", "cloud.google.com/", "google.golang.org/api/", "google.golang.org/grpc/"}

// overHTTP serves the flights over HTTP, with ETags.
func overHTTP(t *testing.T) []string {
	files := http.FileServer(http.Dir("testdata/flights"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return []string{server.URL + "/airports-tx.csv", server.URL + "/logs/2001-q1.parquet", "origin=iata"}
}

// storesHTTP is overHTTP with an output.
func storesHTTP(t *testing.T) []string {
	args := overHTTP(t)
	return []string{args[0], args[1], filepath.Join(t.TempDir(), "rows.parquet"), args[2]}
}

// TestOutside compiles and runs the programs in a module of their own.
func TestOutside(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	// The versions of this module's dependencies, which are at hand.
	_, needs, _ := strings.Cut(string(mod), "\n")
	write(t, filepath.Join(dir, "go.mod"), "module outside\n"+needs+
		"\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+here+"\n")
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), string(sum))
	for _, p := range outside {
		from := filepath.Join("testdata", "outside", p.name)
		if err := os.CopyFS(filepath.Join(dir, p.name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(filepath.Join(from, p.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := linesOfCode(string(source)); n > p.lines {
			t.Errorf("%s/%s: %d lines of code: want at most %d", p.name, p.file, n, p.lines)
		}
		t.Run(p.name, func(t *testing.T) {
			build := exec.Command("go", "build", "-mod=mod", "-o", p.name+".exe", "./"+p.name)
			build.Dir = dir
			build.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("go build: %v\n%s", err, out)
			}
			list := exec.Command("go", "list", "-mod=mod", "-deps", "./"+p.name)
			list.Dir, list.Env = dir, build.Env
			deps, err := list.Output()
			if err != nil {
				t.Fatalf("go list: %v", err)
			}
			for _, cloud := range clouds {
				if used := strings.Contains("\n"+string(deps), "\n"+cloud); used != (p.name == "stores") && (used || cloud == clouds[0]) {
					t.Errorf("packages of %s: %v", cloud, used)
				}
			}
			var args []string
			if p.args != nil {
				args = p.args(t)
			}
			run := exec.CommandContext(t.Context(), filepath.Join(dir, p.name+".exe"), args...)
			run.Dir = t.TempDir()
			if out, err := run.CombinedOutput(); err != nil || string(out) != p.output {
				t.Errorf("want %q, got %q, %v", p.output, out, err)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
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
