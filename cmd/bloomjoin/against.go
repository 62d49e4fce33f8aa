package main

import (
	"errors"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// knownFacts are the figures for --against, of build and merge.
type knownFacts struct {
	Keys       uint64 `json:"keys"`       // non-NULL known keys, duplicates counted
	InSet      uint64 `json:"in_set"`     // known keys that are IDs, too
	Exceptions uint64 `json:"exceptions"` // known keys that would pass by mistake
}

func addAgainst(f *pflag.FlagSet, to *[]string) {
	f.StringArrayVar(to, "against", nil, "`KNOWN` good keys, none of which may pass by mistake; repeatable")
}

// openKnown opens the files of --against, none of which may be the output. It returns their
// pieces, too.
func (c *cli) openKnown(cmd *cobra.Command, out string, names []string, open source.Opening) ([]*source.File, []source.Piece, error) {
	if len(names) == 0 {
		return nil, nil, nil
	}
	open.Where = "" // which is for the IDs
	files, err := c.Open(cmd, names, open)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Spare(out, each.Slice(files, (*source.File).Name)...); err != nil {
		return nil, nil, errors.Join(err, source.Close(files))
	}
	return files, source.Split(files, dataset.Shard{}), nil
}

// mergeAgainst merges partial filters and asks the result about the known keys, which are
// read as the filter's key.
func (c *cli) mergeAgainst(cmd *cobra.Command, o *mergeFlags, names []string, lim filters.Limits) (f *filters.Filter, rep builds.Report, err error) {
	ctx := cmd.Context()
	var opened []*source.File
	end := func() {}
	defer func() {
		end()
		err = errors.Join(err, source.Close(opened))
	}()
	var fig builds.KnownFigures
	f, fig, err = builds.MergeAgainst(ctx, c.Store(), names, lim, func(of *filters.Filter) (*builds.Known, error) {
		open := source.Opening{OpenOptions: source.OpenOptions{Text: true, Stdin: c.Stdin, SkipBad: true}} // as the builds did, or had no need to
		columns, err := keys.ParseColumns(strings.Join(of.KeyNames(), ","))
		if err != nil {
			return nil, err
		}
		open.Nested = keys.NestedPaths(columns)
		open.Column = columns[len(columns)-1].Name()
		if open.Types, err = typesOf(of, columns); err != nil {
			return nil, err
		}
		var pieces []source.Piece
		if opened, pieces, err = c.openKnown(cmd, o.out, o.against, open); err != nil {
			return nil, err
		}
		k, err := builds.KnownOf(of, opened, c.Threads)
		if err == nil {
			adds, stop := c.ProgressIn(session.NewMeter("reading known keys", pieces))
			k.SetProgress(adds[0])
			end = stop
		}
		return k, err
	})
	if err != nil {
		return nil, rep, err
	}
	rep = builds.Count(f)
	rep.Known = fig
	return f, rep, nil
}

// typesOf returns the types as which text is read for a filter.
func typesOf(f *filters.Filter, columns []keys.Column) (map[string]arrow.DataType, error) {
	options, err := f.KeyOptions()
	types := map[string]arrow.DataType{}
	for i, class := range options.Classes[:min(len(options.Classes), len(columns))] {
		if t := keys.TypeOf(class); t != nil && columns[i].Cast == nil && options.Rule.Class(keys.Bytes) != class {
			types[columns[i].Flat()] = t
		}
	}
	return types, err
}

// sayKnown reports on known keys.
func (c *cli) sayKnown(r *buildReport, rep builds.Report, f *filters.Filter) {
	if rep.Known.Keys == 0 {
		return
	}
	fig := knownFacts(rep.Known)
	r.Against = &fig
	if !f.Sealed() {
		c.Say("%s known keys: those that the finished filter would pass by mistake are found by merge --against", words.Count(fig.Keys))
		return
	}
	c.Say("%s known keys, %s exceptions: they would pass by mistake", words.Count(fig.Keys), words.Count(fig.Exceptions))
	if fig.InSet > 0 {
		c.Warn("%s of the known keys are in the ID set, too, and pass (take them out of either)", words.Count(fig.InSet))
	}
}
