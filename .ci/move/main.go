// Move moves declarations between packages of this module, exports what then crosses
// from one to another, qualifies and renames uses, literals without field names, and
// what comments name. It is here for as long as package partition is cut into rooms.
//
//	(cd .ci/move && go build -o /tmp/move .)
//	/tmp/move -q -n SPEC.json    # in the root: what it would export, and what is in the way
//	/tmp/move -q SPEC.json
//
// -q leaves out files of other systems; these, assembly and testdata are moved by hand. A
// Spec says what goes where, see its fields. nest/ puts fields of literals into an
// embedded struct.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/tools/go/packages"
)

const home = "github.com/bloomjoin/bloomjoin"

type Spec struct {
	// Package: source package path below home -> file -> target package ("internal/x"); "*" for the rest.
	Files map[string]map[string]string
	// "partition.Sym" or "partition.Type.method" -> target; methods follow their type by themselves.
	Symbols map[string]string
	// "partition.Sym", "partition.Type.member" -> new name
	Renames map[string]string
	// target -> package name, if not the base
	Names map[string]string
	// target/file -> new file name:  "partition/foo.go" -> "bar.go"
	FileNames map[string]string
	Locals    map[string]string // local names in the way of a package
	Getters   map[string]string // "partition.File.Name": "name": the field gets that name, uses elsewhere call Name()
	Keep, KeepComments string // regexps of files in which names of KeepPkg stay
	KeepPkg string
	NotTest   map[string]string // source file -> new file name without _test
}

var (
	dry   = flag.Bool("n", false, "only report")
	quick = flag.Bool("q", false, "this system only")
	spec  Spec
	root  string
)

type decl struct {
	file   string
	lo, hi int // offsets of the chunk
	syms   []string
	target string // path below home
	node   ast.Decl
}
type fileInfo struct {
	name    string // absolute
	pkg     string // import path below home, "" for root; with _test for external
	text    []byte
	af      *ast.File
	moving  bool
	main    string
	decls   []*decl
	head    int // end of package clause line
	edits   map[edit]bool
	imports map[string]map[string]bool // target -> "name path"
	blank   []string
}
type edit struct {
	lo, hi int
	text   string
}
type object struct {
	key, name, sym string // sym: Type.member or Sym
	pkg            string // rel, source
	target         string
	kind           string // top, field, method
	exported       bool
	export         bool
	newName        string
	owner          string // Type for members
	embeddedOf     string // key of the type
	users          map[string]bool
	ambig          bool
}

var (
	files   = map[string]*fileInfo{}
	objects = map[string]*object{}
	ifaceM  = map[string]bool{} // pkg.method names in interfaces
	bad     = map[string]bool{}
)

func die(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...); os.Exit(1) }
func warn(f string, a ...any) {
	s := fmt.Sprintf(f, a...)
	if !bad[s] {
		bad[s] = true
	}
}

func rel(p string) string {
	p, _, _ = strings.Cut(p, " ")
	return strings.TrimPrefix(strings.TrimPrefix(p, home), "/")
}
func pkgName(target string) string {
	ext := strings.HasSuffix(target, "_test")
	target = strings.TrimSuffix(target, "_test")
	n := spec.Names[target]
	if n == "" {
		n = path.Base(target)
		if target == "" {
			n = "bloomjoin"
		}
		if n == "bloomjoin" && target != "" {
			n = "main"
		}
		for _, f := range files {
			if f.pkg == target && !f.moving {
				n = f.af.Name.Name
				break
			}
		}
	}
	if ext {
		n += "_test"
	}
	return n
}

func main() {
	flag.Parse()
	b, err := os.ReadFile(flag.Arg(0))
	if err != nil {
		die("%v", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		die("%v", err)
	}
	root, _ = os.Getwd()
	envs := [][]string{{"GOOS=linux", "GOARCH=amd64"}}
	if !*quick {
		envs = append(envs, []string{"GOOS=linux", "GOARCH=arm64", "GOFLAGS=-trimpath -tags=purego"}, []string{"GOOS=darwin", "GOARCH=arm64"}, []string{"GOOS=windows", "GOARCH=amd64"})
	}
	var all []*packages.Package
	for _, env := range envs {
		cfg := &packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps | packages.NeedExportFile,
			Tests: true, Env: append(append(os.Environ(), "CGO_ENABLED=0"), env...)}
		cfg.Mode &^= packages.NeedDeps
		ps, err := packages.Load(cfg, "./...")
		if err != nil {
			die("%v", err)
		}
		for _, p := range ps {
			for _, e := range p.Errors {
				fmt.Fprintln(os.Stderr, p.ID, e)
			}
			if strings.HasSuffix(p.PkgPath, ".test") {
				continue
			}
			all = append(all, p)
		}
	}
	for _, p := range all {
		index(p)
	}
	for _, p := range all {
		declare(p)
	}
	for _, p := range all {
		use(p, true)
	}
	name()
	for _, p := range all {
		use(p, false)
	}
	comments()
	write()
	var lines []string
	for s := range bad {
		lines = append(lines, s)
	}
	sort.Strings(lines)
	for _, l := range lines {
		fmt.Println(l)
	}
}

func relPkg(p *packages.Package) string {
	return rel(p.PkgPath)
}

var fsets = map[*packages.Package]*token.FileSet{}

// index notes files, chunks and targets.
func index(p *packages.Package) {
	for _, af := range p.Syntax {
		pos := p.Fset.Position(af.Package)
		name := pos.Filename
		if !strings.HasPrefix(name, root+"/") || files[name] != nil {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			die("%v", err)
		}
		f := &fileInfo{name: name, text: text, af: af, pkg: relPkg(p), edits: map[edit]bool{}, imports: map[string]map[string]bool{}}
		files[name] = f
		src := strings.TrimSuffix(f.pkg, "_test")
		ext := strings.HasSuffix(f.pkg, "_test")
		base := filepath.Base(name)
		f.main = f.pkg
		if m := spec.Files[src]; m != nil {
			t, ok := m[base]
			if !ok {
				t, ok = m[strings.TrimSuffix(base, ".go")]
			}
			if !ok {
				t, ok = m["*"]
			}
			if ok {
				f.main = t
				if ext {
					f.main += "_test"
				}
			}
		}
		f.moving = f.main != f.pkg
		off := func(x token.Pos) int { return p.Fset.Position(x).Offset }
		eol := func(o int) int {
			for o < len(text) && text[o] != '\n' {
				o++
			}
			return min(o+1, len(text))
		}
		f.head = eol(off(af.Name.End()))
		last := f.head
		for _, d := range af.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				last = eol(off(d.End()))
				continue
			}
			c := &decl{file: name, lo: last, hi: eol(off(d.End())), target: f.main, node: d}
			last = c.hi
			switch d := d.(type) {
			case *ast.FuncDecl:
				sym := d.Name.Name
				if d.Recv != nil {
					sym = recv(d.Recv.List[0].Type) + "." + sym
				}
				c.syms = []string{sym}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						c.syms = append(c.syms, s.Name.Name)
					case *ast.ValueSpec:
						for _, n := range s.Names {
							c.syms = append(c.syms, n.Name)
						}
					}
				}
			}
			for _, s := range c.syms {
				if t, ok := spec.Symbols[src+"."+s]; ok {
					c.target = t
					if ext {
						c.target += "_test"
					}
				}
			}
			if c.target != f.pkg {
				f.moving = true
			}
			f.decls = append(f.decls, c)
		}
		if len(f.decls) > 0 {
			f.decls[len(f.decls)-1].hi = len(text)
		}
	}
}

// typeTargets: methods follow types.
func (f *fileInfo) at(off int) *decl {
	i := sort.Search(len(f.decls), func(i int) bool { return f.decls[i].hi > off })
	if i < len(f.decls) && f.decls[i].lo <= off {
		return f.decls[i]
	}
	return nil
}

func recv(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

func keyOf(p *packages.Package, o types.Object) string {
	pos := p.Fset.Position(o.Pos())
	if r, ok := strings.CutPrefix(pos.Filename, home+"/"); ok {
		pos.Filename = root + "/" + r
	}
	if pos.Filename == "" || !strings.HasPrefix(pos.Filename, root+"/") {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", pos.Filename, pos.Line, pos.Column)
}

var methodsFollow = false

// declare notes the package-level objects, fields and methods declared in p.
func declare(p *packages.Package) {
	if !methodsFollow {
		methodsFollow = true
		typeAt := map[string]string{}
		for _, f := range files {
			for _, d := range f.decls {
				if g, ok := d.node.(*ast.GenDecl); ok && g.Tok == token.TYPE {
					for _, s := range d.syms {
						typeAt[strings.TrimSuffix(f.pkg, "_test")+"|"+f.af.Name.Name+"."+s] = d.target
					}
				}
			}
		}
		for _, f := range files {
			for _, d := range f.decls {
				if fd, ok := d.node.(*ast.FuncDecl); ok && fd.Recv != nil {
					t, ok := typeAt[strings.TrimSuffix(f.pkg, "_test")+"|"+f.af.Name.Name+"."+recv(fd.Recv.List[0].Type)]
					if ok && t != d.target {
						src := strings.TrimSuffix(f.pkg, "_test")
						if w, ok := spec.Symbols[src+"."+d.syms[0]]; ok && w != t {
							warn("METHOD AWAY %s -> %s, type in %s", d.syms[0], w, t)
						} else if !ok {
							warn("method follows %s.%s (%s) -> %s", src, d.syms[0], filepath.Base(f.name), t)
						}
						d.target = t
						f.moving = true
					}
				}
			}
		}
	}
	for id, o := range p.TypesInfo.Defs {
		if o == nil || o.Pkg() == nil {
			continue
		}
		ob := &object{name: o.Name(), pkg: relPkg(p), exported: o.Exported(), users: map[string]bool{}}
		switch o := o.(type) {
		case *types.Func:
			ob.kind = "top"
			if r := o.Type().(*types.Signature).Recv(); r != nil {
				ob.kind = "method"
				ob.owner = named(r.Type())
				if types.IsInterface(r.Type()) {
					ifaceM[ob.pkg+"."+o.Name()] = true
				}
			} else if o.Name() == "init" || o.Name() == "_" || o.Name() == "main" || strings.HasPrefix(o.Name(), "Test") || strings.HasPrefix(o.Name(), "Benchmark") || strings.HasPrefix(o.Name(), "Fuzz") || strings.HasPrefix(o.Name(), "Example") {
				continue
			}
		case *types.Var:
			if o.IsField() {
				ob.kind = "field"
				if o.Embedded() {
					t := o.Type()
					if pt, ok := t.(*types.Pointer); ok {
						t = pt.Elem()
					}
					switch t := t.(type) {
					case *types.Named:
						ob.embeddedOf = keyOf(p, t.Obj())
					case *types.Alias:
						ob.embeddedOf = keyOf(p, t.Obj())
					}
				}
			} else if o.Parent() == o.Pkg().Scope() {
				ob.kind = "top"
			}
		case *types.TypeName, *types.Const:
			if o.Parent() == o.Pkg().Scope() {
				ob.kind = "top"
			}
		}
		if ob.kind == "" || o.Name() == "_" {
			continue
		}
		pos := p.Fset.Position(id.Pos())
		f := files[pos.Filename]
		if f == nil {
			continue
		}
		d := f.at(pos.Offset)
		if d == nil {
			continue
		}
		ob.target = d.target
		ob.sym = ob.name
		if ob.kind == "field" {
			ob.owner = fieldOwner(d.node, id)
		}
		if ob.kind == "method" && ob.owner == "" {
			ob.owner = fieldOwner(d.node, id)
		}
		if ob.owner != "" {
			ob.sym = ob.owner + "." + ob.name
		}
		ob.key = fmt.Sprintf("%s:%d:%d", pos.Filename, pos.Line, pos.Column)
		if objects[ob.key] == nil {
			objects[ob.key] = ob
		}
	}
}

func named(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// fieldOwner returns the package-level type that declares the field directly.
func fieldOwner(n ast.Node, id *ast.Ident) (owner string) {
	ast.Inspect(n, func(n ast.Node) bool {
		ts, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if ts.Pos() <= id.Pos() && id.Pos() < ts.End() {
			owner = ts.Name.Name
		}
		return true
	})
	return owner
}

func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

var done = map[string]bool{}

// use visits the uses in p: first what must be exported, then edits.
func use(p *packages.Package, first bool) {
	for _, af := range p.Syntax {
		pos := p.Fset.Position(af.Package)
		f := files[pos.Filename]
		if f == nil {
			continue
		}
		dk := fmt.Sprint(first, pos.Filename)
		if done[dk] {
			continue
		}
		done[dk] = true
		off := func(x token.Pos) int { return p.Fset.Position(x).Offset }
		need := func(target, name, path string) {
			if f.imports[target] == nil {
				f.imports[target] = map[string]bool{}
			}
			f.imports[target][name+" "+path] = true
		}
		for _, d := range f.decls {
			var stack []ast.Node
			ast.Inspect(d.node, func(n ast.Node) bool {
				if n == nil {
					stack = stack[:len(stack)-1]
					return true
				}
				stack = append(stack, n)
				if cl, ok := n.(*ast.CompositeLit); ok && !first && len(cl.Elts) > 0 {
					keyed(p, f, d, cl, off)
				}
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				o := p.TypesInfo.Uses[id]
				def := false
				if o == nil {
					o, def = p.TypesInfo.Defs[id], true
				}
				if o == nil {
					return true
				}
				if pn, ok := o.(*types.PkgName); ok {
					if !first {
						// our packages' qualifiers are handled with the selected object
						if !strings.HasPrefix(pn.Imported().Path(), home) {
							need(d.target, importName(pn), pn.Imported().Path())
						}
					}
					return true
				}
				o = origin(o)
				ob := objects[keyOf(p, o)]
				if ob != nil && keep(spec.Keep, f) && ob.pkg == spec.KeepPkg {
					if !first && ob.kind == "top" {
						need(d.target, "", home+"/"+spec.KeepPkg)
					}
					return true
				}
				// an alias or embedded field: object by its own position
				var qual *ast.Ident
				if len(stack) > 1 {
					if s, ok := stack[len(stack)-2].(*ast.SelectorExpr); ok && s.Sel == id {
						if x, ok := s.X.(*ast.Ident); ok {
							if _, ok := p.TypesInfo.Uses[x].(*types.PkgName); ok {
								qual = x
							}
						}
					}
				}
				if ob == nil {
					if qual != nil && !first {
						pn := p.TypesInfo.Uses[qual].(*types.PkgName)
						if strings.HasPrefix(pn.Imported().Path(), home) {
							need(d.target, importName(pn), pn.Imported().Path())
						}
					}
					return true
				}
				if first {
					if base(ob.target) != base(d.target) || strings.HasSuffix(d.target, "_test") != strings.HasSuffix(ob.target, "_test") {
						ob.users[d.target+" "+filepath.Base(f.name)] = true
						if !ob.exported {
							ob.export = true
						}
					}
					return true
				}
				text := ob.newName
				if g, ok := spec.Getters[ob.pkg+"."+ob.sym]; ok && ob.kind == "field" {
					text = g
					if d.target != ob.target {
						text = upper(g) + "()"
					}
				}
				if def && ob.kind == "field" && ob.embeddedOf != "" {
					return true // the type's ident is a use, too
				}
				lo, hi := off(id.Pos()), off(id.End())
				if ob.kind == "top" && d.target != ob.target {
					pn := pkgName(ob.target)
					name := ""
					if qual != nil {
						q := p.TypesInfo.Uses[qual].(*types.PkgName)
						if q.Name() != q.Imported().Name() { // an alias stays
							pn = q.Name()
							name = pn
						}
						lo = off(qual.Pos())
					}
					need(d.target, name, strings.TrimSuffix(home+"/"+ob.target, "/"))
					shadow(p, f, d, id, pn, off)
					text = pn + "." + text
				} else if qual != nil {
					lo = off(qual.Pos())
				}
				if string(f.text[lo:hi]) != text {
					f.edits[edit{lo, hi, text}] = true
				}
				return true
			})
		}
		if !first {
			for _, im := range af.Imports {
				if im.Name != nil && (im.Name.Name == "_" || im.Name.Name == ".") {
					f.blank = append(f.blank, im.Name.Name+" "+unq(im.Path.Value))
				}
			}
		}
	}
}

func keep(re string, f *fileInfo) bool {
	ok, err := regexp.MatchString(re, strings.TrimPrefix(f.name, root+"/"))
	if err != nil {
		die("%v", err)
	}
	return re != "" && ok
}

func base(t string) string { return t }

func unq(s string) string { s, _ = strconv.Unquote(s); return s }

func importName(pn *types.PkgName) string {
	if pn.Name() != pn.Imported().Name() {
		return pn.Name()
	}
	return ""
}

// shadow warns of locals called like the package.
func shadow(p *packages.Package, f *fileInfo, d *decl, id *ast.Ident, pn string, off func(token.Pos) int) {
	sc := p.Types.Scope().Innermost(id.Pos())
	if sc == nil {
		return
	}
	_, o := sc.LookupParent(pn, id.Pos())
	if o == nil || o.Parent() == p.Types.Scope() || o.Parent() == types.Universe {
		return
	}
	if _, ok := o.(*types.PkgName); ok {
		return
	}
	fd, _ := d.node.(*ast.FuncDecl)
	fn := ""
	if fd != nil {
		fn = fd.Name.Name
	}
	to := spec.Locals[pn]
	if t, ok := spec.Locals[fn+"."+pn]; ok {
		to = t
	}
	if to == "" {
		warn("SHADOW %s: local %s in %s", filepath.Base(f.name), pn, fn)
		return
	}
	if _, other := sc.LookupParent(to, id.Pos()); other != nil {
		warn("SHADOW %s: local %s in %s, and %s is taken", filepath.Base(f.name), pn, fn, to)
	}
	ast.Inspect(d.node, func(n ast.Node) bool {
		if x, ok := n.(*ast.Ident); ok && (p.TypesInfo.Uses[x] == o || p.TypesInfo.Defs[x] == o) {
			f.edits[edit{off(x.Pos()), off(x.End()), to}] = true
		}
		return true
	})
}

// keyed adds field names to literals of structs of other packages.
func keyed(p *packages.Package, f *fileInfo, d *decl, cl *ast.CompositeLit, off func(token.Pos) int) {
	if _, ok := cl.Elts[0].(*ast.KeyValueExpr); ok {
		return
	}
	t := p.TypesInfo.Types[cl].Type
	if t == nil {
		return
	}
	if pt, ok := t.Underlying().(*types.Pointer); ok {
		t = pt.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	n, ok := t.(*types.Named)
	if !ok {
		return
	}
	ob := objects[keyOf(p, n.Obj())]
	if ob == nil || ob.target == d.target {
		return
	}
	if strings.TrimSuffix(d.target, "_test") == ob.target {
		return
	}
	for i, e := range cl.Elts {
		fo := objects[keyOf(p, st.Field(i).Origin())]
		if fo == nil {
			return
		}
		f.edits[edit{off(e.Pos()), off(e.Pos()), fo.newName + ": "}] = true
		if !fo.exported && !fo.export {
			warn("KEYED %s: field %s is used without its name", filepath.Base(f.name), fo.sym)
		}
	}
}

var initials = map[string]string{"id": "ID", "url": "URL", "json": "JSON", "crc": "CRC", "ids": "IDs", "utf8": "UTF8"}

func upper(s string) string {
	for k, v := range initials {
		if s == k || strings.HasPrefix(s, k) && len(s) > len(k) && unicode.IsUpper(rune(s[len(k)])) {
			return v + s[len(k):]
		}
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// name decides the new names.
func name() {
	// unkeyed literals need their fields exported
	for changed := true; changed; {
		changed = false
		methods := map[string]bool{}
		for _, ob := range objects {
			if ob.kind == "method" && ob.export && ifaceM[ob.pkg+"."+ob.name] {
				methods[strings.TrimSuffix(ob.pkg, "_test")+"."+ob.name] = true
			}
		}
		for _, ob := range objects {
			if ob.kind == "method" && !ob.export && !ob.exported && methods[strings.TrimSuffix(ob.pkg, "_test")+"."+ob.name] {
				ob.export, changed = true, true
				ob.users["interface"] = true
			}
			if ob.embeddedOf != "" {
				t := objects[ob.embeddedOf]
				if t != nil && ob.export && !t.exported && !t.export {
					t.export, changed = true, true
					t.users["embedded"] = true
				}
			}
		}
	}
	for _, ob := range objects {
		ob.newName = ob.name
		if ob.export && !ob.exported {
			ob.newName = upper(ob.name)
		}
		if n, ok := spec.Renames[ob.pkg+"."+ob.sym]; ok {
			ob.newName = n
		} else if n, ok := spec.Getters[ob.pkg+"."+ob.sym]; ok && ob.kind == "field" {
			ob.newName = n
		} else if n, ok := spec.Renames[strings.TrimSuffix(ob.pkg, "_test")+"."+ob.sym]; ok {
			ob.newName = n
		}
	}
	for _, ob := range objects {
		if ob.embeddedOf != "" {
			if t := objects[ob.embeddedOf]; t != nil {
				ob.newName = t.newName
			}
		}
	}
	seen := map[string]*object{}
	var list []*object
	for _, ob := range objects {
		list = append(list, ob)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].key < list[j].key })
	for _, ob := range list {
		k := ob.target + "." + ob.newName
		if ob.kind != "top" {
			if ob.owner == "" {
				continue
			}
			k = ob.target + "." + ob.owner + "." + ob.newName
		}
		if o := seen[k]; o != nil && o.key != ob.key && (o.newName != o.name || ob.newName != ob.name || o.pkg != ob.pkg) {
			warn("CONFLICT %s: %s.%s (%s) and %s.%s (%s) used by %v", k, o.pkg, o.sym, o.kind, ob.pkg, ob.sym, ob.kind, keys(o.users, ob.users))
		}
		seen[k] = ob
		if _, ok := spec.Getters[ob.pkg+"."+ob.sym]; ok {
			continue
		}
		if ob.newName != ob.name && ob.export {
			warn("export %s %s.%s %s for %v", ob.kind, ob.pkg, ob.sym, ob.target, keys(ob.users))
		}
	}
}

func keys(ms ...map[string]bool) (all []string) {
	for _, m := range ms {
		all = append(all, slices.Collect(maps.Keys(m))...)
	}
	sort.Strings(all)
	if len(all) > 3 {
		all = append(all[:3], "…")
	}
	return all
}

var word = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)
var link = regexp.MustCompile(`\[(\*?)([A-Za-z_][A-Za-z_0-9]*)((?:\.[A-Za-z_][A-Za-z_0-9]*)*)\]`)

// comments renames what comments name.
func comments() {
	byName := map[string]map[string][]*object{} // pkg -> name
	for _, ob := range objects {
		p := strings.TrimSuffix(ob.pkg, "_test")
		if byName[p] == nil {
			byName[p] = map[string][]*object{}
		}
		byName[p][ob.name] = append(byName[p][ob.name], ob)
	}
	for _, f := range files {
		p := strings.TrimSuffix(f.pkg, "_test")
		if keep(spec.KeepComments, f) {
			continue
		}
		for _, g := range f.af.Comments {
			for _, c := range g.List {
				// the offset of the comment: same parse, position within the file
				lo := int(c.Pos() - f.af.FileStart)
				if lo < 0 || lo+len(c.Text) > len(f.text) || !bytes.HasPrefix(f.text[lo:], []byte(c.Text[:2])) {
					continue
				}
				d := f.at(lo)
				target := f.main
				if d != nil {
					target = d.target
				}
				skip := map[int]bool{}
				for _, m := range link.FindAllStringSubmatchIndex(c.Text, -1) {
					first, rest := c.Text[m[4]:m[5]], c.Text[m[6]:m[7]]
					imported := slices.ContainsFunc(f.af.Imports, func(i *ast.ImportSpec) bool { return path.Base(unq(i.Path.Value)) == first })
					if rest != "" && (imported || byName[p][first] == nil) { // a package's
						pkg := ""
						for q := range byName {
							if path.Base(q) == first {
								pkg = q
							}
						}
						parts := strings.SplitN(rest[1:], ".", 2)
						for _, ob := range byName[pkg][parts[0]] {
							if ob.kind == "top" && (ob.target != ob.pkg || ob.newName != ob.name) {
								t := ob.newName
								if ob.target != target {
									t = pkgName(ob.target) + "." + t
								}
								if len(parts) > 1 {
									t += "." + member(byName[pkg], ob.name, parts[1])
								}
								f.edits[edit{lo + m[4], lo + m[7], t}] = true
							}
						}
						for i := m[0]; i < m[1]; i++ {
							skip[i] = true
						}
						continue
					}
					for _, ob := range byName[p][first] {
						if ob.kind != "top" || ob.pkg != f.pkg && strings.HasSuffix(ob.pkg, "_test") {
							continue
						}
						t := ob.newName
						if ob.target != target {
							t = pkgName(ob.target) + "." + t
						}
						if rest != "" {
							t += "." + member(byName[p], ob.name, rest[1:])
						}
						if t != first+rest {
							f.edits[edit{lo + m[4], lo + m[7], t}] = true
						}
						for i := m[0]; i < m[1]; i++ {
							skip[i] = true
						}
						break
					}
				}
				isDoc := d != nil && docStart(f, d, lo)
				firstWord := true
				for _, m := range word.FindAllStringIndex(c.Text, -1) {
					w := c.Text[m[0]:m[1]]
					fw := firstWord && isDoc
					firstWord = false
					if skip[m[0]] || m[0] > 0 && (c.Text[m[0]-1] == '"' || c.Text[m[0]-1] == '/' && m[0] > 2 || c.Text[m[0]-1] == '-') {
						continue
					}
					obs := byName[p][w]
					if len(obs) == 0 {
						continue
					}
					camel := strings.ToLower(w[1:]) != w[1:]
					var to string
					for _, ob := range obs {
						if fw && !camel && (d == nil || !slices.ContainsFunc(d.syms, func(s string) bool { return s == ob.sym })) && ob.kind != "field" {
							continue
						}
						if ob.newName != w && spec.Getters[ob.pkg+"."+ob.sym] == "" {
							if to == "" || ob.kind == "top" {
								to = ob.newName
							}
						}
					}
					if to != "" && (camel || fw && d != nil && slices.ContainsFunc(d.syms, func(s string) bool { return s == w || strings.HasSuffix(s, "."+w) })) {
						f.edits[edit{lo + m[0], lo + m[1], to}] = true
					}
				}
			}
		}
	}
}

func member(by map[string][]*object, owner, name string) string {
	for _, ob := range by[name] {
		if ob.owner == owner {
			return ob.newName
		}
	}
	return name
}

func docStart(f *fileInfo, d *decl, lo int) bool {
	var g *ast.CommentGroup
	switch n := d.node.(type) {
	case *ast.FuncDecl:
		g = n.Doc
	case *ast.GenDecl:
		g = n.Doc
	}
	return g != nil && int(g.Pos()-f.af.FileStart) == lo
}

type outFile struct {
	text  bytes.Buffer
	chunk []string
}

// write writes the files.
func write() {
	removed := map[string]bool{}
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		if !f.moving && len(f.edits) == 0 {
			continue
		}
		targets := map[string]bool{f.main: true}
		if len(f.decls) > 0 {
			targets = map[string]bool{}
			for _, d := range f.decls {
				targets[d.target] = true
			}
		}
		if f.moving {
			removed[name] = true
		}
		for t := range targets {
			dir := strings.TrimSuffix(t, "_test")
			to := filepath.Join(root, dir, filepath.Base(name))
			rn, _ := filepath.Rel(root, name)
			if n, ok := spec.FileNames[rn]; ok && t == f.main {
				to = filepath.Join(root, dir, n)
			}
			if n, ok := spec.NotTest[rn]; ok {
				to = filepath.Join(root, dir, n)
			}
			text := render(f, t, targets)
			if old, ok := out[to]; ok {
				warn("TWICE %s", to)
				_ = old
			}
			if to != name && !removed[to] && files[to] != nil && !files[to].moving {
				warn("EXISTS %s", to)
			}
			out[to] = text
		}
	}
	if *dry {
		return
	}
	for n := range removed {
		if _, ok := out[n]; !ok {
			_ = os.Remove(n)
		}
	}
	for n, t := range out {
		_ = os.MkdirAll(filepath.Dir(n), 0o777)
		b, err := format.Source([]byte(t))
		if err != nil {
			warn("FORMAT %s: %v", n, err)
			b = []byte(t)
		}
		if err := os.WriteFile(n, b, 0o666); err != nil {
			die("%v", err)
		}
	}
}

func render(f *fileInfo, target string, targets map[string]bool) string {
	edits := slices.Collect(maps.Keys(f.edits))
	sort.Slice(edits, func(i, j int) bool {
		if edits[i].lo != edits[j].lo {
			return edits[i].lo < edits[j].lo
		}
		return edits[i].hi < edits[j].hi
	})
	apply := func(lo, hi int) string {
		var b strings.Builder
		at := lo
		for _, e := range edits {
			if e.lo < lo || e.hi > hi {
				continue
			}
			if e.lo < at {
				warn("OVERLAP %s %q at %q", f.name, e.text, f.text[e.lo:e.hi])
				continue
			}
			b.Write(f.text[at:e.lo])
			b.WriteString(e.text)
			at = e.hi
		}
		b.Write(f.text[at:hi])
		return b.String()
	}
	var b strings.Builder
	// head: comments and the package clause
	pkgAt := int(f.af.Package - f.af.FileStart)
	head := apply(0, pkgAt)
	if target != f.main || f.moving && f.af.Doc != nil {
		// keep build constraints only
		var keep []string
		for _, l := range strings.Split(string(f.text[:pkgAt]), "\n") {
			if strings.HasPrefix(l, "//go:build") {
				keep = append(keep, l, "")
			}
		}
		if f.af.Doc != nil && target == f.main {
			warn("PACKAGE DOC of %s goes along", f.name)
		} else {
			head = strings.Join(keep, "\n")
			if head != "" {
				head += "\n"
			}
		}
	}
	b.WriteString(head)
	if f.moving {
		b.WriteString("package " + pkgName(target) + "\n")
	} else {
		b.WriteString(string(f.text[pkgAt:f.head]))
	}
	ims := map[string]bool{}
	for k := range f.imports[target] {
		ims[k] = true
	}
	if target == f.main {
		for _, k := range f.blank {
			ims[k] = true
		}
	}
	var std, other, ours []string
	for k := range ims {
		n, p, _ := strings.Cut(k, " ")
		if p == "C" {
			continue
		}
		l := "\t"
		if n != "" {
			l += n + " "
		}
		l += strconv.Quote(p)
		if strings.HasPrefix(p, home) {
			ours = append(ours, l)
		} else if strings.Contains(strings.Split(p, "/")[0], ".") {
			other = append(other, l)
		} else {
			std = append(std, l)
		}
	}
	byPath := func(s []string) {
		sort.Slice(s, func(i, j int) bool { return s[i][strings.IndexByte(s[i], '"'):] < s[j][strings.IndexByte(s[j], '"'):] })
	}
	byPath(std)
	byPath(other)
	byPath(ours)
	var groups []string
	for _, g := range [][]string{std, other, ours} {
		if len(g) > 0 {
			groups = append(groups, strings.Join(g, "\n"))
		}
	}
	if n := len(std) + len(other) + len(ours); n == 1 {
		b.WriteString("\nimport " + strings.TrimSpace(groups[0]) + "\n")
	} else if n > 0 {
		b.WriteString("\nimport (\n" + strings.Join(groups, "\n\n") + "\n)\n")
	}
	// text between imports and the first declaration belongs to its chunk
	for _, d := range f.decls {
		if d.target == target {
			b.WriteString(apply(d.lo, d.hi))
			if !strings.HasSuffix(b.String(), "\n") {
				b.WriteString("\n")
			}
		}
	}
	return b.String()
}
