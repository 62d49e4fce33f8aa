package main

import (
	"context"

	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// With a list of inputs, a run opens one file of each schema to check keys and columns,
// and when it knows what is to be done, the files of its shard.

// openListed opens the index of the list, if it has one, and a file of each schema.
func (r *logRun) openListed(ctx context.Context, name string, open source.Opening) error {
	if err := r.openIndex(ctx, name); err != nil {
		return err
	}
	return r.openSchemas(ctx, open)
}

// openSchemas leaves out what the condition excludes, and opens a file of each schema.
func (r *logRun) openSchemas(ctx context.Context, open source.Opening) error {
	if err := r.Budgets(&open); err != nil {
		return err
	}
	chosen, err := r.list.Where(open.Where, open.IgnoreCase)
	if err != nil {
		return err
	}
	if left := r.list.Len() - chosen.Len(); left > 0 && open.Excluded != nil {
		for range left {
			open.Excluded("")
		}
	}
	r.list, r.opening = chosen, open
	first, err := r.list.Schemas(ctx)
	if err != nil {
		return err
	}
	r.schemas = map[*source.File]string{}
	for _, in := range first {
		f, _, err := r.list.Open(ctx, []inputs.Piece{{Input: in}}, open)
		if err != nil {
			return err
		}
		r.all = append(r.all, f...)
		r.schemas[f[0]] = in.Schema
	}
	return nil
}

// skipListed leaves the inputs of those schemas out that have no key.
func (r *logRun) skipListed(ctx context.Context) (err error) {
	why := map[string]string{}
	for _, s := range r.skipped {
		why[r.schemas[s.file]] = s.why
	}
	r.found, r.skipped = r.list, nil
	r.list, err = r.list.Pick(ctx, func(in *inputs.Input) bool {
		reason, without := why[in.Schema]
		if without {
			r.skipped = append(r.skipped, skippedFile{name: in.Name, why: reason})
		}
		return !without
	})
	return err
}

// openOwn opens what this worker reads of a list.
func (r *logRun) openOwn(ctx context.Context) error {
	if r.list == nil {
		return nil
	}
	share, err := r.share(ctx)
	if err == nil {
		share, err = r.leaveUnread(ctx, share)
	}
	if err != nil {
		return err
	}
	files, pieces, err := r.list.Open(ctx, share, r.opening)
	r.all, r.files = append(r.all, files...), append(r.files, files...)
	r.own = append([]source.Piece{}, pieces...) // not nil, even if there are none
	return err
}

// share returns what this worker reads of a list.
func (r *logRun) share(ctx context.Context) ([]inputs.Piece, error) {
	if r.out.Run == nil {
		return r.list.Share(ctx, r.shard)
	}
	return r.out.Run.ListedPieces(ctx, r.list, r.shard)
}
