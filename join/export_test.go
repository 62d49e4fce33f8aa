package join

// ChoosePlan is the plan that a join makes on its way.
var ChoosePlan = (*Join).choosePlan
