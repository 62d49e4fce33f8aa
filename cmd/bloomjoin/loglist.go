package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
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
	r.SayTables(chosen.Tables())
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
	var some []inputs.Input
	r.list, err = r.list.Pick(ctx, func(in *inputs.Input) bool {
		reason, without := why[in.Schema]
		if without {
			r.skipped, some = append(r.skipped, skippedFile{name: in.Name, why: reason}), append(some, *in)
		}
		return !without
	})
	if err != nil {
		return err
	}
	changed, err := r.list.Differ(ctx, some, r.opening, false)
	return errors.Join(err, cmp.Or(changed...))
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

// A run over a list with an index does not open the files that hold none of its keys. Output
// and manifests are those of a run that reads these files: where they depend on more than the
// rows with a key, the index is not used. (Statistics may lack the number of NULLs. A run that
// prunes a row group by such statistics counts none; the index has the number.)

// sought are the keys that a run looks for in the log.
type sought struct {
	columns string
	classes []string
	rule    keys.Rule
	hashes  func(ctx context.Context, most int) (hashes []uint64, ok bool, err error)
	why     string // why files without these keys must be read, too; empty: they need not be
}

// soughtByScan returns the keys of a scan: those of its first filter, whose rows without a
// key are counted, if a row must pass it.
func soughtByScan(o *keyscan.Options) sought {
	if len(o.Match) == 0 {
		return sought{why: "there is no filter"}
	}
	m := o.Match[0]
	f := (*filters.Filter)(m.Filter)
	switch {
	case m.NoMatch || o.Any && len(o.Match) > 1:
		return sought{why: "rows need not pass the first filter"}
	case f.Kind() != filters.KindExact:
		return sought{why: "the filter is not exact, so its keys are not known"}
	}
	columns := m.Key
	if columns == "" {
		columns = strings.Join(f.KeyNames(), ",")
	}
	parsed, err := keys.ParseColumns(columns)
	if err != nil {
		return sought{why: "the key columns are not those of the index"}
	}
	rule, err := keys.RuleOf(f.Normal())
	if err != nil {
		return sought{why: "the filter has keys of another version"}
	}
	return sought{columns: keys.ColumnsString(parsed), classes: f.KeyClasses(), rule: rule, hashes: func(_ context.Context, most int) (all []uint64, ok bool, err error) {
		if f.Exact().Len() > uint64(most) {
			return nil, false, nil
		}
		for values := range f.Exact().Values {
			all = keyindex.Hash().AppendInts(all, values)
		}
		return all, true, nil
	}}
}

// soughtByJoin returns the keys of a join: those of its IDs, if each row of the answer has one.
func soughtByJoin(j *joins.Join, o *joins.Options) sought {
	if o.Type != joins.Semi && o.Type != joins.Inner {
		return sought{why: fmt.Sprintf("a join of type %s reads all of the log", o.Type)}
	}
	columns, classes, rule := j.LogKey()
	return sought{columns: columns, classes: classes, rule: rule, hashes: func(ctx context.Context, most int) ([]uint64, bool, error) {
		return j.IDHashes(ctx, keyindex.Hash(), most)
	}}
}

// openIndex opens the index of the list, if it has one.
func (r *logRun) openIndex(ctx context.Context, list string) (err error) {
	if list == "-" || r.verb == "plan" {
		return nil
	}
	r.index, err = keyindex.Open(ctx, r.Store(), keyindex.NameOf(list))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission): // as some stores say of what is not there
		if r.Verbose {
			r.Say("  the index of the list is not used: %v", err)
		}
		return nil
	case err != nil:
		return err
	}
	return r.index.Of(r.list)
}

// leaveUnread returns what of a share of the list is to be read. The rest holds none of the
// keys, and is left to the output.
func (r *logRun) leaveUnread(ctx context.Context, share []inputs.Piece) ([]inputs.Piece, error) {
	if r.index == nil || len(share) == 0 {
		return share, nil
	}
	hashes, why, err := r.soughtHashes(ctx)
	if err != nil {
		return nil, err
	}
	if why != "" {
		if r.Verbose {
			r.Say("  the index of the list is not used: %s", why)
		}
		return share, nil
	}
	units := make([]keyindex.Unit, len(share))
	for i := range share {
		if err := r.index.Agrees(&share[i].Input); err != nil {
			return nil, err
		}
		units[i] = r.index.File(share[i].Input.Number())
	}
	may, err := r.index.Probe(ctx, units, hashes)
	if err != nil {
		return nil, err
	}
	if err := r.keepDoubtful(ctx, share, may); err != nil {
		return nil, err
	}
	var read []inputs.Piece
	for i, p := range share {
		if may[i] {
			read = append(read, p)
		} else {
			r.out.Unread = append(r.out.Unread, output.Unread{Piece: p, KeysNull: r.index.Nulls(p.Input.Number(), p.Lo, p.Hi)})
		}
	}
	if r.Verbose {
		r.Say("  the index of the list: %s not opened", words.Things(len(r.out.Unread), "file"))
	}
	return read, nil
}

// soughtHashes returns the hashes of the keys that the run looks for, or why the index is not
// asked for them.
func (r *logRun) soughtHashes(ctx context.Context) (hashes []uint64, why string, err error) {
	s := &r.sought
	switch {
	case s.why != "":
		return nil, s.why, nil
	case s.hashes == nil:
		return nil, "there are no keys", nil
	case r.out.WriteEmpty || r.out.TargetSize > 0:
		return nil, "files of the output depend on inputs without rows", nil
	}
	if why := r.index.Unfit(s.columns, s.classes, s.rule); why != "" {
		return nil, why, nil
	}
	most := r.index.MostKeys()
	hashes, ok, err := s.hashes(ctx, most)
	if err == nil && !ok {
		why = fmt.Sprintf("the keys are more than %s, or can be read only once", words.Count(most))
	}
	return hashes, why, err
}

// keepDoubtful sets may of pieces that are read although they have no key: those whose figures
// are not known; those whose file is not as it was listed; and, if they share an output file, the
// first of each schema and format: the output takes metadata and compression from the first, and
// depends on whether the others differ.
func (r *logRun) keepDoubtful(ctx context.Context, share []inputs.Piece, may []bool) error {
	if r.writes() && !r.out.IsDir(ctx) {
		seen := map[string]bool{}
		for i := range share {
			in := &share[i].Input
			like := string(in.Format) + in.Schema
			may[i], seen[like] = may[i] || !seen[like], true
		}
	}
	conditions := r.opening.Where != ""
	var left []int
	var some []inputs.Input
	for i, p := range share {
		unknown := false
		for _, g := range p.Input.Groups[p.Lo:p.Hi] {
			unknown = unknown || g[0] < 0
		}
		if unknown || conditions && r.index.Nulls(p.Input.Number(), p.Lo, p.Hi) > 0 {
			may[i] = true
		}
		if !may[i] {
			left, some = append(left, i), append(some, p.Input)
		}
	}
	why, err := r.list.Differ(ctx, some, r.opening, true)
	for k, i := range left {
		may[i] = err == nil && why[k] != nil // what is wrong shows when it is opened
	}
	return err
}

// unreadRows returns the rows of the pieces that were not read, and how many have no key.
func (r *logRun) unreadRows() (rows, nulls int64) {
	for _, u := range r.out.Unread {
		rows, nulls = rows+u.RowsIn(), nulls+u.KeysNull
	}
	return rows, nulls
}

// addUnread adds the pieces that were not read to a report, without their rows.
func (r *logRun) addUnread(rep *scanReport) {
	if r.index == nil {
		return
	}
	n := len(r.out.Unread)
	rep.FilesUnread = &n
	for _, u := range r.out.Unread {
		rep.RowGroups, rep.RowGroupsSkipped = rep.RowGroups+int64(u.Hi-u.Lo), rep.RowGroupsSkipped+int64(u.Hi-u.Lo)
	}
}
