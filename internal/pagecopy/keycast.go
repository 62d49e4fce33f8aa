package pagecopy

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// shareKey makes the last leaf, a key of the log, hold the table's key in rows without
// a log row.
func (a *pairPlan) shareKey(c tables.PairColumn, field arrow.Field) error {
	span, of := a.p.Of.Spans[c.Table], a.p.Of.Schema.Field(c.Table)
	field.Type = take.PlainType(field.Type)
	src, dst := &a.p.Of.Leaves[span.Leaf], &a.from.Leaves[a.spans[c.Log].Leaf]
	stored := a.from.Project([]int{c.Log}).Schema
	stored[1].RepetitionType = thrift.New(format.Optional)
	cast, ok := a.p.Of.KeyCast(c.Table, field, stored)
	if !ok || len(src.Path) > 1 || len(dst.Path) > 1 || src.MaxRep+dst.MaxRep > 0 {
		return fmt.Errorf("the key %s is %s in the log and %s in the IDs", c.Name, field.Type, of.Type)
	}
	rest := &a.Leaves[len(a.Leaves)-1].Rest
	rest.Table, rest.As, rest.Cast = span.Leaf, leaves.Shape{Shift: uint8(1 - src.MaxDef), MaxDef: 1}, cast
	return nil
}
