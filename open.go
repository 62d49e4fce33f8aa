package bloomjoin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Option changes how a call opens its files, or has it report. An option that does not
// apply to a call is an error.
type Option func(*settings)

type settings struct {
	log, ids *partition.OpenOptions // nil: the default
	report   *join.Report
	kept     func(context.Context) []string // types that columns of paths have in the output
	stats    *partition.ScanStats
}

// OpenLog opens the log with these options: a condition, another store, types.
func OpenLog(o partition.OpenOptions) Option { return func(s *settings) { s.log = &o } }

// OpenIDs opens the IDs with these options. Text files are read in any case.
func OpenIDs(o partition.OpenOptions) Option { return func(s *settings) { s.ids = &o } }

// JoinReport sets r to the report of a [Join] when its sequence has come to its end. Of one
// that was left, or failed, it has no figures.
func JoinReport(r *join.Report) Option { return func(s *settings) { s.report = r } }

// ScanStats sets to to the figures of a [Scan] when its sequence has ended, or was left.
func ScanStats(to *partition.ScanStats) Option { return func(s *settings) { s.stats = to } }

// settingsOf applies options to a call, which has a log, IDs, or both.
func settingsOf(options []Option, call string, log, ids bool) (s settings, err error) {
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	for _, o := range []struct {
		name  string
		wrong bool
	}{
		{"OpenLog", s.log != nil && !log}, {"OpenIDs", s.ids != nil && !ids},
		{"JoinReport", s.report != nil && call != "Join"}, {"ScanStats", s.stats != nil && call != "Scan"},
	} {
		if o.wrong {
			return s, fmt.Errorf("option %s does not apply to %s", o.name, call)
		}
	}
	for _, o := range []*partition.OpenOptions{s.log, s.ids} {
		if o != nil && o.SkipBad {
			return s, fmt.Errorf("%s: SkipBad leaves rows out, and no one would see how many (open the files with partition.Open, and see File.BadLines)", call)
		}
	}
	if s.report != nil {
		*s.report = join.Report{}
	}
	if s.stats != nil {
		*s.stats = partition.ScanStats{}
	}
	return s, nil
}

// openIDs opens ID files, which may be text.
func (s *settings) openIDs(ctx context.Context, names []string) ([]*partition.File, error) {
	o := *cmp.Or(s.ids, new(partition.OpenOptions))
	o.Text = true
	return partition.Open(ctx, names, o)
}

// openLog opens log files.
func (s *settings) openLog(ctx context.Context, names []string) ([]*partition.File, error) {
	o := source.Opening{OpenOptions: *opening(s.log), Digests: s.kept != nil, HiveKept: s.kept}
	o.InFlight = o.Memory / 2
	files, err := source.Open(ctx, names, o)
	return each.Slice(files, func(f *source.File) *partition.File { return (*partition.File)(f) }), err
}

// opening returns options for rooms.
func opening(o *partition.OpenOptions) *source.OpenOptions {
	return (*source.OpenOptions)(cmp.Or(o, new(partition.OpenOptions)))
}

// openJoin opens ID and log files and returns their join and a function that
// closes them, to be called if the error is nil.
func (s *settings) openJoin(ctx context.Context, ids, logs []string, opts join.Options) (*join.Join, func() error, error) {
	pairs, ofLog, ofIDs, err := keys.SplitNames(opts.On)
	if err != nil {
		return nil, nil, err
	}
	opts.On, s.log, s.ids = pairs, named(s.log, ofLog), named(s.ids, ofIDs)
	idFiles, err := s.openIDs(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	logFiles, err := s.openLog(ctx, logs)
	if err != nil {
		return nil, nil, errors.Join(err, partition.Close(idFiles))
	}
	closeFiles := func() error { return errors.Join(partition.Close(idFiles), partition.Close(logFiles)) }
	j, err := join.New(idFiles, logFiles, opts)
	if err != nil {
		return nil, nil, errors.Join(err, closeFiles())
	}
	return j, closeFiles, nil
}

// named returns options with other names of columns.
func named(o *partition.OpenOptions, names []string) *partition.OpenOptions {
	with := *cmp.Or(o, new(partition.OpenOptions))
	with.OtherNames = append(slices.Clip(with.OtherNames), names...)
	return &with
}

// sequence returns the records of the rows that run yields, each of which it
// releases, and at the end the error that run returns.
func sequence(run func(yield func(partition.Rows, error) bool) error) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		ended := false
		err := run(func(rows partition.Rows, err error) bool {
			if err != nil {
				ended = true
				return yield(nil, err)
			}
			defer rows.Record.Release()
			ended = !yield(rows.Record, nil)
			return !ended
		})
		if err != nil && !ended {
			yield(nil, err)
		}
	}
}
