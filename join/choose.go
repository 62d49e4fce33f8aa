package join

import "context"

// choose takes the strategy that is expected to take the least time within the
// memory budget.
func (j *Join) choose(context.Context) (Strategy, error) {
	var ids, log int64
	for _, f := range j.ids {
		if f.Once() || f.Rows() < 0 {
			return Lookup, nil
		}
		ids += f.Rows()
	}
	for _, f := range j.logs {
		if f.Once() {
			return Lookup, nil
		}
		log += max(f.Rows(), 0)
	}
	if ids > 1<<20 && ids > log/2 {
		if j.filter != nil {
			return Broadcast, nil
		}
		return Reverse, nil
	}
	return Lookup, nil
}
