package sketches

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
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
	want, got := filters.New(s.facts).KeyClasses(), plan.Spec.Classes
	if s.spec.Weight != "" {
		got = got[:len(got)-1]
	}
	if !slices.Equal(want, got) {
		return nil, Report{}, faults.Mismatch(fault.At{}, "key class of the inputs", strings.Join(want, ", ")+" (the sketch)", strings.Join(got, ", ")).
			WithHint("name the inputs that the sketch is of")
	}
	threshold := s.Threshold(phi)
	room := &heldKeys{most: o.Memory}
	var mu sync.Mutex
	var all []*candidates
	rep, err := eachKey(ctx, plan, s.spec, o, o.Threads, func() func(*weighted) error {
		c := &candidates{of: s, threshold: threshold, room: room, weight: map[string]uint64{}}
		mu.Lock()
		all = append(all, c)
		mu.Unlock()
		return c.add
	})
	if err != nil {
		return nil, rep, err
	}
	var sum map[string]uint64
	total := uint64(0)
	for i, c := range all {
		total += c.total
		if i == 0 {
			sum = c.weight
			continue
		}
		for key, weight := range c.weight {
			sum[key] += weight
		}
	}
	if rows := uint64(rep.Rows - rep.KeysNull); rows != s.rows || total != s.Total() {
		return nil, rep, faults.Mismatch(fault.At{}, "rows with a key in the inputs", fmt.Sprintf("those of the sketch: %d, %s %d", s.rows, s.spec.unit(), s.Total()),
			fmt.Sprintf("%d, %s %d", rows, s.spec.unit(), total)).WithHint("name all inputs that the sketch is of, as they were")
	}
	var found []Hitter
	for key, weight := range sum {
		if weight >= threshold {
			found = append(found, Hitter{keys.Text(keys.ClassesOf(want), []byte(key)), weight})
		}
	}
	slices.SortFunc(found, func(a, b Hitter) int { return cmp.Or(byWeight(a, b), strings.Compare(a.Key, b.Key)) })
	return found, rep, nil
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
	weight    map[string]uint64
	total     uint64
}

// add adds keys with their weights.
func (c *candidates) add(k *weighted) error {
	for i := range k.Batch.Rows {
		key, weight, err := k.at(i)
		if err != nil {
			return err
		}
		c.total += weight
		if weight == 0 || c.of.table.Estimate(c.of.hashed(key)) < c.threshold {
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
