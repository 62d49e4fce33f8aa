package partition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/key"
)

// Match applies a filter to key columns of a log.
type Match struct {
	Filter *codec.Filter
	// Key names the log's key columns: paths separated by commas, such as
	// `user.id` or `"a.b",c`. Each may be cast, as in `user.id::int64`. If empty,
	// these are the names that the filter was built with.
	Key string
	// IgnoreCase finds the columns by names whose letters differ in case.
	IgnoreCase bool
	// NullMisfits turns a value that does not fit its cast into NULL. Otherwise
	// such a value is an error that wraps [ErrMismatch].
	NullMisfits bool
	// NoMatch keeps the rows whose key is surely not in the set, and those with a
	// NULL key. It needs an exact filter or a Check.
	NoMatch bool
	// Check, if not nil, decides in place of the filter which keys are members.
	// It is called once by each worker; the function that it returns receives
	// batches of keys and returns the positions in Batch.Rows of the members,
	// ascending, in memory that stays valid until the next call. It may ask the
	// filter first, with [Keys.Probe]. With Check a Match is exact.
	//
	// Keys of a row group's dictionary come twice: for the decision, with Times all
	// zero, before the first page is matched, and again after the last page, with
	// the number of rows that have each key. Keys of pages that cannot hold a
	// member of the filter may be skipped.
	Check func() func(*Keys) (members []uint32, err error)
}

// check is what Match.Check returns.
type check = func(*Keys) ([]uint32, error)

// exact reports whether the match lets only members through.
func (m *Match) exact() bool {
	return m.Check != nil || m.Filter.Kind() == codec.KindExact
}

// columns names the key columns, for messages.
func (m Match) columns() string {
	if m.Key != "" {
		return m.Key
	}
	return strings.Join(m.Filter.KeyNames(), ",")
}

// usable returns an error for filters that would lose rows.
func usable(at fault.At, f *codec.Filter) error {
	if !f.Sealed() {
		return fault.Mismatch(at, "filter", "a finished filter", "a partial one, in which keys are missing").
			WithHint("merge all partial filters of the build first")
	}
	_, err := key.RuleOf(f.Normal())
	return err
}

// KeyColumns returns the log columns that the match is applied to.
func (m Match) KeyColumns() ([]key.Column, error) {
	if m.Key != "" {
		return key.ParseColumns(m.Key)
	}
	var columns []key.Column
	for _, name := range m.Filter.KeyNames() {
		c, err := key.ParseColumns(name)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c...)
	}
	return columns, nil
}

// key returns the key columns, and how their values become keys that the filter
// can be asked about.
func (m Match) key() (columns []key.Column, o key.Options, err error) {
	if columns, err = m.KeyColumns(); err != nil {
		return nil, o, err
	}
	o, err = m.Filter.KeyOptions()
	o.IgnoreCase, o.NullMisfits = m.IgnoreCase, m.NullMisfits
	return columns, o, err
}

// encoder finds the key columns in the schema of a file, and compares their
// classes with the filter's.
func (m Match) encoder(file string, schema *arrow.Schema) (*key.Encoder, error) {
	columns, o, err := m.key()
	if err != nil {
		return nil, err
	}
	return newKeyEncoder(file, schema, columns, o, true)
}

// pruner returns what can be pruned of a Parquet file, nil if nothing can.
func (m Match) pruner(f *File) (*prune.Pruner, error) {
	columns, o, err := m.key()
	if err != nil {
		return nil, err
	}
	p, err := prune.New(f.parquet().File(), f.Schema(), columns, o, m.Filter)
	if p != nil {
		p.Doubt = f.doubts.add
	}
	return p, err
}

// mayFail reports whether a value that does not fit its cast is an error.
func (m Match) mayFail() (bool, error) {
	columns, err := m.KeyColumns()
	return !m.NullMisfits && slices.ContainsFunc(columns, func(c key.Column) bool { return c.Cast != nil }), err
}

// Skipped is a file that is left out, with the reason.
type Skipped struct {
	File *File
	Why  string
}

// HaveKeys divides the files of a log into those that have the key columns of the
// matches and those that lack one, to be left out as if all of their keys were
// NULL. Unusable types are rejected later.
//
// A file is left out if it lacks a column of some match or, with anyMatch, of every
// match. Matches with NoMatch keep rows without a key, so they do not count. It is
// an error if all files lack a column.
func HaveKeys(files []*File, matches []Match, anyMatch bool) (with []*File, without []Skipped, err error) {
	for _, f := range files {
		why, lacking, wanted := "", 0, 0
		for _, m := range matches {
			if m.NoMatch {
				continue
			}
			wanted++
			missing, err := m.missing(f.Schema())
			if err != nil {
				return nil, nil, err
			}
			if missing != nil {
				lacking++
				why = fmt.Sprintf("it has no key column %s", missing)
			}
		}
		if lacking > 0 && (!anyMatch || lacking == wanted) {
			without = append(without, Skipped{f, why})
		} else {
			with = append(with, f)
		}
	}
	if len(with) == 0 && len(without) > 0 {
		return nil, nil, fault.Mismatch(fault.At{File: without[0].File.Name}, "key columns", "those of the filter, in at least one file of the log", without[0].Why+", and the other files lack it, too").
			WithHint("check the names of the key columns")
	}
	return with, without, nil
}

// missing returns the first key column that the schema lacks, nil if it has all. A
// name that occurs twice, or a path through anything but a struct, is an error
// elsewhere, not missing.
func (m Match) missing(schema *arrow.Schema) (key.Path, error) {
	columns, err := m.KeyColumns()
	if err != nil {
		return nil, err
	}
	for _, c := range columns {
		if schema.HasField(strings.Join(c.Path, ".")) { // a column of that very name: the path needs quotes
			continue
		}
		var e *key.NotFoundError
		if _, err := c.Resolve(schema, m.IgnoreCase); errors.As(err, &e) && e.Missing() {
			return c.Path, nil
		}
	}
	return nil, nil
}
