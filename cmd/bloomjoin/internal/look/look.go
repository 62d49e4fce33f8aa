// Package look shows rows to people: the first ones of an answer or of a file, as a table that
// fits their terminal.
//
//	records, files ──► Table: cells (value.go), as wide as a terminal shows them (width.go) ──► text
//
// Values become text without anything that a terminal would obey. How much is held is bounded by
// the number of rows and the width, whatever the values are.
package look

import (
	"cmp"
	"context"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mostRows is the largest --head.
const mostRows = 10000

// Head is --head of verbs that write rows.
type Head struct {
	Rows  int    // 0: it is not given
	alone bool   // there is no -o: the rows are only shown
	table *Table // what is shown; nil: nothing yet

	stopped bool
}

// Add adds the flag.
func (h *Head) Add(cmd *cobra.Command, f *pflag.FlagSet) {
	f.IntVar(&h.Rows, "head", 0, "`N` show the first rows; without -o, only that")
	flags.Exclusive(cmd, "head", "json")
	flags.Exclusive(cmd, "head", "count")
}

// Check checks the flag against that of the output.
func (h *Head) Check(cmd *cobra.Command, output string) error {
	if !cmd.Flags().Changed("head") {
		return nil
	}
	if err := Check(h.Rows, 1); err != nil {
		return err
	}
	if output == "-" {
		return flags.Usagef("--head %d: the table and the rows of -o - would both go to standard output (leave one of them out)", h.Rows)
	}
	h.alone = output == ""
	if !h.alone {
		return nil
	}
	return flags.CheckUnwritten(cmd, "--head without -o writes nothing (add -o OUT, or remove --%s)", "schema", "schema-from")
}

// Check returns an error unless a number of rows is one that can be shown.
func Check(rows, least int) error {
	if rows >= least && rows <= mostRows {
		return nil
	}
	return flags.Usagef("--head %d: want %d to %d", rows, least, mostRows)
}

// Alone reports whether rows are shown and not written.
func (h *Head) Alone() bool { return h.alone }

// Collect reads the first rows of an answer. If all is set, it reads the others, too, without
// showing them. It returns the last piece that had rows, or -1.
func (h *Head) Collect(c *session.Session, rows iter.Seq2[arraycopy.Rows, error], all bool) (last int, err error) {
	h.table, last = NewTable(h.Rows, c.Width()), -1
	for r, err := range rows {
		if err != nil {
			return last, err
		}
		h.table.AddRecord(r.Record)
		r.Record.Release()
		last = r.Piece
		if h.stopped = h.table.Full() && !all; h.stopped {
			break
		}
	}
	return last, nil
}

// Stopped reports whether reading has stopped when there were enough rows.
func (h *Head) Stopped() bool { return h.stopped }

// Print prints the table that was collected or, if there is an output, its first rows. It has
// as many as of says; -1: unknown. An output that is complete but cannot be read back, as text
// with a huge line, is only a warning. Print does nothing if the flag is not given.
func (h *Head) Print(ctx context.Context, c *session.Session, out output.Destination, of int64) error {
	if h.Rows == 0 {
		return nil
	}
	if h.table == nil {
		h.table = NewTable(h.Rows, c.Width())
	}
	if !h.alone {
		if err := h.table.readOutput(ctx, c, out); err != nil {
			if err := stopped.Err(ctx); err != nil {
				return err
			}
			c.Warn("--head: the output is complete, but its first rows cannot be shown: %s", words.Error(err))
			return nil
		}
	}
	return h.table.Print(c.Stdout, of, " (--columns names others)")
}

// readOutput reads the first rows of an output that is complete: of a directory, file by file in
// the order of the inputs, with the columns that directories in it stand for. Those above it are
// not part of the answer. For a part of a run, it reads all files of the directory.
func (t *Table) readOutput(ctx context.Context, c *session.Session, out output.Destination) error {
	var opts source.Opening
	if err := cmp.Or(c.Budgets(&opts), opts.Fill()); err != nil {
		return err
	}
	if !objects.IsDir(ctx, c.Store(), out.Name) {
		if kind := out.Kind(); source.IsText(kind) {
			opts.Text, opts.TextFormat = true, kind
		}
		return t.readObject(ctx, storage.Object{Name: out.Name, Rel: path.Base(out.Name)}, nil, opts)
	}
	entries, err := out.Files(ctx)
	if err == nil && entries == nil {
		entries, _, err = listing.List(ctx, c.Store(), out.Name)
		entries = slices.DeleteFunc(entries, func(e storage.Object) bool {
			return source.FormatByName(e.Rel) == "" || slices.ContainsFunc(strings.Split(e.Rel, "/"), storage.Marker)
		})
	}
	if err != nil {
		return err
	}
	files := make([]hive.File, len(entries))
	for i, e := range entries {
		parts, _ := hive.Parse(e.Rel) // in an error, names that stand for no columns
		files[i] = hive.File{Name: e.Name, Parts: parts}
	}
	if columns, err := hive.Infer(files, nil); err == nil && len(columns) > 0 {
		opts.Layout = &source.HiveLayout{Columns: columns, Like: files[0].Name}
	}
	for i, e := range entries {
		if err := t.readObject(ctx, e, files[i].Parts, opts); err != nil || t.Full() {
			return err
		}
	}
	return nil
}

func (t *Table) readObject(ctx context.Context, e storage.Object, parts []hive.Part, opts source.Opening) (err error) {
	f, err := source.OpenObject(ctx, e, parts, opts)
	if err != nil {
		return err
	}
	defer faults.Join(&err, f.Close)
	return t.Read(ctx, f)
}

// Read adds the first rows of a file. It reads only columns that can be shown.
func (t *Table) Read(ctx context.Context, f *source.File) error {
	picked := t.Pick(f.Schema())
	t.Add(f.Schema(), nil, 0) // it may have no rows
	for g := range f.NumGroups() {
		read := func(ctx context.Context) iter.Seq2[arrow.Record, error] { return f.Table().Read(ctx, g, picked) }
		for rec, err := range f.Reading(ctx, g, picked, read) {
			if err != nil {
				return err
			}
			if t.Add(f.Schema(), rec.Columns(), int(rec.NumRows())); t.Full() {
				return nil
			}
		}
	}
	return nil
}
