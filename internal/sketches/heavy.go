package sketches

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/countmin"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// entryBytes is the memory of a candidate beside its key: the map's slot and the counter.
const entryBytes = 64

// HeavyIn returns all keys whose weight is at least the share phi of the total, 1/phi at most, with
// their exact weights, in descending order. It reads the rows of the sketch again: the plan's,
// which is made with [Spec.PlanOptions]. Memory holds the keys whose estimate is that large.
func (s *Sketch) HeavyIn(ctx context.Context, plan *builds.Plan, phi float64, o Options) ([]Hitter, Report, error) {
	key, err := s.spec.keyOf(plan)
	if err != nil {
		return nil, Report{}, err
	}
	if want, got := s.Classes(), filters.New(filters.Facts{Key: key}).KeyClasses(); !slices.Equal(want, got) {
		return nil, Report{}, faults.Of(cause.KeyTypes, faults.Mismatch(fault.At{}, "key class of the inputs", strings.Join(want, ", ")+" (the sketch)", strings.Join(got, ", "))).
			WithHint("name the inputs that the sketch is of")
	}
	threshold := s.Threshold(phi)
	room := &heldKeys{most: o.Memory}
	row := s.spec.Params
	row.Depth = 1
	all, rep, err := eachKey(ctx, plan, s.spec, o.workers(Spec{Params: row}), func() *candidates {
		room.held.Add(int64(row.Bytes()))
		return &candidates{of: s, threshold: threshold, room: room, row: countmin.NewTable(row, 0), weight: map[string]uint64{}}
	}, (*candidates).add)
	if err != nil {
		return nil, rep, err
	}
	sum := &candidates{row: countmin.NewTable(row, 0), weight: map[string]uint64{}}
	for _, c := range all {
		if err := sum.row.Merge(c.row); err != nil {
			return nil, rep, s.overflow(err)
		}
		for key, weight := range c.weight {
			sum.weight[key] += weight
		}
	}
	if err := s.sameRows(uint64(rep.Rows-rep.KeysNull), sum.row); err != nil {
		return nil, rep, err
	}
	var found []Hitter
	classes := keys.ClassesOf(s.Classes())
	for key, weight := range sum.weight {
		if weight >= threshold {
			found = append(found, Hitter{keys.Text(classes, []byte(key)), weight})
		}
	}
	slices.SortFunc(found, func(a, b Hitter) int { return cmp.Or(byWeight(a, b), strings.Compare(a.Key, b.Key)) })
	return found, rep, nil
}

// sameRows returns an error unless the sketch has this number of rows and this first row of
// counters. If it does, the keys and weights are the same, except by a chance of about 1 in w.
func (s *Sketch) sameRows(rows uint64, row *countmin.Table) error {
	if rows == s.rows && slices.Equal(row.Counters(), s.table.Counters()[:s.spec.Params.Width]) {
		return nil
	}
	want, got := fmt.Sprintf("%d rows with a key, %d in all", s.rows, s.Total()), fmt.Sprintf("%d, %d", rows, row.Total())
	if rows == s.rows && row.Total() == s.Total() {
		got = "other keys or weights"
	}
	return faults.Mismatch(fault.At{}, "inputs", "those of the sketch: "+want, got).WithHint("name all inputs that the sketch is of, as they were")
}

// heldKeys is the memory of all candidates.
type heldKeys struct {
	held atomic.Int64
	most int64
}

// hold adds a key, or returns an error if the budget has no room for it.
func (h *heldKeys) hold(key int) error {
	if held := h.held.Add(int64(key) + entryBytes); h.most > 0 && held > h.most {
		return faults.Wanted(&fault.Error{Kind: fault.ErrMemory, What: "keys that may be heavy"}, "at most "+show.Size(h.most), "more").
			WithHint("raise {Memory}, ask for a larger share, or build the sketch with a smaller {Epsilon}")
	}
	return nil
}

// candidates are the keys of one worker that may be heavy, with their exact weights.
type candidates struct {
	of        *Sketch
	threshold uint64
	room      *heldKeys
	row       *countmin.Table // the first row of counters, of all keys
	weight    map[string]uint64
}

// add adds keys with their weights.
func (c *candidates) add(k *weighted) error {
	for i := range k.Batch.Rows {
		key, weight, err := k.at(i)
		if err != nil {
			return err
		}
		h, negative := c.of.hashed(key)
		if err := c.row.Add(h, negative, weight); err != nil {
			return c.of.overflow(err)
		}
		if weight == 0 || c.of.table.Estimate(h, negative) < c.threshold {
			continue
		}
		if _, ok := c.weight[string(key)]; !ok {
			if err := c.room.hold(len(key)); err != nil {
				return err
			}
		}
		c.weight[string(key)] += weight
	}
	return nil
}
