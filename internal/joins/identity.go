package joins

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Left sets Run of an output, as SetRun does, and returns the join of what is left to be done. New has
// made j. The error is that of [output.Destination.Pending].
func (j *Join) Left(ctx context.Context, out *output.Destination, openIDs, openLog *source.OpenOptions) (*Join, error) {
	t := *j.task
	if t.opts.Pieces != nil {
		return j, nil
	}
	t.opts.SetRun(ctx, out, "error", t.ids, t.logs, openIDs, openLog)
	todo, err := out.Pending(ctx)
	t.pieces = out.Run.Pieces(todo, t.opts.Shard)
	return &Join{task: &t}, err
}

// SetRun sets Run of an output, and what else of it the options decide, to that of a join of the
// files, which were opened with these options. The answer does not depend on the filter.
// missingKey is the value of --missing-key.
func (o Options) SetRun(ctx context.Context, out *output.Destination, missingKey string, ids, log []*source.File, openIDs, openLog *source.OpenOptions) {
	typ := cmp.Or(o.Type, Semi)
	left, right, _ := keys.ParsePairs(o.On) // New checks it
	types := ""
	if len(openIDs.Types) > 0 {
		types = fmt.Sprint(openIDs.Types)
	}
	words := []string{"join", o.On, string(typ), types, string(openIDs.TextFormat), fmt.Sprint(len(ids), " of the files are IDs")}
	if rule, _ := keys.ParseRule(o.Normalize); rule != 0 { // defaults add nothing: digests of older versions stay valid
		words = append(words, "normalize "+rule.Stored())
	}
	if s := cmp.Or(o.Suffix, defaultSuffix); s != defaultSuffix {
		words = append(words, "suffix "+s)
	}
	if slices.ContainsFunc(ids, func(f *source.File) bool { _, _, skips := f.BadLines(); return skips }) {
		words = append(words, "without bad lines")
	}
	first := func(what string, of func(*source.File) string) {
		if i := slices.IndexFunc(ids, func(f *source.File) bool { return of(f) != "" }); i >= 0 {
			words = append(words, what+of(ids[i]))
		}
	}
	first("text in ", (*source.File).Encoding)
	first("text with ", (*source.File).Fields)
	if r := o.Require; r != (dataset.Require{}) && !out.IsDir(ctx) { // of a directory, they are checked over all of its inputs whenever some are added
		words = append(words, fmt.Sprintf("require %d rows, %v of the IDs, keep %v", r.Rows, r.IDsMatched, r.MaxKept))
	}
	words = append(words, output.OfRows(o.IgnoreCase, o.NullMisfits, openLog)...)
	first("IDs as ", (*source.File).Reads)
	scan := &keyscan.ScanOptions{Columns: o.Columns, Schema: o.Schema, Pinned: o.Pinned, Limit: o.Limit}
	words = append(words, out.Layout(ctx, o.Columns, scan, missingKey, openLog.Int96Nanos)...)
	// What the command decides from the above:
	if o.KeepTypes != (types != "") || openIDs.Int96Nanos != openLog.Int96Nanos || openIDs.IgnoreCase != o.IgnoreCase || !slices.EqualFunc(openIDs.Nested, keys.NestedPaths(right), slices.Equal) {
		words = append(words, fmt.Sprintf("IDs %q", []any{o.KeepTypes, openIDs.Int96Nanos, openIDs.IgnoreCase, openIDs.Nested}))
	}
	first("lines are ", func(f *source.File) string {
		if f.Format() != dataset.Lines || f.Schema().Field(0).Name == right[len(right)-1].Name() {
			return ""
		}
		return f.Schema().Field(0).Name
	})
	out.Shard, out.Result, out.Require = o.Shard, source.ResultExact, o.Require
	out.Run = &output.Run{
		Options: words, IDs: ids, Log: log, Whole: typ.keepsIDs(),
		Uses: output.Uses(scan, openLog, []dataset.Match{{Key: keys.ColumnsString(left)}}, log),
	}
}
