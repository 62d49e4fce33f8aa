package bloomjoin_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/house"
)

// checkout is where the project is measured: here, or in another checkout to
// compare with.
var checkout = cmp.Or(os.Getenv("BLOOMJOIN_HOUSE"), ".")

// TestHouse holds the sizes, imports and words of the project to the limits in
// internal/house. With -v it prints them.
func TestHouse(t *testing.T) {
	t.Parallel()
	m := measured{t, map[string]bool{}}
	tree, err := house.ReadTree(checkout)
	if err != nil {
		t.Fatal(err)
	}
	m.source(tree.Files)
	wrong := tree.Upward()
	m.check("imports against the order of packages", len(wrong), wrong...)
	m.check("marks in comments: TODO, FIXME, XXX", len(tree.Marks), tree.Marks...)

	words := 0
	for _, n := range tree.Words {
		words += n
	}
	m.check("words of Markdown", words, largest(tree.Words)...)
	if len(tree.Words) < 25 {
		t.Errorf("only %d Markdown files were found", len(tree.Words))
	}

	modules, packages, err := house.Needs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	m.check("modules in the command beside this one", modules)
	m.check("packages of other modules in the command", packages)

	first := 0
	for _, p := range outside {
		source, err := os.ReadFile(filepath.Join(checkout, filepath.FromSlash(p.source())))
		if err != nil {
			t.Fatal(err)
		}
		if p.file == "" {
			first += strings.Count(string(source), "\n")
			continue
		}
		m.check("lines of code in "+p.source(), house.LinesOfCode(string(source)))
	}
	m.check("lines of what new users write first", first)

	text, err := os.ReadFile(filepath.Join(checkout, "cmd/bloomjoin/help_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	m.seen[house.HelpWords] = true
	if !strings.Contains(string(text), "house.Check(t, house.HelpWords") {
		t.Errorf("cmd/bloomjoin/help_test.go does not check the %s", house.HelpWords)
	}
	m.complete(func(unit string) bool { return unit != "names" && unit != "types" })
}

// source checks the Go files without tests.
func (m measured) source(all []*house.File) {
	files, lines, funcs := map[string]int{}, map[string]int{}, map[string]int{} // by package, file, function
	tokens, docs, tests := 0, 0, 0
	forTests := map[string]bool{}
	for _, f := range all {
		forTests[f.Package()] = forTests[f.Package()] || f.ForTests
	}
	for _, f := range all {
		if f.Test() {
			tests++
			continue
		}
		files[f.Package()]++
		lines[f.Path] = f.Lines
		for _, fn := range f.Funcs {
			at := f.Path + ": " + fn.Name
			funcs[at] = max(funcs[at], fn.Lines) // init may be there twice
		}
		if !forTests[f.Package()] {
			tokens += f.Tokens
		}
		if house.IsPublic(f.Package()) {
			docs += f.DocWords
		}
	}
	m.t.Logf("%d packages, %d files, %d functions; %d files of tests", len(files), len(lines), len(funcs), tests)
	if len(files) < 40 || len(lines) < 400 || len(funcs) < 3000 || tests < 300 {
		m.t.Error("too few of these were found")
	}

	const other = "files in any other package"
	others := map[string]int{}
	for pkg, n := range files {
		if of := "files in " + pkg; house.Find(of) == nil {
			others[pkg] = n
		} else if m.check(of, n); n <= house.Find(other).Max {
			m.t.Errorf("%d files in %s: remove its limit, it needs none of its own", n, pkg)
		}
	}
	m.check(other, most(others), largest(others)...)
	long, longFuncs := over(lines, 600), over(funcs, 80)
	m.check("long files: over 600 lines", len(long), long...)
	m.check("long functions: over 80 lines", len(longFuncs), longFuncs...)
	m.check("lines in the longest file", most(lines), largest(lines)...)
	m.check("lines in the longest function", most(funcs), largest(funcs)...)
	m.check("tokens of Go, without tests and what serves them", tokens)
	m.check("words of doc comments on exported names", docs)
}

// TestAPI checks the exported part of each public package: no name of it has a
// type of an internal package, as no program could write that type down, and there
// are no more names than allowed.
func TestAPI(t *testing.T) {
	t.Parallel()
	m := measured{t, map[string]bool{}}
	pkgs, err := house.Public(checkout)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 10 {
		t.Errorf("only %d public packages were found", len(pkgs))
	}
	var sum house.Names
	var hidden []string
	t.Logf("%5s %5s %7s %6s %6s %5s  package", "types", "funcs", "methods", "fields", "values", "all")
	row := func(n house.Names, of string) {
		t.Logf("%5d %5d %7d %6d %6d %5d  %s", n.Types, n.Funcs, n.Methods, n.Fields, n.Values, n.Total(), of)
	}
	for _, pkg := range pkgs {
		n, internal := house.Examine(pkg)
		row(n, pkg.Path())
		sum = sum.Plus(n)
		for _, text := range internal {
			hidden = append(hidden, pkg.Path()+"."+text)
		}
		m.check("names in "+cmp.Or(strings.TrimPrefix(strings.TrimPrefix(pkg.Path(), house.Module), "/"), "the root"), n.Total())
	}
	row(sum, "all")
	m.check("names in all public packages", sum.Total())
	m.check("types of internal packages in exported names", len(hidden), hidden...)
	m.complete(func(unit string) bool { return unit == "names" || unit == "types" })
}

// TestArchitecture checks that each package of the table in docs/architecture.md imports only
// those above it, and that the table has all packages but the helpers and the command.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(checkout, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for line := range strings.Lines(string(text)) {
		cell, ok := strings.CutPrefix(line, "| ")
		if cell, _, _ = strings.Cut(cell, " | "); !ok || strings.Contains(cell, "](") {
			continue
		}
		first, n := "", len(at)
		for i, name := range strings.Split(strings.Replace(cell, "(root)", "`.`", 1), "`") {
			if i%2 == 0 { // outside of quotes
				continue
			}
			if first == "" {
				first = name
			} else if !strings.Contains(name, "/") && strings.Contains(first, "/") {
				name = path.Join(path.Dir(first), name)
			}
			if at[name] == 0 {
				at[name] = n + 1
			}
		}
	}
	tree, err := house.ReadTree(checkout)
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, f := range tree.Files {
		own := at[f.Package()]
		if own == 0 {
			continue
		}
		known++
		for _, imported := range f.Imports {
			if at[imported] > own {
				t.Errorf("%s imports %s, which stands below it in docs/architecture.md", f.Path, imported)
			}
		}
	}
	if known < 400 {
		t.Errorf("the table has the packages of %d files only", known)
	}
	if pkgs, err := house.Public(checkout); err != nil {
		t.Error(err)
	} else {
		for _, pkg := range pkgs {
			if name := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(pkg.Path(), house.Module), "/"), "."); at[name] == 0 {
				t.Errorf("docs/architecture.md has no line for %s", name)
			}
		}
	}
}

// TestDoor checks that programs see nothing of what is behind a handle but the methods that
// are written out for them.
func TestDoor(t *testing.T) {
	t.Parallel()
	pkgs, err := house.Public(checkout)
	if err != nil {
		t.Fatal(err)
	}
	var handles []string
	for _, pkg := range pkgs {
		own, seen := house.Handles(pkg)
		handles = append(handles, own...)
		for _, s := range seen {
			t.Errorf("%s: fields of a type behind a door must be neither exported nor embedded", s)
		}
	}
	if want := []string{
		"codec.Filter", "bloom.Filter", "exact.Set", "dataset.PinnedSchema", "filterbuild.Builder", "filterbuild.Worker", "join.Join", "key.Values", "partition.File", "partition.Inputs", "sketch.Sketch",
	}; !slices.Equal(handles, want) {
		t.Errorf("handles are %q: want %q", handles, want)
	}
}

// TestDrift changes an option struct of the door and wants the compiler to refuse
// it: the structs are converted as a whole.
func TestDrift(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, old, new string }{
		{"partition/open.go", "	Uncommitted bool\n", "	Uncommitted bool\n	More bool\n"},
		{"partition/write.go", "	WriteEmpty bool\n", ""},
		{"partition/scan.go", "	Threads int\n", "	Threads int64\n"},
		{"partition/open.go", "	Once bool\n", "	Twice bool\n"},
		{"filterbuild/filterbuild.go", "	Squeeze bool\n", ""},
		{"filterbuild/filterbuild.go", "	Seconds   float64\n", ""},
		{"codec/codec.go", "	Replace bool\n", "	Replace bool\n	Again bool\n"},
	} {
		here := filepath.Join(checkout, c.file)
		b, err := os.ReadFile(here)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(b), c.old, c.new, 1)
		if changed == string(b) {
			t.Errorf("%s has no %q", c.file, c.old)
			continue
		}
		dir := t.TempDir()
		there, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
		here, err = filepath.Abs(here)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]map[string]string{"Replace": {here: there}})
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{there: []byte(changed), overlay: text} {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-overlay", overlay, "./"+path.Dir(c.file))
		cmd.Dir = checkout
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "cannot convert") {
			t.Errorf("%s with %q: want an error of conversion, got %v\n%s", c.file, c.new, err, out)
		}
	}
}

// measured checks values and notes which limits were met with one.
type measured struct {
	t    *testing.T
	seen map[string]bool
}

func (m measured) check(of string, value int, where ...string) {
	m.t.Helper()
	m.seen[of] = true
	house.Check(m.t, of, value, where...)
}

// complete fails if a limit of these units was not met with a value: its package is
// gone, or a counter no longer counts.
func (m measured) complete(units func(unit string) bool) {
	for _, l := range house.Limits {
		unit, _, _ := strings.Cut(l.Of, " ")
		if units(unit) && !m.seen[l.Of] {
			m.t.Errorf("%s: there is a limit, but nothing was measured (remove the limit if there is no such thing)", l.Of)
		}
	}
}

// most returns the largest value.
func most(of map[string]int) (n int) {
	for _, v := range of {
		n = max(n, v)
	}
	return n
}

// largest returns the three largest values.
func largest(of map[string]int) []string {
	all := over(of, -1)
	return all[:min(3, len(all))]
}

// over returns the values over a limit, the largest first, with what they are of.
func over(of map[string]int, limit int) (all []string) {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) })
	for _, name := range names {
		if of[name] > limit {
			all = append(all, fmt.Sprintf("%s: %d", name, of[name]))
		}
	}
	return all
}
