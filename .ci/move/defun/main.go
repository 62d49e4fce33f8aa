// defun makes functions of methods: PKG Type.Method=Func ...
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

const home = "github.com/bloomjoin/bloomjoin/"

type edit struct {
	lo, hi int
	text   string
}

func main() {
	pkg := home + os.Args[1]
	to := map[string]string{}
	for _, a := range os.Args[2:] {
		k, v, _ := strings.Cut(a, "=")
		to[k] = v
	}
	cfg := &packages.Config{Mode: packages.LoadAllSyntax &^ packages.NeedDeps | packages.NeedImports | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedName | packages.NeedFiles, Tests: true}
	pkgs, err := packages.Load(cfg, "./...")
	if err != nil {
		panic(err)
	}
	edits := map[string]map[edit]bool{}
	texts := map[string][]byte{}
	nameOf := func(o types.Object) (string, *types.Func) {
		f, ok := o.(*types.Func)
		if !ok || f.Pkg() == nil || strings.TrimSuffix(f.Pkg().Path(), "_test") != pkg {
			return "", nil
		}
		r := f.Type().(*types.Signature).Recv()
		if r == nil {
			return "", nil
		}
		t := r.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		n, ok := t.(*types.Named)
		if !ok {
			return "", nil
		}
		return n.Obj().Name() + "." + f.Name(), f.Origin()
	}
	seen := map[string]bool{}
	for _, p := range pkgs {
		for _, af := range p.Syntax {
			pos := p.Fset.Position(af.Package)
			key := pos.Filename
			if seen[key] {
				continue
			}
			seen[key] = true
			if !strings.HasSuffix(key, ".go") {
				continue
			}
			b, err := os.ReadFile(key)
			if err != nil {
				continue
			}
			texts[key] = b
			off := func(x token.Pos) int { return p.Fset.Position(x).Offset }
			src := func(n ast.Node) string { return string(b[off(n.Pos()):off(n.End())]) }
			add := func(lo, hi int, t string) {
				if edits[key] == nil {
					edits[key] = map[edit]bool{}
				}
				edits[key][edit{lo, hi, t}] = true
			}
			called := map[*ast.SelectorExpr]bool{}
			qual := ""
			if strings.TrimSuffix(p.PkgPath, "_test") != pkg || strings.HasSuffix(p.Name, "_test") {
				qual = pkg[strings.LastIndex(pkg, "/")+1:] + "."
			}
			ctxFirst := func(s *types.Signature) bool {
				return s.Params().Len() > 0 && s.Params().At(0).Type().String() == "context.Context"
			}
			ast.Inspect(af, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv == nil {
						return true
					}
					name, f := nameOf(p.TypesInfo.Defs[n.Name])
					fn := to[name]
					if fn == "" {
						return true
					}
					recv := n.Recv.List[0]
					r := src(recv)
					if len(recv.Names) == 0 {
						r = "_ " + r
					}
					add(off(n.Recv.Pos()), off(n.Name.End()), fn)
					params := n.Type.Params
					if ctxFirst(f.Type().(*types.Signature)) {
						first := params.List[0]
						if len(first.Names) > 1 {
							fmt.Println("CTX names", name)
						}
						at := off(first.End())
						add(at, at, ", "+r)
					} else {
						at := off(params.Opening) + 1
						if len(params.List) > 0 {
							r += ", "
						}
						add(at, at, r)
					}
				case *ast.CallExpr:
					sel, ok := n.Fun.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					name, f := nameOf(p.TypesInfo.Uses[sel.Sel])
					fn := to[name]
					if fn == "" {
						return true
					}
					called[sel] = true
					sig := f.Type().(*types.Signature)
					x := src(sel.X)
					_, ptrRecv := sig.Recv().Type().(*types.Pointer)
					xt := p.TypesInfo.TypeOf(sel.X)
					_, isPtr := xt.Underlying().(*types.Pointer)
					if s := p.TypesInfo.Selections[sel]; s != nil && len(s.Index()) > 1 {
						fmt.Println("PROMOTED", name, p.Fset.Position(sel.Pos()))
					}
					switch {
					case ptrRecv && !isPtr:
						x = "&" + x
					case !ptrRecv && isPtr:
						x = "*" + x
					}
					// keep edits within x: only cut around it
					lead := qual + fn + "("
					if ctxFirst(sig) && len(n.Args) > 0 {
						// N(ctx, x, rest
						add(off(sel.Pos()), off(n.Args[0].Pos()), lead)
						at := off(n.Args[0].End())
						add(at, at, ", "+x)
					} else {
						pre := ""
						if strings.HasPrefix(x, "&") && !isPtr && ptrRecv {
							pre = "&"
						}
						if strings.HasPrefix(x, "*") && isPtr && !ptrRecv {
							pre = "*"
						}
						add(off(sel.Pos()), off(sel.Pos()), lead+pre)
						sep := ""
						if len(n.Args) > 0 {
							sep = ", "
						}
						add(off(sel.X.End()), off(n.Lparen)+1, sep)
					}
				case *ast.SelectorExpr:
					name, _ := nameOf(p.TypesInfo.Uses[n.Sel])
					if to[name] != "" && !called[n] {
						fmt.Println("VALUE", name, p.Fset.Position(n.Pos()))
					}
				}
				return true
			})
			// comments
			for _, g := range af.Comments {
				for _, c := range g.List {
					t := c.Text
					for k, v := range to {
						t = regexp.MustCompile(`\[`+regexp.QuoteMeta(k)+`\]`).ReplaceAllString(t, "["+v+"]")
						m := k[strings.Index(k, ".")+1:]
						t = regexp.MustCompile(`^// `+m+` `).ReplaceAllString(t, "// "+m+" ")
					}
					if t != c.Text {
						add(off(c.Pos()), off(c.End()), t)
					}
				}
			}
		}
	}
	for key, es := range edits {
		var list []edit
		for e := range es {
			list = append(list, e)
		}
		sort.Slice(list, func(i, j int) bool {
			if list[i].lo != list[j].lo {
				return list[i].lo < list[j].lo
			}
			return list[i].hi < list[j].hi
		})
		var out bytes.Buffer
		at := 0
		b := texts[key]
		for _, e := range list {
			if e.lo < at {
				fmt.Println("OVERLAP", key, string(b[e.lo:e.hi]))
				continue
			}
			out.Write(b[at:e.lo])
			out.WriteString(e.text)
			at = e.hi
		}
		out.Write(b[at:])
		f, err := format.Source(out.Bytes())
		if err != nil {
			fmt.Println("FORMAT", key, err)
			f = out.Bytes()
		}
		os.WriteFile(key, f, 0o644)
	}
}
