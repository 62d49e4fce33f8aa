package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// indexFlags are the flags of inputs about the index of the list.
type indexFlags struct {
	key, normalize string
	fpr            float64
	rowGroups      bool
}

const defaultIndexFPR = 0.01

func (o *indexFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.key, "index", "", "`COLUMNS` also write FILE.index, by which find, scan and join know which files may hold a key")
	flags.AddRate(f, &o.fpr, "index-fpr", defaultIndexFPR, "`RATE` false-positive rate of each filter in the index")
	f.BoolVar(&o.rowGroups, "index-row-groups", false, "index row groups, too")
	f.StringVar(&o.normalize, "normalize", "", flags.NormalizeHelp)
}

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
	if _, err := keys.ParseRule(o.normalize); err != nil {
		return flags.Usagef("--normalize %w", err)
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
		defer func() { err = errors.Join(err, x.Close()) }()
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

// sayIndex prints a summary of the index.
func (c *cli) sayIndex(r *indexReport) {
	if r == nil {
		return
	}
	reused := ""
	if r.Reused > 0 {
		reused = ", the filters of " + words.Things(r.Reused, "input") + " from before"
	}
	c.Say("%s: index of %s, %s%s", r.File, r.Key, words.Bytes(r.Bytes), reused)
}
