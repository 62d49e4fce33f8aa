package pagecopy

import (
	"iter"

	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// restLeaf says what a leaf of the output has in rows of a table without a log row:
// values of the table, or NULL.
type restLeaf struct {
	Table    int             // leaf of the table; -1: NULL
	As       leaves.Shape    // of that leaf
	Cast     *tables.KeyCast // converts its values; nil: they stay as they are
	Repeated bool            // the output's leaf has repetition levels
}

// RestPages yields the leaf's entries for rows of a table without a log row. A page is
// valid until the next one.
func (l *pairLeaf) RestPages(t *tables.Table, rows []uint32) iter.Seq2[*parquet.Page, error] {
	switch r := &l.Rest; {
	case r.Table < 0:
		return r.nulls(len(rows))
	case r.Cast == nil:
		return t.Store.Pages(r.Table, rows, r.As)
	default:
		return r.Cast.Pages(t.Store.Pages(r.Table, rows, r.As))
	}
}

// nulls yields pages of NULLs: entries whose levels are 0.
func (r *restLeaf) nulls(rows int) iter.Seq2[*parquet.Page, error] {
	return func(yield func(*parquet.Page, error) bool) {
		levels := make([]uint8, min(rows, nullRows))
		for n := 0; rows > 0; rows -= n {
			n = min(rows, nullRows)
			p := &parquet.Page{Values: n, Rows: n, Def: levels[:n]}
			if r.Repeated {
				p.Rep = levels[:n]
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}
