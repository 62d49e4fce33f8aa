package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Every limit has one line, a unit with a remedy, and a reason.
func TestLimits(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range Limits {
		unit, _, _ := strings.Cut(l.Of, " ")
		if seen[l.Of] || remedies[unit] == "" || l.Why == "" || l.Max < 0 {
			t.Errorf("%+v: want one line with a reason, and a unit out of %v", l, slices.Sorted(maps.Keys(remedies)))
		}
		seen[l.Of] = true
	}
}

func TestJudge(t *testing.T) {
	limits := []Limit{{Of: "files in a", Max: 200}, {Of: "words of b", Max: 200}, {Of: "files in c", Max: 30, Fixed: true}}
	for _, c := range []struct {
		of    string
		value int
		want  string // part of the text; "": none
	}{
		{"files in a", 200, ""},
		{"files in a", 201, "201 files in a: want at most 200 (merge small files, or"},
		{"files in a", 199, "199 files in a: less than the limit of 200 (lower it in internal/house/limits.go"},
		{"words of b", 201, "want at most 200 (shorten something; if that is impossible, raise the limit in internal/house/limits.go"},
		{"words of b", 198, ""},
		{"words of b", 197, "less than the limit of 200"},
		{"files in c", 0, ""},
		{"files in c", 31, "want at most 30 (merge small files, or move some to a package of their own)\n"},
		{"files in d", 0, "0 files in d: no limit (add one"},
	} {
		got := judge(limits, c.of, c.value, []string{"here: 1", "there: 2"})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || got != "" && !strings.HasSuffix(got, "\n\there: 1\n\tthere: 2") {
			t.Errorf("%d %s: got %q, want %q", c.value, c.of, got, c.want)
		}
	}
}

const source = `// Package p has six words here.
package p

import (
	"fmt"

	root "github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoinery/key"
)

// Exported is documented: five words.
type Exported struct {
	Field int // three more words
	hidden int // none of these
	// Inner has four words.
	Inner struct{ Deep int }
}

// not counted
type plain struct{}

const (
	// A has three words.
	A = 1
	b = 2 // no
)

//go:noinline
func long[T any](x T) { // TODO: a mark
	fmt.Println(x) /* nothing
	FIXME */
	a := "XXX is no comment"; _ = a
	// MYTODO, TODOS
}

// M counts four words.
func (e *Exported) M() {}

// Not this.
func (plain) M() {}

// Nor this.
func (e Exported) m() {}
`

func TestSource(t *testing.T) {
	f, err := parse("p/a.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "lines", f.Lines, 44)
	equal(t, "package", f.Package(), "p")
	equal(t, "functions", f.Funcs, []Func{{"long", 6}, {"Exported.M", 1}, {"plain.M", 1}, {"Exported.m", 1}})
	equal(t, "imports", f.Imports, []string{".", "key"})
	equal(t, "words", f.DocWords, 6+5+3+4+4+4)

	tokens, marks := scan([]byte(source))
	equal(t, "marks", marks, []int{30, 32})
	bare, _ := scan([]byte("package p;func f(){;}// no\n"))
	equal(t, "tokens with semicolons", bare, 10)
	equal(t, "tokens", tokens, 94)
}

// write writes files into a directory: name, text, name, text.
func write(t *testing.T, dir string, files ...string) {
	t.Helper()
	for file := range slices.Chunk(files, 2) {
		name := filepath.Join(dir, filepath.FromSlash(file[0]))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(file[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadTree(t *testing.T) {
	dir := t.TempDir()
	write(t, dir,
		".gitignore", "/bin\n/out/\n.venv/\n*.gen.md\n",
		"go.mod", "module "+Module+"\n",
		"a.go", "package a\n",
		"a_test.go", "package a\n\n// XXX\n",
		"key/k.go", "package key\n\nimport _ \""+Module+"/dataset\"\n",
		"key/testdata/no.go", "package key\n",
		"key/testdata/no.py", "# TODO\n",
		"key/testdata/deep/note.md", "three words here",
		"nested/go.mod", "module nested\n",
		"nested/no.go", "package nested\n\n// TODO\n",
		"nested/deep/no.go", "package deep\n",
		"nested/README.md", "one two",
		"nestedtoo/yes.go", "package nestedtoo\n",
		"out/out.go", "package out\n",
		"key/out/yes.go", "package out\n",
		"bin", "# TODO\n",
		"python/.venv/no.md", "x",
		"python/a.py", "x = 'TODO'\ny = 1 # FIXME\n",
		"list.gen.md", "x",
		".git/no.md", "x",
		".ci/run", "# TODO\n",
		"data.csv", "# TODO\n")
	tree, err := ReadTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range tree.Files {
		names = append(names, f.Path)
	}
	slices.Sort(tree.Marks)
	equal(t, "Go files", names, []string{"a.go", "a_test.go", "key/k.go", "key/out/yes.go", "nestedtoo/yes.go"})
	equal(t, "Markdown", tree.Words, map[string]int{"key/testdata/deep/note.md": 3, "nested/README.md": 2})
	equal(t, "marks", tree.Marks, []string{".ci/run:1", "a_test.go:3", "nested/no.go:3", "python/a.py:2"})
	equal(t, "imports", tree.Upward(), []string{"key/k.go imports dataset"})
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		want          bool
	}{
		{"internal/show", "fault", false},
		{"fault", "internal/show", true},
		{"fault", "internal/panics", false},
		{"codec", "dataset", false},
		{"key", "internal/keys", true},
		{"internal/keys", "codec", false},
		{"internal/filters", "internal/source", false},
		{"storage", "key", false},
		{"internal/source", "internal/tasks", false},
		{"internal/tasks", "internal/source", true},
		{"internal/parquet", "internal/panics", true},
		{"internal/leaves/deep", "internal/keys", true},
		{"internal/parquet", "codec", false},
		{"internal/parquet", "internal/parquet/meta", true},
		{"internal/parquet", "internal/parquet/adapt", false},
		{"internal/parquet/adapt", "internal/parquet", true},
		{"partition", "internal/parquet", true},
		{"partition", "filterbuild", false},
		{"filterbuild", "partition", true},
		{"internal/joins/internal/plan", "internal/joins/internal/table", true},
		{"internal/joins/internal/plan", "internal/joins", false},
		{"internal/joins/internal/plan", "partition", false},
		{"internal/joins", "internal/joins/internal/plan", true},
		{"internal/joins", "join", false},
		{"join", "storage/cloud", false},
		{".", "join", true},
		{".", "storage/cloud", false},
		{".", "cmd/bloomjoin", false},
		{"join", ".", false},
		{"storage/cloud/internal/fetch", "storage", true},
		{"partition", "storage/cloud", false},
		{"cmd/bloomjoin", ".", true},
		{"cmd/bloomjoin", "storage/cloud", true},
		{"unknown", "fault", false},
	} {
		equal(t, c.pkg+" may import "+c.imported, mayImport(c.pkg, c.imported), c.want)
	}
}

// check returns the package of a source, which imports those.
func check(t *testing.T, path, source string, imports ...*types.Package) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: imported(imports)}
	pkg, err := conf.Check(path, fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

type imported []*types.Package

func (m imported) Import(path string) (*types.Package, error) {
	for _, pkg := range m {
		if pkg.Path() == path {
			return pkg, nil
		}
	}
	return nil, fmt.Errorf("no package %s", path)
}

func TestExamine(t *testing.T) {
	secret := check(t, Module+"/internal/secret", `package secret
type T struct{ F int }
func (T) M() {}
type I interface{ N() }`)
	const top = `package p
import "` + Module + `/internal/secret"
var _ secret.T
`
	for _, c := range []struct {
		name, source string
		want         Names
		internal     []string // the starts of the texts
	}{
		{"blocks", `const ( A = iota; B; c ); var ( D, E int; f int ); func F() {}; func g() {}`, Names{Values: 4, Funcs: 1}, nil},
		{"methods and fields", `type T struct { A, b int; C struct { D int } }; func (T) M() {}; func (*T) N() {}; func (T) o() {}`,
			Names{Types: 1, Methods: 2, Fields: 2}, nil},
		{"interface", `type I interface { J; M(); n() }; type J interface { N() }`, Names{Types: 2, Methods: 3}, nil},
		{"promoted", `type base struct { A int; b int }; func (*base) M() {}; type T struct { *base; C int }`, Names{Types: 1, Methods: 1, Fields: 2}, nil},
		{"promoted twice", `type low struct { A int }; type mid struct { low; B int }; type T struct { mid }`, Names{Types: 1, Fields: 2}, nil},
		{"shadowed", `type base struct { A, B int }; func (base) M() {}; type T struct { base; A int }; func (T) M() {}`, Names{Types: 1, Methods: 1, Fields: 2}, nil},
		{"ambiguous", `type a struct { A int }; type b struct { A int }; type T struct { a; b }`, Names{Types: 1}, nil},
		{"itself", `type T struct { *T; A int }`, Names{Types: 1, Fields: 2}, nil},
		{"of an interface", `type T struct { error }`, Names{Types: 1, Methods: 1}, nil},
		{"generic", `type base[E any] struct { A E }; func (base[E]) M() {}; type T struct { base[int] }`, Names{Types: 1, Methods: 1, Fields: 1}, nil},
		{"aliases", `type T struct { A int }; type U = T; type hidden struct { B int }; type V = hidden; type W = struct { C int }; type X = []int`,
			Names{Types: 5, Fields: 3}, nil},

		{"signature", `func F(...*secret.T) map[string][]secret.I { return nil }`, Names{Funcs: 1}, []string{"F names internal/secret.I", "F names internal/secret.T"}},
		{"variable", `var V chan secret.T`, Names{Values: 1}, []string{"V names"}},
		{"constraint", `func F[E secret.I]() {}; type T[E secret.I] struct{}`, Names{Funcs: 1, Types: 1}, []string{"F names", "T names"}},
		{"field and method", `type T struct { A [2]secret.T; b secret.T }; func (T) M(secret.T) {}; func (T) n(secret.T) {}`,
			Names{Types: 1, Fields: 1, Methods: 1}, []string{"T.A names", "T.M names"}},
		{"embedded", `type T struct { secret.T }; type U struct { s }; type s = secret.T`, Names{Types: 2, Fields: 3, Methods: 2}, []string{"T.T names"}},
		{"of a promoted field", `type base struct { A secret.T }; type T struct { base }`, Names{Types: 1, Fields: 1}, []string{"T.A names"}},
		{"alias of it", `type T = secret.I`, Names{Types: 1}, []string{"T names"}},
		{"type without a name outside", `type hidden struct{}; func (*hidden) M(secret.T) {}; func New() *hidden { return nil }`, Names{Funcs: 1}, []string{"New.M names"}},
		{"function type", `type F func(interface{ M(secret.T) })`, Names{Types: 1}, []string{"F names"}},
	} {
		pkg := check(t, Module+"/p", top+c.source, secret)
		got, internal := Examine(pkg)
		equal(t, c.name, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", c.want))
		same := len(internal) == len(c.internal)
		for i := range c.internal {
			same = same && strings.HasPrefix(internal[i], c.internal[i])
		}
		if !same {
			t.Errorf("%s: got %q, want %q", c.name, internal, c.internal)
		}
	}
}

func TestLinesOfCode(t *testing.T) {
	equal(t, "lines", LinesOfCode("// Doc\npackage p\n\nimport (\n\t\"fmt\"\n)\n\n// F\nfunc F() {\n\n\tfmt.Println() // yes\n}\n"), 3)
}
