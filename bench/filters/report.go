package main

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// document is the file that -update changes, relative to the module's directory.
const document = "../docs/filters.md"

// table is a table of results.
type table struct {
	name  string
	head  []string
	rows  [][]string
	notes []string // sentences below the table
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// markdown renders the table, preceded by the command that makes it and a line about
// the machine.
func (t *table) markdown(command, machine string) string {
	r := report.Table{Name: t.name, Head: t.head, Rows: t.rows, Notes: t.notes}
	return r.Filed(command, machine)
}

// Rendering of figures.

func gib(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/(1<<30)) }
func mib(bytes float64) string { return fmt.Sprintf("%.1f MiB", bytes/(1<<20)) }
