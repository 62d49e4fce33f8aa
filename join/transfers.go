package join

import (
	"math"

	"github.com/bloomjoin/bloomjoin/join/internal/plan"
	"github.com/bloomjoin/bloomjoin/partition"
)

// transfers adds the reads over a network to the strategies of a plan, if files of a side
// are read over one. Samples are not included.
func (t *task) transfers(p *plan.Plan, s plan.Sizes) error {
	share := s.Selectivity
	switch typ := t.opts.Type; {
	case t.answer.counts:
		share = 0
	case typ == Anti:
		share = 1 - share
	case typ.keepsLog():
		share = 1
	}
	var opening, keys, rest, ids partition.Transfer
	for _, piece := range t.pieces {
		f := piece.File
		column, kept, err := t.logColumns(f)
		if err != nil {
			return err
		}
		opening = opening.Add(f.OpenTransfer())
		first, then := f.Transfer(piece.Lo, piece.Hi, column, positions(len(f.Schema().Fields()), kept), share)
		keys, rest = keys.Add(first), rest.Add(then)
	}
	for _, f := range t.ids {
		columns, err := t.keys.keyColumns(f)
		if err != nil {
			return err
		}
		if t.answer.ids.rows {
			if columns, err = t.answer.ids.kept(f); err != nil {
				return err
			}
		}
		opening = opening.Add(f.OpenTransfer())
		all, _ := f.Transfer(0, f.NumGroups(), columns, nil, 0)
		ids = ids.Add(all)
	}
	if opening.Requests == 0 {
		return nil
	}
	if k := p.Skips; k != nil && k.Rows > 0 { // of no row group that is skipped anything is read
		keys = keys.Times(1 - float64(k.RowsSkipped)/float64(k.Rows))
	}
	for i := range p.Strategies {
		c := &p.Strategies[i]
		log, id := c.Strategy.Passes()
		all := opening.Add(keys.Times(log)).Add(rest).Add(ids.Times(id))
		c.Transfer = &plan.Transfer{Requests: int64(math.Ceil(all.Requests)), Bytes: int64(math.Ceil(all.Bytes))}
	}
	return nil
}

// positions returns those kept, or nil, which means all, as a list of n.
func positions(n int, kept []int) []int {
	if kept != nil {
		return kept
	}
	for i := range n {
		kept = append(kept, i)
	}
	return kept
}
