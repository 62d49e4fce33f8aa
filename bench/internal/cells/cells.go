// Package cells has what commands share that measure cells: measurements with names,
// each of which has its place in a document. It parses flags, chooses cells, prints
// their tables and writes them into the documents.
package cells

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// Cell is a measurement. Commands embed it in a type of their own.
type Cell struct {
	Name, Text string
	Document   string // the file that -update changes, relative to the module's directory
	Big        bool   // measured only on request
}

func (c Cell) cell() Cell { return c }

// Embeds is a type that embeds a Cell.
type Embeds interface{ cell() Cell }

// Choose returns the cells with the given names, in the order of all. No name means
// all except big ones, or all if quick; the name "all" means all.
func Choose[C Embeds](all []C, names []string, quick bool) ([]C, error) {
	if slices.Contains(names, "all") || quick && len(names) == 0 {
		return slices.Clone(all), nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c C) bool { return c.cell().Name == name }) {
			return nil, fmt.Errorf("-cell: no %q; -list names all", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(c C) bool {
		if len(names) == 0 {
			return c.cell().Big
		}
		return !slices.Contains(names, c.cell().Name)
	}), nil
}

// List prints names and descriptions.
func List[C Embeds](w io.Writer, all []C) error {
	for _, c := range all {
		if _, err := fmt.Fprintf(w, "%-24s %s\n", c.cell().Name, c.cell().Text); err != nil {
			return err
		}
	}
	return nil
}

// Result has the tables of a cell, and its failures.
type Result struct {
	Tables []report.Table
	Wrong  []error
}

// Markdown renders the tables.
func (r *Result) Markdown() string {
	var texts []string
	for _, t := range r.Tables {
		texts = append(texts, t.Markdown())
	}
	return strings.Join(texts, "\n")
}

// Measure measures cells and prints each when it is complete, after a line about the
// machine. With -update it writes those without failures into their documents. A
// failure in one does not stop the others.
func Measure[C Embeds](ctx context.Context, f *Flags, machine string, all []C, measure func(context.Context, C) (*Result, error)) error {
	if f.Update {
		if err := CheckDocuments(".", all); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stdout, machine)
	var wrong []error
	for _, one := range all {
		c := one.cell()
		res, err := measure(ctx, one)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", c.Name, err))
			race.Say("%s: failed: %v", c.Name, err)
			continue
		}
		text := res.Markdown()
		fmt.Fprintf(os.Stdout, "\n## %s\n\n%s", c.Name, text)
		for _, w := range res.Wrong {
			wrong = append(wrong, fmt.Errorf("%s: %w", c.Name, w))
		}
		if f.Update && len(res.Wrong) == 0 {
			if err := report.Update(c.Document, c.Name, report.Filed(f.commandFor(c), machine, text)); err != nil {
				return err
			}
		}
	}
	return errors.Join(wrong...)
}

// CheckDocuments returns an error if a document has no markers for one of its cells. dir
// is the module's directory.
func CheckDocuments[C Embeds](dir string, all []C) error {
	for _, one := range all {
		c := one.cell()
		doc, err := os.ReadFile(filepath.Join(dir, c.Document))
		if err != nil {
			return fmt.Errorf("run this in the directory bench: %w", err)
		}
		if _, err := report.Replace(doc, c.Name, ""); err != nil {
			return fmt.Errorf("%s: %w", c.Document, err)
		}
	}
	return nil
}
