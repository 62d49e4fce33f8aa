package join

import "github.com/bloomjoin/bloomjoin/join/internal/table"

// ChoosePlan is the plan that a join makes on its way.
var ChoosePlan = (*Join).choosePlan

// The bytes of rows.
var (
	RowBytes  = table.RowBytes
	WidestRow = table.WidestRow
)
