// Package house measures the project: how large its files, functions and packages
// are, what they export and import, and how much there is to read. Limits is the
// one table that bounds these values. The test of the root package measures nearly
// all of them.
package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Check fails the test if a measured value is over its limit, has fallen so far
// below it that the limit must follow, or has no limit. where names the places with
// the value, as the longest function.
func Check(t testing.TB, of string, value int, where ...string) {
	t.Helper()
	if problem := judge(Limits, of, value, where); problem != "" {
		t.Error(problem)
	} else if testing.Verbose() {
		t.Logf("%6d %s (limit %d)", value, of, Find(of).Max)
	}
}

// file is where limits are changed.
const file = "internal/house/limits.go"

// Find returns a limit, or nil.
func Find(of string) *Limit { return find(Limits, of) }

func find(limits []Limit, of string) *Limit {
	for i := range limits {
		if limits[i].Of == of {
			return &limits[i]
		}
	}
	return nil
}

// judge returns what is wrong with a measured value, or "".
func judge(limits []Limit, of string, value int, where []string) string {
	unit, _, _ := strings.Cut(of, " ")
	places := ""
	if len(where) > 0 {
		places = "\n\t" + strings.Join(where, "\n\t")
	}
	l := find(limits, of)
	switch {
	case l == nil:
		return fmt.Sprintf("%d %s: no limit (add one to %s, with its reason)%s", value, of, file, places)
	case value > l.Max && l.Fixed:
		return fmt.Sprintf("%d %s: want at most %d (%s)%s", value, of, l.Max, remedies[unit], places)
	case value > l.Max:
		return fmt.Sprintf("%d %s: want at most %d (%s; if that is impossible, raise the limit in %s and say why there)%s", value, of, l.Max, remedies[unit], file, places)
	case value < l.Max-slack(unit, l.Max) && !l.Fixed:
		return fmt.Sprintf("%d %s: less than the limit of %d (lower it in %s, so that it stays won)%s", value, of, l.Max, file, places)
	}
	return ""
}

// slack is how far a value may fall before its limit must be lowered. Counts of
// files, names or packages change with a decision, and the limit follows at once.
// Lines, words and tokens change with every edit: 1 % keeps the table out of most
// commits, and is less than a package or a page of docs.
func slack(unit string, limit int) int {
	switch unit {
	case "lines", "words", "tokens":
		return limit / 100
	}
	return 0
}

// remedies says, by the unit, what brings a value back under its limit.
var remedies = map[string]string{
	"files":    "merge small files, or move some to a package of their own",
	"lines":    "split it",
	"long":     "split it",
	"tokens":   "simplify or delete something",
	"names":    "unexport or merge names that no program outside needs",
	"types":    "use a type that programs can import",
	"imports":  "move what is needed to a package below, or pass it in",
	"words":    "shorten something",
	"modules":  "do without the dependency; go mod why -m says who needs it",
	"packages": "do without the dependency; go mod why -m says who needs it",
	"marks":    "do it now, or open an issue",
}

// Upward returns the imports that run against the order of packages, as
// "file imports package".
func (t *Tree) Upward() (wrong []string) {
	for _, f := range t.Files {
		for _, imported := range f.Imports {
			if !mayImport(f.Package(), imported) {
				wrong = append(wrong, f.Path+" imports "+imported)
			}
		}
	}
	return wrong
}

// order is that of the packages, bottom first: each may import those of its own line and of
// the lines before it. A name stands for the packages below its directory, too, except those
// that are named themselves. It is that of docs/architecture.md. The linter holds finer
// rules, and holds tests to them.
var order = []string{
	"internal/show internal/wording internal/cause",
	"fault",
	"internal/faults",
	"storage internal", // all without a line of their own
	"internal/parquet/enc",
	"internal/parquet/meta",
	"internal/parquet",
	"internal/parquet/adapt",
	"internal/leaves internal/arrowparquet internal/prune internal/sourcetest",
	"internal/filters",
	"key codec",
	"dedup",
	"dataset",
	"internal/lake",
	"internal/source",
	"internal/inputs",
	"internal/tasks",
	"internal/rowfilter",
	"internal/keyscan",
	"internal/keyindex",
	"internal/tables",
	"internal/arraycopy",
	"internal/roomtest",
	"internal/pagecopy",
	"internal/output",
	"internal/builds",
	"internal/sketches",
	"internal/dedups",
	"internal/joins/internal",
	"internal/joins/internal/answer",
	"internal/joins",
	"partition",
	"internal/door",
	"filterbuild sketch",
	"join",
	".",
	"storage/cloud docs",
	"cmd/bloomjoin/internal/causes",
	"cmd/bloomjoin/internal/words",
	"cmd/bloomjoin/internal/flags",
	"cmd/bloomjoin/internal/session",
	"cmd/bloomjoin/internal/help",
	"cmd/bloomjoin/internal/look",
	"cmd",
}

// mayImport reports whether the order allows an import. A package without a line may
// import nothing.
func mayImport(pkg, imported string) bool {
	importer := level(pkg)
	return importer >= 0 && level(imported) >= 0 && level(imported) <= importer
}

// level returns the line of the order that a package is in, -1 if it has none.
func level(pkg string) (line int) {
	line = -1
	most := 0
	for i, names := range order {
		for name := range strings.FieldsSeq(names) {
			if within(pkg, name) && len(name) > most {
				line, most = i, len(name)
			}
		}
	}
	return line
}

// IsPublic reports whether programs can import a package of this module.
func IsPublic(pkg string) bool {
	return !within(pkg, "cmd") && !slices.Contains(strings.Split(pkg, "/"), "internal")
}

// within reports whether a package is in a directory or below it.
func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// LinesOfCode counts the lines after the imports that are neither empty nor only
// a comment.
func LinesOfCode(source string) (n int) {
	_, code, _ := strings.Cut(source, "\n)\n")
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
