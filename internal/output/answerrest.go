package output

import (
	"iter"

	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// restLeaf says what a leaf of the output has in rows of a table without a log row:
// values of the table, or NULL.
type restLeaf struct {
	table    int          // leaf of the table; -1: NULL
	as       leaves.Shape // of that leaf
	cast     *keyCast     // converts its values; nil: they stay as they are
	repeated bool         // the output's leaf has repetition levels
}

// restPages yields the leaf's entries for rows of a table without a log row. A page is
// valid until the next one.
func (l *pairLeaf) restPages(t *tables.Table, rows []uint32) iter.Seq2[*parquet.Page, error] {
	switch r := &l.rest; {
	case r.table < 0:
		return r.nulls(len(rows))
	case r.cast == nil:
		return t.Store.Pages(r.table, rows, r.as)
	default:
		return r.cast.pages(t.Store.Pages(r.table, rows, r.as))
	}
}

// nulls yields pages of NULLs: entries whose levels are 0.
func (r *restLeaf) nulls(rows int) iter.Seq2[*parquet.Page, error] {
	return func(yield func(*parquet.Page, error) bool) {
		levels := make([]uint8, min(rows, nullRows))
		for n := 0; rows > 0; rows -= n {
			n = min(rows, nullRows)
			p := &parquet.Page{Values: n, Rows: n, Def: levels[:n]}
			if r.repeated {
				p.Rep = levels[:n]
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}
