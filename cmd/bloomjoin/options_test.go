package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/wording"
)

// No library names a flag. Each option that an error names is declared in a
// public package, and has a flag.
func TestLibrariesNameNoFlags(t *testing.T) {
	flag, option := regexp.MustCompile(`(^|[^-\w])--[a-z]`), regexp.MustCompile(`\{[A-Z][A-Za-z0-9+]*( [^{}]*)?\}`)
	others := regexp.MustCompile(`--long or --ultra`) // of zstd
	root, named, declared := (&cli{}).root(), map[wording.Option]bool{}, map[string]bool{}
	files := 0
	libraries(t, func(path string, file *ast.File) {
		files++
		public := !strings.Contains(path, "internal")
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				declare(declared, public, n.Names...)
			case *ast.ValueSpec:
				declare(declared, public, n.Names...)
			case *ast.FuncDecl:
				declare(declared, public, n.Name)
			}
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if flag.MatchString(others.ReplaceAllString(text, "")) {
				t.Errorf("%s: %q names a flag", path, text)
			}
			for _, o := range option.FindAllString(text, -1) {
				faults.Word(fault.Text(o), func(o wording.Option) string {
					named[o] = true
					return ""
				})
			}
			return true
		})
	})
	for o := range named {
		for part := range strings.SplitSeq(o.Name, "+") {
			if !declared[strings.ToLower(part)] && !ofJobs[part] {
				t.Errorf("errors name the option %s, which no public package declares", o)
			}
		}
		name := strings.TrimLeft(strings.Fields(words.Flag(o))[0], "-")
		if !anyFlag(root, name) {
			t.Errorf("errors name the option %s, of which no command has the flag %s", o, words.Flag(o))
		}
	}
	if files < 100 || len(named) < 30 {
		t.Errorf("%d files, %d options: they were not found", files, len(named))
	}
}

// ofJobs are options that only the command sets: of runs that it records in manifests, of dedup,
// and of inputs.
var ofJobs = map[string]bool{"RawFiles": true, "IDsChanged": true, "ManifestDir": true, "Prune": true, "State": true, "TimeUnit": true, "MaxJump": true}

func declare(declared map[string]bool, public bool, names ...*ast.Ident) {
	for _, n := range names {
		name := strings.ToLower(n.Name) // parameters begin with a small letter
		declared[name] = declared[name] || public
	}
}

// libraries parses the source of all packages but those of the command, without
// tests and modules of their own.
func libraries(t *testing.T, visit func(path string, file *ast.File)) {
	const top = "../.."
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			own, _ := filepath.Glob(filepath.Join(path, "go.mod"))
			if path != top && (len(own) > 0 || d.Name() == "cmd" || d.Name() == "testdata" || d.Name() == "storetest" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			visit(path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func anyFlag(cmd *cobra.Command, name string) bool {
	if cmd.Flag(name) != nil || cmd.Flags().ShorthandLookup(name[:1]) != nil && len(name) == 1 {
		return true
	}
	for _, sub := range cmd.Commands() {
		if anyFlag(sub, name) {
			return true
		}
	}
	return false
}
