package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// document is where -update writes, seen from the module's directory.
const document = "../docs/filters.md"

// table is a result, ready to be printed.
type table struct {
	name  string
	head  []string
	rows  [][]string
	notes []string // sentences that depend on what was measured
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// markdown renders the table below the command that makes it and the machine
// that it was made on. Columns but the first are flush right.
func (t *table) markdown(command, machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "```sh\ncd bench && %s\n```\n\n%s\n\n", command, machine)
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	line(rule)
	for _, r := range t.rows {
		line(r)
	}
	for _, n := range t.notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	return b.String()
}

// updateDocument replaces what stands between the table's markers in a file.
func updateDocument(path, name, text string) error {
	doc, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("run this in the directory bench: %w", err)
	}
	doc, err = replaceTable(doc, name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, doc, 0o644)
}

const endMarker = "<!-- end -->"

func replaceTable(doc []byte, name, text string) ([]byte, error) {
	begin := []byte("<!-- table: " + name + " -->\n")
	before, rest, ok := bytes.Cut(doc, begin)
	if !ok {
		return nil, fmt.Errorf("no marker %q", begin)
	}
	old, after, ok := bytes.Cut(rest, []byte(endMarker))
	if !ok || bytes.Contains(old, []byte("<!-- table:")) {
		return nil, fmt.Errorf("no %q behind %q", endMarker, begin)
	}
	return slices.Concat(before, begin, []byte("\n"+text+"\n"+endMarker), after), nil
}

// machine says in a line what the figures were measured on.
func machine() (string, error) {
	cpu, err := cpuModel()
	if err != nil {
		return "", err
	}
	memory, err := memInfo("MemTotal")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d processors, %s of memory; %s %s/%s; commit %s.", cpu, processors(),
		gib(float64(memory)), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit()), nil
}

// commit names the checkout, or says that git does not know.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// version returns the version of a module that this program was built with.
func version(module string) (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("the program does not know what it was built from")
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version, nil
		}
	}
	return "", fmt.Errorf("module %s is not part of the program", module)
}

// Figures as text.

func gib(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/(1<<30)) }
func mib(bytes float64) string { return fmt.Sprintf("%.1f MiB", bytes/(1<<20)) }

// count writes a number of keys: 1000000 as 1 M.
func count(n uint64) string {
	switch {
	case n >= 1e9 && n%1e8 == 0:
		return fmt.Sprintf("%g G", float64(n)/1e9)
	case n >= 1e6 && n%1e5 == 0:
		return fmt.Sprintf("%g M", float64(n)/1e6)
	case n >= 1e3 && n%100 == 0:
		return fmt.Sprintf("%g k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "**no**"
}
