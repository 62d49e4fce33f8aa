package bloomjoin_test

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/bloomjoin/bloomjoin"

// namesAllowed bounds the exported names of a package: types, functions, methods
// and fields. Every name is one that a program has to read past, and one that
// later versions have to keep.
var namesAllowed = map[string]int{"join": 79, "partition": 306}

// TestAPI checks the exported part of each public package: no name of it has a
// type of an internal package, as no program could write that type down, and there
// are no more names than allowed. With -v it prints how many there are.
func TestAPI(t *testing.T) {
	dir := os.Getenv("BLOOMJOIN_API_DIR") // another checkout, to compare with
	pkgs, err := loadPublic(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 5 {
		t.Fatalf("only %d public packages were found", len(pkgs))
	}
	sum := names{}
	t.Logf("%-12s %6s %6s %6s %6s %6s   %s", "package", "types", "funcs", "meths", "fields", "names", "consts and vars")
	for _, pkg := range pkgs {
		path := strings.TrimPrefix(strings.TrimPrefix(pkg.Path(), module), "/")
		n, internal := examine(pkg)
		sum = sum.plus(n)
		t.Logf("%-12s %s", path, n)
		for _, text := range internal {
			t.Errorf("%s.%s", path, text)
		}
		if most, ok := namesAllowed[path]; ok && n.total() > most {
			t.Errorf("%s exports %d names: want at most %d", path, n.total(), most)
		}
	}
	t.Logf("%-12s %s", "all", sum)
}

// names counts what a package exports.
type names struct{ types, funcs, methods, fields, values int }

func (n names) total() int { return n.types + n.funcs + n.methods + n.fields }

func (n names) plus(o names) names {
	return names{n.types + o.types, n.funcs + o.funcs, n.methods + o.methods, n.fields + o.fields, n.values + o.values}
}

func (n names) String() string {
	return fmt.Sprintf("%6d %6d %6d %6d %6d   %d", n.types, n.funcs, n.methods, n.fields, n.total(), n.values)
}

// loadPublic returns the packages of the checkout that programs can import: those
// outside internal, cmd and bench.
func loadPublic(dir string) ([]*types.Package, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	exports := map[string]string{}
	var public []string
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
		inside, ours := strings.CutPrefix(path+"/", module+"/")
		if ours && file != "" && !isInternal(path) && !strings.HasPrefix(inside, "cmd/") && !strings.HasPrefix(inside, "bench/") {
			public = append(public, path)
		}
	}
	slices.Sort(public)
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	imp := importer.ForCompiler(token.NewFileSet(), "gc", lookup)
	var pkgs []*types.Package
	for _, path := range public {
		pkg, err := imp.Import(path)
		if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, pkg)
	}
	return pkgs, nil
}

func isInternal(path string) bool {
	return strings.HasPrefix(path, module) && slices.Contains(strings.Split(path, "/"), "internal")
}

// examine counts a package's exported names and returns those whose type names an
// internal package.
func examine(pkg *types.Package) (n names, internal []string) {
	e := &examiner{pkg: pkg, seen: map[types.Type]bool{}}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		e.at = name
		switch obj := obj.(type) {
		case *types.TypeName:
			e.names.types++
			e.declared(obj)
		case *types.Func:
			e.names.funcs++
			e.walk(obj.Type())
		default:
			e.names.values++
			e.walk(obj.Type())
		}
	}
	slices.Sort(e.internal)
	return e.names, slices.Compact(e.internal)
}

// examiner walks the types that the exported names of a package lead to.
type examiner struct {
	pkg      *types.Package
	at       string // the name that is looked at
	names    names
	internal []string
	seen     map[types.Type]bool // types of the package that are not exported
}

// declared examines an exported type: its fields, and the methods of its own and
// of what it embeds.
func (e *examiner) declared(obj *types.TypeName) {
	if alias, ok := obj.Type().(*types.Alias); ok {
		e.walk(alias.Rhs())
		return
	}
	t := obj.Type().(*types.Named)
	e.params(t.TypeParams())
	name := e.at
	for m := range t.Methods() {
		if m.Exported() {
			e.names.methods++
		}
	}
	set := types.NewMethodSet(types.NewPointer(t))
	for i := range set.Len() {
		if m := set.At(i).Obj(); m.Exported() {
			e.at = name + "." + m.Name()
			e.walk(m.Type())
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				e.names.fields++
				e.at = name + "." + f.Name()
				e.walk(f.Type())
			}
		}
	case *types.Interface:
		for m := range u.Methods() {
			if m.Exported() {
				e.names.methods++
			}
		}
		e.at = name
		e.walk(u)
	default:
		e.at = name
		e.walk(u)
	}
}

func (e *examiner) params(list *types.TypeParamList) {
	for p := range list.TypeParams() {
		e.walk(p.Constraint())
	}
}

// walk notes the internal types that a type names.
func (e *examiner) walk(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		e.named(t.Obj())
		e.walk(t.Rhs())
	case *types.Named:
		e.named(t.Obj())
		for arg := range t.TypeArgs().Types() {
			e.walk(arg)
		}
		if t.Obj().Pkg() == e.pkg && !t.Obj().Exported() && !e.seen[t] {
			e.hidden(t)
		}
	case *types.Pointer:
		e.walk(t.Elem())
	case *types.Slice:
		e.walk(t.Elem())
	case *types.Array:
		e.walk(t.Elem())
	case *types.Chan:
		e.walk(t.Elem())
	case *types.Map:
		e.walk(t.Key())
		e.walk(t.Elem())
	case *types.Signature:
		e.params(t.TypeParams())
		for v := range t.Params().Variables() {
			e.walk(v.Type())
		}
		for v := range t.Results().Variables() {
			e.walk(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				e.walk(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			e.walk(m.Type())
		}
		for embedded := range t.EmbeddedTypes() {
			e.walk(embedded)
		}
	case *types.Union:
		for term := range t.Terms() {
			e.walk(term.Type())
		}
	}
}

// hidden examines a type without an exported name that an exported one returns.
func (e *examiner) hidden(t *types.Named) {
	e.seen[t] = true
	at := e.at
	set := types.NewMethodSet(types.NewPointer(t))
	for i := range set.Len() {
		if m := set.At(i).Obj(); m.Exported() {
			e.at = at + "." + m.Name()
			e.walk(m.Type())
		}
	}
	e.at = at
	e.walk(t.Underlying())
}

func (e *examiner) named(obj *types.TypeName) {
	if obj.Pkg() != nil && isInternal(obj.Pkg().Path()) {
		path := strings.TrimPrefix(obj.Pkg().Path(), module+"/")
		e.internal = append(e.internal, fmt.Sprintf("%s names %s.%s: want a type that programs can import", e.at, path, obj.Name()))
	}
}
