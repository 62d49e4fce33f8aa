package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// inputsFlags holds the flags of inputs.
type inputsFlags struct {
	out, update      string
	text, repeated   bool
	format, encoding string
	inputs           flags.Inputs
	index            indexFlags
}

func (c *cli) inputsCmd() *cobra.Command {
	var o inputsFlags
	cmd := &cobra.Command{
		Use:   "inputs [--update OLD] [--index COL[,COL]] -o INPUTS.jsonl LOGS...",
		Short: "List the inputs once, so that no worker has to open them all",
		Long:  `List the inputs: paths, sizes, identities, row groups, and the columns in their paths. Commands with --files-from INPUTS.jsonl list no directory, and open only what they read.`,
		Example: `  bloomjoin inputs -o inputs.jsonl logs/
  bloomjoin inputs --update inputs.jsonl -o inputs.jsonl logs/
  bloomjoin inputs --index user_id -o inputs.jsonl logs/`,
		Annotations: flags.Help("inputs", "output", "update index index-fpr files-from include exclude text allow-empty force"),
		Args:        o.inputs.Arguments("LOGS"),
		RunE:        withFlags(c.inputs, &o),
	}
	f := cmd.Flags()
	o.inputs.AddFrom(f)
	o.inputs.Add(f)
	o.inputs.AddLog(f)
	f.BoolVar(&o.text, "text", false, "list text files, too")
	f.StringVar(&o.format, "ids-format", "", "`FORMAT` format of text IDs: lines, csv, tsv or ndjson")
	flags.AddEncoding(f, &o.encoding)
	f.BoolVar(&o.repeated, "repeated", false, "list a file as often as it is named")
	f.StringVar(&o.update, "update", "", "`OLD` earlier list, whose unchanged files are not opened")
	flags.Group(f, flags.GroupInput)

	f.StringVar(&o.index.key, "index", "", "`COLUMNS` write FILE.index, too: which files may hold a key")
	flags.AddRate(f, &o.index.fpr, "index-fpr", defaultIndexFPR, "`RATE` false-positive rate of each filter in the index")
	f.BoolVar(&o.index.rowGroups, "index-row-groups", false, "index row groups, too")
	f.StringVar(&o.index.normalize, "normalize", "", flags.NormalizeHelp)
	flags.Group(f, flags.GroupKeys)

	f.StringVarP(&o.out, "output", "o", "", "`FILE` the list to write")
	c.AddForce(f)
	o.inputs.AddOutput(f)
	flags.Group(f, flags.GroupOutput)
	of := c.common()
	of["index"] = flags.ListOf(c.ofLogs)
	c.Complete(cmd, of)
	return cmd
}

// inputsReport is the JSON report of inputs.
type inputsReport struct {
	session.Head
	Inputs    int   `json:"inputs"`
	Rows      int64 `json:"rows"` // -1: unknown
	RowGroups int64 `json:"row_groups"`
	Bytes     int64 `json:"bytes"`
	FileBytes int64 `json:"file_bytes"` // of the list
	// With --update: names by what became of them, and the number of those kept.
	New     []string `json:"new,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	Kept    *int     `json:"kept,omitempty"`

	Index *indexReport `json:"index,omitempty"`
}

func (c *cli) inputs(cmd *cobra.Command, o *inputsFlags, args []string) (err error) {
	ctx, start := cmd.Context(), time.Now()
	var open source.Opening
	if err := cmp.Or(c.inputsOptions(o, args, &open), o.index.check(cmd, o.text), c.SpareList(o.out, &o.inputs)); err != nil {
		return err
	}
	names, list, err := c.FilesFrom(cmd, &o.inputs, args)
	if err != nil {
		return err
	}
	if list != nil {
		return errors.Join(fmt.Errorf("--files-from %s: it is a list of inputs already (name paths, or bring it up to date with --update %s LOGS)", o.inputs.FilesFrom, o.inputs.FilesFrom), list.Close())
	}
	if err := c.Budgets(&open); err != nil {
		return err
	}
	old, err := c.earlier(ctx, o.update)
	if err != nil {
		return err
	}
	if old != nil {
		defer faults.Join(&err, old.Close)
	}
	found, err := inputs.Find(ctx, names, open, old)
	if err != nil {
		return err
	}
	defer faults.Join(&err, found.Close)
	if err := o.inputs.CheckTypes(fieldNames(found.Hive()), found.Len()); err != nil {
		return err
	}
	rep := inputsReport{Inputs: found.Len(), Rows: found.Rows()}
	if err := c.SpareListed(ctx, o.out, found); err != nil {
		return err
	}
	rep.Bytes, rep.RowGroups = found.Totals()
	if o.update != "" {
		rep.since(found)
	}
	index, err := c.makeIndex(ctx, o, found, old)
	if err != nil {
		return err
	}
	defer faults.Join(&err, index.close)
	rep.FileBytes, err = inputs.Write(ctx, c.Store(), o.out, found, c.Force || o.update != "" && c.SameAs(o.out)(o.update))
	if err != nil {
		return err
	}
	if err := index.publish(); err != nil {
		return err
	}
	rep.Index = index.report()
	rep.Head = c.NewHead("inputs", start)
	c.sayInputs(o, &rep)
	return c.Report(rep, o.out)
}

// inputsOptions checks the flags before anything is opened.
func (c *cli) inputsOptions(o *inputsFlags, args []string, open *source.Opening) error {
	switch {
	case o.out == "" || o.out == "-":
		return flags.Required("-o FILE is required: name the list to write, as -o inputs.jsonl")
	case slices.Contains(args, "-"):
		return flags.Usagef("-: standard input has no name under which workers could read it (write it to a file first)")
	case o.format != "" && !o.text:
		return flags.Usagef("--ids-format %s: it is for text (add --text)", o.format)
	}
	if o.encoding != "" && !o.text {
		return flags.Usagef("--encoding %s: it is for text (add --text)", o.encoding)
	}
	if err := errors.Join(flags.CheckWritable(o.out), flags.RegularOutput(o.out), flags.CheckEncoding(o.encoding)); err != nil {
		return err
	}
	if says := flags.NamedAs(o.out); says != "" && says != "text" {
		return flags.Usagef("-o %s: its name says %s, and a list of inputs is written: name the file .jsonl", o.out, says)
	}
	if o.format != "" {
		if err := flags.OneOf("ids-format", o.format, "lines", "csv", "tsv", "ndjson"); err != nil {
			return err
		}
	}
	*open = source.Opening{OpenOptions: source.OpenOptions{Text: o.text, TextFormat: dataset.Format(o.format), Encoding: o.encoding}, Repeated: o.repeated, Digests: true}
	return o.inputs.Fill(open)
}

// earlier opens the list of --update; nil if there is none. A list that is not there yet
// is no error: the first run has none.
func (c *cli) earlier(ctx context.Context, name string) (*inputs.List, error) {
	if name == "" {
		return nil, nil
	}
	old, err := inputs.Read(ctx, c.Store(), name)
	if errors.Is(err, fs.ErrNotExist) {
		c.Say("note: --update %s: there is no such list yet, so all files are opened", name)
		return new(inputs.List), nil
	}
	return old, err
}

// since adds what an update has found.
func (r *inputsReport) since(found *inputs.List) {
	c := found.Changes()
	kept := r.Inputs - len(c.New) - len(c.Changed)
	r.Kept = &kept
	r.New, r.Changed, r.Gone = each.Slice(c.New, publish.EscapeName), each.Slice(c.Changed, publish.EscapeName), each.Slice(c.Gone, publish.EscapeName)
}

// sayInputs prints a summary.
func (c *cli) sayInputs(o *inputsFlags, r *inputsReport) {
	c.Say("%s: %s, %s in %s, %s, in %.2f s", o.out, words.Things(r.Inputs, "input"), rowsCounted(r.Rows), words.Things(r.RowGroups, "row group"), words.Bytes(r.Bytes), r.Seconds)
	if x := r.Index; x != nil {
		reused := ""
		if x.Reused > 0 {
			reused = ", the filters of " + words.Things(x.Reused, "input") + " from before"
		}
		c.Say("%s: index of %s, %s%s", x.File, x.Key, words.Bytes(x.Bytes), reused)
	}
	if r.Kept == nil {
		return
	}
	c.Say("  new: %s, changed: %s, gone: %s, kept: %s", words.Count(len(r.New)), words.Count(len(r.Changed)), words.Count(len(r.Gone)), words.Count(*r.Kept))
	if !c.Verbose {
		return
	}
	for _, l := range []struct {
		what  string
		names []string
	}{{"new", r.New}, {"changed", r.Changed}, {"gone", r.Gone}} {
		for _, n := range l.names {
			c.Say("  %s: %s", l.what, n)
		}
	}
}

// indexFlags are the flags of inputs about the index of the list.
type indexFlags struct {
	key, normalize string
	fpr            float64
	rowGroups      bool
}

const defaultIndexFPR = 0.01

// check checks the flags before anything is opened.
func (o *indexFlags) check(cmd *cobra.Command, text bool) error {
	if o.key == "" {
		for _, name := range []string{"index", "index-fpr", "index-row-groups", "normalize"} {
			if cmd.Flags().Changed(name) {
				return flags.Usagef("--%s: it is about an index (name its key, as --index user_id)", name)
			}
		}
		return nil
	}
	columns, err := keys.ParseColumns(o.key)
	if err != nil {
		return flags.Usagef("--index: %w", err)
	}
	for _, c := range columns {
		if c.Cast != nil {
			return flags.Usagef("--index %s: want columns as they are stored, got a cast", o.key)
		}
	}
	if !(o.fpr > 0 && o.fpr < 1) { // true for NaN, too
		return flags.Usagef("--index-fpr %v: want more than 0 and less than 1, as 0.01", o.fpr)
	}
	if _, err := flags.Rule(o.normalize); err != nil {
		return err
	}
	if text {
		return flags.Usagef("--index %s: unsupported with --text (an index is of Parquet and Arrow files)", o.key)
	}
	return nil
}

// newIndex is an index that is written, and not yet visible.
type newIndex struct {
	filters *keyindex.Filters
	writer  storage.Writer
	name    string
	size    int64
	replace bool
}

// indexReport is what a report says of an index.
type indexReport struct {
	File      string   `json:"file"`
	Bytes     int64    `json:"bytes"`
	Key       string   `json:"key"`
	Classes   []string `json:"classes"`
	Normalize string   `json:"normalize,omitempty"`
	FPR       float64  `json:"fpr"`
	RowGroups bool     `json:"row_groups"`
	Inputs    int      `json:"inputs"`
	Reused    int      `json:"reused"` // inputs whose filters were taken from the earlier index
}

// earlierIndex opens the index of an earlier list, or else of the list that is written: it is
// brought up to date.
func (c *cli) earlierIndex(ctx context.Context, o *inputsFlags) (*keyindex.Index, error) {
	for _, list := range []string{o.update, o.out} {
		if list == "" {
			continue
		}
		x, err := keyindex.Open(ctx, c.Store(), keyindex.NameOf(list))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // as some stores say of what is not there
			continue
		}
		if err != nil && c.Force && o.index.key != "" {
			return nil, nil // it is replaced, whatever it is
		}
		return x, err
	}
	return nil, nil
}

// makeIndex writes the index of a list, unless there is to be none. The caller publishes or
// aborts it.
func (c *cli) makeIndex(ctx context.Context, o *inputsFlags, list, old *inputs.List) (n *newIndex, err error) {
	x, err := c.earlierIndex(ctx, o)
	if err != nil || x == nil && o.index.key == "" {
		return nil, err
	}
	opts := keyindex.Options{Key: o.index.key, FPR: o.index.fpr, RowGroups: o.index.rowGroups, Threads: c.Threads, Old: x, OldList: old}
	opts.Rule, _ = keys.ParseRule(o.index.normalize) // checked before
	if x != nil {
		defer faults.Join(&err, x.Close)
		if o.index.key == "" {
			opts.Key, opts.FPR, opts.RowGroups, opts.Rule = x.Key, x.FPR, x.RowGroups, x.Rule()
		}
	}
	n = &newIndex{name: keyindex.NameOf(o.out), replace: c.Force || o.index.key == "" || o.update != "" && c.SameAs(o.out)(o.update)}
	if err := c.SpareListed(ctx, n.name, list); err != nil {
		return nil, err
	}
	var open source.Opening
	if err := c.Budgets(&open); err != nil {
		return nil, err
	}
	opts.Memory = open.Memory
	add, end := c.Progress("indexing", nil)
	n.filters, err = keyindex.Build(progress.With(ctx, add), list, open, opts)
	end()
	if err != nil {
		return nil, err
	}
	if x != nil && x.Same(&n.filters.Facts) {
		n.replace = true
	}
	n.writer, n.size, err = n.filters.Create(ctx, c.Store(), n.name)
	if err != nil {
		return nil, errors.Join(err, n.filters.Close())
	}
	return n, nil
}

// publish makes the index visible, now that its list is.
func (n *newIndex) publish() error {
	if n == nil {
		return nil
	}
	err := n.writer.Commit(n.replace)
	if !n.replace && errors.Is(err, fs.ErrExist) {
		err = faults.Errorf("%s: %w, and is of another key, or of other files ({Force} replaces it)", n.name, publish.ErrExists)
	}
	return err
}

// close drops what is not published. n may be nil.
func (n *newIndex) close() error {
	if n == nil {
		return nil
	}
	return errors.Join(n.filters.Close(), n.writer.Abort())
}

// report returns what the report says of the index; nil: there is none.
func (n *newIndex) report() *indexReport {
	if n == nil {
		return nil
	}
	f := &n.filters.Facts
	return &indexReport{
		File: publish.EscapeName(n.name), Bytes: n.size, Key: f.Key, Classes: f.Classes, Normalize: f.Rule().String(),
		FPR: f.FPR, RowGroups: f.RowGroups, Inputs: f.Inputs, Reused: n.filters.Reused,
	}
}
