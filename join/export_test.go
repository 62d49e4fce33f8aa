package join

// ChoosePlan is the plan that a join makes on its way.
var ChoosePlan = (*Join).choosePlan

// The bytes of rows.
var (
	RowBytes  = rowBytes
	WidestRow = widestRow
)
