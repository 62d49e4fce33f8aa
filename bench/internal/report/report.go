// Package report renders measurements as Markdown tables and inserts them into
// documents between markers.
package report

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Table is a table of results.
type Table struct {
	Name  string
	Head  []string
	Rows  [][]string
	Notes []string // sentences below the table
}

// Row appends a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Note appends a sentence below the table.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Targets returns an empty table of targets.
func Targets() Table { return Table{Head: []string{"", "measured", "wanted", "met"}} }

// AtMost adds a target with an upper limit for a figure.
func (t *Table) AtMost(what string, got, want float64) {
	t.Row(what, Number(got), "≤ "+Number(want), Met(got, want))
}

// Markdown renders the table and its notes. All columns but the first are
// right-aligned.
func (t *Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.Head)
	rule := make([]string, len(t.Head))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	line(rule)
	for _, r := range t.Rows {
		line(r)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	return b.String()
}

// Filed renders the table, preceded by the command that makes it, to be run in
// bench, and a line about the machine.
func (t *Table) Filed(command, machine string) string { return Filed(command, machine, t.Markdown()) }

// Filed precedes a text with the command and a line about the machine.
func Filed(command, machine, text string) string {
	return fmt.Sprintf("```sh\ncd bench && %s\n```\n\n%s\n\n%s", command, machine, text)
}

// Update replaces the text between a table's markers in a document file.
func Update(path, name, text string) error {
	doc, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("run this in the directory bench: %w", err)
	}
	if doc, err = Replace(doc, name, text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, doc, 0o644)
}

const endMarker = "<!-- end -->"

// Replace returns a document with the text between a table's markers replaced.
func Replace(doc []byte, name, text string) ([]byte, error) {
	begin := []byte("<!-- table: " + name + " -->\n")
	before, rest, ok := bytes.Cut(doc, begin)
	if !ok {
		return nil, fmt.Errorf("no marker %q", begin)
	}
	old, after, ok := bytes.Cut(rest, []byte(endMarker))
	if !ok || bytes.Contains(old, []byte("<!-- table:")) {
		return nil, fmt.Errorf("no %q after %q", endMarker, begin)
	}
	return slices.Concat(before, begin, []byte("\n"+text+"\n"+endMarker), after), nil
}

// Machine returns a line about this machine, from Linux's /proc.
func Machine() (string, error) {
	cpu, err := procField("/proc/cpuinfo", "model name")
	if err != nil {
		return "", err
	}
	memory, err := procField("/proc/meminfo", "MemTotal")
	if err != nil {
		return "", err
	}
	kib, err := strconv.ParseUint(strings.TrimSuffix(memory, " kB"), 10, 64)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d processors, %.1f GiB of memory; %s %s/%s; commit %s.", cpu, runtime.GOMAXPROCS(0),
		float64(kib)/(1<<20), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit()), nil
}

// procField returns the value of a line "name: value" in a file below /proc.
func procField(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no line %q", path, name)
}

// commit returns the commit of the checkout, or that it is unknown.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
