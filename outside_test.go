package bloomjoin_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/house"
	// The clouds' SDKs are compiled before this test, not again by the builds in it.
	_ "github.com/bloomjoin/bloomjoin/storage/cloud" //nolint:depguard // programs may name it
)

// program is a program in a separate module, like those of users.
type program struct {
	name   string
	file   string // whose lines of code TestHouse counts; empty: those of all such programs
	args   func(t *testing.T) []string
	output string
}

func (p program) source() string {
	return "testdata/outside/" + p.name + "/" + cmp.Or(p.file, "main.go")
}

var outside = []program{
	{"filter", "main.go", nil, "[true false true] <nil>\n" +
		"[] mismatch: key class: want integer, got text or binary (convert the values to the class of the key)\n" +
		"[true false] <nil>\n"},
	{"http", "web.go", overHTTP, "2906 rows <nil>\n"},
	{"stores", "main.go", storesHTTP, "2906 rows; true <nil>\n"},

	// What new users write first.
	{"first/values", "", onFlights, "[true true true] <nil> bloom 500000\n"},
	{"first/candidates", "", onFlights, "5867\n"},
	{"first/answer", "", onFlights, "5867 rows from 50000; 5867 log rows have an ID; 24 of 209 IDs matched; strategy lookup []\n"},
	{"first/cursor", "", nil, "true <nil> 100000\n"},
	{"first/shards", "", onFlights, "true <nil> <nil>\n" +
		"mismatch: shards: want all 4, got 2, without 2-3 (add the missing partial filters, or merge into a larger partial filter with MergePartial)\n" +
		"mismatch: filter: want a finished filter, got a partial one, in which keys are missing (merge all partial filters of the build first)\n"},
	{"first/server", "", onFlights, "ok\n"},
	{"first/parallel", "", onFlights, strings.Repeat("5867 <nil>\n", 4)},
	{"first/memory", "", onFlights, "2586 rows in 4 files <nil>\ntrue <nil>\n"},
	{"first/writers", "", onFlights, "csv 5867 <nil>\narrow 5867 true <nil>\nparquet 5867 PAR1 <nil>\na writer that fails: true\n" +
		"Output.Stdout is nil, and Output.Name is - (set Stdout, as to os.Stdout, or name a file or a directory)\n"},
	{"first/sets", "", nil, "exact union 150000 <nil>\nexact intersect 50000 <nil>\nexact difference 50000 <nil>\n" +
		"bloom union 200000 <nil>\nbloom intersect 100000 <nil>\nbloom difference 0 " +
		"filter 1: mismatch: filter to take a difference of: want an exact one, got a Bloom filter, whose false positives would be taken away as well: their rows would be lost " +
		"(build all with Kind exact; if only the first is a Bloom filter, scan with it as Filter and the others as NoMatch)\n"},
}

// onFlights returns the flights' directory and one for outputs.
func onFlights(t *testing.T) []string {
	dir, err := filepath.Abs("testdata/flights")
	if err != nil {
		t.Fatal(err)
	}
	return []string{dir, t.TempDir()}
}

// clouds are modules that only programs with package storage/cloud may contain.
var clouds = []string{"github.com/aws/", "github.com/Azure/", "cloud.google.com/", "golang.org/x/oauth2"}

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
	t.Parallel()
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
		"\nrequire "+house.Module+" v0.0.0\n\nreplace "+house.Module+" => "+here+"\n")
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), string(sum))
	for _, p := range outside {
		if err := os.CopyFS(filepath.Join(dir, p.name), os.DirFS(filepath.Join("testdata", "outside", p.name))); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
		}
		return string(out)
	}
	// One build links all programs at a time, and without symbols for a debugger,
	// which are a third of the work.
	command("build", "-mod=mod", "-ldflags=-s -w", "-o", "bin"+string(filepath.Separator), "./...")
	deps := map[string]string{}
	for line := range strings.Lines(command("list", "-mod=mod", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./...")) {
		name, needs, _ := strings.Cut(strings.TrimPrefix(line, "outside/"), " ")
		deps[name] = " " + needs
	}
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	for _, p := range outside {
		t.Run(p.name, func(t *testing.T) {
			if !strings.Contains(deps[p.name], " "+house.Module) {
				t.Fatalf("it needs only %s", deps[p.name])
			}
			for _, cloud := range clouds {
				if used := strings.Contains(deps[p.name], " "+cloud); used != (p.name == "stores") && (used || cloud == clouds[0]) {
					t.Errorf("packages of %s: %v", cloud, used)
				}
			}
			var args []string
			if p.args != nil {
				args = p.args(t)
			}
			run := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", path.Base(p.name)+suffix), args...)
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
