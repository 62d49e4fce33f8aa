package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Module is the path of this module.
const Module = "github.com/bloomjoin/bloomjoin"

// Tree is what a checkout holds, without what .gitignore names.
type Tree struct {
	Files []*File        // Go files of the main module, without testdata
	Words map[string]int // of each Markdown file
	Marks []string       // where a comment in source of any kind has a mark, as file:line
}

// File is a Go file. Of tests, only Path and Lines are set.
type File struct {
	Path     string // from the root of the module, with slashes
	Lines    int
	Tokens   int // without comments and semicolons at line ends
	Funcs    []Func
	Imports  []string // packages of this module, as their directories
	ForTests bool     // it imports testing: its package serves tests
	DocWords int      // in the comments that go doc prints
}

// Func is a function declared in a file.
type Func struct {
	Name  string // with the receiver's type
	Lines int    // from func to the closing brace
}

// Test reports whether it is a file of tests.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Package returns the directory of the file, "." for the root.
func (f *File) Package() string { return path.Dir(f.Path) }

// ReadTree reads the checkout in a directory. It needs no git.
func ReadTree(dir string) (*Tree, error) {
	root := os.DirFS(dir)
	ignored, err := readIgnored(root)
	if err != nil {
		return nil, err
	}
	tree := &Tree{Words: map[string]int{}}
	outside := "" // the directory of the nested module that is read, or testdata
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git" || ignored(name, d.IsDir()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if outside != "" && !strings.HasPrefix(name, outside+"/") {
			outside = ""
		}
		if d.IsDir() {
			_, err := fs.Stat(root, name+"/go.mod")
			if outside == "" && name != "." && (err == nil || d.Name() == "testdata") {
				outside = name
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return tree.add(root, name, outside == "")
	})
	return tree, err
}

func (t *Tree) add(root fs.FS, name string, ours bool) error {
	ext := path.Ext(name)
	if ext != ".go" && ext != ".md" && !commented[ext] {
		return nil
	}
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	switch {
	case ext == ".md":
		t.Words[name] = len(strings.Fields(string(text)))
	case ext != ".go":
		if !strings.Contains("/"+name, "/testdata/") {
			for i, line := range bytes.Split(text, []byte("\n")) {
				if markedLine.Match(line) {
					t.Marks = append(t.Marks, name+":"+strconv.Itoa(i+1))
				}
			}
		}
	default:
		tokens, marks := scan(text)
		for _, line := range marks {
			t.Marks = append(t.Marks, name+":"+strconv.Itoa(line))
		}
		if ours {
			f, err := parse(name, text)
			if err != nil {
				return err
			}
			f.Tokens = tokens
			t.Files = append(t.Files, f)
		}
	}
	return nil
}

// readIgnored returns a function that reports whether the patterns in .gitignore
// match a path. It knows the forms that this project uses: no negation, no **.
func readIgnored(root fs.FS) (func(name string, dir bool) bool, error) {
	text, err := fs.ReadFile(root, ".gitignore")
	if err != nil {
		return nil, err
	}
	patterns := strings.Fields(string(text))
	return func(name string, dir bool) bool {
		for _, p := range patterns {
			p, onlyDir := strings.CutSuffix(p, "/")
			p, anchored := strings.CutPrefix(p, "/")
			of := name
			if !anchored {
				of = path.Base(name)
			}
			if ok, err := path.Match(p, of); ok && err == nil && (dir || !onlyDir) {
				return true
			}
		}
		return false
	}, nil
}

// commented are the kinds of source, other than Go, that are searched for marks.
var commented = map[string]bool{
	"": true, ".py": true, ".c": true, ".h": true, ".s": true, ".sh": true, ".java": true, ".yml": true, ".yaml": true, ".toml": true,
}

var (
	mark       = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	markedLine = regexp.MustCompile(`(#|//|/\*).*\b(TODO|FIXME|XXX)\b`)
)

// scan counts the tokens of Go source and returns the lines of comments with a mark.
func scan(text []byte) (tokens int, marks []int) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return tokens, marks
		case tok == token.COMMENT:
			for _, at := range mark.FindAllStringIndex(literal, -1) {
				marks = append(marks, file.Line(pos)+strings.Count(literal[:at[0]], "\n"))
			}
		case tok != token.SEMICOLON || literal == ";":
			tokens++
		}
	}
}

// parse reads a Go file.
func parse(name string, text []byte) (*File, error) {
	f := &File{Path: name, Lines: bytes.Count(text, []byte("\n"))}
	if f.Test() {
		return f, nil
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if pkg, ok := ours(imported); ok {
			f.Imports = append(f.Imports, pkg)
		}
		f.ForTests = f.ForTests || imported == "testing"
	}
	for _, d := range syntax.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d) + "." + name
			}
			f.Funcs = append(f.Funcs, Func{name, fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1})
		}
	}
	f.DocWords = docWords(syntax)
	return f, nil
}

// receiver returns the name of the type whose method is declared.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name
		default:
			return "?"
		}
	}
}

// docWords counts the words that go doc prints of the comments in a file: those on
// the package and on exported declarations, fields and methods. It removes the rest
// from the syntax.
func docWords(syntax *ast.File) (n int) {
	ast.FileExports(syntax)
	ast.Inspect(syntax, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			node.Body = nil
			return node.Recv == nil || ast.IsExported(receiver(node))
		case *ast.CommentGroup:
			n += len(strings.Fields(node.Text()))
		}
		return true
	})
	return n
}
