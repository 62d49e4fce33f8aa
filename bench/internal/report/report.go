// Package report prints what was measured, as Markdown, and files it in a
// document between markers.
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

// Table is a result, ready to be printed.
type Table struct {
	Name  string
	Head  []string
	Rows  [][]string
	Notes []string // sentences that depend on what was measured
}

// Row appends a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Note appends a sentence to be printed below.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Markdown renders the table and its notes. Columns but the first are flush
// right.
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

// Filed renders the table below the command that makes it, run in the
// directory bench, and a line about the machine that it was made on.
func (t *Table) Filed(command, machine string) string { return Filed(command, machine, t.Markdown()) }

// Filed puts a text that is made already below the same.
func Filed(command, machine, text string) string {
	return fmt.Sprintf("```sh\ncd bench && %s\n```\n\n%s\n\n%s", command, machine, text)
}

// Update replaces what stands between the table's markers in a document.
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

// Replace returns the document with another text between the table's markers.
func Replace(doc []byte, name, text string) ([]byte, error) {
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

// Machine says in a line what the figures are measured on. It reads Linux's
// /proc.
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

// procField returns the value of "name: value" in a file below /proc.
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

// commit names the checkout, or says that git does not know.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
