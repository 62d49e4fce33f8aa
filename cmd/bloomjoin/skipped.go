package main

import (
	"context"
	"strings"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// pin reads the schema of the --schema-from file, which must not be the output.
func (c *cli) pin(ctx context.Context, o *flags.Layout, opts *keyscan.Options, out string) (err error) {
	if o.SchemaFrom == "" {
		return nil
	}
	if err := c.spare(out, o.SchemaFrom); err != nil {
		return err
	}
	opts.Pinned, err = output.ReadSchema(ctx, o.SchemaFrom, source.Opening{OpenOptions: source.OpenOptions{Store: c.store()}})
	return err
}

// skippedFile is a file of the log that is left out, with the reason.
type skippedFile struct {
	name, why string
	file      *source.File // nil: of a list, and not open
}

// keyed returns the files that have the key columns of the matches, and with
// --missing-key skip-file, those that do not. Otherwise all files are returned.
func (c *cli) keyed(o *flags.Layout, files []*source.File, matches []dataset.Match, anyMatch bool) ([]*source.File, []skippedFile, error) {
	if o.MissingKey != "skip-file" {
		return files, nil, nil
	}
	var without []skippedFile
	with, err := keyscan.HaveKeys(files, matches, anyMatch, func(f *source.File, why string) {
		without = append(without, skippedFile{f.Name(), why, f})
	})
	return with, without, err
}

// saySkipped names files that are left out, of all files of the log.
func (c *cli) saySkipped(without []skippedFile, of int) {
	var names []string
	for i, s := range without {
		if i == 3 {
			names = append(names, "…")
			break
		}
		names = append(names, s.name)
	}
	c.say("%d of %d files have no key column and are skipped: %s", len(without), of, strings.Join(names, ", "))
}

// leftOut reports the files that were skipped, of all shards.
func (r *scanReport) leftOut(skipped []skippedFile) {
	r.FilesSkipped = len(skipped)
	for _, s := range skipped {
		r.Path = append(r.Path, pathOf{publish.EscapeName(s.name), "skipped", s.why})
	}
}
