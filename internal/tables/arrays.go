package tables

import (
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Array returns a column of rows of a table whose columns are c, made by NewArrayColumns:
// an array of the type of the column in c.Schema. A row that is rows.None is NULL. It is safe
// for concurrent use. The caller releases the array.
func (c *Columns) Array(mem memory.Allocator, t *Table, column int, rows []uint32) (arrow.Array, error) {
	span, assembly := c.Spans[column], c.assemblies[column]
	shift := uint8(0)
	if c.Elements[span.Element].RepetitionType.V != format.Optional {
		shift, assembly = 1, assembly.Optional() // for rows that are not there
	}
	return assembly.Array(mem, len(rows), func(leaf int) iter.Seq2[*parquet.Page, error] {
		at := span.Leaf + leaf
		return t.Store.Pages(at, rows, leaves.Shape{Shift: shift, MaxDef: c.Leaves[at].MaxDef + int(shift)})
	})
}
