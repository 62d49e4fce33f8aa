// nest PKG TYPE INNER FIELD,FIELD...: in composite literals of TYPE, FIELDs go into INNER: INNER{...}.
package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"os"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	pkg, typ, inner := os.Args[1], os.Args[2], os.Args[3]
	fields := map[string]bool{}
	for _, f := range strings.Split(os.Args[4], ",") {
		fields[f] = true
	}
	cfg := &packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile, Tests: true}
	ps, err := packages.Load(cfg, "./...")
	if err != nil {
		panic(err)
	}
	done := map[string]bool{}
	total := 0
	for _, p := range ps {
		for _, af := range p.Syntax {
			name := p.Fset.Position(af.Package).Filename
			if done[name] || strings.HasSuffix(p.PkgPath, ".test") {
				continue
			}
			done[name] = true
			text, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			off := func(x token.Pos) int { return p.Fset.Position(x).Offset }
			type lit struct {
				lo, hi int
				cl     *ast.CompositeLit
			}
			var lits []lit
			ast.Inspect(af, func(n ast.Node) bool {
				cl, ok := n.(*ast.CompositeLit)
				if !ok || len(cl.Elts) == 0 {
					return true
				}
				t := p.TypesInfo.Types[cl].Type
				if t == nil {
					return true
				}
				if pt, ok := t.Underlying().(*types.Pointer); ok {
					t = pt.Elem()
				}
				nt, ok := t.(*types.Named)
				if !ok || nt.Obj().Name() != typ || nt.Obj().Pkg() == nil || nt.Obj().Pkg().Path() != pkg {
					return true
				}
				lits = append(lits, lit{off(cl.Lbrace) + 1, off(cl.Rbrace), cl})
				return true
			})
			if len(lits) == 0 {
				continue
			}
			// innermost first: later edits shift nothing before them if sorted by position descending
			sort.Slice(lits, func(i, j int) bool { return lits[i].lo > lits[j].lo })
			q := ""
			base := pkg[strings.LastIndex(pkg, "/")+1:]
			if p.Types.Path() != pkg {
				q = base + "."
			}
			for _, l := range lits {
				var pub, priv []string
				grew := 0
				_ = grew
				nestedInside := false
				for _, m := range lits {
					if m.lo > l.lo && m.hi < l.hi {
						nestedInside = true
					}
				}
				if nestedInside {
					fmt.Println("NESTED", name, p.Fset.Position(l.cl.Pos()).Line)
				}
				for _, e := range l.cl.Elts {
					kv := e.(*ast.KeyValueExpr)
					s := string(text[off(kv.Pos()):off(kv.End())])
					if fields[kv.Key.(*ast.Ident).Name] {
						pub = append(pub, s)
					} else {
						priv = append(priv, s)
					}
				}
				if len(pub) == 0 {
					continue
				}
				total++
				sep, a, b := ", ", "", ""
				if p.Fset.Position(l.cl.Lbrace).Line != p.Fset.Position(l.cl.Elts[0].Pos()).Line {
					sep, a, b = ",\n", "\n", ",\n"
				}
				out := inner + ": " + q + inner + "{" + a + strings.Join(pub, sep) + b + "}"
				if len(priv) > 0 {
					out += sep + strings.Join(priv, sep)
				}
				if a != "" {
					out = a + out + b
				}
				text = append(append(append([]byte{}, text[:l.lo]...), out...), text[l.hi:]...)
			}
			if f, err := format.Source(text); err == nil {
				text = f
			} else {
				fmt.Println("FORMAT", name, err)
			}
			os.WriteFile(name, text, 0o666)
		}
	}
	fmt.Println("literals", total)
}
