package keyscan

import (
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Predicate is a [dataset.Match], or a check in its place. Check decides for whole batches of keys.
type Predicate struct {
	dataset.Match
	// Check, if not nil, decides instead of the filter which keys are members. It
	// is called once per worker. The function that it returns receives batches of
	// keys and returns the positions in Batch.Rows of the members, ascending, in
	// memory that stays valid until the next call. It may probe the filter first,
	// with [Keys.Probe]. It is exact.
	//
	// Keys of a row group's dictionary come twice: with Times all zero, for the
	// decision, before the first page is matched, and again after the last page,
	// with the number of rows of each key. Keys of pages that cannot hold a member
	// of the filter may be skipped.
	Check func() func(*Keys) (members []uint32, err error)
}

// Check is what Predicate.Check returns.
type Check = func(*Keys) ([]uint32, error)

// Members returns the filter as rooms have it.
func (m *Predicate) Members() *filters.Filter { return (*filters.Filter)(m.Filter) }

// exact reports whether the match passes only members.
func (m *Predicate) exact() bool {
	return m.Check != nil || m.Members().Kind() == filters.KindExact
}

// columns names the key columns, for messages.
func (m Predicate) columns() string {
	if m.Key != "" {
		return m.Key
	}
	return strings.Join(m.Filter.KeyNames(), ",")
}

// keyColumns returns the log columns that the match is applied to.
func (m Predicate) keyColumns() ([]keys.Column, error) {
	if m.Key != "" {
		return keys.ParseColumns(m.Key)
	}
	var columns []keys.Column
	for _, name := range m.Filter.KeyNames() {
		c, err := keys.ParseColumns(name)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c...)
	}
	return columns, nil
}

// Encoding returns the key columns, and the options for turning their values into keys
// that the filter can be probed with.
func (m Predicate) Encoding() (columns []keys.Column, o keys.Options, err error) {
	if columns, err = m.keyColumns(); err != nil {
		return nil, o, err
	}
	o, err = m.Members().KeyOptions()
	o.IgnoreCase, o.NullMisfits = m.IgnoreCase, m.NullMisfits
	return columns, o, err
}

// Encoder finds the key columns in the schema of a file and compares their classes
// with the filter's.
func (m Predicate) Encoder(file string, schema *arrow.Schema) (*keys.Encoder, error) {
	columns, o, err := m.Encoding()
	if err != nil {
		return nil, err
	}
	return NewEncoder(file, schema, columns, o, true)
}

// pruner returns a Pruner for a Parquet file, or nil if nothing can be pruned.
func (m Predicate) pruner(f *source.File) (*prune.Pruner, error) {
	columns, o, err := m.Encoding()
	if err != nil {
		return nil, err
	}
	p, err := prune.New(f.Parquet().File(), f.Schema(), columns, o, m.Members())
	if p != nil {
		p.Doubt = f.Doubt
	}
	return p, err
}

// mayFail reports whether a value that does not fit its cast is an error.
func (m Predicate) mayFail() (bool, error) {
	columns, err := m.keyColumns()
	return !m.NullMisfits && slices.ContainsFunc(columns, func(c keys.Column) bool { return c.Cast != nil }), err
}
