package keyscan

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Keys is a batch of keys of one row group. It is valid until the function that
// received it returns, and must not be used concurrently.
type Keys struct {
	// Batch holds the keys. Its Rows number values, not rows of the file.
	Batch *keys.Batch
	// Piece is the row group that the keys come from.
	Piece source.Piece
	// Times holds the number of rows that have each key, by position in
	// Batch.Rows. Nil means one row each.
	Times []uint32
	// Entries is set by a [dataset.Match].Check for a scan with pagecopy.Pairs: a number for each
	// member that it returns, such as that of an entry of a hash table. It stays valid
	// as long as the members do.
	Entries []uint32
	// Run and Share describe the run that the keys belong to, if [ReadOptions] asks
	// for runs: its number, counted from 0 in input order, and the share of all
	// rows that it represents. The shares of all runs add up to 1.
	Run   int
	Share float64

	// Tentative says that some of the rows may still turn out to be deleted. A Check then sets Settle, and
	// leaves to it what is only for members that stay: it gets the Entries of their rows, one for each.
	Tentative bool
	Settle    func(entries []uint32) error

	Filter *filters.Filter // nil: every key may be a member
	hits   []uint32        // of Probe
	place  Position
}

// Probe returns the positions in Batch.Rows of the keys that may be members of the
// filter, ascending. Without a filter these are all positions. The slice is valid
// as long as the Keys are. It returns an error if the filter can no longer be read.
func (k *Keys) Probe() ([]uint32, error) {
	k.hits = k.hits[:0]
	if k.Filter == nil {
		for i := range k.Batch.Rows {
			k.hits = append(k.hits, uint32(i))
		}
		return k.hits, nil
	}
	var err error
	if k.hits, err = k.Filter.ProbeBatch(k.Batch, k.hits); err != nil {
		return nil, k.Piece.File.Failed(err)
	}
	return k.hits, nil
}

// NewEncoder finds the key columns in a schema. With filtered, the classes in
// the options are those of a filter, which the columns must be comparable to.
func NewEncoder(file string, schema *arrow.Schema, columns []keys.Column, o keys.Options, filtered bool) (*keys.Encoder, error) {
	enc, err := keys.NewEncoder(schema, columns, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !filtered {
		return enc, nil
	}
	return enc, keys.Match(AtColumns(file, columns), keys.Side{Classes: o.Classes}, enc.Side())
}

// Position maps the values of a page, or of a record, to rows.
type Position struct {
	first uint32        // row of entry 0, if rows is nil
	rows  []uint32      // by entry
	nulls *parquet.Page // the page, if it has NULLs
	full  uint8         // definition level of a value
	there []uint32      // by value: entry, if nulls is not nil and list was called
	buf   *[]uint32     // reused memory of field there
}

// list finds the entries that have a value. row needs them.
func (p *Position) list() {
	if p.nulls == nil || p.there != nil {
		return
	}
	there := (*p.buf)[:0]
	for i, d := range p.nulls.Def {
		if d == p.full {
			there = append(there, uint32(i))
		}
	}
	*p.buf, p.there = there, there
}

// row returns the row of value i.
func (p *Position) row(i uint32) uint32 {
	if p.there != nil {
		i = p.there[i]
	}
	if p.rows == nil {
		return p.first + i
	}
	return p.rows[i]
}

// Fit returns an error if a value does not fit its cast or, if ids is set, is not
// an ID.
func Fit(b *keys.Batch, file string, columns []keys.Column, ids bool) error {
	if _, faulty := b.Faulty(); !faulty {
		return nil
	}
	if err := b.Fit(fault.At{File: file}, columns); err != nil || !ids {
		return err
	}
	return b.IDs(AtColumns(file, columns))
}

// AtColumns returns the place of key columns in a file.
func AtColumns(file string, columns []keys.Column) fault.At {
	return fault.At{File: file, Column: keys.ColumnsString(columns)}
}

// RowsOf returns the number of rows that have the key at a position in Batch.Rows.
func (k *Keys) RowsOf(i int) int64 {
	if k.Times == nil {
		return 1
	}
	return int64(k.Times[i])
}

// Undecided reports whether the keys are entries of a dictionary of which no row is
// known yet.
func (k *Keys) Undecided() bool {
	return k.Times != nil && !slices.ContainsFunc(k.Times, func(n uint32) bool { return n > 0 })
}
