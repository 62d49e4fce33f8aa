package house

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
)

// Public returns the packages of a checkout that programs can import: those outside
// internal and cmd. They come from the compiler's export data, which the tests have
// needed already, so that nothing is checked twice.
func Public(dir string) ([]*types.Package, error) {
	out, err := goList(dir, nil, "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	var public []string
	for line := range strings.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
		if pkg, ours := ours(path); ours && file != "" && IsPublic(pkg) {
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

// Needs counts the other modules of which the command is built, and their packages,
// on Linux on amd64.
func Needs(dir string) (modules, packages int, err error) {
	env := []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}
	out, err := goList(dir, env, "-tags=", "-deps", "-f", "{{if not .Standard}}{{.Module.Path}}{{end}}", "./cmd/bloomjoin")
	if err != nil {
		return 0, 0, err
	}
	all := slices.DeleteFunc(strings.Fields(out), func(module string) bool { return module == Module })
	slices.Sort(all)
	return len(slices.Compact(slices.Clone(all))), len(all), nil
}

func goList(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	return string(out), nil
}

// ours returns the directory of a package if it is one of this module.
func ours(path string) (pkg string, ok bool) {
	if path == Module {
		return ".", true
	}
	return strings.CutPrefix(path, Module+"/")
}

// Names counts what a package exports. Methods and fields include those that a type
// has from what it embeds.
type Names struct{ Types, Funcs, Methods, Fields, Values int }

// Total is the number of names.
func (n Names) Total() int { return n.Types + n.Funcs + n.Methods + n.Fields + n.Values }

// Plus adds two counts.
func (n Names) Plus(o Names) Names {
	return Names{n.Types + o.Types, n.Funcs + o.Funcs, n.Methods + o.Methods, n.Fields + o.Fields, n.Values + o.Values}
}

// Examine counts the exported names of a package and returns a text for each whose
// type names an internal package, as no program could write that type down.
func Examine(pkg *types.Package) (n Names, internal []string) {
	e := &examiner{pkg: pkg, seen: map[types.Type]bool{}}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		e.at = name
		switch obj := obj.(type) {
		case *types.TypeName:
			e.names.Types++
			e.declared(obj)
		case *types.Func:
			e.names.Funcs++
			e.walk(obj.Type())
		default:
			e.names.Values++
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
	names    Names
	internal []string
	seen     map[types.Type]bool // types of the package that are not exported
}

// declared examines an exported type: its fields and methods. Those of an alias
// count where its type is declared, if that is exported.
func (e *examiner) declared(obj *types.TypeName) {
	if alias, ok := obj.Type().(*types.Alias); ok {
		e.params(alias.TypeParams())
		e.walk(alias.Rhs())
		if of, ok := types.Unalias(alias).(*types.Named); !ok || of.Obj().Pkg() == e.pkg && !of.Obj().Exported() {
			e.members(types.Unalias(alias))
		}
		return
	}
	e.params(obj.Type().(*types.Named).TypeParams())
	e.members(obj.Type())
}

// members counts and examines the exported methods and fields of a type.
func (e *examiner) members(t types.Type) {
	name := e.at
	defer func() { e.at = name }()
	e.names.Methods += e.methods(t)
	if _, ok := t.Underlying().(*types.Struct); !ok {
		e.walk(t.Underlying())
		return
	}
	for _, f := range promoted(t, map[types.Type]bool{}) {
		// Of fields with one name, the shallowest is meant, if there is one.
		if obj, _, _ := types.LookupFieldOrMethod(t, true, e.pkg, f.Name()); obj == f {
			e.names.Fields++
			e.at = name + "." + f.Name()
			e.walk(f.Type())
		}
	}
}

// methods examines the exported methods of a type and returns their number.
func (e *examiner) methods(t types.Type) (n int) {
	name := e.at
	defer func() { e.at = name }()
	if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	set := types.NewMethodSet(t)
	for i := range set.Len() {
		if m := set.At(i).Obj(); m.Exported() {
			n++
			e.at = name + "." + m.Name()
			e.walk(m.Type())
		}
	}
	return n
}

// promoted returns the exported fields of a struct and, whatever their depth, of
// the structs that it embeds.
func promoted(t types.Type, seen map[types.Type]bool) (fields []*types.Var) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	u, ok := t.Underlying().(*types.Struct)
	if !ok || seen[t] {
		return nil
	}
	seen[t] = true
	for f := range u.Fields() {
		if f.Exported() {
			fields = append(fields, f)
		}
		if f.Embedded() {
			fields = append(fields, promoted(f.Type(), seen)...)
		}
	}
	return fields
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
			// A type without an exported name that an exported one leads to.
			e.seen[t] = true
			e.methods(t)
			e.walk(t.Underlying())
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

func (e *examiner) named(obj *types.TypeName) {
	if obj.Pkg() == nil {
		return
	}
	if pkg, ours := ours(obj.Pkg().Path()); ours && !IsPublic(pkg) {
		e.internal = append(e.internal, fmt.Sprintf("%s names %s.%s: want a type that programs can import", e.at, pkg, obj.Name()))
	}
}
