package join

import (
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/join/internal/budget"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
)

// leafForm is the form of ID rows as leaves, for an answer whose pages are copied.
type leafForm struct{ columns *tables.Columns }

// NewRows implements [table.Form].
func (f leafForm) NewRows(of *budget.Share) table.Rows {
	return &leafRows{f.columns.NewTable(of.Take)}
}

// Parse implements [table.Form].
func (f leafForm) Parse(src []byte, at int) (table.Batch, error) {
	b, err := f.columns.Parse(src[at:])
	return leafBatch{b}, err
}

// leafBatch is a batch of leafForm.
type leafBatch struct{ *tables.Batch }

// Keys implements [table.Batch].
func (b leafBatch) Keys() (*keys.Batch, error) { return b.Batch.Keys, nil }

// Append implements [table.Batch].
func (b leafBatch) Append(dst []byte, rows []uint32) ([]byte, error) { return b.AppendTo(dst, rows) }

// Release implements [table.Batch].
func (b leafBatch) Release() {}

// leafRows holds rows of leafForm.
type leafRows struct{ table *tables.Table }

// Add implements [table.Rows].
func (r *leafRows) Add(b table.Batch, rows []uint32) error {
	return r.table.Append(b.(leafBatch).Batch, rows)
}

// Seal implements [table.Rows].
func (r *leafRows) Seal() error { return nil }

// Release implements [table.Rows].
func (r *leafRows) Release() { r.table = nil }
